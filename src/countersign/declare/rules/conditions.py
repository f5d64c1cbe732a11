"""Rules about conditions: the field must exist, its kind must support the operator, and the value must be valid."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import cast

from countersign.declare.condition import CALLER, TODAY, FieldOf, Where
from countersign.declare.errors import BadValue
from countersign.declare.fields.field import Field
from countersign.declare.fields.kinds import Date, Ref
from countersign.declare.fields.text import Text
from countersign.declare.model import Declared
from countersign.declare.rules.declarations import Declarations, of_field

MAX_VALUES = 1000


def misfit(model: Declared, condition: Where, *, is_row_rule: bool) -> str | None:
    """Return the error in a condition, or None. Only row conditions may use `id` and CALLER."""
    field = model.fields.get(condition.field)
    if field is None and not (is_row_rule and condition.field == "id"):
        return f"a condition names {condition.field!r}, and {model.name} has no such field: correct it"
    complaint = f"the condition {condition.field} {condition.operator} {condition.value!r}"
    if field is not None and condition.operator not in field.operators:
        known = ", ".join(sorted(field.operators)) or "none"
        return f"{complaint}: a {field.kind} knows only the operators {known}: use one of them"
    if condition.operator == "is_null":
        return None if isinstance(condition.value, bool) else f"{complaint}: is_null takes True or False: correct it"
    if condition.operator == "in":
        return _misfits(field, condition.value, complaint, is_row_rule=is_row_rule)
    return _misfit_of_value(field, condition.value, complaint, is_row_rule=is_row_rule)


def _misfits(field: Field | None, values: object, complaint: str, *, is_row_rule: bool) -> str | None:
    if not isinstance(values, list | tuple):
        return f"{complaint}: in takes a list: write the values in brackets"
    several = cast("Sequence[object]", values)
    if not 1 <= len(several) <= MAX_VALUES:
        return f"{complaint}: in takes 1 to {MAX_VALUES} values: correct it"
    if TODAY in several:
        return f"{complaint}: TODAY cannot be in a list: use eq, or two conditions with gte and lte"
    found = (_misfit_of_value(field, each, complaint, is_row_rule=is_row_rule) for each in several)
    return next((text for text in found if text), None)


def _misfit_of_value(field: Field | None, value: object, complaint: str, *, is_row_rule: bool) -> str | None:
    if value is CALLER:
        if is_row_rule and _holds_person(field):
            return None
        return f'{complaint}: CALLER is for the rows of a grant, with a Ref("user"), id or Text: take it out'
    if value is TODAY:
        return None if isinstance(field, Date) else f"{complaint}: TODAY is compared with a Date: take it out"
    if field is None:
        return None if isinstance(value, str) else f"{complaint}: an id is a string: correct it"
    try:
        field.operand(value)
    except BadValue as error:
        return f"{complaint}: the value {error}: correct it"
    return None


def _holds_person(field: Field | None) -> bool:
    return field is None or isinstance(field, Text) or (isinstance(field, Ref) and field.target == "user")


def locks_fit(whole: Declarations) -> Iterator[str]:
    """Require that `locked` is a valid condition on the record, and `locked_while` a valid condition on the referenced
    record."""
    for model in whole.models.values():
        for condition in model.locked:
            text = misfit(model, condition, is_row_rule=False)
            if text:
                yield of_field(model, "locked", text)
        if not model.locked_while:
            continue
        ref = model.fields.get(model.locked_with or "")
        if not isinstance(ref, Ref):
            yield of_field(model, "locked_while", "it is about the record of locked_with: name that ref, too")
            continue
        for condition in model.locked_while:
            text = misfit(whole.models[ref.target], condition, is_row_rule=False)
            if text:
                yield of_field(model, "locked_while", text)


def approvals_fit(whole: Declarations) -> Iterator[str]:
    """Require that a condition in `needs_approval` of a field is a valid condition on the field's record."""
    for model in whole.models.values():
        for field in model.fields.values():
            asked = field.needs_approval
            text = misfit(model, asked, is_row_rule=False) if isinstance(asked, Where) else None
            if text:
                yield of_field(model, field.name, text)


def rules_fit(whole: Declarations) -> Iterator[str]:
    """Require that each rule of a model is valid.

    A rule compares a field of the model or of a referenced record with a value or with another such field.
    """
    for model in whole.models.values():
        for rule in model.rules:
            text = misfit_of_rule(whole, model, rule)
            if text:
                yield of_field(model, "rules", text)


def misfit_of_rule(whole: Declarations, model: Declared, rule: Where) -> str | None:
    """Return the error in a rule, or None. A rule may name fields of a referenced record."""
    owner, name = _owner(whole, model, rule.field)
    if owner is None or name not in owner.fields:
        return f"a rule names {rule.field!r}, and there is no such field: write field, or ref.field"
    if not isinstance(rule.value, FieldOf):
        return misfit(owner, replace(rule, field=name), is_row_rule=False)
    other, other_name = _owner(whole, model, rule.value.name)
    if other is None or other_name not in other.fields:
        return f"a rule names {rule.value.name!r}, and there is no such field: write field, or ref.field"
    field = owner.fields[name]
    if rule.operator not in field.operators - {"in", "is_null"} or field.kind != other.fields[other_name].kind:
        return f"{rule.field} {rule.operator} {rule.value.name}: compare two fields of one kind by an operator it has"
    return None


def _owner(whole: Declarations, model: Declared, path: str) -> tuple[Declared | None, str]:
    """Return the model of the field that a rule names, and the name of the field in this model."""
    first, dot, rest = path.partition(".")
    if not dot:
        return model, first
    ref = model.fields.get(first)
    return (whole.models[ref.target] if isinstance(ref, Ref) else None), rest


def unique_with_a_ref(whole: Declarations) -> Iterator[str]:
    """Require that `unique_with` names a ref and `shared_by` names an ordinary field of the referenced record."""
    for model, field in whole.fields():
        ref = model.fields.get(field.unique_with)
        if field.unique_with and not isinstance(ref, Ref):
            text = f"unique_with names {field.unique_with!r}, which is not a ref of {model.name}: name a ref"
            yield of_field(model, field.name, text)
        elif field.shared_by and not (isinstance(ref, Ref) and _is_entered(whole.models[ref.target], field.shared_by)):
            text = f"shared_by names {field.shared_by!r}: name a field of the record that unique_with leads to"
            yield of_field(model, field.name, f"{text}, neither computed nor a total")


def _is_entered(model: Declared, name: str) -> bool:
    field = model.fields.get(name)
    return field is not None and field.computed is None and field.sum_of is None
