"""No error text contains Python's words, a library's name or a vague phrase."""

import datetime
import json
import uuid
from typing import Annotated, Literal

import msgspec
import pytest

from countersign.kernel.errors import InvalidRequest
from countersign.kernel.http import decode
from tests.contract.error_texts import complaint, error_names, texts


class EveryMemberType(msgspec.Struct, forbid_unknown_fields=True):
    """A body with a member of each type and bound that routes declare."""

    text: Annotated[str, msgspec.Meta(min_length=2, max_length=4)] = "aa"
    pattern: Annotated[str, msgspec.Meta(pattern="^a$")] = "a"
    whole: Annotated[int, msgspec.Meta(ge=1, le=5)] = 1
    ratio: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 0.5
    flag: bool = False
    maybe: int | None = None
    texts: Annotated[list[str], msgspec.Meta(min_length=1, max_length=2)] = msgspec.field(default_factory=lambda: ["a"])
    counts: Annotated[dict[str, int], msgspec.Meta(max_length=1)] = msgspec.field(default_factory=dict[str, int])
    moment: datetime.datetime | None = None
    day: datetime.date | None = None
    id: uuid.UUID | None = None
    data: bytes = b""
    choice: Literal["x", "y"] = "x"
    either: str | int | list[str] = 1
    step: Annotated[int, msgspec.Meta(multiple_of=5)] = 5


ANYTHING: tuple[object, ...] = (None, True, 0, 7, -1, 1.5, "", "zzzzzz", [], [1, 2, 3], {}, {"a": "b", "c": 1}, 10**30)


@pytest.mark.parametrize("name", [*EveryMemberType.__struct_fields__, "unknown"])
def test_a_member_of_another_type_or_range_is_refused_in_plain_english(name: str) -> None:
    refusals = list[InvalidRequest]()
    for value in ANYTHING:
        try:
            decode.json(json.dumps({name: value}).encode(), EveryMemberType)
        except InvalidRequest as error:
            refusals.append(error)

    texts_of_all = [
        text for refusal in refusals for text in (refusal.detail, *(fault.detail for fault in refusal.faults))
    ]
    assert [text for text in texts_of_all if complaint(text)] == []
    assert len(refusals) > 2


@pytest.mark.parametrize(
    ("query", "detail"),
    [
        ({"flag": "True"}, "flag: must be true or false"),
        ({"flag": "1"}, "flag: must be true or false"),
        ({"flag": "perhaps"}, "flag: must be true or false"),
        ({"whole": "5.0"}, "whole: must be written as 5"),
        ({"whole": "many"}, "whole: must be a whole number"),
        ({"whole": "9"}, "whole: must be at most 5"),
        ({"text": "a"}, "text: must have at least 2 characters"),
        ({"maybe": "null"}, "maybe: must not be null"),
        ({"choice": "z"}, "choice: must be one of x, y"),
    ],
)
def test_the_error_of_a_parameter_names_the_expected_value(query: dict[str, str], detail: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        decode.query(query, EveryMemberType)

    assert refusal.value.detail == detail


def test_no_error_text_in_the_source_has_a_forbidden_word() -> None:
    error_texts = list(texts())

    assert len(error_texts) > 1_000
    assert len(error_names()) > 100
    assert [f"{place}: {word!r} in {text!r}" for place, text in error_texts if (word := complaint(text))] == []


@pytest.mark.parametrize(
    "text",
    [
        "Expected `str`, got `int`",
        "lead.win is not allowed in this state: party is_null False does not hold",
        "stream: is no plain value of this parameter",
        "this is no key's to do",
        "digest is another: read the plan again",
        "ValueError: invalid literal",
    ],
)
def test_the_word_list_finds_unclear_error_texts(text: str) -> None:
    assert complaint(text)
