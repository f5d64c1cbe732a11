"""The privileges of Countersign's role in an existing PostgreSQL database: the SQL that grants exactly the privileges
that a module text needs, and the privileges that a role has in addition."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count

import msgspec

from countersign.connect import postgres
from countersign.connect.schema import Database, Relation, RelationId, relation_id
from countersign.declare import Declared
from countersign.declare.text import printable
from countersign.kernel.database import postgres_admin, postgres_watch
from countersign.kernel.database.postgres_watch import identifier, literal, quoted

MAX_ROLE_LENGTH = 63

# After SET ROLE, a role can use the privileges of the roles that it is a member of, even if it does not inherit them.
# Trigger functions cannot be called directly.
_HELD = """
WITH places AS (
    SELECT n.oid
    FROM pg_catalog.pg_namespace AS n
    WHERE n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'
        AND n.nspname <> 'countersign_watch'
        AND NOT (n.nspname = 'records' AND n.nspowner = (
            SELECT own.oid FROM pg_catalog.pg_roles AS own WHERE own.rolname = current_user
        ))
), relations AS (
    SELECT c.oid, c.relowner, n.nspname, c.relname
    FROM pg_catalog.pg_class AS c
    JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relnamespace IN (SELECT places.oid FROM places)
        AND NOT EXISTS (
            SELECT
            FROM pg_catalog.pg_depend AS d
            WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'
        )
)
SELECT r.rolsuper, r.rolbypassrls, r.rolcreaterole OR r.rolcreatedb OR r.rolreplication,
    EXISTS (SELECT FROM pg_catalog.pg_roles AS m WHERE m.oid <> r.oid AND pg_has_role(r.oid, m.oid, 'MEMBER')),
    EXISTS (SELECT FROM relations WHERE relations.relowner = r.oid),
    EXISTS (
        SELECT
        FROM relations
        WHERE has_table_privilege(relations.oid, 'TRUNCATE') OR (
            (
                has_table_privilege(relations.oid, 'INSERT, UPDATE')
                OR has_any_column_privilege(relations.oid, 'INSERT, UPDATE')
            )
            AND (relations.nspname, relations.relname) NOT IN (
                SELECT named.s, named.t FROM jsonb_to_recordset($1::text::jsonb) AS named (s text, t text)
            )
        ) OR (
            has_table_privilege(relations.oid, 'DELETE')
            AND (relations.nspname, relations.relname) NOT IN (
                SELECT named.s, named.t FROM jsonb_to_recordset($2::text::jsonb) AS named (s text, t text)
            )
        )
    ),
    has_database_privilege(current_database(), 'CREATE')
        OR EXISTS (SELECT FROM places WHERE has_schema_privilege(places.oid, 'CREATE')),
    EXISTS (
        SELECT
        FROM pg_catalog.pg_proc AS p
        WHERE p.prosecdef AND p.prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype)
            AND p.pronamespace IN (SELECT places.oid FROM places WHERE has_schema_privilege(places.oid, 'USAGE'))
            AND has_function_privilege(p.oid, 'EXECUTE')
    )
FROM pg_catalog.pg_roles AS r
WHERE r.rolname = current_user
"""
_PUBLIC = """
SELECT n.nspname, c.relname, a.attname
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'
    AND has_column_privilege('public', c.oid, a.attnum, 'SELECT')
"""
_REASONS = (
    "it is a superuser",
    "it bypasses row-level security",
    "it may create roles or databases, or replicate",
    "it is a member of other roles",
    "it owns tables",
    "it may change tables",
    "it may create tables or schemas",
    "it may run functions with the rights of their owner",
)
_ATTRIBUTES = "LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOINHERIT NOREPLICATION NOBYPASSRLS CONNECTION LIMIT 40"
_SETTINGS: Mapping[str, str] = {
    "default_transaction_read_only": "on",
    "statement_timeout": "10s",
    "lock_timeout": "2s",
    "idle_in_transaction_session_timeout": "15s",
}

_PREPARE = (postgres_admin.FIXED_SEARCH_PATH, "SET LOCAL client_min_messages = notice")
_MARK = "Reads tables for Countersign. SQL of countersign connect rights changes what it may read."
"""The comment that marks a role that this SQL created and may change."""

# The settings apply to this database only. Settings that are already correct are not changed, so that a later run does
# not need the privilege to change roles.
_CREATE = """
DECLARE
    setting text;
    database oid := (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = current_database());
