"""Models and computed fields. A model is a class whose attributes are fields. It becomes a table, commands, tools and
pages."""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, TypedDict, TypeVar, Unpack

from countersign.declare.condition import Where
from countersign.declare.errors import DeclarationError
from countersign.declare.fields.field import Field, Stored
from countersign.declare.fields.kinds import LARGEST, Number, Ref
from countersign.declare.package_code import Check, Hook
from countersign.declare.presentation import ListView, Measure, Risk
from countersign.declare.table import Table
from countersign.declare.workflow import Workflow

_Attribute = TypeVar("_Attribute")

GENERATED = ("get", "list", "search", "create", "update", "delete")
READ_COMMANDS = ("get", "list", "search", "export", "count_by")
"""The commands that a grant names to read a model with a table of an existing database."""
EXTRA = ("export", "import", "history", "count_by", "related", "series")
TABLE_COMMANDS = (*READ_COMMANDS, "related", "series")
"""The commands of a model with a table of an existing database."""
TABLE_WRITE_COMMANDS = ("create", "update", "history")
"""The further commands of a model whose table is writable. With `deletes`, it also has `delete`."""


class ModelOptions(TypedDict, total=False):
    """The options of a model's class statement; `Model` describes each of them."""

    name: str
    label: str
    plural: str
    label_de: str
    plural_de: str
    icon: str
    group: str
    title_field: str
    subtitle_fields: tuple[str, ...]
    measures: tuple[Measure, ...]
    views: tuple[ListView, ...]
    risks: tuple[Risk, ...]
    locked: tuple[Where, ...]
    locked_with: str
    locked_while: tuple[Where, ...]
    rules: tuple[Where, ...]
    needs_approval: tuple[str, ...]
    reads: tuple[str, ...]
    shown_as: str
    commands: tuple[str, ...]
    table: Table
    comments: bool


@dataclass(frozen=True, eq=False)
class Declared:
    """The declaration of a model. `source` is the file of the model, and `summary` its docstring. `unknown_options` are
    the options of its class statement that do not exist."""

    name: str
    label: str
    plural: str
    summary: str
    fields: Mapping[str, Field]
    workflow: Workflow | None
    locked: tuple[Where, ...]
    locked_with: str | None
    locked_while: tuple[Where, ...]
    rules: tuple[Where, ...]
    needs_approval: tuple[str, ...]
    reads: tuple[str, ...]
    shown_as: str
    commands: tuple[str, ...]
    source: str
    unknown_options: tuple[str, ...] = ()
    label_de: str = ""
    plural_de: str = ""
    icon: str = ""
    group: str = ""
    title_field: str = "id"
    subtitle_fields: tuple[str, ...] = ()
    measures: tuple[Measure, ...] = ()
    views: tuple[ListView, ...] = ()
    risks: tuple[Risk, ...] = ()
    table: Table | None = None
    checks: tuple[Check, ...] = ()
    comments: bool = False
    hooks: tuple[Hook, ...] = ()

    @property
    def state_field(self) -> str | None:
        """Return the name of the field that the workflow changes, or None without a workflow."""
        return None if self.workflow is None else self.workflow.field

    def present_name(self, name: str) -> str:
        """Return the current name of a field. The given name may be a former name of the field."""
        if name in self.fields:
            return name
        return next((field_name for field_name, field in self.fields.items() if field.former_name == name), name)

    def filling_ref(self, name: str) -> str | None:
        """Return the name of the ref whose option `fills` contains the field, or None. If the input of a new record
        omits the field, its value is copied from the record that this ref refers to."""
        refs = (field for field in self.fields.values() if isinstance(field, Ref))
        return next((ref.name for ref in refs if name in ref.fills), None)

    def field(self, name: str) -> Field:
        """Return the field with this name.

        Raises:
            DeclarationError: the model has no field with this name.
        """
        field = self.fields.get(name)
        if field is None:
            raise DeclarationError(f"{self.source}: {self.name} has no field {name!r}: declare it or correct the name")
        return field


class Model:
    """The base class of models: the attributes of a subclass are fields, one workflow, and code of the package.

    Its docstring describes a record. The class statement accepts these keywords:

    name           the name in URLs and of the table; default: the class name in snake_case
    label, plural  the names shown to people; default: the name
    label_de, plural_de  the names in German; default: the English names
    icon           the name of a lucide icon; default: the icon of the module
    group          the name of the sidebar's group; default: the name of the module
    title_field    the field that names a record in lists and sentences; default: `shown_as`
    subtitle_fields  the fields of the line under the title; at most three
    measures       the numbers that dashboards offer for the model
    views          the views of its list; the list shows the first one at first
    risks          rules for the risk of proposals, in addition to the default risks of commands
    locked         conditions under which only actions can change or delete a record
    locked_with    a ref field: a record is locked while the record that it refers to is locked
    locked_while   conditions on the referenced record of `locked_with` under which a record is locked; default: the
                   conditions in `locked` of that record's model
    rules          conditions that a record must meet whenever one of their fields is written; the name of a field of
                   a referenced record begins with the ref: where("invoice.state", eq="posted")
    needs_approval the generated commands that agents can only propose, unless a setting permits them
    reads          models that create, update and delete depend on: models that a ref of the record refers to, and
                   models that refer to such models; a plan becomes stale when one of their records is added, changed
                   or deleted. Models that `locked_with` and `rules` name, and models with a total of the record's
                   fields, need not be listed
    shown_as       the field that represents a record where only one field can be shown; default: the first text
    commands       the generated commands of the model; default: all, or the reading commands of a model with a table
    table          the table of an existing database whose rows are the records of the model
    comments       whether people and agents who see a record can comment on it
    """

    declared: ClassVar[Declared]

    def __init_subclass__(cls, **options: Unpack[ModelOptions]) -> None:
        super().__init_subclass__()
        frame = inspect.currentframe()
        source = frame.f_back.f_code.co_filename if frame is not None and frame.f_back is not None else ""
        cls.declared = _declared(cls, options, source)


