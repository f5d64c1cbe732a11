"""JSON has exactly one meaning, or is refused."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.kernel import json_reader
from countersign.kernel.json_reader import DuplicateKey, NotJson, TooDeep, TooManyValues, UnstorableText

TEXT = st.text(st.characters(exclude_categories=["Cs"], min_codepoint=1), max_size=5)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=10,
)
TWICE = [
    '{"a":1,"a":1}',
    '{"a":{"b":[{"c":1,"c":2}]}}',
    '[{"a":1,"a":2}]',
    '{"a":1,"\\u0061":2}',
    '{"":1,"":2}',
    '{"a":"x:y","a" : "z"}',
    '{"a":' + "1" * 4000 + ',"a":-' + "2" * 4000 + "}",
    '{"a":1.5,"a":2e3}',
]


@given(VALUES)
def test_json_with_unique_keys_is_read_unchanged(value: object) -> None:
    for ensure_ascii in (True, False):
        text = json.dumps(value, ensure_ascii=ensure_ascii)
        assert json_reader.read(text) == json_reader.read(text.encode()) == value
        assert json_reader.read(text, checks_texts=False) == value


@given(st.dictionaries(TEXT, VALUES, min_size=1, max_size=3), st.data())
def test_a_repeated_key_is_refused_at_any_depth(value: dict[str, Any], data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(sorted(value)))
    doubled_json = f'{json.dumps(value)[:-1]}, {json.dumps(key)}: {json.dumps(data.draw(VALUES))}}}'
    for json_text in (doubled_json, f'{{"outer": [1, {doubled_json}]}}'):
        for checks_texts in (True, False):
            with pytest.raises(DuplicateKey):
                json_reader.read(json_text.encode(), checks_texts=checks_texts)


@pytest.mark.parametrize("text", TWICE, ids=lambda text: text[:20])
def test_the_same_key_written_in_two_ways_is_a_duplicate(text: str) -> None:
    with pytest.raises(DuplicateKey, match="duplicate key"):
        json_reader.read(text)


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("{", NotJson),
        ("", NotJson),
        ('{"a":NaN}', NotJson),
        ("\ufeff{}", NotJson),
        ('{"a":"\\u0000"}', UnstorableText),
        ('{"\\u0000":1}', UnstorableText),
        ("[" * 65 + "]" * 65, TooDeep),
        ('{"a":' * 65 + "1" + "}" * 65, TooDeep),
        ("[" * 50_000, NotJson),
        ("[" * 100_000, TooManyValues),
        ("[" + "1," * 70_000 + "1]", TooManyValues),
    ],
    ids=lambda value: str(value)[:16],
)
def test_text_other_than_plain_json_is_refused(text: str, refusal: type[Exception]) -> None:
    with pytest.raises(refusal):
        json_reader.read(text.encode())


def test_as_many_levels_as_the_limit_are_read() -> None:
    assert json_reader.read("[" * 64 + "]" * 64)


def test_a_refusal_repeats_a_key_shortened_and_without_control_characters() -> None:
    key = "k\x1b[31m" + "x" * 500
    with pytest.raises(DuplicateKey) as refusal:
        json_reader.read(json.dumps({key: 1})[:-1] + f", {json.dumps(key)}: 2}}")

    assert "\x1b" not in str(refusal.value)
    assert len(str(refusal.value)) < 100
