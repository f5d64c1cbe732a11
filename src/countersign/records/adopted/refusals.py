"""The errors for callers when the connected database refuses a row. No text of that database is passed on, because it
may quote other rows."""

from collections.abc import Sequence

from countersign.kernel.database import read_only
from countersign.kernel.database.read_only import ConnectedRefusal, ExistingDatabase
from countersign.kernel.database.table_fingerprints import TableId
from countersign.kernel.errors import Refused
from countersign.records.access.view import ModelView
from countersign.records.commands.errors import BadInput

UNIQUE, FOREIGN_KEY, NOT_NULL, CHECK, EXCLUSION = "23505", "23503", "23502", "23514", "23P01"
_TOO_LARGE = frozenset({"22001", "22003", "22008"})
_NOT_ALLOWED = "42501"

# A unique index may have no constraint.
_COLUMNS = """
SELECT a.attname
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace AND n.nspname = $1
CROSS JOIN LATERAL (
    SELECT k.conkey AS numbers FROM pg_catalog.pg_constraint AS k WHERE k.conrelid = c.oid AND k.conname = $3
    UNION
    SELECT i.indkey::int2[] FROM pg_catalog.pg_index AS i
    JOIN pg_catalog.pg_class AS x ON x.oid = i.indexrelid AND x.relname = $3
    WHERE i.indrelid = c.oid
) AS found
LEFT JOIN LATERAL unnest(found.numbers) WITH ORDINALITY AS part (number, place) ON true
LEFT JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = part.number
WHERE c.relname = $2
ORDER BY part.place
"""


async def columns_of(database: ExistingDatabase, table: TableId, refusal: ConnectedRefusal) -> list[str]:
    """Return the columns that the refusal is about, without duplicates. The result is empty if they are not known, for
    example because a constraint has an expression."""
    if database.dialect == "sqlite":
        return list(refusal.columns) if refusal.table[1].lower() == table[1].lower() else []
    if refusal.table != table:
        # A trigger has written another table.
        return []
    if refusal.state == NOT_NULL:
        return [refusal.column] if refusal.column else []
    return await _columns_of_constraint(database, table, refusal.constraint) if refusal.constraint else []


async def _columns_of_constraint(database: ExistingDatabase, table: TableId, constraint: str) -> list[str]:
    try:
        names = [row[0] for row in await database.scan(_COLUMNS, *table, constraint)]
    except Refused:
        return []
    return [] if None in names else list(dict.fromkeys(names))


def bad_input(view: ModelView | None, refusal: ConnectedRefusal, column_names: Sequence[str]) -> BadInput:
    """Return the error for the caller. It names fields only if the caller reads all of them in clear."""
    if refusal.state in _TOO_LARGE:
        return BadInput("a value is too long or out of range for its column in the connected database")
    if refusal.state == _NOT_ALLOWED:
        return BadInput(
            "the connected database does not allow this to the role of Countersign: a right is missing, which the SQL "
            "of `countersign connect rights` grants, or a policy forbids the row"
        )
    names = [] if view is None else _field_names(view, column_names)
    if view is None or not names:
        return BadInput(read_only.REFUSED)
    return BadInput(_text(view, refusal, names))


def still_referenced(refusal: ConnectedRefusal, *, names_table: bool) -> str:
    """Return the error for a row that cannot be deleted because other rows refer to it."""
    table = f"rows of the table {'.'.join(refusal.table)}" if names_table and all(refusal.table) else "other rows"
    return f"{table} refer to this record: delete them, or change what they refer to, first"


def _field_names(view: ModelView, column_names: Sequence[str]) -> list[str]:
    """Return the fields of these columns, or no field if the caller does not read one of them in clear."""
    visible = {name for name in view.fields if view.knows(name)}
    by_column = {column: name for name in visible for column in view.model.fields[name].table_columns}
    if not set(column_names) <= by_column.keys():
        return []
    return list(dict.fromkeys(by_column[column] for column in column_names))


def _text(view: ModelView, refusal: ConnectedRefusal, names: Sequence[str]) -> str:
    model = view.model.name
    if refusal.state == UNIQUE:
        if len(names) == 1:
            return f"{model}.{names[0]} must be unique: another record has this value"
        return f"{model}: {', '.join(names)} must be unique together: another record has these values"
    if refusal.state == FOREIGN_KEY:
        return f"{model}.{names[0]} must be the id of an existing record"
    if refusal.state == NOT_NULL:
        return f"{model}.{names[0]} is required"
    if refusal.state in (CHECK, EXCLUSION):
        return f"{model}: the rule {refusal.constraint} of the connected database refuses this"
    return read_only.REFUSED
