"""Rules about conditions: that each names a field, an operator of its kind and a value that fits."""

from collections.abc import Iterator, Sequence
from typing import cast

from countersign.declare.errors import BadValue
from countersign.declare.fields.date import Date
from countersign.declare.fields.field import Field
from countersign.declare.fields.ref import Ref
from countersign.declare.fields.text import Text
from countersign.declare.model import Declared
from countersign.declare.rules.whole import Whole, of_field
from countersign.declare.where import CALLER, TODAY, Where

MOST_VALUES = 1000


def misfit(model: Declared, condition: Where, *, is_row_rule: bool) -> str | None:
    """What is wrong with a condition; None for nothing. Only rules of rows may speak of `id` and of CALLER."""
    field = model.fields.get(condition.field)
    if field is None and not (is_row_rule and condition.field == "id"):
        return f"a condition names {condition.field!r}, and {model.name} has no such field: correct it"
    said = f"the condition {condition.field} {condition.operator} {condition.value!r}"
    if field is not None and condition.operator not in field.operators:
        known = ", ".join(sorted(field.operators)) or "none"
        return f"{said}: a {field.kind} knows only the operators {known}: use one of them"
    if condition.operator == "is_null":
        return None if isinstance(condition.value, bool) else f"{said}: is_null takes True or False: correct it"
    if condition.operator == "in":
        return _misfits(field, condition.value, said, is_row_rule=is_row_rule)
    return _misfit_of_value(field, condition.value, said, is_row_rule=is_row_rule)


def _misfits(field: Field | None, values: object, said: str, *, is_row_rule: bool) -> str | None:
    if not isinstance(values, list | tuple):
        return f"{said}: in takes a list: write the values in brackets"
    several = cast("Sequence[object]", values)
    if not 1 <= len(several) <= MOST_VALUES:
        return f"{said}: in takes 1 to {MOST_VALUES} values: correct it"
    if TODAY in several:
        return f"{said}: TODAY stands alone, not in a list: use eq, or two conditions with gte and lte"
    found = (_misfit_of_value(field, each, said, is_row_rule=is_row_rule) for each in several)
    return next((text for text in found if text), None)


def _misfit_of_value(field: Field | None, value: object, said: str, *, is_row_rule: bool) -> str | None:
    if value is CALLER:
        if is_row_rule and _holds_person(field):
            return None
        return f'{said}: CALLER is for the rows of a grant, with a Ref("user"), id or Text: take it out'
    if value is TODAY:
        return None if isinstance(field, Date) else f"{said}: TODAY is compared with a Date: take it out"
    if field is None:
        return None if isinstance(value, str) else f"{said}: an id is a string: correct it"
    try:
        field.operand(value)
    except BadValue as error:
        return f"{said}: the value {error}: correct it"
    return None


def _holds_person(field: Field | None) -> bool:
    return field is None or isinstance(field, Text) or (isinstance(field, Ref) and field.target == "user")


def locks_fit(whole: Whole) -> Iterator[str]:
    """What locks a record is a condition on it."""
    for model in whole.models.values():
        for condition in model.locked:
            text = misfit(model, condition, is_row_rule=False)
            if text:
                yield of_field(model, "locked", text)
