"""Fingerprints of the tables of an existing database: hashes that show that a table is no longer the one that somebody
has reviewed.

A fingerprint covers the kind of the table, its primary key and foreign keys, whether it has row-level security, the
text of a view, and the number, name and type of each column. The number distinguishes two columns that exchange their
names. A column that is added later has a higher number and does not change the fingerprint, nor do other lengths of
texts, empty values that become allowed, or new values of an enum type.
"""

import hashlib
import json
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from countersign.kernel.database.port import Dialect, Row

TableId: TypeAlias = tuple[str, str]
"""The schema and the name of a table. A table of SQLite has an empty schema."""

Scan: TypeAlias = Callable[[str, str], Awaitable[list[Row]]]
"""Runs a statement with one text."""

_NUMBER_DIGITS = 4
_HASH_BYTES = 6

# The text of a view is hashed, because a database in SQL_ASCII does not check it. A view is shown with the names that
# the search path does not find qualified, so the path must always be the same.
_POSTGRES = """
WITH fixed AS MATERIALIZED (SELECT set_config('search_path', 'pg_catalog', true) AS path)
SELECT n.nspname, c.relname, jsonb_build_array(
    CASE WHEN c.relkind IN ('r', 'p') THEN 'table' ELSE c.relkind::text END,
    c.relrowsecurity,
    (
        SELECT jsonb_agg(a.attname ORDER BY o.at)
        FROM pg_catalog.pg_constraint AS k
        CROSS JOIN LATERAL unnest(k.conkey) WITH ORDINALITY AS o (number, at)
        JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = o.number
        WHERE k.conrelid = c.oid AND k.contype = 'p'
    ),
    (
        SELECT jsonb_agg(each.reference ORDER BY each.reference::text COLLATE "C")
        FROM (
            SELECT jsonb_build_array(
                tn.nspname,
                t.relname,
                (
                    SELECT jsonb_agg(a.attname ORDER BY o.at)
                    FROM unnest(k.conkey) WITH ORDINALITY AS o (number, at)
                    JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = o.number
                ),
                (
                    SELECT jsonb_agg(a.attname ORDER BY o.at)
                    FROM unnest(k.confkey) WITH ORDINALITY AS o (number, at)
                    JOIN pg_catalog.pg_attribute AS a ON a.attrelid = t.oid AND a.attnum = o.number
                )
            ) AS reference
            FROM pg_catalog.pg_constraint AS k
            JOIN pg_catalog.pg_class AS t ON t.oid = k.confrelid
            JOIN pg_catalog.pg_namespace AS tn ON tn.oid = t.relnamespace
            WHERE k.conrelid = c.oid AND k.contype = 'f' AND k.conparentid = 0
        ) AS each
    ),
    CASE WHEN c.relkind IN ('v', 'm') AND fixed.path IS NOT NULL THEN
        encode(sha256(convert_to(pg_catalog.pg_get_viewdef(c.oid), 'SQL_ASCII')), 'hex')
    END
)::text, (
    SELECT jsonb_agg(jsonb_build_array(a.attnum, a.attname, tn.nspname, t.typname) ORDER BY a.attnum)
    FROM pg_catalog.pg_attribute AS a
    JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid
    JOIN pg_catalog.pg_namespace AS tn ON tn.oid = t.typnamespace
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
)::text
FROM fixed
CROSS JOIN pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
    AND (n.nspname, c.relname) IN (
        SELECT named.s, named.t FROM jsonb_to_recordset($1::text::jsonb) AS named (s text, t text)
    )
"""
_SQLITE = """
SELECT '', s.name, json_array(
    s.type,
    (SELECT json_group_array(name) FROM (SELECT name FROM pragma_table_xinfo(s.name) WHERE pk > 0 ORDER BY pk)),
    (
        SELECT json_group_array(json_array(id, seq, "table", "from", "to"))
        FROM (SELECT id, seq, "table", "from", "to" FROM pragma_foreign_key_list(s.name) ORDER BY id, seq)
    ),
    CASE s.type WHEN 'view' THEN hex(s.sql) END
), (SELECT json_group_array(json_array(cid + 1, name, type)) FROM pragma_table_xinfo(s.name))
FROM sqlite_schema AS s
WHERE s.type IN ('table', 'view') AND lower(s.name) IN (SELECT lower(value ->> 't') FROM json_each($1))
"""


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """The definition of a table: the part without columns as JSON, and the columns, each with its number first."""

    others: str
    columns: tuple[tuple[Any, ...], ...]

    @property
    def fingerprint(self) -> str:
        """Return the fingerprint of the table as it is now."""
        return self._until(max((int(each[0]) for each in self.columns), default=0))

    def fits(self, fingerprint: str) -> bool:
        """Return whether the table is still the one with this fingerprint. Later columns do not count."""
        try:
            return self._until(int(fingerprint[:_NUMBER_DIGITS], 16)) == fingerprint
        except ValueError:
            return False

    def _until(self, number: int) -> str:
        """Return the fingerprint with the columns up to this number."""
        text = json.dumps([self.others, [each for each in self.columns if int(each[0]) <= number]])
        return f"{number:0{_NUMBER_DIGITS}x}{hashlib.blake2b(text.encode(), digest_size=_HASH_BYTES).hexdigest()}"


async def read(dialect: Dialect, scan: Scan, tables: Collection[TableId]) -> Mapping[TableId, TableDefinition]:
    """Return the definitions of those of these tables that exist. SQLite ignores the case of names.

    Raises:
        as `scan`.
    """
    named = json.dumps([{"s": each[0], "t": each[1]} for each in tables])
    rows = await scan(_POSTGRES if dialect == "postgres" else _SQLITE, named)
    found = {
        (str(schema), str(name)): TableDefinition(str(others), tuple(map(tuple, json.loads(columns or "[]"))))
        for schema, name, others, columns in rows
    }
    if dialect == "postgres":
        return found
    by_lower = {name.lower(): definition for (_, name), definition in found.items()}
    return {each: by_lower[each[1].lower()] for each in tables if each[1].lower() in by_lower}
