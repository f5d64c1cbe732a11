"""The input of the rules, all enabled modules, and the format of the errors that the rules yield."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from countersign.declare.fields.field import Field
from countersign.declare.model import Declared
from countersign.declare.module import ADMINISTRATOR, Module

BASE = "base"
"""The name of the built-in module. It is always enabled, so modules do not list it in `needs`."""


@dataclass(frozen=True, eq=False)
class Declarations:
    """All enabled modules with their models. Model names are unique, but a module name may occur more than once."""

    modules: tuple[Module, ...]
    models: Mapping[str, Declared]

    @cached_property
    def module_of(self) -> Mapping[str, Module]:
        """Map the name of each model to the module that declares it."""
        return {model.declared.name: module for module in self.modules for model in module.models}

    @cached_property
    def roles(self) -> frozenset[str]:
        """Return the names of all roles."""
        return frozenset(role.name for module in self.modules for role in module.roles) | {ADMINISTRATOR}

    @cached_property
    def labels(self) -> frozenset[str]:
        """Return the labels of all personal fields."""
        return frozenset(field.personal for _, field in self.fields() if field.personal)

    def fields(self) -> Iterator[tuple[Declared, Field]]:
        """Yield every field with its model."""
        return ((model, field) for model in self.models.values() for field in model.fields.values())

    def may_use_model(self, module: Module, model: str) -> bool:
        """Return whether the module, a module that it needs, or `base` declares the model."""
        owner = self.module_of[model]
        return owner is module or owner.name in (BASE, *module.needs)


Rule: TypeAlias = Callable[[Declarations], Iterator[str]]
"""A function that yields an error text for each violation of one rule."""


def model_error(model: Declared, text: str) -> str:
    """Return the error text, prefixed with the file and the name of the model."""
    return f"{model.source}: {model.name}: {text}"


def member_error(model: Declared, field: str, text: str) -> str:
    """Return the error text, prefixed with the file, the model and the field. `field` may also be the name of an
    action, or of an option of the class statement."""
    return f"{model.source}: {model.name}.{field}: {text}"


def module_error(module: Module, text: str) -> str:
    """Return the error text, prefixed with the file and the name of the module."""
    return f"{module.source}: module {module.name}: {text}"
