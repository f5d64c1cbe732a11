"""The tables of an existing database that models adopt."""

import re
from dataclasses import dataclass

DEFAULT_SCHEMA = "public"
"""The default schema of PostgreSQL tables."""

_NAME = re.compile(r'"((?:[^"\0]|"")+)"|([^".\0]+)')


def quoted(name: str) -> str:
    """Return the name as a quoted SQL identifier for both engines."""
    return '"' + name.replace('"', '""') + '"'


def relation_names(relation: str) -> tuple[str, ...]:
    """Split a relation into its names: the table, or the schema and the table. A name with a dot or a quote is quoted
    as in SQL: `public."odd.name"`.

    Raises:
        ValueError: the text is not a relation.
    """
    names: list[str] = []
    position = 0
    while True:
        match = _NAME.match(relation, position)
        if match is None:
            raise ValueError("it is not a table, or a schema and a table")
        names.append(match[2] if match[1] is None else match[1].replace('""', '"'))
        position = match.end()
        if position == len(relation):
            break
        if relation[position] != "." or len(names) == 2:
            raise ValueError("it is not a table, or a schema and a table")
        position += 1
    return tuple(names)


def relation_of(*names: str) -> str:
    """Join names to a relation. This is the inverse of `relation_names`."""
    return ".".join(quoted(name) if re.search(r'[".]', name) else name for name in names)


@dataclass(frozen=True, slots=True)
class Table:
    """A table of an existing database, whose rows are the records of a model.

    relation     the schema and the table: "public.customer"; in a SQLite file, the table
    key          the columns of a unique key that has no empty values; ids of records are computed from them
    fingerprint  a hash of the definition of the table when the model was written
    rows_about   the approximate number of rows at that time
    writable     whether people may create and update records, if Countersign's own tables are in the same database
    deletes      whether people may also delete records of a writable table
    deleted      the column that marks deleted rows, if other applications keep them: a boolean, or a time or day that
                 is empty in other rows. Callers do not see marked rows, and deleting a record marks its row
    version      the integer column in which other applications count the changes of a row, if there is one: each
                 update increments it, so that these applications notice the update
    """

    relation: str
    key: str | tuple[str, ...]
    fingerprint: str = ""
    rows_about: int = 0
    writable: bool = False
    deletes: bool = False
    version: str = ""
    deleted: str = ""

    @property
    def version_columns(self) -> tuple[str, ...]:
        """Return the column in `version`; empty without this option."""
        return (self.version,) if self.version else ()

    @property
    def deleted_columns(self) -> tuple[str, ...]:
        """Return the column in `deleted`; empty without this option."""
        return (self.deleted,) if self.deleted else ()

    @property
    def columns_without_field(self) -> tuple[str, ...]:
        """Return the columns of the key, of `version` and of `deleted`."""
        return (*self.key_columns, *self.version_columns, *self.deleted_columns)

    @property
    def key_columns(self) -> tuple[str, ...]:
        """Return the columns of the key."""
        return (self.key,) if isinstance(self.key, str) else tuple(self.key)