BEGIN
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = {role}) THEN
        CREATE ROLE {name} {attributes};
    END IF;
{check}
    IF (
        SELECT shobj_description(r.oid, 'pg_authid') FROM pg_catalog.pg_roles AS r WHERE r.rolname = {role}
    ) IS NULL THEN
        EXECUTE format('COMMENT ON ROLE %I IS %L', {role}, {mark});
    END IF;
    FOREACH setting IN ARRAY ARRAY[{settings}] LOOP
        IF NOT EXISTS (
            SELECT FROM pg_catalog.pg_db_role_setting AS s
            JOIN pg_catalog.pg_roles AS r ON r.oid = s.setrole
            WHERE r.rolname = {role} AND s.setdatabase = database AND setting = ANY (s.setconfig)
        ) THEN
            EXECUTE format(
                'ALTER ROLE %I IN DATABASE %I SET %I = %L', {role}, current_database(),
                split_part(setting, '=', 1), split_part(setting, '=', 2)
            );
        END IF;
    END LOOP;
END
"""
# The schema of Countersign's own tables, which the role may own, and what is in it.
_IS_OWN = """d.dbid = (SELECT b.oid FROM pg_catalog.pg_database AS b WHERE b.datname = current_database()) AND (
                        d.classid = 'pg_namespace'::regclass AND d.objid = to_regnamespace('records')
                        OR d.classid = 'pg_class'::regclass AND EXISTS (
                            SELECT FROM pg_catalog.pg_class AS c
                            WHERE c.oid = d.objid AND c.relnamespace = to_regnamespace('records')
                        )
                    )"""
# Both parts of the SQL check the role, because psql goes on after an error. A part is one statement, so that psql with
# ON_ERROR_ROLLBACK, and programs that run each statement of a transaction alone, grant nothing after a refusal.
_CHECK = """
    IF EXISTS (
        SELECT FROM pg_catalog.pg_roles AS r
        WHERE r.rolname = {role} AND (
            r.rolsuper OR r.rolcreatedb OR r.rolcreaterole OR r.rolreplication OR r.rolbypassrls
            OR EXISTS (SELECT FROM pg_catalog.pg_auth_members AS m WHERE m.member = r.oid)
            OR EXISTS (
                SELECT FROM pg_catalog.pg_shdepend AS d
                WHERE d.refclassid = 'pg_authid'::regclass AND d.refobjid = r.oid AND d.deptype = 'o'
                    AND NOT (shobj_description(r.oid, 'pg_authid') IS NOT DISTINCT FROM {mark} AND {is_own})
            )
        )
    ) THEN
        RAISE EXCEPTION 'the role % owns something, is a member of a role, or may do more than read: name another one',
            {role};
    END IF;
    IF EXISTS (
        SELECT FROM pg_catalog.pg_roles AS r
        WHERE r.rolname = {role} AND (NOT r.rolcanlogin OR EXISTS (
            SELECT FROM pg_catalog.pg_auth_members AS m
            CROSS JOIN LATERAL to_jsonb(m) AS o
            WHERE m.roleid = r.oid AND (
                coalesce((o ->> 'inherit_option')::boolean, true) OR coalesce((o ->> 'set_option')::boolean, true)
            )
        ))
    ) THEN
        RAISE EXCEPTION 'the role % cannot log in, or others are members of it: name another one', {role};
    END IF;
    IF EXISTS (
        SELECT FROM pg_catalog.pg_roles AS r
        WHERE r.rolname = {role} AND shobj_description(r.oid, 'pg_authid') IS DISTINCT FROM {mark} AND (
            shobj_description(r.oid, 'pg_authid') IS NOT NULL
            OR EXISTS (
                SELECT FROM pg_catalog.pg_shdepend AS d
                WHERE d.refclassid = 'pg_authid'::regclass AND d.refobjid = r.oid AND d.deptype = 'a'
            )
        )
    ) THEN
        RAISE EXCEPTION 'the role % has a comment or rights of others, which it keeps: name another one', {role};
    END IF;
