"""The rules every module must meet, one function each; broken ones are told at start-up with their remedy."""

from collections.abc import Iterable, Mapping

from countersign.declare.errors import DeclarationError
from countersign.declare.fields.field import Field
from countersign.declare.fields.ref import Ref
from countersign.declare.model import Declared
from countersign.declare.module import Module

RESERVED = frozenset({"auth", "approve", "commands", "meta", "platform", "openapi"})


def models_of(modules: Iterable[Module]) -> dict[str, Declared]:
    """The models by name.

    Raises:
        DeclarationError: two have the same name, or one has a name that an address of the API has.
    """
    found: dict[str, Declared] = {}
    for module in modules:
        for model in (each.declared for each in module.models):
            if model.name in found:
                raise DeclarationError(f"{model.source}: a model {model.name!r} is declared twice: rename one")
            if model.name in RESERVED:
                raise DeclarationError(f"{model.source}: the name {model.name!r} is an address of the API: rename it")
            found[model.name] = model
    return found


def sum_source(models: Mapping[str, Declared], parent: Declared, field: Field) -> tuple[Declared, str, str]:
    """Of a total "invoice_line.amount_minor": the child model, its ref to the parent, its field.

    Raises:
        DeclarationError: there is no such model or field, or not exactly one ref to the parent.
    """
    child_name, _, of = (field.sum_of or "").partition(".")
    child = models.get(child_name)
    if child is None or of not in child.fields:
        raise DeclarationError(f"{parent.source}: {parent.name}.{field.name}: no field {field.sum_of!r}: correct it")
    refs = [name for name, each in child.fields.items() if isinstance(each, Ref) and each.target == parent.name]
    if len(refs) != 1:
        raise DeclarationError(
            f"{parent.source}: {parent.name}.{field.name}: {child_name} needs exactly one ref to {parent.name}"
        )
    return child, refs[0], of


def check(modules: tuple[Module, ...], models: Mapping[str, Declared]) -> None:
    """Check every rule.

    Raises:
        DeclarationError: the first one that is broken.
    """
