"""The tables of an existing database that models adopt."""

import re
from dataclasses import dataclass

DEFAULT_SCHEMA = "public"
"""The schema of a table of PostgreSQL whose schema is not given."""

_NAME = re.compile(r'"((?:[^"\0]|"")+)"|([^".\0]+)')


def quoted(name: str) -> str:
    """Return the name as a quoted SQL identifier, which both engines read as this name."""
    return '"' + name.replace('"', '""') + '"'


def relation_names(relation: str) -> tuple[str, ...]:
    """Return the names in a relation: the table, or the schema and the table. A name with a dot or a quote is quoted as
    in SQL: `public."odd.name"`.

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
    """Return the relation with these names. It is the inverse of `relation_names`."""
    return ".".join(quoted(name) if re.search(r'[".]', name) else name for name in names)


@dataclass(frozen=True, slots=True)
class Table:
    """A table of an existing database, whose rows are the records of a model.

    relation     the schema and the table: "public.customer"; in a SQLite file, the table
    key          the columns of a unique key without empty values, from which the ids of records are computed
    fingerprint  a hash of the definition of the table when the model was written
    rows_about   the approximate number of rows at that time
    writable     whether people may create and update records, if Countersign's own tables are in the same database
    deletes      whether people may also delete records of a writable table
    deleted      the column that marks deleted rows, if other applications keep them: a time or a day, empty in other
                 rows, or a boolean. Such rows do not exist for callers, and deleting a record marks its row
    version      the column of whole numbers in which other applications count the changes of a row, if they have one:
                 each update adds one, so that they notice it
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
        """Return the column of `version`, or nothing."""
        return (self.version,) if self.version else ()

    @property
    def deleted_columns(self) -> tuple[str, ...]:
        """Return the column of `deleted`, or nothing."""
        return (self.deleted,) if self.deleted else ()

    @property
    def columns_without_field(self) -> tuple[str, ...]:
        """Return the columns of the key, of `version` and of `deleted`."""
        return (*self.key_columns, *self.version_columns, *self.deleted_columns)

    @property
    def key_columns(self) -> tuple[str, ...]:
        """Return the columns of the key."""
        return (self.key,) if isinstance(self.key, str) else tuple(self.key)
