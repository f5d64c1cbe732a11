"""The triggers with which a PostgreSQL database records the changes of other applications: the source code of the
trigger functions, and the check that the triggers are installed.

A trigger runs once for each statement, in the transaction of the other application. It writes the key of each row and
the names of the changed columns, and no value. The schema is owned by the role that creates it, and not by the role of
this service. The functions run with the rights of the owner, so no other role may be able to add triggers to the tables
that they use.
"""

import hashlib
import json
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from countersign.kernel.database.port import Row

SCHEMA: Final = "countersign_watch"
MAX_ROWS = 1_000
"""The maximum number of rows of one statement that get a record each. A statement that changes more rows gets one
record."""
MAX_BACKLOG = 100_000
"""The maximum number of unread records. Further changes are not recorded until records have been read."""
EVENTS: Final = ("INSERT", "DELETE", "UPDATE", "TRUNCATE")
"""The events, in the order of their bits in `pg_trigger.tgtype`: 4, 8, 16 and 32."""

_NAME_DIGITS = 16
# A transaction that began long ago sees an early position, and records nothing although the records have been read. No
# other transaction sees what it has lost, except by a sequence, which is counted at once.
_SOURCE = """
DECLARE
    changed_count bigint := 0;
BEGIN
    IF session_user = {role} THEN
        RETURN NULL;
    END IF;
    IF TG_OP IN ('INSERT', 'UPDATE') THEN
        SELECT count(*) INTO changed_count FROM new_rows;
    ELSIF TG_OP = 'DELETE' THEN
        SELECT count(*) INTO changed_count FROM old_rows;
    END IF;
    IF changed_count = 0 AND TG_OP <> 'TRUNCATE' THEN
        RETURN NULL;
    END IF;
    IF (SELECT s.last_value FROM countersign_watch.outside_change_id_seq AS s)
        > (SELECT p.read_to + {max_backlog} FROM countersign_watch.progress AS p) THEN
        PERFORM pg_catalog.nextval('countersign_watch.lost_change_seq');
        RETURN NULL;
    END IF;
    IF TG_OP = 'TRUNCATE' OR changed_count > {max_rows} OR (
        SELECT count(*)
        FROM pg_catalog.pg_attribute AS a
        WHERE a.attrelid = TG_RELID AND a.attnum > 0 AND NOT a.attisdropped AND a.attname IN ({names})
    ) < {name_count} THEN
        INSERT INTO countersign_watch.outside_change (relation, operation, row_count)
        VALUES ({relation}, lower(TG_OP), nullif(changed_count, 0));
    ELSIF TG_OP = 'INSERT' THEN
        INSERT INTO countersign_watch.outside_change (relation, operation, key)
        SELECT {relation}, 'insert', ARRAY[{key}] FROM new_rows AS t;
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO countersign_watch.outside_change (relation, operation, key)
        SELECT {relation}, 'delete', ARRAY[{key}] FROM old_rows AS t;
    ELSE
        INSERT INTO countersign_watch.outside_change (relation, operation, key, columns)
        SELECT {relation}, f.operation, f.key, f.columns
        FROM (
            SELECT
                CASE WHEN o.key IS NULL THEN 'insert' WHEN n.key IS NULL THEN 'delete' ELSE 'update' END AS operation,
                coalesce(n.key, o.key) AS key,
                CASE WHEN o.key IS NOT NULL AND n.key IS NOT NULL
                    THEN array_remove(ARRAY[{changed}]::text[], NULL) END AS columns
            FROM (SELECT ARRAY[{key}] AS key{values} FROM old_rows AS t) AS o
            FULL JOIN (SELECT ARRAY[{key}] AS key{values} FROM new_rows AS t) AS n ON n.key = o.key
        ) AS f
        WHERE f.columns IS NULL OR f.columns <> '{{}}';
    END IF;
    RETURN NULL;
END
"""
_STATE = """
WITH RECURSIVE named AS (
    SELECT c.oid AS root, v.s, v.t, v.f
    FROM jsonb_to_recordset($1::text::jsonb) AS v (s text, t text, f text)
    JOIN pg_catalog.pg_namespace AS n ON n.nspname = v.s
    JOIN pg_catalog.pg_class AS c ON c.relnamespace = n.oid AND c.relname = v.t
), tree AS (
    SELECT named.root, named.root AS part FROM named
    UNION
    SELECT tree.root, i.inhrelid FROM tree JOIN pg_catalog.pg_inherits AS i ON i.inhparent = tree.part
)
SELECT named.s, named.t, p.prosrc
FROM named
JOIN pg_catalog.pg_namespace AS w ON w.nspname = 'countersign_watch'
JOIN pg_catalog.pg_proc AS p ON p.pronamespace = w.oid AND p.proname = named.f
WHERE NOT EXISTS (
    SELECT
    FROM tree
    CROSS JOIN unnest(ARRAY[4, 8, 16, 32]) AS event
    WHERE tree.root = named.root AND NOT EXISTS (
        SELECT
        FROM pg_catalog.pg_trigger AS g
        WHERE g.tgrelid = tree.part AND g.tgfoid = p.oid AND g.tgtype = event AND g.tgenabled IN ('O', 'A')
            AND g.tgqual IS NULL AND g.tgattr::text = ''
    )
)
"""

