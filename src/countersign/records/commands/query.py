"""The query object of list and search: from JSON to typed conditions, keys, limit and offset."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from countersign.declare.where import OPERATORS, Operator
from countersign.records.commands.refusals import BadInput, refuse_unknown_keys

MAX_CONDITIONS = 50
MAX_KEYS = 5
MAX_ROWS = 5_000
MAX_VALUES = 1_000
LARGEST_OFFSET = 2**53 - 1


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition as the caller sent it: its value is still JSON."""

    field: str
    operator: Operator
    value: object


@dataclass(frozen=True, slots=True)
class Key:
    """One key of the order."""

    field: str
    is_descending: bool


@dataclass(frozen=True, slots=True)
class Query:
    """What to list: conditions joined by AND, keys of the order, how many rows from which on (None: all).

    `scattered` are fields whose filters match so many records that the order's index serves better than theirs.
    """

    filter: tuple[Condition, ...] = ()
    order: tuple[Key, ...] = ()
    limit: int | None = None
    offset: int = 0
    scattered: frozenset[str] = frozenset()


NO_QUERY = Query()


def read(body: Mapping[str, object], command: str) -> Query:
    """The query object (API document, Query object and Limits).

    Raises:
        BadInput: a key or an operator is unknown, a value malformed, or a limit exceeded; it is named.
    """
    if not body:
        return NO_QUERY
    refuse_unknown_keys(body, ("filter", "order", "limit", "offset"), command)
    return Query(
        filter=tuple(_condition(each) for each in _array(body, "filter", MAX_CONDITIONS, "conditions")),
        order=tuple(_key(each) for each in _array(body, "order", MAX_KEYS, "keys")),
        limit=_whole(body, "limit", least=1, most=MAX_ROWS) if "limit" in body else None,
        offset=_whole(body, "offset", least=0, most=LARGEST_OFFSET) if "offset" in body else 0,
    )


def _array(body: Mapping[str, object], name: str, most: int, what: str) -> Sequence[object]:
    value = body.get(name, ())
    if not isinstance(value, list | tuple):
        raise BadInput(f"{name} must be an array")
    items = cast("Sequence[object]", value)
    if len(items) > most:
        raise BadInput(f"{name} may hold {most} {what} at most")
    return items


def _whole(body: Mapping[str, object], name: str, *, least: int, most: int) -> int:
    value = body[name]
    if type(value) is not int or not least <= value <= most:
        raise BadInput(f"{name} must be an integer from {least} to {most}")
    return value


def _members(value: object, what: str, known: tuple[str, ...]) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise BadInput(f"{what} must be an object with {', '.join(known)}")
    members = cast("Mapping[str, object]", value)
    refuse_unknown_keys(members, known, what)
    return members


def _condition(value: object) -> Condition:
    members = _members(value, "a filter condition", ("field", "op", "value"))
    field, operator = members.get("field"), members.get("op")
    if not isinstance(field, str):
        raise BadInput("a filter condition needs field, a string")
    found: Operator | None = next((each for each in OPERATORS if each == operator), None)
    if found is None:
        raise BadInput(f"a filter condition needs op, one of {', '.join(OPERATORS)}")
    if "value" not in members:
        raise BadInput("a filter condition needs value")
    return Condition(field, found, members["value"])


def _key(value: object) -> Key:
    members = _members(value, "an order key", ("field", "dir"))
    field, direction = members.get("field"), members.get("dir", "asc")
    if not isinstance(field, str):
        raise BadInput("an order key needs field, a string")
    if direction not in ("asc", "desc"):
        raise BadInput("dir must be asc or desc")
    return Key(field, direction == "desc")
