"""The arithmetic of received ranges, and the names of files."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.kernel.blobs.port import Part
from countersign.kernel.errors import InvalidRequest
from countersign.kernel.http.range_response import ByteRange
from countersign.store.releases import uploads

SIZE = 40
parts = st.lists(
    st.builds(lambda start, length: Part(start, min(length, SIZE - start), ""), st.integers(0, 39), st.integers(1, 40))
)
spans = st.builds(
    lambda start, length: ByteRange(start, min(start + length, SIZE)), st.integers(0, 39), st.integers(1, 40)
)


def positions_in(stretches: list[ByteRange]) -> set[int]:
    """Return the position of every byte in the ranges."""
    return {position for span in stretches for position in range(span.start, span.stop)}


@given(parts)
def test_the_received_ranges_are_the_ordered_union_of_the_parts(parts: list[Part]) -> None:
    arrived = uploads.received_ranges(parts)

    assert positions_in(arrived) == {
        position for received in parts for position in range(received.offset, received.offset + received.length)
    }
    assert all(earlier.stop < later.start for earlier, later in itertools.pairwise(arrived))


@given(parts, spans)
def test_the_missing_ranges_are_the_span_without_the_received_ranges(parts: list[Part], span: ByteRange) -> None:
    missing = uploads.missing_ranges(parts, span)

    assert positions_in(missing) == positions_in([span]) - positions_in(uploads.received_ranges(parts))
    assert missing == sorted(missing)
    assert all(gap.length > 0 for gap in missing)


@given(parts)
def test_a_file_is_complete_when_no_range_is_missing(parts: list[Part]) -> None:
    assert uploads.is_complete(parts, SIZE) == (uploads.missing_ranges(parts, ByteRange(0, SIZE)) == [])


def test_ranges_are_given_from_first_to_last_byte() -> None:
    parts = [Part(0, 10, ""), Part(10, 5, ""), Part(20, 1, "")]

    assert uploads.received_pairs(parts) == [(0, 14), (20, 20)]
    assert uploads.received_header(parts) == "0-14,20-20"


def test_the_header_stays_short_for_any_number_of_small_parts() -> None:
    parts = [Part(position * 2, 1, "") for position in range(5000)]

    assert uploads.received_header(parts).count(",") == 99


@pytest.mark.parametrize(
    "name",
    ["game.zip", "a", "x" * 255, "ü" * 127, "spiel v1 (final).tar.gz", ".hidden", "...", "日本語.exe", "a\u00a0b"],
)
def test_an_ordinary_filename_is_accepted(name: str) -> None:
    uploads.check_filename(name)


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "a/b", "a\\b", "a\0b", "a\nb", "a\x7fb", "a\u202eb", "a\u2028b", "a\x85b", "x" * 256, "ü" * 128],
)
def test_a_filename_that_fits_no_folder_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        uploads.check_filename(name)

    assert refusal.value.faults[0].place == "/filename"


@given(st.text())
def test_any_text_is_a_filename_or_refused(name: str) -> None:
    try:
        uploads.check_filename(name)
    except InvalidRequest:
        return

    assert "/" not in name
    assert "\0" not in name
    assert "\n" not in name
    assert 1 <= len(name.encode()) <= 255


def test_without_content_range_the_body_is_the_whole() -> None:
    assert uploads.requested_span(None, None, 10) == ByteRange(0, 10)
    assert uploads.requested_span(None, "10", 10) == ByteRange(0, 10)
    assert uploads.requested_span("bytes 2-4/10", "3", 10) == ByteRange(2, 5)


@pytest.mark.parametrize(("content_range", "length"), [(None, "9"), (None, "11"), ("bytes 2-4/10", "4"), (None, "x")])
def test_a_body_of_another_length_is_refused(content_range: str | None, length: str) -> None:
    with pytest.raises(InvalidRequest):
        uploads.requested_span(content_range, length, 10)
