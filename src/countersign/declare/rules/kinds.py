"""Rules about the kinds of fields that modules register."""

import inspect
import re
from collections.abc import Iterator

from countersign.declare.fields.field import EQUALITY, RANGES, ColumnType, Field
from countersign.declare.fields.kinds import BUILTIN_KINDS
from countersign.declare.fields.text import Text
from countersign.declare.module import Module
from countersign.declare.rules.declarations import BASE, Declarations, member_error, module_error

_NAME = re.compile(r"[a-z][a-z0-9_]{0,29}", re.ASCII)
_COLUMNS: tuple[ColumnType, ...] = ("TEXT", "BIGINT")
_BUILTIN_NAMES = tuple(kind.kind for kind in BUILTIN_KINDS)


def _registered(declarations: Declarations) -> Iterator[tuple[Module, type[Field]]]:
    return ((module, kind) for module in declarations.modules for kind in module.kinds)


def kinds_are_fields(declarations: Declarations) -> Iterator[str]:
    """Require that a kind is a subclass of `Field` that defines how a value is read and described."""
    for module, kind in _registered(declarations):
        if not _is_field_class(kind):
            yield module_error(module, f"the kind {kind!r} is not a class derived from Field: correct it")
        elif inspect.isabstract(kind):
            missing = ", ".join(sorted(kind.__abstractmethods__))
            yield module_error(module, f"the kind {kind.__name__} lacks {missing}: define it in the class")


def _is_field_class(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, Field)


def kinds_named(declarations: Declarations) -> Iterator[str]:
    """Require that every kind has a unique name."""
    seen = set(_BUILTIN_NAMES)
    for module, kind in _registered(declarations):
        name = getattr(kind, "kind", "")
        if not _NAME.fullmatch(name):
            yield module_error(module, f"the kind name {name!r} must be lower-case letters, digits and _: correct it")
        elif name in seen:
            yield module_error(module, f"there is another kind called {name!r}: rename it")
        seen.add(name)


def kinds_fit_columns(declarations: Declarations) -> Iterator[str]:
    """Require that a kind uses a portable column type and only operators that this column type supports."""
    for module, kind in _registered(declarations):
        if kind.column not in _COLUMNS:
            text = f"the column of {kind.__name__} must be one of {', '.join(_COLUMNS)}: correct it"
            yield module_error(module, text)
        if not kind.operators <= EQUALITY | RANGES | ({"contains"} if issubclass(kind, Text) else set()):
            yield module_error(module, f"{kind.__name__} has operators that it cannot answer: take out contains")
        if (kind.is_maskable or kind.is_folded) and not issubclass(kind, Text):
            text = "only text has placeholder tokens and folded copies: derive it from Text, or take these out"
            yield module_error(module, f"{kind.__name__}: {text}")


def kinds_are_registered(declarations: Declarations) -> Iterator[str]:
    """Require that the kind of a field is built in, or registered by the field's module or a module that it needs."""
    owners = {kind: module.name for module, kind in _registered(declarations)}
    for model, field in declarations.fields():
        kind, module = type(field), declarations.module_of[model.name]
        if kind in BUILTIN_KINDS:
            continue
        if kind not in owners:
            text = f"the kind {kind.__name__} is not registered: add it to kinds of the module that declares it"
            yield member_error(model, field.name, text)
        elif owners[kind] not in (module.name, BASE, *module.needs):
            yield member_error(
                model, field.name, f"{field.kind} is a kind of the module {owners[kind]}: add {owners[kind]!r} to needs"
            )
