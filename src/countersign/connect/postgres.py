"""Reads the schema of a PostgreSQL database in one statement over its catalog, and samples of its text columns."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from countersign.connect.schema import (
    UNDECODABLE,
    BaseType,
    Database,
    ForeignKey,
    Relation,
    RelationId,
    RelationKind,
    Samples,
    TableColumn,
    UniqueKey,
)
from countersign.declare.table import quoted
from countersign.kernel.database import postgres_admin, table_fingerprints
from countersign.kernel.database.postgres_admin import AdminConnection
from countersign.kernel.database.table_fingerprints import TableDefinition

APPLICATION = "countersign connect"
SAMPLE_TIMEOUT_MS = 300
LOCK_TIMEOUT_MS = 1_000
MAX_SAMPLE_LENGTH = 200

# $1: the schemas, or an empty array for all schemas of applications. $2: the encoding of the texts in the result.
# A schema with the audit of the records service contains the tables of an installation, not those of an application,
# and so does the schema of the recorded changes.
_CATALOG = r"""
SELECT convert_to(jsonb_build_object(
    'version', current_setting('server_version'),
    'name', current_database(),
    'role', current_user,
    'superuser', (SELECT r.rolsuper FROM pg_roles AS r WHERE r.rolname = current_user),
    'may_be_superuser', EXISTS (SELECT FROM pg_roles AS r WHERE r.rolsuper AND pg_has_role(r.oid, 'MEMBER')),
    'bypasses', EXISTS (SELECT FROM pg_roles AS r WHERE r.rolbypassrls AND pg_has_role(r.oid, 'MEMBER')),
    'has_server_files', EXISTS (
        SELECT FROM pg_roles AS r
        WHERE r.rolname IN ('pg_execute_server_program', 'pg_read_server_files', 'pg_write_server_files')
            AND pg_has_role(r.oid, 'MEMBER')
    ),
    'create', has_database_privilege(current_database(), 'CREATE'),
    'replica', pg_is_in_recovery(),
    'relations', coalesce((
        SELECT jsonb_agg(jsonb_build_object(
            'schema', n.nspname,
            'name', c.relname,
            'kind', c.relkind::text,
            'is_partition', c.relispartition,
            'is_parent', EXISTS (SELECT FROM pg_inherits AS i WHERE i.inhparent = c.oid),
            'of_extension', EXISTS (
                SELECT FROM pg_depend AS d
                WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'
            ),
            'rows', c.reltuples::bigint,
            'row_rules', c.relrowsecurity,
            'is_owned', pg_has_role(c.relowner, 'MEMBER'),
            'columns', coalesce((
                SELECT jsonb_agg(jsonb_build_object(
                    'name', a.attname,
                    'number', a.attnum,
                    'type', format_type(a.atttypid, a.atttypmod),
                    'base', CASE WHEN b.is_known THEN b.typname ELSE '' END,
                    'letter', b.typtype::text,
                    'category', b.typcategory::text,
                    'modifier', b.modifier,
                    'required', a.attnotnull OR b.is_required,
                    'default', a.atthasdef OR b.has_default OR a.attidentity <> '',
                    'generated', a.attgenerated <> '' OR a.attidentity = 'a',
                    'readable', has_column_privilege(c.oid, a.attnum, 'SELECT'),
                    'labels', (
                        SELECT jsonb_agg(e.enumlabel ORDER BY e.enumsortorder)
                        FROM pg_enum AS e
                        WHERE e.enumtypid = b.oid
                    ),
                    'comment', col_description(c.oid, a.attnum),
                    'ordered', EXISTS (
                        SELECT FROM pg_index AS i
                        JOIN pg_collation AS o ON o.oid = i.indcollation[0]
                        WHERE i.indrelid = c.oid AND i.indkey[0] = a.attnum AND i.indisvalid AND i.indpred IS NULL
                            AND (o.collname IN ('C', 'POSIX', 'ucs_basic') OR o.collname = 'default' AND (
                                SELECT d.datcollate IN ('C', 'POSIX') AND d.datlocprovider = 'c'
                                FROM pg_database AS d
                                WHERE d.datname = current_database()
                            ))
                    )
                ) ORDER BY a.attnum)
                FROM pg_attribute AS a
                CROSS JOIN LATERAL (
                    WITH RECURSIVE unrolled AS (
                        SELECT t.oid, t.typname, t.typnamespace, t.typtype, t.typcategory, t.typbasetype,
                            a.atttypmod AS modifier,
                            t.typtypmod, t.typnotnull AS is_required, t.typdefault IS NOT NULL AS has_default
                        FROM pg_type AS t
                        WHERE t.oid = a.atttypid
                        UNION ALL
                        SELECT t.oid, t.typname, t.typnamespace, t.typtype, t.typcategory, t.typbasetype,
                            u.typtypmod, t.typtypmod, u.is_required OR t.typnotnull,
                            u.has_default OR t.typdefault IS NOT NULL
                        FROM unrolled AS u
                        JOIN pg_type AS t ON t.oid = u.typbasetype
                        WHERE u.typtype = 'd'
                    )
                    SELECT u.oid, u.typname, u.typtype, u.typcategory, u.modifier, u.is_required, u.has_default,
                        u.typtype = 'b' AND (u.typnamespace = 'pg_catalog'::regnamespace OR EXISTS (
                            SELECT FROM pg_depend AS d
                            WHERE d.classid = 'pg_type'::regclass AND d.objid = u.oid AND d.deptype = 'e'
                        )) AS is_known
                    FROM unrolled AS u
                    WHERE u.typtype <> 'd'
                ) AS b
                WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
            ), '[]'),
            'keys', coalesce((
                SELECT jsonb_agg(jsonb_build_object('primary', i.indisprimary, 'columns', (
                    SELECT jsonb_agg(a.attname ORDER BY k.at)
                    FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k (number, at)
                    JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = k.number
                    WHERE k.at <= i.indnkeyatts
                )) ORDER BY i.indisprimary DESC, i.indnkeyatts, x.relname COLLATE "C")
                FROM pg_index AS i
                JOIN pg_class AS x ON x.oid = i.indexrelid
                WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indimmediate
                    AND i.indpred IS NULL AND i.indexprs IS NULL
                    AND NOT EXISTS (
                        SELECT FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k (number, at)
                        JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = k.number
                        WHERE k.at <= i.indnkeyatts AND NOT a.attnotnull
                    )
            ), '[]'),
            'references', coalesce((
                SELECT jsonb_agg(jsonb_build_object(
                    'schema', tn.nspname,
                    'name', t.relname,
                    'delete', k.confdeltype::text,
                    'columns', (
                        SELECT jsonb_agg(a.attname ORDER BY o.at)
                        FROM unnest(k.conkey) WITH ORDINALITY AS o (number, at)
                        JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = o.number
                    ),
                    'targets', (
                        SELECT jsonb_agg(a.attname ORDER BY o.at)
                        FROM unnest(k.confkey) WITH ORDINALITY AS o (number, at)
                        JOIN pg_attribute AS a ON a.attrelid = t.oid AND a.attnum = o.number
                    )
                ) ORDER BY k.conname COLLATE "C")
                FROM pg_constraint AS k
                JOIN pg_class AS t ON t.oid = k.confrelid
                JOIN pg_namespace AS tn ON tn.oid = t.relnamespace
                WHERE k.conrelid = c.oid AND k.contype = 'f' AND k.conparentid = 0
            ), '[]'),
            'triggers', coalesce((
                SELECT jsonb_agg(jsonb_build_object('name', g.tgname, 'type', g.tgtype) ORDER BY g.tgname COLLATE "C")
                FROM pg_trigger AS g
                WHERE g.tgrelid = c.oid AND NOT g.tgisinternal AND NOT EXISTS (
                    SELECT FROM pg_proc AS p
                    JOIN pg_namespace AS w ON w.oid = p.pronamespace AND w.nspname = 'countersign_watch'
                    WHERE p.oid = g.tgfoid
                )
            ), '[]')
        ) ORDER BY n.nspname COLLATE "C", c.relname COLLATE "C")
        FROM pg_class AS c
        JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
            AND (n.nspname = ANY($1::text[]) OR cardinality($1::text[]) = 0)
            AND n.nspname NOT IN ('information_schema', 'countersign_watch') AND n.nspname NOT LIKE 'pg\_%'
            AND NOT EXISTS (SELECT FROM pg_class AS o WHERE o.relnamespace = n.oid AND o.relname = 'audit_lane')
            AND has_schema_privilege(n.oid, 'USAGE')
            AND has_any_column_privilege(c.oid, 'SELECT')
    ), '[]')
)::text, $2)
"""

_SEARCH_PATH = "SELECT pg_catalog.current_setting('search_path')"
# A database in SQL_ASCII does not check its texts, so they are read as bytes.
_ENCODING = "SELECT CASE current_setting('server_encoding') WHEN 'SQL_ASCII' THEN 'SQL_ASCII' ELSE 'UTF8' END"
_COMMON_VALUES = """
SELECT convert_to(s.schemaname, $2), convert_to(s.tablename, $2), convert_to(s.attname, $2), ARRAY(
    SELECT convert_to(left(v.value, 200), $2)
    FROM unnest(s.most_common_vals::text::text[]) WITH ORDINALITY AS v (value, at)
    ORDER BY v.at
)
FROM pg_stats AS s
WHERE s.schemaname = ANY($1::text[]) AND s.most_common_vals IS NOT NULL
"""
_FIRST_ROWS = """
SELECT format('SELECT %s FROM %I.%I LIMIT 2000', string_agg(
    format('pg_catalog.convert_to(pg_catalog.left(%I::pg_catalog.text, 200), %L)', c.name, $4::text), ', ' ORDER BY c.at
), $1::text, $2::text)
FROM unnest($3::text[]) WITH ORDINALITY AS c (name, at)
"""

_KINDS: Mapping[str, RelationKind] = {
    "r": "table", "p": "partitioned", "v": "view", "m": "materialized", "f": "foreign"
}  # fmt: skip
_BASES: Mapping[str, BaseType] = {
    **dict.fromkeys(("varchar", "bpchar", "text", "name"), "text"),
    **dict.fromkeys(("int2", "int4", "oid"), "integer"),
    **dict.fromkeys(("float4", "float8"), "float"),
    **dict.fromkeys(("time", "timetz"), "time"),
    **dict.fromkeys(("inet", "cidr", "macaddr", "macaddr8"), "address"),
    **dict.fromkeys(("json", "jsonb", "hstore", "xml"), "json"),
    **{"citext": "citext", "int8": "bigint", "numeric": "numeric", "money": "money", "bool": "bool", "date": "date"},
    **{"timestamptz": "moment", "timestamp": "local_moment", "interval": "interval", "uuid": "uuid", "bytea": "bytes"},
}
_LENGTH_OFFSET = 4
"""The modifier of varchar, char and numeric is their length and this offset."""

_BEFORE, _INSTEAD = 2, 64
_EVENTS = {4: "INSERT", 8: "DELETE", 16: "UPDATE", 32: "TRUNCATE"}


async def read(url: str, schemas: Sequence[str], compared: Collection[RelationId] | None = None) -> Database:
    """Return the schema of the database: the tables and views that the role may read. Definitions are read only of the
    relations in `compared`, or of all relations if it is not given. A locked table, or a view over one, has no
    definition.

    Raises:
        Unavailable: the server cannot be reached.
        ValueError: the URL cannot be parsed.
    """
    async with (
        postgres_admin.admin_session(url, application=APPLICATION) as connection,
        connection.transaction(isolation="repeatable_read", readonly=True),
    ):
        path = _search_path(str((await connection.fetch(_SEARCH_PATH))[0][0]))
        await connection.execute(postgres_admin.FIXED_SEARCH_PATH)
        rows = await connection.fetch(_CATALOG, list(schemas), await _encoding(connection))
        database = _database(json.loads(_decoded(rows[0][0])), path)
        ids = [each.id for each in database.relations if each.is_decodable]
        ids = ids if compared is None else [each for each in ids if each in compared]
        return database.with_definitions(await _definitions(connection, ids))


async def _definitions(
    connection: AdminConnection, ids: Sequence[RelationId]
) -> Mapping[RelationId, TableDefinition]:
    """Return the definitions of the relations. If a relation is locked, read each definition separately, and leave out
    the locked relations."""
    async with postgres_admin.skip_locked(connection, timeout_ms=LOCK_TIMEOUT_MS):
        return await table_fingerprints.read("postgres", connection.fetch, ids)
    found: dict[RelationId, TableDefinition] = {}
    for each in ids:
        async with postgres_admin.skip_locked(connection, timeout_ms=LOCK_TIMEOUT_MS):
            found.update(await table_fingerprints.read("postgres", connection.fetch, [each]))
    return found


async def samples(url: str, relations: Sequence[Relation], limit: int) -> Samples:
    """Return up to `limit` distinct values of each text column: the most common values in the statistics of PostgreSQL,
    or else values of the first rows. A table whose rows cannot be read in time has no samples.

    Raises:
        Unavailable: the server cannot be reached.
    """
    async with postgres_admin.admin_session(url, application=APPLICATION) as connection:
        async with connection.transaction(isolation="read_committed", readonly=True):
            await connection.execute(postgres_admin.FIXED_SEARCH_PATH)
            encoding = await _encoding(connection)
        found = await _common_values(connection, sorted({each.schema for each in relations}), limit, encoding)
        for relation in relations:
            columns = [each.name for each in relation.columns if each.base in ("text", "citext")]
            missing = [column for column in columns if (relation.id, column) not in found]
            if missing:
                found.update(await _first_values(connection, relation, missing, limit, encoding))
    return found


async def _encoding(connection: AdminConnection) -> str:
    """Return an encoding to which the server can convert all of its texts."""
    return str((await connection.fetch(_ENCODING))[0][0])


def _decoded(value: object) -> str:
    """Decode the bytes as UTF-8, and replace invalid bytes."""
    return cast("bytes", value).decode(errors="replace")


async def _common_values(
    connection: AdminConnection, schemas: Sequence[str], limit: int, encoding: str
) -> dict[tuple[RelationId, str], tuple[str, ...]]:
    """Return the most common values from the statistics of PostgreSQL, which needs no table scan."""
    rows = await postgres_admin.fetch_within(
        connection, _COMMON_VALUES, [schemas, encoding], timeout_ms=SAMPLE_TIMEOUT_MS, has_fixed_path=True
    )
    return {
        ((_decoded(schema), _decoded(name)), _decoded(column)): tuple(
            _decoded(each)[:MAX_SAMPLE_LENGTH] for each in cast("list[bytes]", values)[:limit]
        )
        for schema, name, column, values in rows or []
    }


async def _first_values(
    connection: AdminConnection, relation: Relation, columns: Sequence[str], limit: int, encoding: str
) -> Samples:
    async with connection.transaction(isolation="read_committed", readonly=True):
        await connection.execute(postgres_admin.FIXED_SEARCH_PATH)
        written = await connection.fetch(_FIRST_ROWS, relation.schema, relation.name, columns, encoding)
    rows = await postgres_admin.fetch_within(connection, str(written[0][0]), [], timeout_ms=SAMPLE_TIMEOUT_MS)
    return {
        (relation.id, column): tuple(dict.fromkeys(_decoded(row[at]) for row in rows or [] if row[at]))[:limit]
        for at, column in enumerate(columns)
    }


def _database(found: Mapping[str, Any], path: Sequence[str]) -> Database:
    return Database(
        product=f"PostgreSQL {str(found['version']).partition(' ')[0]}",
        name=found["name"],
        role=found["role"],
        relations=tuple(_relation(each, path) for each in found["relations"]),
        search_path=tuple(path),
        is_superuser=bool(found["superuser"]),
        wide_rights=_wide_rights(found),
        is_replica=found["replica"],
        may_create_schema=found["create"],
    )


def _wide_rights(found: Mapping[str, Any]) -> tuple[str, ...]:
    """Return descriptions of the role's privileges on the whole server. A superuser may do everything."""
    if found["superuser"]:
        return ("is a superuser",)
    named = {
        "may_be_superuser": "may become a superuser",
        "bypasses": "bypasses row-level security",
        "has_server_files": "may run programs or use files of the server",
    }
    return tuple(text for right, text in named.items() if found[right])


