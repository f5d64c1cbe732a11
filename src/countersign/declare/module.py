"""Modules, and the roles and grants that they provide. An administrator may change the roles and grants later."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from countersign.declare.condition import Where
from countersign.declare.fields.field import Field
from countersign.declare.model import Model
from countersign.declare.package_code import Hook

Names: TypeAlias = tuple[str, ...] | Literal["*"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """The rights of a role on one model. Grants add up: if several grants name a field, the most visible grant applies.

    commands  names of commands, actions included, or "*"
    clear     fields that the role reads in clear; "*" means all
    masked    fields that the role sees as placeholder tokens if they are personal, and in clear otherwise
    write     visible fields that the role may set
    rows      conditions that a record must meet for these commands; without conditions, every record
    """

    model: str
    commands: Names = ("get", "list", "search")
    clear: Names = ()
    masked: Names = ()
    write: Names = ()
    rows: tuple[Where, ...] = ()


class Role:
    """A role with its grants. Several modules may add grants to a role with the same name.

    `rights` are rights that do not belong to a model. Members with the right `base.unmask` may let agents read specific
    fields in clear.
    """

    def __init__(self, name: str, *grants: Grant, label: str = "", rights: tuple[str, ...] = ()) -> None:
        self.name = name
        self.label = label or name.replace("_", " ").capitalize()
        self.grants = grants
        self.rights = rights


ADMINISTRATOR = "administrator"
"""The name of the role that has all rights. The first person gets this role."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting that a module reads. Its value is one of the `options`; the first option is the default.

    In the model `setting`, its title is `name`, and its value is the option as JSON: `"party"`.
    """

    name: str
    options: tuple[str, ...]
    help: str = ""


class Module:
    """A module, which a package provides under the entry-point group `countersign.modules`.

    `needs` names the modules whose models are used in refs and grants of this module. `base` is always enabled. `kinds`
    are the kinds of fields that the module adds. Its own models may have fields of these kinds, and so may models of
    modules that need it. `label_de` is the label in German, and `icon` the lucide icon of models that declare none.
    `search_path` are the schemas in which the views and functions of an existing database find their names, for models
    with a table of that database. `session` maps settings that row-level security policies of that database read to
    fields of the person who calls: {"app.tenant": "user.tenant"}. `session_roles` maps roles of people to the role of
    that database with which its tables are read and written: {"sales": "app_sales"}. `hooks` are the functions of `on`
    for models of modules that it needs. `source` is the file that declares the module, and `is_text` says whether that
    is a module text, and not the code of a package.
    """

    def __init__(
        self,
        name: str,
        *,
        version: str,
        label: str = "",
        label_de: str = "",
        icon: str = "",
        needs: Sequence[str] = (),
        models: Sequence[type[Model]] = (),
        roles: Sequence[Role] = (),
        settings: Sequence[Setting] = (),
        kinds: Sequence[type[Field]] = (),
        search_path: Sequence[str] = (),
        session: Mapping[str, str] | None = None,
        session_roles: Mapping[str, str] | None = None,
        hooks: Sequence[Hook] = (),
    ) -> None:
        self.name = name
        self.version = version
        self.label = label or name.capitalize()
        self.label_de = label_de or self.label
        self.icon = icon or "box"
        self.needs = tuple(needs)
        self.models = tuple(models)
        self.roles = tuple(roles)
        self.settings = tuple(settings)
        self.kinds = tuple(kinds)
        self.search_path = tuple(search_path)
        self.session = dict(session or {})
        self.session_roles = dict(session_roles or {})
        self.hooks = tuple(hooks)
        self.is_text = False
        frame = inspect.currentframe()
        self.source = frame.f_back.f_code.co_filename if frame is not None and frame.f_back is not None else ""