"""
# Do not revoke privileges on objects that the role owns (the schema records and its tables), nor on the schema of
# countersign connect watch, whose SQL grants them.
_TAKE_BACK = """
DECLARE
    held record;
BEGIN
    FOR held IN
        SELECT n.nspname, c.relname
        FROM pg_catalog.pg_class AS c
        JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
        JOIN pg_catalog.pg_roles AS r ON r.rolname = {role}
        WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND c.relowner <> r.oid AND n.nspname <> {watch} AND (
            EXISTS (SELECT FROM aclexplode(c.relacl) AS a WHERE a.grantee = r.oid)
            OR EXISTS (
                SELECT FROM pg_catalog.pg_attribute AS t
                CROSS JOIN LATERAL aclexplode(t.attacl) AS a
                WHERE t.attrelid = c.oid AND a.grantee = r.oid
            )
        )
    LOOP
        BEGIN
            EXECUTE format('REVOKE ALL ON TABLE %I.%I FROM %I', held.nspname, held.relname, {role});
        EXCEPTION WHEN insufficient_privilege OR dependent_objects_still_exist THEN
            NULL;
        END;
    END LOOP;
    FOR held IN
        SELECT n.nspname
        FROM pg_catalog.pg_namespace AS n
        JOIN pg_catalog.pg_roles AS r ON r.rolname = {role}
        WHERE n.nspowner <> r.oid AND n.nspname <> {watch}
            AND EXISTS (SELECT FROM aclexplode(n.nspacl) AS a WHERE a.grantee = r.oid)
    LOOP
        BEGIN
            EXECUTE format('REVOKE ALL ON SCHEMA %I FROM %I', held.nspname, {role});
        EXCEPTION WHEN insufficient_privilege OR dependent_objects_still_exist THEN
            NULL;
        END;
    END LOOP;
    -- REVOKE takes back what its own role or the owner gave, and nothing that others gave.
    FOR held IN
        SELECT given.place, g.rolname AS grantor
        FROM (
            SELECT c.oid::regclass::text, a.grantor, a.grantee
            FROM pg_catalog.pg_class AS c CROSS JOIN LATERAL aclexplode(c.relacl) AS a
            WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
                AND c.relnamespace IS DISTINCT FROM to_regnamespace({watch})
            UNION
            SELECT t.attrelid::regclass::text, a.grantor, a.grantee
            FROM pg_catalog.pg_attribute AS t CROSS JOIN LATERAL aclexplode(t.attacl) AS a
            UNION
            SELECT n.oid::regnamespace::text, a.grantor, a.grantee
            FROM pg_catalog.pg_namespace AS n CROSS JOIN LATERAL aclexplode(n.nspacl) AS a
            WHERE n.nspname <> {watch}
        ) AS given (place, grantor, grantee)
        JOIN pg_catalog.pg_roles AS r ON r.oid = given.grantee AND r.rolname = {role}
        JOIN pg_catalog.pg_roles AS g ON g.oid = given.grantor AND g.oid <> r.oid
        ORDER BY given.place, g.rolname
    LOOP
        RAISE WARNING 'the rights of % on % stay: % gave them, and has to revoke them',
            {role}, held.place, held.grantor;
    END LOOP;
    IF NOT has_database_privilege({role}, current_database(), 'CONNECT') THEN
        EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), {role});
    END IF;
END
"""

# A serial column takes its values from a sequence, on which the role needs USAGE. An identity column needs no such
# privilege.
_GRANT_SEQUENCES = """
DECLARE
    sequence record;
BEGIN
    FOR sequence IN
        SELECT n.nspname, c.relname
        FROM pg_catalog.pg_depend AS d
        JOIN pg_catalog.pg_class AS c ON c.oid = d.objid AND c.relkind = 'S'
        JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
        WHERE d.classid = 'pg_class'::regclass AND d.refobjid = {table}::regclass AND d.deptype = 'a'
    LOOP
        EXECUTE format('GRANT USAGE ON SEQUENCE %I.%I TO %I', sequence.nspname, sequence.relname, {name});
    END LOOP;
