"""Guards and locks: whether conditions hold for one record, and what a caller may learn when they do not."""

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from countersign.declare import TODAY, Declared, Field, Select, Where
from countersign.declare.fields.field import Stored
from countersign.records.access.people import folded
from countersign.records.access.view import ModelView
from countersign.records.commands import condition_text
from countersign.records.commands.conditions import named, today
from countersign.records.commands.refusals import BadInput

_RANGES: Mapping[str, Callable[[int], bool]] = {
    "gt": lambda order: order > 0,
    "gte": lambda order: order >= 0,
    "lt": lambda order: order < 0,
    "lte": lambda order: order <= 0,
}


def holds(model: Declared, values: Mapping[str, Stored], condition: Where) -> bool:
    """Whether the condition holds for stored values; the same meaning as in a filter."""
    field, stored = named(model, condition.field), values.get(condition.field)
    if condition.operator == "is_null":
        return (stored is None) == condition.value
    if condition.operator == "ne":
        return stored is None or stored != _operand(field, condition.value)
    if stored is None:
        return False
    if condition.operator == "in":
        return stored in [_operand(field, each) for each in cast("Sequence[object]", condition.value)]
    operand = _operand(field, condition.value)
    if condition.operator == "eq":
        return stored == operand
    if condition.operator == "contains":
        return folded(str(operand)) in folded(str(stored))
    return _RANGES[condition.operator](_compared(field, stored, operand))


def _operand(field: Field, value: object) -> Stored:
    return field.operand(today() if value is TODAY else value)


def _compared(field: Field, left: Stored, right: Stored) -> int:
    if isinstance(field, Select):
        left, right = field.rank(left), field.rank(right)
    if isinstance(left, int) and isinstance(right, int):
        return (left > right) - (left < right)
    return (str(left) > str(right)) - (str(left) < str(right))


def are_readable(view: ModelView | None, conditions: Sequence[Where]) -> bool:
    """Whether the caller can tell by itself if the conditions hold: it knows every field they speak of."""
    return view is not None and all(view.knows(each.field) for each in conditions)


def require(
    model: Declared, view: ModelView | None, conditions: Sequence[Where], values: Mapping[str, Stored], command: str
) -> None:
    """Insist that all conditions hold for a record; `view` is the caller's view of the model, if it has one.

    Raises:
        BadInput: one does not. A readable one is named; of the others the caller learns only that the command is
            not allowed in this state.
    """
    for readable in (True, False):
        for each in conditions:
            is_seen = view is not None and view.knows(each.field)
            if is_seen is readable and not holds(model, values, each):
                said = condition_text.refusal(each) if readable else ""
                raise BadInput(f"{command} is not allowed in this state{said}")


def is_locked(model: Declared, values: Mapping[str, Stored]) -> bool:
    """Whether the record can be changed by its actions alone."""
    return hold(model, values, model.locked)


def hold(model: Declared, values: Mapping[str, Stored], conditions: Sequence[Where]) -> bool:
    """Whether there are conditions, all of which the values meet."""
    return bool(conditions) and all(holds(model, values, each) for each in conditions)
