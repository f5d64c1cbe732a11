"""All modules that are switched on, put together and checked: what the engine works from."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from countersign.declare import check
from countersign.declare.access import Role
from countersign.declare.fields.field import LITERAL
from countersign.declare.fields.ref import Ref
from countersign.declare.fields.text import LongText
from countersign.declare.model import Declared
from countersign.declare.module import Module, Setting


@dataclass(frozen=True, slots=True)
class Referrer:
    """A field of a model that refers to some other model."""

    model: Declared
    ref: Ref


@dataclass(frozen=True, slots=True)
class Total:
    """A field that holds the total of a field of the records that refer to its record."""

    parent: Declared
    field: str
    child: Declared
    by: str
    of: str


class Registry:
    """The models, roles and relations of the given modules."""

    def __init__(self, modules: Iterable[Module]) -> None:
        """Put the modules together.

        Raises:
            DeclarationError: a rule of `check` is broken; the text names file, model, field and the remedy.
        """
        self.modules = tuple(modules)
        self.models: Mapping[str, Declared] = check.models_of(self.modules)
        self.roles: Mapping[str, tuple[Role, ...]] = _by_name(role for module in self.modules for role in module.roles)
        check.check(self.modules, self.models)

    @cached_property
    def module_of(self) -> Mapping[str, Module]:
        """By model name: the module that declares it."""
        return {model.declared.name: module for module in self.modules for model in module.models}

    @cached_property
    def settings(self) -> Mapping[str, Setting]:
        """By name, the settings that modules declare."""
        return {each.name: each for module in self.modules for each in module.settings}

    @cached_property
    def labels(self) -> frozenset[str]:
        """The labels that placeholder tokens may have."""
        found = {field.personal for model in self.models.values() for field in model.fields.values()}
        return frozenset({label for label in found if label}) | {LITERAL}

    @cached_property
    def long_labels(self) -> frozenset[str]:
        """Those of them that some long text has."""
        fields = (field for model in self.models.values() for field in model.fields.values())
        return frozenset(each.personal for each in fields if each.personal and isinstance(each, LongText))

    @cached_property
    def referrers(self) -> Mapping[str, tuple[Referrer, ...]]:
        """By model: the fields anywhere that refer to it."""
        found: dict[str, list[Referrer]] = {name: [] for name in self.models}
        for model in self.models.values():
            for field in model.fields.values():
                if isinstance(field, Ref):
                    found[field.target].append(Referrer(model, field))
        return {name: tuple(each) for name, each in found.items()}

    @cached_property
    def totals(self) -> Mapping[str, tuple[Total, ...]]:
        """By child model: the totals its records count into."""
        found: dict[str, list[Total]] = {name: [] for name in self.models}
        for parent in self.models.values():
            for field in parent.fields.values():
                if field.sum_of is not None:
                    child, by, of = check.sum_source(self.models, parent, field)
                    found[child.name].append(Total(parent, field.name, child, by, of))
        return {name: tuple(each) for name, each in found.items()}

    def is_part(self, model: Declared, ref: Ref) -> bool:
        """Whether a record of the model is a part of the one that this ref names: it is deleted or locked with it, or
        counts into a total of it."""
        counts = any(total.by == ref.name for total in self.totals[model.name])
        return ref.on_delete == "cascade" or model.locked_with == ref.name or counts


def _by_name(roles: Iterable[Role]) -> dict[str, tuple[Role, ...]]:
    found: dict[str, tuple[Role, ...]] = {}
    for role in roles:
        found[role.name] = (*found.get(role.name, ()), role)
    return found
