"""Fingerprints of the tables of an existing database. A fingerprint is a hash of a table's definition. If it differs
from the fingerprint of the reviewed table, then the table has changed since the review.

A fingerprint covers:
- the kind of the table, its primary key and its foreign keys
- whether it has row-level security, and whether other tables inherit from it
- the text of a view, and of the views and functions that the view reads
- the server and the options of a foreign table
- whether a unique index covers the key of the records
- the number, name and type of each column, and the base type of a domain

The number is included because two columns could be renamed to each other's names. A column that is added later has a
higher number and does not change the fingerprint. A changed length limit, a dropped NOT NULL and a new value of an enum
type do not change it either.
"""

import hashlib
import json
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from countersign.kernel.database.port import Dialect, Row

TableId: TypeAlias = tuple[str, str]
"""The schema and the name of a table. A table of SQLite has an empty schema."""

RunQuery: TypeAlias = Callable[[str, str], Awaitable[list[Row]]]
"""Runs a query with one text as its only parameter, and returns the rows."""

_COLUMN_NUMBER_DIGITS = 4
_HASH_BYTES = 6

# The text of a view is hashed here, because a database with the encoding SQL_ASCII may return text that is not UTF-8.
# pg_get_viewdef qualifies the names that the search path does not find, so the search path must always be the same.
_FOREIGN = """
SELECT jsonb_build_array(s.srvname, s.srvoptions, t.ftoptions, (
    SELECT jsonb_agg(jsonb_build_array(a.attnum, a.attfdwoptions) ORDER BY a.attnum)
    FROM pg_catalog.pg_attribute AS a
    WHERE a.attrelid = t.ftrelid AND a.attnum > 0 AND NOT a.attisdropped AND a.attfdwoptions IS NOT NULL
))
FROM pg_catalog.pg_foreign_table AS t
JOIN pg_catalog.pg_foreign_server AS s ON s.oid = t.ftserver
WHERE t.ftrelid ="""
_POSTGRES = f"""
WITH fixed AS MATERIALIZED (SELECT set_config('search_path', 'pg_catalog', true) AS path)
SELECT n.nspname, c.relname, (jsonb_build_array(
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
        SELECT jsonb_agg(foreign_key.reference ORDER BY foreign_key.reference::text COLLATE "C")
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
        ) AS foreign_key
    ),
    CASE WHEN c.relkind IN ('v', 'm') AND fixed.path IS NOT NULL THEN
        (
            WITH RECURSIVE reached AS (
                SELECT 'pg_class'::regclass::oid AS class, c.oid
                UNION
                SELECT d.refclassid, d.refobjid
                FROM reached AS r
                JOIN pg_catalog.pg_rewrite AS w ON w.ev_class = r.oid AND r.class = 'pg_class'::regclass
                JOIN pg_catalog.pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
                WHERE d.refclassid IN ('pg_class'::regclass, 'pg_proc'::regclass)
            )
            SELECT encode(sha256(string_agg(sha256(convert_to(found.text, 'SQL_ASCII')), '' ORDER BY found.oid)), 'hex')
            FROM (
                SELECT r.oid, CASE r.class WHEN 'pg_proc'::regclass THEN (
                    SELECT CASE WHEN p.prosrc = '' AND p.prokind IN ('f', 'p') THEN pg_get_functiondef(p.oid)
                        ELSE p.prosrc END
                    FROM pg_catalog.pg_proc AS p
                    WHERE p.oid = r.oid
                ) ELSE coalesce((
                    SELECT pg_catalog.pg_get_viewdef(v.oid)
                    FROM pg_catalog.pg_class AS v
                    WHERE v.oid = r.oid AND v.relkind IN ('v', 'm')
                ), ({_FOREIGN} r.oid)::text) END AS text
                FROM reached AS r
            ) AS found
            WHERE found.text IS NOT NULL
        )
    END
) || CASE WHEN c.relkind = 'f' THEN ({_FOREIGN} c.oid) ELSE '[]' END
|| CASE WHEN c.relkind = 'r' AND EXISTS (SELECT FROM pg_catalog.pg_inherits AS i WHERE i.inhparent = c.oid)
    THEN '["parent"]'::jsonb ELSE '[]' END
)::text, (
    SELECT jsonb_agg(unique_index.names)
    FROM (
        SELECT (
            SELECT jsonb_agg(a.attname)
            FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k (number, at)
            JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = k.number
            WHERE k.at <= i.indnkeyatts
        ) AS names
        FROM pg_catalog.pg_index AS i
        WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indimmediate AND NOT i.indisprimary
            AND i.indpred IS NULL AND i.indexprs IS NULL
            AND NOT EXISTS (
                SELECT
                FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k (number, at)
                JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = k.number
                WHERE k.at <= i.indnkeyatts AND NOT a.attnotnull
            )
    ) AS unique_index
)::text, (
    SELECT jsonb_agg(
        jsonb_build_array(a.attnum, a.attname, tn.nspname, t.typname)
        || CASE WHEN t.typtype = 'd' THEN jsonb_build_array((
            SELECT b.typname FROM pg_catalog.pg_type AS b WHERE b.oid = t.typbasetype
        )) ELSE '[]' END
        ORDER BY a.attnum
    )
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
    CASE s.type WHEN 'view' THEN (
        SELECT json_group_array(hex(sql)) FROM (SELECT sql FROM sqlite_schema WHERE type = 'view' ORDER BY name)
    ) END
), (
    SELECT json_group_array(json(names))
    FROM (
        SELECT json_group_array(i.name) AS names
        FROM pragma_index_list(s.name) AS l, pragma_index_info(l.name) AS i
        WHERE l."unique" AND NOT l.partial AND l.origin <> 'pk'
        GROUP BY l.name
    )
), (SELECT json_group_array(json_array(cid + 1, name, type)) FROM pragma_table_xinfo(s.name))
FROM sqlite_schema AS s
WHERE s.type IN ('table', 'view') AND lower(s.name) IN (SELECT lower(value ->> 't') FROM json_each($1))
"""


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """The definition of a table.

    table_facts  JSON of everything that a fingerprint covers except columns and unique indexes
    unique_keys  the column names of each unique index; the primary key is not among them
    columns      the number, the name and the type of each column
    """

    table_facts: str
    unique_keys: frozenset[frozenset[str]]
    columns: tuple[tuple[Any, ...], ...]

    def fingerprint(self, key: Collection[str]) -> str:
        """Return the fingerprint of the table as it is now, for records with this key."""
        last_number = max((int(column[0]) for column in self.columns), default=0)
        return self._fingerprint_up_to(last_number, is_unique=self._has_index(key))

    def matches(self, fingerprint: str, key: Collection[str], used_columns: Collection[str] = ()) -> bool:
        """Return whether the table has this fingerprint, and whether the fingerprint covers all used columns. Columns
        and a unique index over the key that were added later are ignored."""
        try:
            last_number = int(fingerprint[:_COLUMN_NUMBER_DIGITS], 16)
        except ValueError:
            return False
        # SQLite ignores the case of names.
        later_columns = {str(name).lower() for number, name, *_ in self.columns if int(number) > last_number}
        if not later_columns.isdisjoint(map(str.lower, used_columns)):
            return False
        has_index = self._has_index(key)
        return fingerprint in {
            self._fingerprint_up_to(last_number, is_unique=is_unique) for is_unique in (has_index, False)
        }

    def _has_index(self, key: Collection[str]) -> bool:
        return frozenset(key) in self.unique_keys

    def _fingerprint_up_to(self, last_number: int, *, is_unique: bool) -> str:
        """Return the fingerprint with the columns up to this number."""
        parts: list[object] = [self.table_facts, [column for column in self.columns if int(column[0]) <= last_number]]
        text = json.dumps([*parts, "unique"] if is_unique else parts)
        text_hash = hashlib.blake2b(text.encode(), digest_size=_HASH_BYTES).hexdigest()
        return f"{last_number:0{_COLUMN_NUMBER_DIGITS}x}{text_hash}"


async def read(dialect: Dialect, run_query: RunQuery, tables: Collection[TableId]) -> Mapping[TableId, TableDefinition]:
    """Return the definitions of the tables in `tables` that exist. SQLite ignores the case of names.

    Raises:
        as `run_query`.
    """
    table_names = json.dumps([{"s": table[0], "t": table[1]} for table in tables])
    rows = await run_query(_POSTGRES if dialect == "postgres" else _SQLITE, table_names)
    definitions = {
        (str(schema), str(name)): TableDefinition(
            str(table_facts),
            frozenset(map(frozenset, json.loads(unique_keys or "[]"))),
            tuple(map(tuple, json.loads(columns or "[]"))),
        )
        for schema, name, table_facts, unique_keys, columns in rows
    }
    if dialect == "postgres":
        return definitions
    by_lower = {name.lower(): definition for (_, name), definition in definitions.items()}
    return {table: by_lower[table[1].lower()] for table in tables if table[1].lower() in by_lower}