def _search_path(setting: str) -> tuple[str, ...]:
    """Return the schemas in the setting without `$user`, which is a different schema for each role."""
    parts = [part.strip() for part in setting.split(",")]
    names = [part[1:-1].replace('""', '"') if part.startswith('"') else part for part in parts if part]
    return tuple(name for name in names if name != "$user")


def _relation(found: Mapping[str, Any], path: Sequence[str]) -> Relation:
    return Relation(
        schema=found["schema"],
        name=found["name"],
        kind=_relation_kind(found),
        columns=tuple(_column(each, path) for each in found["columns"] if each["readable"]),
        rows=found["rows"],
        keys=tuple(UniqueKey(tuple(each["columns"]), each["primary"]) for each in found["keys"]),
        foreign_keys=tuple(map(_foreign_key, found["references"])),
        triggers=tuple(_trigger(each["name"], each["type"]) for each in found["triggers"]),
        has_row_rules=found["row_rules"],
        is_owned=found["is_owned"],
        unreadable=tuple(each["name"] for each in found["columns"] if not each["readable"]),
    )


def _relation_kind(found: Mapping[str, Any]) -> RelationKind:
    if UNDECODABLE in found["schema"] + found["name"]:
        return "undecodable"
    names = [*found["columns"], *found["references"], *found["triggers"]]
    if any(UNDECODABLE in json.dumps({**each, "comment": ""}, ensure_ascii=False) for each in names):
        return "undecodable_part"
    if found["of_extension"]:
        return "extension"
    if found["is_partition"]:
        return "partition"
    kind = _KINDS.get(found["kind"], "unknown")
    return "inherited" if kind == "table" and found["is_parent"] else kind