END
"""
_MAKE_SCHEMA = """
BEGIN
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = 'records') THEN
        EXECUTE format('CREATE SCHEMA records AUTHORIZATION %I', {name});
    END IF;
EXCEPTION WHEN insufficient_privilege THEN
    RAISE WARNING 'the schema records for the tables of Countersign is missing: a role that may create schemas has to '
        'run CREATE SCHEMA records AUTHORIZATION %', {name};
END
"""

# Only the owner of a schema can grant USAGE. Policies, and views that run with the rights of their reader, may read
# more tables and call functions.
_NAME_MISSING = """
DECLARE
    place regclass;
    missing record;
BEGIN
    IF NOT has_database_privilege({role}, current_database(), 'CONNECT') THEN
        RAISE WARNING '% may not connect to the database %: its owner has to grant CONNECT', {role}, current_database();
    END IF;
    FOR missing IN
        SELECT DISTINCT n.nspname, o.rolname
        FROM pg_catalog.pg_attribute AS t
        CROSS JOIN LATERAL aclexplode(t.attacl) AS a
        JOIN pg_catalog.pg_roles AS r ON r.oid = a.grantee
        JOIN pg_catalog.pg_class AS c ON c.oid = t.attrelid
        JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
        JOIN pg_catalog.pg_roles AS o ON o.oid = n.nspowner
        WHERE r.rolname = {role} AND NOT has_schema_privilege({role}, n.oid, 'USAGE')
    LOOP
        RAISE WARNING '% reads no table of the schema %: % has to grant USAGE on it',
            {role}, missing.nspname, missing.rolname;
    END LOOP;
    FOR place IN
        SELECT DISTINCT t.attrelid::regclass
        FROM pg_catalog.pg_attribute AS t
        CROSS JOIN LATERAL aclexplode(t.attacl) AS a
        JOIN pg_catalog.pg_roles AS r ON r.oid = a.grantee
        WHERE r.rolname = {role}
    LOOP
        IF EXISTS (SELECT FROM pg_catalog.pg_class AS c WHERE c.oid = place AND c.relrowsecurity)
            AND NOT EXISTS (
                SELECT FROM pg_catalog.pg_policy AS p
                JOIN pg_catalog.pg_roles AS r ON r.rolname = {role}
                WHERE p.polrelid = place AND p.polcmd IN ('r', '*') AND p.polroles && ARRAY[0::oid, r.oid]
            )
        THEN
            RAISE NOTICE '% has row-level security and no policy for %, which reads no row of it', place, {role};
        END IF;
        FOR missing IN
            SELECT pg_catalog.pg_describe_object(d.refclassid, d.refobjid, 0) AS object
            FROM pg_catalog.pg_depend AS d
            WHERE d.refobjid <> place AND (
                d.classid = 'pg_policy'::regclass AND d.objid IN (
                    SELECT p.oid FROM pg_catalog.pg_policy AS p WHERE p.polrelid = place
                )
                OR d.classid = 'pg_rewrite'::regclass AND d.objid IN (
                    SELECT w.oid
                    FROM pg_catalog.pg_rewrite AS w
                    JOIN pg_catalog.pg_class AS c ON c.oid = w.ev_class
                    WHERE c.oid = place AND c.reloptions && ARRAY['security_invoker=true', 'security_invoker=on',
                        'security_invoker=1', 'security_invoker=yes']
                )
            )
            AND CASE d.refclassid
                WHEN 'pg_class'::regclass THEN NOT has_any_column_privilege({role}, d.refobjid, 'SELECT')
                WHEN 'pg_proc'::regclass THEN NOT has_function_privilege({role}, d.refobjid, 'EXECUTE')
                ELSE false
            END
            GROUP BY d.refclassid, d.refobjid
        LOOP
            RAISE NOTICE '% uses %, on which % has no rights: grant them by hand after each run',
                place, missing.object, {role};
        END LOOP;
    END LOOP;
