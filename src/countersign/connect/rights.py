"""The rights of the role of Countersign in an existing PostgreSQL database: the SQL that grants what a module text
names and nothing else, and what a role has beyond that."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from countersign.connect import postgres
from countersign.connect.schema import Database, RelationId, relation_id
from countersign.declare import Declared
from countersign.declare.table import quoted
from countersign.declare.text import printable
from countersign.kernel.database import postgres_admin

MAX_ROLE_LENGTH = 63

_HELD = """
SELECT r.rolsuper, r.rolbypassrls, r.rolcreaterole OR r.rolcreatedb OR r.rolreplication,
    coalesce(bool_or(pg_has_role(c.relowner, 'USAGE')), false),
    coalesce(bool_or(has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')
        OR has_any_column_privilege(c.oid, 'INSERT, UPDATE')), false)
FROM pg_catalog.pg_roles AS r
LEFT JOIN (
    SELECT c.oid, c.relowner
    FROM pg_catalog.pg_class AS c
    JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE (n.nspname, c.relname) IN (
        SELECT named.s, named.t FROM jsonb_to_recordset($1::text::jsonb) AS named (s text, t text)
    )
) AS c ON true
WHERE r.rolname = current_user
GROUP BY r.rolsuper, r.rolbypassrls, r.rolcreaterole, r.rolcreatedb, r.rolreplication
"""
_REASONS = (
    "it is a superuser",
    "it bypasses row-level security",
    "it may create roles or databases, or replicate",
    "it owns tables of the file",
    "it may change tables of the file",
)
_ATTRIBUTES = "LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOINHERIT NOREPLICATION NOBYPASSRLS CONNECTION LIMIT 40"
_SETTINGS = (
    "default_transaction_read_only = on",
    "statement_timeout = '10s'",
    "lock_timeout = '2s'",
    "idle_in_transaction_session_timeout = '15s'",
)


@dataclass(frozen=True, slots=True)
class Excess:
    """What a role may do beyond reading what a module text names: reasons in words, and the columns that it may read
    besides, as `schema.table.column`. A superuser has the first reason alone."""

    reasons: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


def named_columns(models: Mapping[str, Declared]) -> dict[RelationId, tuple[str, ...]]:
    """Map the PostgreSQL tables of the models to the columns that the server reads: those of the keys and fields."""
    found: dict[RelationId, dict[str, None]] = {}
    for model in models.values():
        if model.table is not None:
            columns = found.setdefault(relation_id(model.table.relation), {})
            columns.update(dict.fromkeys(model.table.key_columns))
            columns.update(dict.fromkeys(name for each in model.fields.values() for name in each.table_columns))
    return {relation: tuple(columns) for relation, columns in found.items()}


def grants(models: Mapping[str, Declared], role: str, source: str) -> str:
    """Return the SQL that creates the role, or that changes what an existing role may read to what the models name.
    `source` is the name of the module text.

    The statements can be run again after a change of the module text. They contain no password.
    """
    return "\n".join(_lines(named_columns(models), role, printable(source)))


def is_role_name(name: str) -> bool:
    """Return whether the name can be that of a new role. Backslashes are refused, because settings of the server decide
    what they mean in literals."""
    is_short = 0 < len(name.encode()) <= MAX_ROLE_LENGTH
    return is_short and name.isprintable() and "\\" not in name and not name.startswith("pg_")


def _lines(columns: Mapping[RelationId, tuple[str, ...]], role: str, source: str) -> Iterator[str]:
    name = _identifier(role)
    yield f"-- The role {role} reads what {source} names, and nothing else. Run this as an owner of the tables or as an"
    yield f"-- administrator, and again after each change of {source}. Set its password in psql: \\password {name}"
    yield "BEGIN;"
    create = (
        f"BEGIN IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = {_literal(role)}) "
        f"THEN CREATE ROLE {name} {_ATTRIBUTES}; END IF; "
        f"EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), {_literal(role)}); END"
    )
    yield f"DO {_literal(create)};"
    for setting in _SETTINGS:
        yield f"ALTER ROLE {name} SET {setting};"
    for schema in sorted({schema for schema, _ in columns}):
        yield f"GRANT USAGE ON SCHEMA {_identifier(schema)} TO {name};"
    for (schema, table), names in sorted(columns.items()):
        place = f"{_identifier(schema)}.{_identifier(table)}"
        yield f"REVOKE ALL ON TABLE {place} FROM {name};"
        yield f"GRANT SELECT ({', '.join(map(_identifier, names))}) ON TABLE {place} TO {name};"
    yield "COMMIT;"
    yield ""


def _identifier(name: str) -> str:
    """Return the name as a quoted SQL identifier of printable characters."""
    if name.isprintable():
        return quoted(name)
    escaped = "".join(each if each.isprintable() else f"\\+{ord(each):06x}" for each in name.replace("\\", "\\\\"))
    return f"U&{quoted(escaped)}"


def _literal(text: str) -> str:
    """Return the text, which has no backslash, as a literal."""
    return "'" + text.replace("'", "''") + "'"


async def excess(url: str, models: Mapping[str, Declared], database: Database) -> Excess:
    """Return what the role of a PostgreSQL database may do beyond reading what the models name. Tables of extensions do
    not count.

    Raises:
        Unavailable: the server cannot be reached.
    """
    needed = named_columns(models)
    named = json.dumps([{"s": schema, "t": table} for schema, table in needed])
    async with postgres_admin.admin_session(url, application=postgres.APPLICATION) as connection:
        (held,) = await connection.fetch(_HELD, named)
    reasons = tuple(reason for reason, is_held in zip(_REASONS, held, strict=True) if is_held)
    if database.is_superuser:
        return Excess(reasons[:1])
    columns = tuple(
        f"{relation.place}.{column.name}"
        for relation in database.relations
        if relation.kind != "extension"
        for column in relation.columns
        if column.name not in needed.get(relation.id, ())
    )
    return Excess(reasons, columns)
