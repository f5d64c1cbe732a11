"""Rules about derived fields, which are computed fields and totals. The sources of a derived field must exist. The
field must be at least as secret as its sources."""

import inspect
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from countersign.declare.fields.field import Field
from countersign.declare.fields.kinds import Number, Ref
from countersign.declare.model import Declared
from countersign.declare.rules.declarations import Declarations, member_error

FieldPath: TypeAlias = tuple[str, str]
"""The model name and the field name of a field."""

_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def sources_are_fields(declarations: Declarations) -> Iterator[str]:
    """Require that the parameters of a computed field's function are names of fields of the same model."""
    for model, field in declarations.fields():
        for text in _parameter_errors(model, field):
            yield member_error(model, field.name, text)


def _parameter_errors(model: Declared, field: Field) -> Iterator[str]:
    if field.computed is None:
        return
    parameters = inspect.signature(field.computed).parameters
    if field.sum_of is not None:
        yield "it is computed and a total at once: take one out"
    if not parameters:
        yield "its function has no parameter: name the fields that it is made from"
    for name, parameter in parameters.items():
        if name not in model.fields:
            yield f"its function asks for {name!r}, and {model.name} has no such field: name parameters after fields"
        elif parameter.kind not in _BY_POSITION:
            yield f"its function takes {name!r} by keyword alone, or many at once: make it a plain parameter"


def total_error(models: Mapping[str, Declared], parent: Declared, field: Field) -> str | None:
    """Return the error text if the source of a total (`sum_of`, such as "invoice_line.amount_minor") is invalid, or
    None."""
    child_name, _, of = (field.sum_of or "").partition(".")
    child = models.get(child_name)
    if child is None or of not in child.fields:
        return f"it is the total of {field.sum_of!r}, and there is no such field: write model.field"
    if len(refs_to(child, parent)) != 1:
        return f"{child_name} needs exactly one ref to {parent.name}, so that it is clear what is added up: correct it"
    if not isinstance(field, Number) or not isinstance(child.fields[of], Number):
        return "a total is a Number or Money, of a Number or Money: correct its kind"
    return None


def refs_to(child: Declared, parent: Declared) -> list[str]:
    """Return the names of the refs of the child model to the parent model."""
    return [name for name, field in child.fields.items() if isinstance(field, Ref) and field.target == parent.name]


def total_sources_valid(declarations: Declarations) -> Iterator[str]:
    """Require that a total sums a number field of a model that has exactly one ref to the model of the total."""
    for model, field in declarations.fields():
        text = None if field.sum_of is None else total_error(declarations.models, model, field)
        if text:
            yield member_error(model, field.name, text)


def computed_fields_acyclic(declarations: Declarations) -> Iterator[str]:
    """Require that no field is derived from itself, directly or indirectly."""
    for model, field in declarations.fields():
        if (model.name, field.name) in _all_sources(declarations, model, field):
            text = "it is made from itself, by way of what it is made from: break the circle"
            yield member_error(model, field.name, text)


def _all_sources(declarations: Declarations, model: Declared, field: Field) -> set[FieldPath]:
    paths: set[FieldPath] = set()
    left = _sources(model, field)
    while left:
        path = left.pop()
        if path not in paths:
            paths.add(path)
            left += _sources(declarations.models[path[0]], _field(declarations, path))
    return paths


def _sources(model: Declared, field: Field) -> list[FieldPath]:
    """Return the fields from which a field is directly derived. The rules of an earlier stage ensure that they
    exist."""
    own = () if field.computed is None else inspect.signature(field.computed).parameters
    child, _, of = (field.sum_of or "").partition(".")
    return [*((model.name, name) for name in own), *([(child, of)] if field.sum_of else [])]


def totals_neither_personal_nor_unique(declarations: Declarations) -> Iterator[str]:
    """Require that totals and fields derived from totals are neither personal nor unique.

    A total changes when another record is written. No input for the record of the total could then be refused.
    """
    for model, field in declarations.fields():
        is_special = field.personal or field.unique
        if not is_special:
            continue
        sources = (_field(declarations, all_source) for all_source in _all_sources(declarations, model, field))
        if field.sum_of or any(source.sum_of for source in sources):
            text = "it changes whenever a total does, so that it cannot be personal or unique: take that out"
            yield member_error(model, field.name, text)


def _field(declarations: Declarations, path: FieldPath) -> Field:
    return declarations.models[path[0]].fields[path[1]]


def declassified_fields_derived(declarations: Declarations) -> Iterator[str]:
    """Require that only derived fields have the option `declassify`."""
    for model, field in declarations.fields():
        if field.declassify and field.computed is None and field.sum_of is None:
            text = "only a computed field or a total is declassified: grant it to those who may see it instead"
            yield member_error(model, field.name, text)


def derived_fields_as_secret_as_sources(declarations: Declarations) -> Iterator[str]:
    """Require that a field derived from a personal or restricted field is personal or restricted too (leaks, L23)."""
    for model, field in declarations.fields():
        for path in () if field.declassify else _sources(model, field):
            source = _field(declarations, path)
            shown = ".".join(path)
            if source.personal and not field.personal:
                text = f"it shows what {shown} hides, which is personal: make it personal too, or say declassify=True"
                yield member_error(model, field.name, text)
            if source.restricted and not (field.restricted and set(field.restricted) <= set(source.restricted)):
                roles = ", ".join(source.restricted)
                text = (
                    f"it shows what {shown} hides, which is restricted to {roles}: restrict it to these or fewer, "
                    "or say declassify=True"
                )
                yield member_error(model, field.name, text)