END
"""


@dataclass(frozen=True, slots=True)
class Excess:
    """The privileges of a role that a module text does not need: descriptions of these privileges, the additional
    columns that it may read (`schema.table.column`), and how many of these PUBLIC may read. For a superuser, there is
    only the first description."""

    reasons: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    public_count: int = 0


def named_columns(models: Iterable[Declared]) -> dict[RelationId, tuple[str, ...]]:
    """Map each PostgreSQL table of the models to the columns that the server reads: the columns of keys and fields, and
    the columns that count versions or mark deleted rows."""
    found: dict[RelationId, dict[str, None]] = {}
    for model in models:
        if model.table is not None:
            columns = found.setdefault(relation_id(model.table.relation), {})
            columns.update(dict.fromkeys(model.table.columns_without_field))
            columns.update(dict.fromkeys(name for each in model.fields.values() for name in each.table_columns))
    return {relation: tuple(columns) for relation, columns in found.items()}


def writable_columns(models: Iterable[Declared]) -> dict[RelationId, tuple[str, ...]]:
    """Map each writable PostgreSQL table of the models to the columns that the server updates: the columns of fields,
    the column that counts versions, and the column that a deletion sets."""
    found: dict[RelationId, dict[str, None]] = {}
    for model in models:
        if model.table is not None and model.table.writable:
            columns = found.setdefault(relation_id(model.table.relation), {})
            columns.update(dict.fromkeys(model.table.version_columns))
            columns.update(dict.fromkeys(model.table.deleted_columns if model.table.deletes else ()))
            columns.update(dict.fromkeys(name for each in model.fields.values() for name in each.table_columns))
    return {relation: tuple(columns) for relation, columns in found.items()}


def insertable_columns(models: Iterable[Declared]) -> dict[RelationId, tuple[str, ...]]:
    """Map each writable PostgreSQL table of the models to the columns that the server sets in new rows: the columns
    that it updates, and the column that marks deleted rows, which may require a value."""
    listed = list(models)
    found = writable_columns(listed)
    for each in listed:
        if each.table is not None and each.table.writable:
            relation = relation_id(each.table.relation)
            found[relation] = tuple(dict.fromkeys((*found[relation], *each.table.deleted_columns)))
    return found


def deletable_tables(models: Iterable[Declared]) -> list[RelationId]:
    """Return the PostgreSQL tables whose rows are deleted, without tables whose rows are only marked as deleted."""
    tables = [each.table for each in models if each.table is not None]
    return sorted({relation_id(each.relation) for each in tables if each.deletes and not each.deleted})


def grants(models: Iterable[Declared], role: str, source: str) -> str:
    """Return the SQL that creates the role, or changes its privileges, so that it has exactly the privileges that the
    models need. `source` names the module texts.

    The statements can be run again after a change of a module text. They contain no password.
    """
    listed = list(models)
    insertable, writable, deletable = insertable_columns(listed), writable_columns(listed), deletable_tables(listed)
    return "\n".join(_lines(named_columns(listed), insertable, writable, deletable, role, printable(source)))


def is_role_name(name: str) -> bool:
    """Return whether the name is valid for a new role. Backslashes are refused, because their meaning in literals
    depends on settings of the server."""
    is_short = 0 < len(name.encode()) <= MAX_ROLE_LENGTH
    # PostgreSQL interprets these two names as PUBLIC and as no role, even in quotes.
    is_free = name not in ("public", "none") and not name.startswith("pg_")
    return is_short and name.isprintable() and "\\" not in name and is_free


def _lines(
    columns: Mapping[RelationId, tuple[str, ...]],
    insertable: Mapping[RelationId, tuple[str, ...]],
    writable: Mapping[RelationId, tuple[str, ...]],
    deletable: Iterable[RelationId],
    role: str,
    source: str,
) -> Iterator[str]:
    name, role_literal = identifier(role), literal(role)
    settings = ", ".join(literal(f"{setting}={value}") for setting, value in _SETTINGS.items())
    check = _CHECK.format(role=role_literal, mark=literal(_MARK), is_own=_IS_OWN)
    create = _CREATE.format(
        role=role_literal, name=name, attributes=_ATTRIBUTES, settings=settings, check=check, mark=literal(_MARK)
    )
    verb = "reads and writes" if writable else "reads"
    yield f"-- The role {role} {verb} the columns in {source}, and nothing else."
    yield "-- Name all module texts of a server here: what they do not name is taken back."
    yield f"-- Set its password in psql: \\password {name}"
    yield "SET client_encoding = 'UTF8';"
    yield "SET standard_conforming_strings = on;"
    yield "-- The first part needs a role with CREATEROLE. Run again, it changes nothing."
    yield from part([create])
    yield f"-- The second part needs the owner of the tables. Run it again after each change of {source}."
    statements = [f"BEGIN{check}END", _TAKE_BACK.format(role=role_literal, watch=literal(postgres_watch.SCHEMA))]
    schemas = sorted({schema for schema, _ in columns})
    statements += [f"GRANT USAGE ON SCHEMA {identifier(each)} TO {name}" for each in schemas]
    for (schema, table), names in sorted(columns.items()):
        place = f"{identifier(schema)}.{identifier(table)}"
        statements.append(f"GRANT SELECT ({', '.join(map(identifier, names))}) ON TABLE {place} TO {name}")
    for (schema, table), names in sorted(writable.items()):
        place, listed = f"{identifier(schema)}.{identifier(table)}", ", ".join(map(identifier, names))
        if listed:
            inserted = ", ".join(map(identifier, insertable[schema, table]))
            statements.append(f"GRANT INSERT ({inserted}), UPDATE ({listed}) ON TABLE {place} TO {name}")
        regclass = literal(f"{quoted(schema)}.{quoted(table)}")
        statements.append(_GRANT_SEQUENCES.format(table=regclass, name=role_literal))
    statements += [
        f"GRANT DELETE ON TABLE {identifier(schema)}.{identifier(table)} TO {name}" for schema, table in deletable
    ]
    if writable:
        statements.append(_MAKE_SCHEMA.format(name=role_literal))
    # Warnings and notices name missing privileges, including those that policies and views need.
    yield from part([*statements, _NAME_MISSING.format(role=role_literal)])
    yield ""


def part(statements: Iterable[str]) -> Iterator[str]:
    """Yield the lines of one DO statement that runs these statements of PL/pgSQL, all or none."""
    body = "".join(f"{each.strip()};\n" for each in (*_PREPARE, *statements))
    tag = next(each for number in count() if (each := f"$part{number}$") not in body)
    yield "BEGIN;"
    yield f"DO {tag}\nBEGIN\n{body}END\n{tag};"
    yield "COMMIT;"


def _more_columns(
    needed: Mapping[RelationId, tuple[str, ...]], database: Database
) -> Iterator[tuple[Relation, str]]:
    """Yield the columns that the role may read without needing them, except columns of extensions."""
    for relation in database.relations:
        names = [each.name for each in relation.columns if each.name not in needed.get(relation.id, ())]
        yield from ((relation, each) for each in names if relation.kind != "extension")


def _as_json(tables: Iterable[RelationId]) -> str:
    return msgspec.json.encode([{"s": schema, "t": table} for schema, table in tables]).decode()


async def excess(url: str, models: Mapping[str, Declared], database: Database) -> Excess:
    """Return the privileges of the role that the models do not need. Tables of extensions are ignored.

    Raises:
        Unavailable: the server cannot be reached.
    """
    async with (
        postgres_admin.admin_session(url, application=postgres.APPLICATION) as connection,
        connection.transaction(isolation="read_committed", readonly=True),
    ):
        await connection.execute(postgres_admin.FIXED_SEARCH_PATH)
        changed = (list(writable_columns(models.values())), deletable_tables(models.values()))
        (held,) = await connection.fetch(_HELD, *map(_as_json, changed))
        rows = await connection.fetch(_PUBLIC)
    public = {(str(schema), str(table), str(column)) for schema, table, column in rows}
    reasons = tuple(reason for reason, is_held in zip(_REASONS, held, strict=True) if is_held)
    if database.is_superuser:
        return Excess(reasons[:1])
    more = list(_more_columns(named_columns(models.values()), database))
    public_count = sum((*relation.id, name) in public for relation, name in more)
    return Excess(reasons, tuple(f"{relation.place}.{name}" for relation, name in more), public_count)
