"""The rows of a grant: conditions on records as they are written in a grant's record, read and checked."""

from collections.abc import Iterable, Sequence
from typing import cast

import msgspec

from countersign.declare import CALLER, TODAY, BadValue, Declared, Field, Where
from countersign.declare.where import OPERATORS, Operator, Stand
from countersign.kernel.errors import Refused

MOST_CONDITIONS = 50
MOST_VALUES = 1000

_STANDS = {"CALLER": CALLER, "TODAY": TODAY}


class BadGrant(Refused):
    """A grant's rows are no conditions on its model; the detail says what is wrong with them."""

    code = "bad_grant"
    title = "Grant not understood"
    resolution = 'Write rows as [{"field": "owner", "op": "eq", "value": {"stand": "CALLER"}}], or leave them empty.'


class _Condition(msgspec.Struct, forbid_unknown_fields=True):
    field: str
    op: str
    value: object


_conditions = msgspec.json.Decoder(list[_Condition])


def read_rows(model: Declared, text: str | None) -> tuple[Where, ...]:
    """The conditions written in a grant's rows; none means every record.

    Raises:
        BadGrant: the text is no JSON list of conditions, or one does not fit its field.
    """
    if not (text or "").strip():
        return ()
    try:
        found = _conditions.decode(text or "")
    except msgspec.DecodeError as error:
        raise BadGrant(f"rows: {error}") from error
    if len(found) > MOST_CONDITIONS:
        raise BadGrant(f"rows: at most {MOST_CONDITIONS} conditions")
    return tuple(_where(model, each) for each in found)


def write_rows(rows: Iterable[Where]) -> str | None:
    """The conditions as a grant's rows are written; None for none."""
    conditions = [_Condition(each.field, each.operator, _written(each.value)) for each in rows]
    return msgspec.json.encode(conditions).decode() if conditions else None


def _written(value: object) -> object:
    if isinstance(value, Stand):
        return {"stand": value.name}
    if isinstance(value, list | tuple):
        return [_written(each) for each in cast("Sequence[object]", value)]
    return value


def _where(model: Declared, condition: _Condition) -> Where:
    operator: Operator | None = next((each for each in OPERATORS if each == condition.op), None)
    place = f"rows: {model.name}.{condition.field}"
    if operator is None:
        raise BadGrant(f"{place}: op must be one of {', '.join(OPERATORS)}")
    read = _read(condition.value)
    _check(model, Where(condition.field, operator, read), place)
    return Where(condition.field, operator, read)


def _read(value: object) -> object:
    if isinstance(value, dict):
        name = cast("dict[str, object]", value).get("stand")
        if len(cast("dict[str, object]", value)) == 1 and isinstance(name, str) and name in _STANDS:
            return _STANDS[name]
        raise BadGrant('rows: an object as value must read {"stand": "CALLER"} or {"stand": "TODAY"}')
    if isinstance(value, list):
        return [_read(each) for each in cast("list[object]", value)]
    return value


def _check(model: Declared, condition: Where, place: str) -> None:
    """Find out now what would otherwise fail whenever somebody with the role calls."""
    field = model.fields.get(condition.field)
    if field is None and condition.field != "id":
        raise BadGrant(f"{place}: there is no such field")
    if field is not None and condition.operator not in field.operators:
        raise BadGrant(f"{place}: op {condition.operator} does not fit a {field.kind} field")
    if condition.operator == "is_null":
        if not isinstance(condition.value, bool):
            raise BadGrant(f"{place}: value of is_null must be true or false")
        return
    for value in _several(condition, place):
        _check_value(field, value, place)


def _several(condition: Where, place: str) -> list[object]:
    several = condition.value if condition.operator == "in" else [condition.value]
    if not isinstance(several, list) or not 1 <= len(cast("list[object]", several)) <= MOST_VALUES:
        raise BadGrant(f"{place}: value of in must be a list of 1 to {MOST_VALUES} values")
    return cast("list[object]", several)


def _check_value(field: Field | None, value: object, place: str) -> None:
    if isinstance(value, Stand):
        return
    if field is None:
        if not isinstance(value, str):
            raise BadGrant(f"{place}: value must be a string")
        return
    try:
        field.operand(value)
    except BadValue as error:
        raise BadGrant(f"{place}: value {error}") from error
