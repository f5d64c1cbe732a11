"""Finds what the database itself does when a row of a table of others is written: triggers and generated columns."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Final, TypeAlias

from countersign.declare import Declared
from countersign.kernel.database.port import Dialect, Row, Value
from countersign.records.adopted import columns

Fetch: TypeAlias = Callable[[str, Sequence[Value]], Awaitable[list[Row]]]
"""Returns the rows of a statement in the transaction of the command."""

_HAS_TRIGGER = """
SELECT 1
FROM pg_catalog.pg_trigger AS g
JOIN pg_catalog.pg_class AS c ON c.oid = g.tgrelid
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relname = $2 AND NOT g.tgisinternal AND g.tgfoid NOT IN (
    SELECT p.oid
    FROM pg_catalog.pg_proc AS p
    JOIN pg_catalog.pg_namespace AS w ON w.oid = p.pronamespace AND w.nspname = 'countersign_watch'
)
LIMIT 1
"""
# A partition may have triggers and generated columns of its own.
_DERIVES = """
SELECT 1
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relname = $2 AND (c.relhasrules OR EXISTS (
    SELECT
    FROM (SELECT c.oid UNION SELECT p.relid::oid FROM pg_catalog.pg_partition_tree(c.oid) AS p) AS part (id)
    WHERE EXISTS (SELECT FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = part.id AND a.attgenerated <> '')
        OR EXISTS (
            SELECT
            FROM pg_catalog.pg_trigger AS g
            WHERE g.tgrelid = part.id AND NOT g.tgisinternal AND g.tgfoid NOT IN (
                SELECT f.oid
                FROM pg_catalog.pg_proc AS f
                JOIN pg_catalog.pg_namespace AS w ON w.oid = f.pronamespace AND w.nspname = 'countersign_watch'
            )
        )
))
"""
_TRIGGERS = """
SELECT g.tgname
FROM pg_catalog.pg_trigger AS g
JOIN pg_catalog.pg_class AS c ON c.oid = g.tgrelid
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relname = $2 AND NOT g.tgisinternal AND g.tgenabled IN ('O', 'A')
    AND g.tgtype::integer & $3::integer <> 0
ORDER BY g.tgname COLLATE "C"
"""
_INSERT, _DELETE, _UPDATE = 4, 8, 16
"""The bits of the events in the type of a trigger."""
_EVENTS: Final[Mapping[int, str]] = {_INSERT: "INSERT", _DELETE: "DELETE", _UPDATE: "UPDATE"}
_SQLITE_TRIGGERS = """
SELECT s.name, s.sql
FROM sqlite_schema AS s
WHERE s.type = 'trigger' AND lower(s.tbl_name) = lower($1)
ORDER BY s.name
"""
_SQLITE_DERIVES = """
SELECT 1 FROM sqlite_schema AS s WHERE s.type = 'trigger' AND lower(s.tbl_name) = lower($1)
UNION ALL
SELECT 1 FROM pragma_table_xinfo($1) AS x WHERE x.hidden IN (2, 3)
LIMIT 1
"""


async def names(dialect: Dialect, fetch: Fetch, model: Declared, commands: Collection[str]) -> list[str]:
    """Return the names of the triggers that these commands can run on a row of the model."""
    events = {_event(model, each) for each in commands}
    table = columns.table_id(dialect, model)
    if dialect == "sqlite":
        words = [_EVENTS[each] for each in events]
        rows = await fetch(_SQLITE_TRIGGERS, table[1:])
        return [str(name) for name, sql in rows if any(word in str(sql).upper() for word in words)]
    return [str(name) for (name,) in await fetch(_TRIGGERS, [*table, sum(events)])]


async def exist(dialect: Dialect, fetch: Fetch, model: Declared) -> bool:
    """Return whether the table has a trigger that may change what is written."""
    table = columns.table_id(dialect, model)
    if dialect == "sqlite":
        return bool(await fetch(_SQLITE_TRIGGERS, table[1:]))
    return bool(await fetch(_HAS_TRIGGER, table))


async def may_derive(dialect: Dialect, fetch: Fetch, model: Declared) -> bool:
    """Return whether the database may compute columns of the table from what is written: with triggers, rules or
    generated columns."""
    table = columns.table_id(dialect, model)
    return bool(await fetch(_SQLITE_DERIVES, table[1:]) if dialect == "sqlite" else await fetch(_DERIVES, table))


def _event(model: Declared, command: str) -> int:
    """Return the event of triggers that a command runs. Actions update a row, and so do deletions that mark it."""
    if command == "create":
        return _INSERT
    is_marked = model.table is not None and bool(model.table.deleted)
    return _DELETE if command == "delete" and not is_marked else _UPDATE
