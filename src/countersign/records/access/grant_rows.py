"""The rows of a grant: conditions on records as they are written in a grant's record, read and checked."""

from collections.abc import Iterable, Sequence
from typing import cast

import msgspec

from countersign.declare import CALLER, TODAY, Declared, Where
from countersign.declare.rules.conditions import misfit
from countersign.declare.where import OPERATORS, Operator, Stand
from countersign.kernel.errors import Refused
from countersign.kernel.validation_messages import sentence

MAX_CONDITIONS = 50

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
        raise BadGrant(f"rows: {sentence(error)}") from error
    if len(found) > MAX_CONDITIONS:
        raise BadGrant(f"rows: at most {MAX_CONDITIONS} conditions")
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
    found = Where(model.present_name(condition.field), operator, _read(condition.value))
    # Find out now what would otherwise fail whenever somebody with the role calls.
    text = misfit(model, found, is_row_rule=True)
    if text:
        raise BadGrant(f"{place}: {text}")
    return found


def _read(value: object) -> object:
    if isinstance(value, dict):
        name = cast("dict[str, object]", value).get("stand")
        if len(cast("dict[str, object]", value)) == 1 and isinstance(name, str) and name in _STANDS:
            return _STANDS[name]
        raise BadGrant('rows: an object as value must read {"stand": "CALLER"} or {"stand": "TODAY"}')
    if isinstance(value, list):
        return [_read(each) for each in cast("list[object]", value)]
    return value
