"""The installed schema of the modules, and the steps of an upgrade.

The schema consists of tables, columns and indexes. It also has a bit for each field: the column `changed` of a record
is the set of the bits of the fields that have changed since the record was created.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from countersign.declare import DeclarationError, Declared, Field, Ref, Select, Text
from countersign.declare.model import sources
from countersign.declare.registry import Total
from countersign.kernel.database.port import Dialect

MAX_BITS = 62
ALIASED = 1 << MAX_BITS
"""An additional bit in a record's column `changed`, above the bits of the fields. It is set if a value of the record
has an alias: another value id, which only one token domain (the scope in which placeholder tokens are valid) uses."""


FOLDED_SUFFIX = "__folded"
"""The suffix of the column that contains the case-folded copy of a text."""
VALUE_ID_SUFFIX = "__value"
"""The suffix of the column that contains the id of a personal value in the vault."""

_EXTRA: Mapping[str, tuple[tuple[str, str], ...]] = {"audit_entry": (("hash", "BLOB"),)}
"""The additional columns of built-in models that do not belong to a field."""

_EXTRA_INDEXES: Mapping[str, tuple[tuple[str, ...], ...]] = {"audit_entry": (("lane", "number"),)}
_LOOKED_UP: Mapping[str, tuple[str, ...]] = {"user": ("username",)}
"""The fields whose folded copies are used to look up records for anonymous requests.

