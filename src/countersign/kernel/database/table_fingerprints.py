"""Fingerprints of the tables of an existing database: hashes that show that a table is no longer the one that somebody
has reviewed.

A fingerprint covers the kind of the table, its primary key and foreign keys, whether it has row-level security, the
text of a view and of the views and functions that it reads, whether other tables inherit from the table, the server and
the options of a foreign table, whether the key of the records is a unique index, the number, name and type of each
column, and the type behind a domain. The number distinguishes two columns that exchange their names. A column that is
added later has a higher number and does not change the fingerprint, nor do other lengths of texts, empty values that
become allowed, or new values of an enum type.
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
    SELECT jsonb_agg(each.names)
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
    ) AS each
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
    """The definition of a table: the part without columns as JSON, the columns of unique indexes without the primary
    key, and all columns, each with its number first."""

    others: str
    unique: frozenset[frozenset[str]]
    columns: tuple[tuple[Any, ...], ...]

    def fingerprint(self, key: Collection[str]) -> str:
        """Return the fingerprint of the table as it is now, for records with this key."""
        return self._until(max((int(each[0]) for each in self.columns), default=0), is_unique=self._has_index(key))

    def fits(self, fingerprint: str, key: Collection[str], used: Collection[str] = ()) -> bool:
        """Return whether the table is still the one with this fingerprint, and whether the fingerprint covers each used
        column. Other columns that were added later do not count, nor does an index that makes the key unique later."""
        try:
            number = int(fingerprint[:_NUMBER_DIGITS], 16)
        except ValueError:
            return False
        # SQLite ignores the case of names.
        later = {str(name).lower() for at, name, *_ in self.columns if int(at) > number}
        if not later.isdisjoint(map(str.lower, used)):
            return False
        has_index = self._has_index(key)
        return fingerprint in {self._until(number, is_unique=has_index), self._until(number, is_unique=False)}

    def _has_index(self, key: Collection[str]) -> bool:
        return frozenset(key) in self.unique

    def _until(self, number: int, *, is_unique: bool) -> str:
        """Return the fingerprint with the columns up to this number."""
        parts: list[object] = [self.others, [each for each in self.columns if int(each[0]) <= number]]
        text = json.dumps([*parts, "unique"] if is_unique else parts)
        return f"{number:0{_NUMBER_DIGITS}x}{hashlib.blake2b(text.encode(), digest_size=_HASH_BYTES).hexdigest()}"


async def read(dialect: Dialect, scan: Scan, tables: Collection[TableId]) -> Mapping[TableId, TableDefinition]:
    """Return the definitions of those of these tables that exist. SQLite ignores the case of names.

    Raises:
        as `scan`.
    """
    table_names = json.dumps([{"s": each[0], "t": each[1]} for each in tables])
    rows = await scan(_POSTGRES if dialect == "postgres" else _SQLITE, table_names)
    definitions = {
        (str(schema), str(name)): TableDefinition(
            str(others),
            frozenset(map(frozenset, json.loads(unique or "[]"))),
            tuple(map(tuple, json.loads(columns or "[]"))),
        )
        for schema, name, others, unique, columns in rows
    }
    if dialect == "postgres":
        return definitions
    by_lower = {name.lower(): definition for (_, name), definition in definitions.items()}
    return {each: by_lower[each[1].lower()] for each in tables if each[1].lower() in by_lower}