def _column(found: Mapping[str, Any], path: Sequence[str]) -> TableColumn:
    base = _base(found)
    modifier = found["modifier"]
    has_length = base == "text" and found["base"] in ("varchar", "bpchar") and modifier > _LENGTH_OFFSET
    return TableColumn(
        name=found["name"],
        number=found["number"],
        base=base,
        type_name=_type_name(found["type"], path),
        is_required=found["required"],
        has_default=found["default"],
        is_generated=found["generated"],
        max_length=modifier - _LENGTH_OFFSET if has_length else 0,
        scale=_scale(modifier) if base == "numeric" else None,
        allowed=tuple(found["labels"] or ()),
        orders_by_index=found["ordered"],
        comment=found["comment"] or "",
    )


def _type_name(name: str, path: Sequence[str]) -> str:
    """Return the name of a type, without its schema if the schema is on the search path."""
    written = (f"{each}." if each.isidentifier() else f"{quoted(each)}." for each in path)
    return next((name.removeprefix(each) for each in written if name.startswith(each)), name)


def _scale(modifier: int) -> int | None:
    """Return the scale in the modifier of a numeric type. Its lowest 11 bits are the scale, which has a sign."""
    scale = (modifier - _LENGTH_OFFSET) & 0x7FF
    return None if modifier < _LENGTH_OFFSET else scale - 0x800 if scale > 0x3FF else scale


def _base(found: Mapping[str, Any]) -> BaseType:
    if found["letter"] == "e":
        return "enum"
    if found["category"] == "A":
        return "array"
    return _BASES.get(found["base"], "other")


def _foreign_key(found: Mapping[str, Any]) -> ForeignKey:
    delete = found["delete"]
    on_delete = "cascade" if delete == "c" else "clear" if delete in ("n", "d") else "refuse"
    return ForeignKey(
        tuple(found["columns"]), (found["schema"], found["name"]), tuple(found["targets"]), on_delete
    )


def _trigger(name: str, letters: int) -> str:
    moment = "INSTEAD OF" if letters & _INSTEAD else "BEFORE" if letters & _BEFORE else "AFTER"
    events = " OR ".join(event for bit, event in _EVENTS.items() if letters & bit)
    return f"{name} ({moment} {events})"
