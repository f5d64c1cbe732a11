"""Rules about conditions: the field must exist, its kind must support the operator, and the value must be valid."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import cast

from countersign.declare.condition import CALLER, TODAY, FieldOf, Where
from countersign.declare.errors import BadValue
from countersign.declare.fields.field import Field
from countersign.declare.fields.kinds import Date, Ref
from countersign.declare.fields.text import Text
from countersign.declare.model import Declared
from countersign.declare.rules.declarations import Declarations, member_error

MAX_VALUES = 1000


def condition_error(model: Declared, condition: Where, *, is_row_rule: bool) -> str | None:
    """Return the error text for an invalid condition on a record of the model, or None if the condition is valid.

    With `is_row_rule`, the condition belongs to the rows of a grant. Only such conditions may use `id` and CALLER.
    """
    field = model.fields.get(condition.field)
    if field is None and not (is_row_rule and condition.field == "id"):
        return f"a condition names {condition.field!r}, and {model.name} has no such field: correct it"
    text = _operator_error(field, condition) or _operand_error(field, condition, is_row_rule=is_row_rule)
    return text and f"the condition {condition.field} {condition.operator} {condition.value!r}: {text}"


def _operator_error(field: Field | None, condition: Where) -> str | None:
    if field is None or condition.operator in field.operators:
        return None
    known = ", ".join(sorted(field.operators)) or "none"
    return f"a {field.kind} knows only the operators {known}: use one of them"


def _operand_error(field: Field | None, condition: Where, *, is_row_rule: bool) -> str | None:
    if condition.operator == "is_null":
        return None if isinstance(condition.value, bool) else "is_null takes True or False: correct it"
    if condition.operator == "in":
        return _list_error(field, condition.value, is_row_rule=is_row_rule)
    return _value_error(field, condition.value, is_row_rule=is_row_rule)


def _list_error(field: Field | None, value: object, *, is_row_rule: bool) -> str | None:
    if not isinstance(value, list | tuple):
        return "in takes a list: write the values in brackets"
    values = cast("Sequence[object]", value)
    if not 1 <= len(values) <= MAX_VALUES:
        return f"in takes 1 to {MAX_VALUES} values: correct it"
    if TODAY in values:
        return "TODAY cannot be in a list: use eq, or two conditions with gte and lte"
    errors = (_value_error(field, value, is_row_rule=is_row_rule) for value in values)
    return next((text for text in errors if text), None)


def _value_error(field: Field | None, value: object, *, is_row_rule: bool) -> str | None:
    """Return the error text for a value that does not suit the field, or None. Without a field, the condition is on
    `id`."""
    if value is CALLER:
        if is_row_rule and _may_contain_user_id(field):
            return None
        return 'CALLER is for the rows of a grant, with a Ref("user"), id or Text: take it out'
    if value is TODAY:
        return None if isinstance(field, Date) else "TODAY is compared with a Date: take it out"
    if field is None:
        return None if isinstance(value, str) else "an id is a string: correct it"
    try:
        field.operand(value)
    except BadValue as error:
        return f"the value {error}: correct it"
    return None


def _may_contain_user_id(field: Field | None) -> bool:
    return field is None or isinstance(field, Text) or (isinstance(field, Ref) and field.target == "user")


def locks_are_valid(declarations: Declarations) -> Iterator[str]:
    """Require that `locked` contains valid conditions on the record, and that `locked_while` contains valid conditions
    on the record to which the ref `locked_with` refers."""
    for model in declarations.models.values():
        for text in _condition_errors(model, model.locked):
            yield member_error(model, "locked", text)
        for text in _locked_while_errors(declarations, model):
            yield member_error(model, "locked_while", text)


def _locked_while_errors(declarations: Declarations, model: Declared) -> Iterator[str]:
    ref = model.fields.get(model.locked_with or "")
    if isinstance(ref, Ref):
        yield from _condition_errors(declarations.models[ref.target], model.locked_while)
    elif model.locked_while:
        yield "it is about the record of locked_with: name that ref, too"


def _condition_errors(model: Declared, conditions: Iterable[Where]) -> Iterator[str]:
    for condition in conditions:
        text = condition_error(model, condition, is_row_rule=False)
        if text:
            yield text


def approvals_are_valid(declarations: Declarations) -> Iterator[str]:
    """Require that a condition in the option `needs_approval` of a field is a valid condition on the field's record."""
    for model, field in declarations.fields():
        if isinstance(field.needs_approval, Where):
            for text in _condition_errors(model, [field.needs_approval]):
                yield member_error(model, field.name, text)


def rules_are_valid(declarations: Declarations) -> Iterator[str]:
    """Require that each rule of a model is valid.

    A rule compares a field of the model or of a referenced record with a value or with another such field.
    """
    for model in declarations.models.values():
        for rule in model.rules:
            text = rule_error(declarations, model, rule)
            if text:
                yield member_error(model, "rules", text)


def rule_error(declarations: Declarations, model: Declared, rule: Where) -> str | None:
    """Return the error text for an invalid rule of the model, or None. A rule names a field of the record (`state`), or
    a field of a record that a ref of the record refers to (`invoice.state`)."""
    field_model, name = _resolve_path(declarations, model, rule.field)
    if field_model is None or name not in field_model.fields:
        return f"a rule names {rule.field!r}, and there is no such field: write field, or ref.field"
    if isinstance(rule.value, FieldOf):
        return _comparison_error(declarations, model, rule, field_model.fields[name], rule.value.name)
    return condition_error(field_model, replace(rule, field=name), is_row_rule=False)


def _comparison_error(
    declarations: Declarations, model: Declared, rule: Where, field: Field, other_path: str
) -> str | None:
    """Return the error text for a rule that compares the field with another field, or None."""
    other_model, name = _resolve_path(declarations, model, other_path)
    if other_model is None or name not in other_model.fields:
        return f"a rule names {other_path!r}, and there is no such field: write field, or ref.field"
    if rule.operator not in field.operators - {"in", "is_null"} or field.kind != other_model.fields[name].kind:
        return f"{rule.field} {rule.operator} {other_path}: compare two fields of one kind by an operator it has"
    return None


def _resolve_path(declarations: Declarations, model: Declared, path: str) -> tuple[Declared | None, str]:
    """Return the model of the field that a rule names, and the name of the field in this model. Return None instead of
    the model if the path begins with a name that is not a ref."""
    first, dot, rest = path.partition(".")
    if not dot:
        return model, first
    ref = model.fields.get(first)
    return (declarations.models[ref.target] if isinstance(ref, Ref) else None), rest


def unique_with_names_a_ref(declarations: Declarations) -> Iterator[str]:
    """Require that `unique_with` names a ref and `shared_by` names an ordinary field of the referenced record."""
    for model, field in declarations.fields():
        ref = model.fields.get(field.unique_with)
        if field.unique_with and not isinstance(ref, Ref):
            text = f"unique_with names {field.unique_with!r}, which is not a ref of {model.name}: name a ref"
            yield member_error(model, field.name, text)
        elif field.shared_by and not _is_ordinary_field(declarations, ref, field.shared_by):
            text = f"shared_by names {field.shared_by!r}: name a field of the record that unique_with leads to"
            yield member_error(model, field.name, f"{text}, neither computed nor a total")


def _is_ordinary_field(declarations: Declarations, ref: Field | None, name: str) -> bool:
    """Return whether the model that the ref refers to has a field with this name that is not derived."""
    field = declarations.models[ref.target].fields.get(name) if isinstance(ref, Ref) else None
    return field is not None and field.computed is None and field.sum_of is None
