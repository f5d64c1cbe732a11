"""The schema of an existing database, in the form that both engines are read into."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from countersign.declare.fields.kinds import OnDelete
from countersign.declare.table import DEFAULT_SCHEMA, Table, relation_names
from countersign.kernel.database.table_fingerprints import TableDefinition

RelationKind: TypeAlias = Literal[
    "table", "partitioned", "partition", "inherited", "view", "materialized", "foreign", "extension", "undecodable",
    "undecodable_part", "unknown",
]  # fmt: skip
"""The kind of a relation. `inherited` is the parent of tables that inherit from it, `partition` a part of a partitioned
table, and `extension` a table that belongs to an extension. The name of an `undecodable` relation is not valid UTF-8,
and a name inside an `undecodable_part` is not."""

UNDECODABLE = "\ufffd"
"""The character that replaces bytes that are not valid text."""

BaseType: TypeAlias = Literal[
    "text", "citext", "integer", "bigint", "numeric", "float", "money", "bool", "date", "moment", "local_moment",
    "time", "interval", "enum", "uuid", "address", "json", "bytes", "array", "other",
]  # fmt: skip
"""The column types that are declared differently. `moment` is a time with a time zone, `local_moment` a time without
one, and `address` a network or device address."""

RelationId: TypeAlias = tuple[str, str]
"""The schema and the name of a relation."""


def relation_id(relation: str, default_schema: str = DEFAULT_SCHEMA) -> RelationId:
    """Return the schema and the name of a relation of a module text, which must be valid."""
    *schemas, name = relation_names(relation)
    return (schemas[0] if schemas else default_schema), name


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a relation.

    number           the position in the catalog, which another column never gets
    type_name        the type as the database writes it
    is_generated     the database computes the value and accepts none
    max_length       the largest number of characters, or 0
    scale            the number of digits after the decimal point, if the type has one
    allowed          the values of an enum type
    orders_by_index  an index has the order by code point
    """

    name: str
    number: int
    base: BaseType
    type_name: str
    is_required: bool = False
    has_default: bool = False
    is_generated: bool = False
    max_length: int = 0
    scale: int | None = None
    allowed: tuple[str, ...] = ()
    orders_by_index: bool = False
    comment: str = ""


@dataclass(frozen=True, slots=True)
class UniqueKey:
    """The columns of a primary key, or of a unique index over required columns."""

    columns: tuple[str, ...]
    is_primary: bool = False


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A reference of columns to the same number of columns of another relation."""

    columns: tuple[str, ...]
    target: RelationId
    target_columns: tuple[str, ...]
    on_delete: OnDelete = "refuse"


@dataclass(frozen=True, slots=True)
class Relation:
    """A table, view or similar. `rows` is the estimated number of rows, or -1 if it is unknown. The fingerprint is
    computed from `definition`. `is_owned` says that the role owns it, or may act as its owner."""

    schema: str
    name: str
    kind: RelationKind
    columns: tuple[TableColumn, ...]
    rows: int = -1
    keys: tuple[UniqueKey, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    triggers: tuple[str, ...] = ()
    has_row_rules: bool = False
    unreadable: tuple[str, ...] = ()
    is_owned: bool = False
    definition: TableDefinition | None = None

    @property
    def id(self) -> RelationId:
        """Return the schema and the name."""
        return self.schema, self.name

    @property
    def place(self) -> str:
        """Return the name with its schema: `public.customer`. A table of SQLite has no schema."""
        return f"{self.schema}.{self.name}" if self.schema else self.name

    @property
    def is_decodable(self) -> bool:
        """Return whether the name and all names inside are valid text."""
        return self.kind not in ("undecodable", "undecodable_part")

    def column(self, name: str) -> TableColumn:
        """Return the column with this name."""
        return next(each for each in self.columns if each.name == name)


@dataclass(frozen=True, slots=True)
class Database:
    """The schema of a database. `search_path` is the search path of its applications, without `$user`. `wide_rights`
    describes server-wide privileges of the role that reading does not need. `is_utf_16` and `is_wal` describe a SQLite
    file: the encoding of its texts, and whether it has a write-ahead log."""

    product: str
    name: str
    role: str
    relations: tuple[Relation, ...]
    search_path: tuple[str, ...] = ()
    is_superuser: bool = False
    wide_rights: tuple[str, ...] = ()
    is_replica: bool = False
    may_create_schema: bool = False
    is_utf_16: bool = False
    is_wal: bool = False

    @property
    def is_sqlite(self) -> bool:
        """Return whether the database is a SQLite file, which has neither schemas nor roles."""
        return self.product.startswith("SQLite")

    def wide_rights_on(self, relations: Iterable[Relation]) -> tuple[str, ...]:
        """Return the excessive privileges of the role, with which functions of the database would run if the role read
        rows of these tables."""
        owns = ("owns tables",) if not self.is_superuser and any(each.is_owned for each in relations) else ()
        return (*self.wide_rights, *owns)

    def relation(self, table: Table) -> Relation | None:
        """Return the relation of a model's table, or None if the role sees no such relation. SQLite ignores the case of
        names. `table.relation` must be valid."""
        schema, name = relation_id(table.relation)
        if self.is_sqlite:
            return next((each for each in self.relations if each.name.lower() == name.lower()), None)
        return next((each for each in self.relations if each.id == (schema, name)), None)

    def with_definitions(self, definitions: Mapping[RelationId, TableDefinition]) -> "Database":
        """Return the schema with the definitions of its relations."""
        relations = [replace(each, definition=definitions.get(each.id)) for each in self.relations]
        return replace(self, relations=tuple(relations))


Samples: TypeAlias = Mapping[tuple[RelationId, str], tuple[str, ...]]
"""Maps a relation and the name of a column to distinct values of the column. The values are never stored."""
