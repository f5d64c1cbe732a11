"""Ranges in Range and Content-Range, for any text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.kernel.errors import InvalidRequest
from countersign.kernel.http.range_response import ByteRange, RangeNotSatisfiable, content_range, requested_range


@pytest.mark.parametrize(
    ("header", "expected_range"),
    [
        (None, None),
        ("bytes=0-", ByteRange(0, 100)),
        ("bytes=0-0", ByteRange(0, 1)),
        ("bytes=10-19", ByteRange(10, 20)),
        ("Bytes=10-19", ByteRange(10, 20)),
        ("bytes= 10-19 ", ByteRange(10, 20)),
        ("bytes=90-1000", ByteRange(90, 100)),
        ("bytes=-1", ByteRange(99, 100)),
        ("bytes=-1000", ByteRange(0, 100)),
        ("bytes=0-1,5-6", None),
        ("bytes=9-1", None),
        ("bytes=-", None),
        ("bytes=a-b", None),
        ("items=0-1", None),
        ("bytes=0-99999999999999999999999999", None),
        ("", None),
    ],
)
def test_a_range_is_one_part_or_the_whole_content(header: str | None, expected_range: ByteRange | None) -> None:
    assert requested_range(header, 100) == expected_range


@pytest.mark.parametrize("header", ["bytes=100-", "bytes=100-200", "bytes=-0"])
def test_a_range_beyond_the_end_is_refused_with_the_size(header: str) -> None:
    with pytest.raises(RangeNotSatisfiable) as refusal:
        requested_range(header, 100)

    assert refusal.value.headers["Content-Range"] == "bytes */100"


@given(st.text(), st.integers(1, 1 << 50))
def test_no_range_header_reaches_outside_of_the_bytes(header: str, size: int) -> None:
    try:
        byte_range = requested_range("bytes=" + header, size)
    except RangeNotSatisfiable:
        return

    assert byte_range is None or 0 <= byte_range.start < byte_range.stop <= size


@given(st.data())
def test_a_formatted_content_range_is_parsed_to_the_same_range(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 1 << 50))
    start = data.draw(st.integers(0, size - 1))
    last_byte = data.draw(st.integers(start, size - 1))

    assert content_range(f"bytes {start}-{last_byte}/{size}", size) == ByteRange(start, last_byte + 1)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "0-9/100",
        "bytes 0-9/*",
        "bytes */100",
        "bytes=0-9/100",
        "bytes 0-9",
        "bytes 0-9/101",
        "bytes 9-0/100",
        "bytes 0-100/100",
        "bytes 100-100/100",
        "bytes -9/100",
        "bytes 0-/100",
        "bytes +0-9/100",
        "bytes ０-9/100",
        "bytes 0-9/100 ",
        "bytes 0-9/100, bytes 0-9/100",
        "BYTES 0-9/100",
        "bytes 0-99999999999999999999/99999999999999999999",
    ],
)
def test_another_content_range_is_refused_by_its_name(header: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        content_range(header, 100)

    assert [fault.place for fault in refusal.value.faults] == ["Content-Range"]