def derived_model_name(class_name: str) -> str:
    """Return the name that a model has if its class has this name and the class statement names no other."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", class_name).lower()


def _declared(cls: type[Model], options: ModelOptions, source: str) -> Declared:
    fields = {name: value for name, value in vars(cls).items() if isinstance(value, Field)}
    name = options.get("name") or derived_model_name(cls.__name__)
    label = options.get("label") or name.replace("_", " ").capitalize()
    plural = options.get("plural") or _plural(label)
    shown_as = options.get("shown_as") or _first_text(fields)
    return Declared(
        name=name,
        label=label,
        plural=plural,
        summary=inspect.cleandoc(cls.__doc__ or ""),
        fields=fields,
        workflow=next(iter(_attributes(cls, Workflow)), None),
        locked=options.get("locked", ()),
        locked_with=options.get("locked_with"),
        locked_while=options.get("locked_while", ()),
        rules=options.get("rules", ()),
        needs_approval=options.get("needs_approval", ()),
        reads=options.get("reads", ()),
        shown_as=shown_as,
        commands=options.get("commands", _default_commands(options)),
        source=source,
        unknown_options=tuple(options.keys() - ModelOptions.__annotations__.keys()),
        **_german(options, label, plural),
        icon=options.get("icon", ""),
        group=options.get("group", ""),
        title_field=options.get("title_field", shown_as),
        subtitle_fields=options.get("subtitle_fields", ()),
        measures=options.get("measures", ()),
        views=options.get("views", ()),
        risks=options.get("risks", ()),
        table=options.get("table"),
        checks=_attributes(cls, Check),
        comments=options.get("comments", False),
        hooks=_attributes(cls, Hook),
    )


def _attributes(cls: type[Model], kind: type[_Attribute]) -> tuple[_Attribute, ...]:
    """Return the attributes of the class that are of this type, in the order of their declaration."""
    return tuple(value for value in vars(cls).values() if isinstance(value, kind))


def _default_commands(options: ModelOptions) -> tuple[str, ...]:
    return table_commands(options["table"]) if "table" in options else GENERATED + EXTRA


def table_commands(table: Table) -> tuple[str, ...]:
    """Return the commands of a model with this table of an existing database."""
    commands = TABLE_COMMANDS + TABLE_WRITE_COMMANDS if table.writable else TABLE_COMMANDS
    return (*commands, "delete") if table.deletes else commands


def _german(options: ModelOptions, label: str, plural: str) -> dict[str, str]:
    """Return the names in German. The default is the English names."""
    german = options.get("label_de")
    return {"label_de": german or label, "plural_de": options.get("plural_de") or german or plural}


def _first_text(fields: Mapping[str, Field]) -> str:
    return next((name for name, field in fields.items() if field.kind == "text"), "id")


def _plural(label: str) -> str:
    if label.endswith("y") and label[-2:-1] not in "aeiou":
        return f"{label[:-1]}ies"
    return f"{label}es" if label.endswith(("s", "x", "ch", "sh")) else f"{label}s"


def out_of_range(model: Declared, values: Mapping[str, Stored]) -> str | None:
    """Return the name of a number that is outside ±(2^53 - 1), or None if there is no such number."""
    for name, value in values.items():
        if isinstance(value, int) and isinstance(model.fields[name], Number) and not -LARGEST <= value <= LARGEST:
            return name
    return None


def computed(model: Declared, values: Mapping[str, Stored]) -> dict[str, Stored]:
    """Return the values of all computed fields, given the other values of the record. A computed value is empty if one
    of its sources is empty."""
    known = dict(values)
    for name, function, needed in _order(model):
        given = [known.get(source) for source in needed]
        known[name] = None if None in given else _stored(function(*given))
    return {name: known[name] for name, _, _ in _order(model)}


def sources(field: Field) -> tuple[str, ...]:
    """Return the fields of the same model from which a computed field is derived. The result is empty for other
    fields."""
    return () if field.computed is None else tuple(inspect.signature(field.computed).parameters)


@lru_cache(maxsize=4096)
def indirect_sources(model: Declared, name: str) -> frozenset[str]:
    """Return the fields of the model from which a computed field is derived, directly or indirectly."""
    all_sources: set[str] = set()
    left = list(sources(model.fields[name]))
    while left:
        source = left.pop()
        if source not in all_sources:
            all_sources.add(source)
            left += sources(model.fields[source])
    return frozenset(all_sources)


def _stored(value: object) -> Stored:
    if value is None or isinstance(value, int | str):
        return value
    raise TypeError("a computed field gives text or a whole number")


@lru_cache(maxsize=512)
def _order(model: Declared) -> tuple[tuple[str, Callable[..., object], tuple[str, ...]], ...]:
    """Return the computed fields in an order in which each field follows its sources. Circular definitions are refused
    at start-up."""
    left = {
        name: (field.computed, sources(field))
        for name, field in model.fields.items()
        if field.computed is not None
    }
    functions: list[tuple[str, Callable[..., object], tuple[str, ...]]] = []
    while left:
        ready = [name for name, (_, needed) in left.items() if not any(source in left for source in needed)]
        for name in ready or list(left):
            function, needed = left.pop(name)
            functions.append((name, function, needed))
    return tuple(functions)
