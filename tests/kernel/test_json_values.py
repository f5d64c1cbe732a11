"""The values of a JSON text are counted before it is decoded."""

import json

import pytest

from countersign.kernel.json_reader import has_at_most


@pytest.mark.parametrize(
    ("value", "count"),
    [
        ("a", 1),
        ([], 1),
        ([1, 2, 3], 4),
        ({"a": [1, {"b": []}], "c": "d"}, 6),
        (["," * 1000, '"[{' * 1000, "\\" * 999, '\\"' * 500], 5),
        ([[]] * 1000, 1001),
        ([""] * 1000, 1001),
    ],
)
def test_the_value_count_of_a_text_equals_the_number_of_decoded_values(value: object, count: int) -> None:
    for raw in (json.dumps(value).encode(), json.dumps(value, indent=1).encode()):
        assert has_at_most(count, raw)
        assert not has_at_most(count - 1, raw)


@pytest.mark.parametrize("piece", [b"[]", b"1", b'""', b'{"a":1}', b'"\\""'])
def test_no_kind_of_value_is_overlooked(piece: bytes) -> None:
    raw = b"[" + b",".join([piece] * 5_000) + b"]"

    count = 10_001 if piece.startswith(b"{") else 5_001
    assert not has_at_most(count - 1, raw)
    assert has_at_most(count, raw)


@pytest.mark.parametrize("text", [b"", b"[[[[", b'"""""', b'{"a', b"\\" * 9, b"\xff\xfe,,,"])
def test_invalid_json_is_left_to_the_decoder(text: bytes) -> None:
    assert has_at_most(100, text)