Their index is not unique, because earlier versions accepted names that differ only in case.
"""


class Column(msgspec.Struct, frozen=True, omit_defaults=True):
    """A column: its portable type, and the properties of its field that the next upgrade needs.

    references   the referenced table, if the values are ids
    kind         the field's kind; empty for an additional column of the engine
    options      the options of a select
    is_required  whether every record must have a value
    direct_sources  the fields (`model.field`) from which a computed field or a total is computed; the stored name of
                 this member is `made_from`
    former_name  the name of the column before it was renamed
    label        in a column of value ids, the label of the values in the vault, such as EMAIL
    is_linked    in a column of value ids, the option `linked` of the field
    """

    name: str
    type: str
    references: str | None = None
    kind: str = ""
    options: tuple[str, ...] = ()
    is_required: bool = False
    direct_sources: tuple[str, ...] = msgspec.field(default=(), name="made_from")
    label: str | None = None
    is_linked: bool = False
    former_name: str = ""


class Index(msgspec.Struct, frozen=True, omit_defaults=True):
    """An index on expressions, optionally with a condition on the rows. The name is derived from the definition."""

    name: str
    terms: str
    is_unique: bool = False
    condition: str = msgspec.field(default="", name="holding")

    @property
    def statement(self) -> str:
        """Return the part of CREATE INDEX that follows the name of the table."""
        return f"({self.terms})" + (f" WHERE {self.condition}" if self.condition else "")


class ModelTable(msgspec.Struct, frozen=True):
    """The table of one model. `unfilled` are the columns that are not yet filled in existing records."""

    name: str
    module: str
    columns: list[Column]
    indexes: list[Index]
    bits: dict[str, int]
    used_bits: int = 0
    unfilled: tuple[str, ...] = ()

    def column(self, name: str) -> Column | None:
        """Return the column with this name, or None if it does not exist."""
        return next((column for column in self.columns if column.name == name), None)


class Snapshot(msgspec.Struct, frozen=True):
    """The installed schema: the tables keyed by name, and the version of each module."""

    tables: dict[str, ModelTable]
    versions: dict[str, str]


EMPTY = Snapshot({}, {})


def table(
    model: Declared, module: str, totals: Iterable[Total], before_table: ModelTable | None, dialect: Dialect
) -> ModelTable:
    """Return the table of a model with these totals. Existing fields keep their bits, and no bit is reused.

    Raises:
        DeclarationError: over time, the model has had more fields than there are bits.
    """
    bits = dict(before_table.bits) if before_table is not None else {}
    next_bit = before_table.used_bits if before_table is not None else 0
    bit_of = {
        name: bits[known_name]
        for name, field in model.fields.items()
        if (known_name := name if name in bits else field.former_name) in bits
    }
    for name in model.fields:
        if name not in bit_of:
            bit_of[name] = next_bit
            next_bit += 1
    if next_bit > MAX_BITS:
        text = f"{model.source}: {model.name} has had more than {MAX_BITS} fields: make a second model"
        raise DeclarationError(text)
    columns = list(_columns(model, tuple(totals)))
    return ModelTable(model.name, module, columns, list(_indexes(model, dialect)), bit_of, next_bit)


@lru_cache(maxsize=256)
def _columns(model: Declared, totals: tuple[Total, ...]) -> tuple[Column, ...]:
    return tuple(_columns_of(model, totals))


def _columns_of(model: Declared, totals: tuple[Total, ...]) -> Iterable[Column]:
    sources_by_total = {
        total.field: (f"{total.child.name}.{total.of}", f"{total.child.name}.{total.by}") for total in totals
    }
    state_field = "" if model.workflow is None else model.workflow.field
    for name, field in model.fields.items():
        direct_sources = sources_by_total.get(name) or tuple(f"{model.name}.{source}" for source in sources(field))
        yield _own_column(field, field.required or name == state_field, direct_sources)
        if field.is_folded:
            yield Column(name + FOLDED_SUFFIX, "TEXT", former_name=_former_name(field, FOLDED_SUFFIX))
        if field.personal:
            yield Column(
                name + VALUE_ID_SUFFIX,
                "BIGINT",
                label=field.personal,
                is_linked=field.linked,
                former_name=_former_name(field, VALUE_ID_SUFFIX),
            )
    for name, kind in _EXTRA.get(model.name, ()):
        yield Column(name, kind)


def _former_name(field: Field, ending: str = "") -> str:
    return f"{field.former_name}{ending}" if field.former_name else ""


def _own_column(field: Field, is_required: bool, direct_sources: tuple[str, ...]) -> Column:
    return Column(
        field.name,
        field.column,
        references=field.target if isinstance(field, Ref) else None,
        kind=field.kind,
        options=field.options if isinstance(field, Select) else (),
        is_required=is_required,
        direct_sources=direct_sources,
        former_name=field.former_name,
    )


@lru_cache(maxsize=256)
def _indexes(model: Declared, dialect: Dialect) -> tuple[Index, ...]:
    return tuple(_indexes_of(model, dialect))


def _indexes_of(model: Declared, dialect: Dialect) -> Iterable[Index]:
    state = "" if model.workflow is None else f', "{model.workflow.field}"'
    for field in model.fields.values():
        yield from _field_indexes(model.name, field, dialect, state)
    for columns in _EXTRA_INDEXES.get(model.name, ()):
        yield _index(model.name, ", ".join(f'"{name}"' for name in columns), is_unique=True)
    for name in _LOOKED_UP.get(model.name, ()):
        if name in model.fields:
            yield _index(model.name, f'"{name}{FOLDED_SUFFIX}"')


_SHARED_VALUES = ("bool", "date", "moment", "select")
"""The kinds of fields of which many records have the same value."""


def _field_indexes(table_name: str, field: Field, dialect: Dialect, state: str) -> Iterable[Index]:
    column = f'"{field.name}"'
    if field.unique:
        yield _index(table_name, column, is_unique=True)
    if field.personal:
        # Rows are looked up by a value and never by NULL, so the index contains only rows with a value.
        value = f'"{field.name}{VALUE_ID_SUFFIX}"'
        yield _index(table_name, value, condition=f"{value} IS NOT NULL")
    if isinstance(field, Text) and field.ignores_case and field.unique_with:
        folded_copy = f'"{field.name}{FOLDED_SUFFIX}"'
        yield _index(table_name, folded_copy, condition=f"{folded_copy} IS NOT NULL")
    if not field.index:
        return
    ordered_column = field.ordered(column)
    if ordered_column != column:
        # An index expression needs its own parentheses. Equality filters use the index on the plain column.
        yield _index(table_name, f"{column}, id")
        ordered_column = f"({ordered_column})"
    yield _index(table_name, f"{ordered_column}, id")
    # The first index serves ascending order. Descending order needs a second index on PostgreSQL, because a backward
    # scan of the first index begins with the NULLs, which must come last. On SQLite, a backward scan returns records
    # with equal values in the wrong order of ids, so SQLite must sort them. A large table has thousands of records with
    # the same date, and more in the same state, so these kinds get a second index.
    if dialect == "postgres":
        yield _index(table_name, f"{ordered_column} DESC NULLS LAST, id")
    elif field.kind in _SHARED_VALUES:
        # With the state in the index, SQLite skips rows of hidden states without reading them from the table. The
        # first of a million rows may all be in a state that the caller does not see.
        yield _index(table_name, f"{ordered_column} DESC, id{state}")


def _index(table_name: str, terms: str, *, is_unique: bool = False, condition: str = "") -> Index:
    digest = hashlib.sha256(f"{is_unique} {terms} {condition}".encode()).hexdigest()[:10]
    return Index(f"ix_{table_name}_{digest}", terms, is_unique, condition)


TaskKind: TypeAlias = Literal["default", "made", "folded", "value", "options", "release"]


@dataclass(frozen=True, slots=True)
class RowTask:
    """A change of the rows of a table, in batches of one transaction each.

    default  fills the empty field of existing records with the value of `checks.value_for_existing`: the initial state
             of the workflow, or the default of the field
    made     computes a computed field or a total
    folded   creates the folded copies of a text
    value    assigns a value id in the vault to each value of a personal field
    options  replaces the options in `options`, which the declaration no longer has, with the value of
             `checks.value_for_existing`
    release  releases the value ids of a personal field

    `column_exists` is true if the field's column existed before the first step of the upgrade.
    """

    kind: TaskKind
    table: str
    field: str
    options: tuple[str, ...] = ()
    column_exists: bool = True


class Unique(NamedTuple):
    """A column that must have unique values. `column_exists` has the same meaning as in `RowTask`."""

    table: str
    column: str
    column_exists: bool


@dataclass(frozen=True, slots=True)
class Step:
    """One step of an upgrade. Its task runs first; then one transaction runs its statements and records the new schema.

    A step that deletes values of the table `loses_from` is destructive only if the table has rows. A step that removes
    options of a select is destructive only if a row contains such an option (see `checks`).
    """

    sentence: str
    statements: tuple[str, ...]
    after: Snapshot
    is_destructive: bool = False
    row_task: RowTask | None = None
    unique: Unique | None = None
    loses_from: str = ""
