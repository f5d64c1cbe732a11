"""Modules, and the roles and grants that they ship; an administrator may change these afterwards."""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from countersign.declare.condition import Where
from countersign.declare.fields.field import Field
from countersign.declare.model import Model

Names: TypeAlias = tuple[str, ...] | Literal["*"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a role may do with one model. Grants add up; where several speak of a field, the most visible wins.

    commands  names of commands, actions included, or "*"
    clear     fields it reads in clear; "*" means all
    masked    fields it sees as placeholder tokens (personal ones) – others it names are clear
    write     fields it may set, of those it sees
    rows      the records these commands reach: all of the conditions hold; empty means every record
    """

    model: str
    commands: Names = ("get", "list", "search")
    clear: Names = ()
    masked: Names = ()
    write: Names = ()
    rows: tuple[Where, ...] = ()


class Role:
    """A role with its grants. Several modules may add grants to a role of the same name.

    `rights` are beyond any model: `base.unmask` lets its holders give agents single fields in clear.
    """

    def __init__(self, name: str, *grants: Grant, label: str = "", rights: tuple[str, ...] = ()) -> None:
        self.name = name
        self.label = label or name.replace("_", " ").capitalize()
        self.grants = grants
        self.rights = rights


ADMINISTRATOR = "administrator"
"""The role that is granted everything there is; the first person has it."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting that a module reads: one of the `options`, of which the first is the default. In the model `setting`
    its title is `name`, and its value the option as JSON: `"party"`."""

    name: str
    options: tuple[str, ...]
    help: str = ""


class Module:
    """What a package offers under the entry-point group `countersign.modules`.

    `needs` names the modules whose models its refs and grants speak of (`base` is always there). `kinds` are the field
    kinds that it adds: its own models, and those of modules that need it, may have such fields. `source` is the file
    that declares it.
    """

    def __init__(
        self,
        name: str,
        *,
        version: str,
        label: str = "",
        needs: Sequence[str] = (),
        models: Sequence[type[Model]] = (),
        roles: Sequence[Role] = (),
        settings: Sequence[Setting] = (),
        kinds: Sequence[type[Field]] = (),
    ) -> None:
        self.name = name
        self.version = version
        self.label = label or name.capitalize()
        self.needs = tuple(needs)
        self.models = tuple(models)
        self.roles = tuple(roles)
        self.settings = tuple(settings)
        self.kinds = tuple(kinds)
        frame = inspect.currentframe()
        self.source = frame.f_back.f_code.co_filename if frame is not None and frame.f_back is not None else ""
