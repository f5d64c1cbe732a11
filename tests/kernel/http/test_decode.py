"""Queries, forms and JSON bodies become structs, or are refused with the position of the error."""

import contextlib
from typing import Annotated, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.kernel.errors import InvalidRequest
from countersign.kernel.http import decode


class Query(msgspec.Struct, forbid_unknown_fields=True):
    """A query with one parameter of each type."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 20
    kind: Literal["game", "app"] | None = None
    streams: bool = False


class Item(msgspec.Struct, forbid_unknown_fields=True):
    """A nested member."""

    size: int
    sort: Literal["new", "used"] = "new"


class Body(msgspec.Struct, forbid_unknown_fields=True):
    """A body with a list of objects."""

    name: Annotated[str, msgspec.Meta(min_length=1)]
    items: list[Item] = []
    kinds: list[Literal["game", "app"]] = []


@pytest.mark.parametrize(
    ("query_string", "name"),
    [
        (b"limit=0", "limit"),
        (b"limit=101", "limit"),
        (b"limit=ten", "limit"),
        (b"limit=", "limit"),
        (b"limit=1&limit=2", "limit"),
        (b"kind=film", "kind"),
        (b"streams=perhaps", "streams"),
        (b"streams=1", "streams"),
        (b"streams=True", "streams"),
        (b"other=1", "other"),
        (b"kind=%ff", "kind"),
        (b"kind=%00", "kind"),
    ],
)
def test_a_bad_parameter_is_refused_by_name(query_string: bytes, name: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        decode.query(decode.parameters(query_string), Query)

    assert [(fault.place, fault.is_parameter) for fault in refusal.value.faults] == [(name, True)]


def test_the_refusal_of_a_choice_names_the_choices() -> None:
    with pytest.raises(InvalidRequest, match="game, app"):
        decode.query({"kind": "film"}, Query)


def test_a_choice_within_a_list_names_the_choices() -> None:
    with pytest.raises(InvalidRequest, match="must be one of new, used"):
        decode.json(b'{"name": "a", "items": [{"size": 1}, {"size": 1, "sort": "lost"}]}', Body)


def test_parameters_are_read_from_their_text() -> None:
    query = decode.query(decode.parameters(b"limit=7&kind=app&streams=true"), Query)

    assert query == Query(7, "app", True)


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        (b"{}", "/name"),
        (b'{"name":""}', "/name"),
        (b'{"name":1}', "/name"),
        (b'{"name":"a","other":1}', "/other"),
        (b'{"name":"a","items":[{"size":1},{"size":"2"}]}', "/items/1/size"),
        (b'{"name":"a","items":[{}]}', "/items/0/size"),
        (b'{"name":"a","kinds":["film"]}', "/kinds/0"),
        (b"[]", ""),
        (b"null", ""),
        (b"{", ""),
        (b"", ""),
        (b'{"name":"a"} x', ""),
        (b'{"name":NaN}', ""),
        (b"\xff", ""),
        (b'{"name":"\\u0000"}', ""),
        (b'{"name":"\\ud800"}', ""),
        (b"[" * 100_000, ""),
        (b'{"name":"\xff"}', ""),
    ],
)
def test_a_bad_body_is_refused_by_pointer(body: bytes, pointer: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        decode.json(body, Body)

    assert [fault.place for fault in refusal.value.faults] == [pointer]
    assert not any(fault.is_parameter for fault in refusal.value.faults)


def test_an_escaped_surrogate_pair_is_one_character() -> None:
    assert decode.json(b'{"name":"\\ud83d\\ude00"}', Body).name == "\N{GRINNING FACE}"


@given(st.binary(max_size=300))
def test_any_bytes_are_decoded_or_refused(body: bytes) -> None:
    for attempt in (
        lambda: decode.json(body, Body),
        lambda: decode.form(body, Body),
        lambda: decode.query(decode.parameters(body), Query),
    ):
        with contextlib.suppress(InvalidRequest):
            attempt()


def test_more_than_64_parameters_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="64"):
        decode.parameters(b"&".join(b"a%d=1" % number for number in range(1000)))


def test_an_empty_form_field_counts_as_omitted() -> None:
    with pytest.raises(InvalidRequest) as refusal:
        decode.form(b"name=", Body)

    assert refusal.value.faults[0].place == "/name"


def test_the_error_for_an_unknown_name_lists_the_known_names() -> None:
    with pytest.raises(InvalidRequest) as query_refusal:
        decode.query({"other": "1"}, Query)
    with pytest.raises(InvalidRequest) as body_refusal:
        decode.json(b'{"name": "a", "items": [{"length": 1}]}', Body)

    assert query_refusal.value.faults[0].detail == "is unknown here (known: limit, kind, streams)"
    assert (body_refusal.value.faults[0].place, body_refusal.value.faults[0].detail) == (
        "/items/0/length",
        "is unknown here (known: size, sort)",
    )


class Node(msgspec.Struct, forbid_unknown_fields=True):
    """A recursive member."""

    name: Annotated[str, msgspec.Meta(pattern=r"^[a-z]+$", extra={"needs": "must be letters"})] | None = None
    code: Annotated[str, msgspec.Meta(pattern=r"^[0-9]+$")] = ""
    within: "list[Node]" = []


def test_a_value_that_does_not_match_its_pattern_is_reported_with_the_description_of_the_pattern() -> None:
    with pytest.raises(InvalidRequest, match=r"^/within/0/name: must be letters$"):
        decode.json(b'{"within": [{"name": "1"}]}', Node)
    with pytest.raises(InvalidRequest, match=r"^/code: has characters or a form"):
        decode.json(b'{"code": "a"}', Node)