RunQuery: TypeAlias = Callable[[str, str], Awaitable[Sequence[Row]]]
"""Runs a query with one text as its only parameter, and returns the rows."""


@dataclass(frozen=True, slots=True)
class WatchedTable:
    """A table to watch: its schema and name, the columns of the key, and the other columns whose changes are
    recorded."""

    schema: str
    name: str
    key: tuple[str, ...]
    columns: tuple[str, ...]

    @property
    def relation(self) -> str:
        """Return the quoted name of the table, which identifies the table in records."""
        return f"{quoted(self.schema)}.{quoted(self.name)}"

    @property
    def function(self) -> str:
        """Return the name of the trigger function of the table."""
        return f"changes_{hashlib.sha256(self.relation.encode()).hexdigest()[:_NAME_DIGITS]}"

    def source(self, role: str) -> str:
        """Return the source code of the trigger function. Changes by sessions of `role` are not recorded."""
        columns = sorted(set(self.columns) - set(self.key))
        numbered = [(f"c{number}", column) for number, column in enumerate(columns)]
        # `*<>` compares records byte by byte, so that no function of a column's type is called.
        changed = [
            f"CASE WHEN ROW(o.{c})::record *<> ROW(n.{c})::record THEN {literal(name)} END" for c, name in numbered
        ]
        return _SOURCE.format(
            role=literal(role),
            relation=literal(self.relation),
            max_rows=MAX_ROWS,
            max_backlog=MAX_BACKLOG,
            # If a column was dropped or renamed, a statement that names it would fail, and with it the statement of the
            # other application. The function therefore checks first that all columns exist.
            names=", ".join(map(literal, [*self.key, *columns])),
            name_count=len(self.key) + len(columns),
            key=", ".join(f't.{identifier(column)}::text COLLATE "C"' for column in self.key),
            values="".join(f", t.{identifier(column)} AS {c}" for c, column in numbered),
            changed=", ".join(changed),
        )


def identifier(name: str) -> str:
    """Return the name as a quoted SQL identifier of printable characters."""
    if name.isprintable():
        return quoted(name)
    escaped = "".join(each if each.isprintable() else f"\\+{ord(each):06x}" for each in name.replace("\\", "\\\\"))
    return f"U&{quoted(escaped)}"


def quoted(name: str) -> str:
    """Return the name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return the text as a literal of printable characters that does not depend on settings of the session."""
    doubled = text.replace("'", "''")
    if text.isprintable() and "\\" not in text:
        return f"'{doubled}'"
    escaped = doubled.replace("\\", "\\\\")
    return "E'" + "".join(each if each.isprintable() else f"\\U{ord(each):08x}" for each in escaped) + "'"


def merge_columns(tables: Iterable[WatchedTable]) -> list[WatchedTable]:
    """Return each table once, sorted by name, with the columns of all its models."""
    found: dict[str, WatchedTable] = {}
    for table in tables:
        known = found.get(table.relation, table)
        columns = tuple(sorted({*known.columns, *table.columns}))
        found[table.relation] = replace(known, columns=columns)
    return [found[relation] for relation in sorted(found)]


async def watched_relations(run_query: RunQuery, tables: Collection[WatchedTable], role: str) -> frozenset[str]:
    """Return the relations whose changes are recorded: all triggers, also those of partitions, exist and are enabled,
    and the trigger function is the one that this version creates for these columns and this role.

    Raises:
        as `run_query`.
    """
    by_name = {(each.schema, each.name): each for each in tables}
    named = json.dumps([{"s": each.schema, "t": each.name, "f": each.function} for each in tables])
    return frozenset(
        by_name[schema, name].relation
        for schema, name, source in await run_query(_STATE, named)
        if source.strip() == by_name[schema, name].source(role).strip()
    )
