"""JSON from strangers has exactly one meaning, or is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.kernel import json_reader

TEXT = st.text(st.characters(exclude_categories=["Cs"], min_codepoint=1), max_size=5)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=10,
)


@pytest.mark.parametrize(
    "data",
    [b"[]", b"1", b"null", b'"text"', b"", b" ", b"{", b"{} {}", b'{"a":1,"a":1}', b'{"x":{"a":1,"\\u0061":2}}',
     b'{"a":NaN}', b'{"a":Infinity}', b'{"a":-Infinity}', b'{"a":"\xff"}', b"\xef\xbb\xbf{}", b"{'a':1}", b'{"a":01}',
     b'{"a":"\\u0000"}', b'{"\\u0000":1}', b'{"a":["\\ud800"]}', b'{"a":"x\ny"}', b'{"a":' + b"1" * 5_000 + b"}",
     b'{"a":' + b"[" * 20 + b"]" * 20 + b"}", b'{"a":' * 17 + b"1" + b"}" * 17, b'{"a":' + b"[" * 8_000,
     b'{"a":' * 3_000 + b"1" + b"}" * 3_000, "{}".encode("utf-16")],
    ids=lambda data: repr(data[:16]),
)  # fmt: skip
def test_t7_text_that_is_not_one_plain_json_object_is_refused_without_being_quoted(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"not a JSON object|deep|NUL") as refusal:
        json_reader.read_object(data)

    assert refusal.value.__cause__ is None


def test_an_object_is_read_to_the_depth_allowed() -> None:
    deep = b'{"a":' * 16 + b"1" + b"}" * 16

    assert json_reader.read_object(deep) == json.loads(deep)


@given(st.dictionaries(TEXT, JSON, max_size=3))
def test_every_plain_object_is_read_unchanged(value: dict[str, object]) -> None:
    assert json_reader.read_object(json.dumps(value).encode()) == value


@given(st.binary(max_size=200) | st.text(max_size=60).map(lambda text: b"{" + text.encode(errors="replace") + b"}"))
def test_any_bytes_are_an_object_or_refused(data: bytes) -> None:
    try:
        members = json_reader.read_object(data)
    except ValueError:
        return
    assert members == json.loads(data)
