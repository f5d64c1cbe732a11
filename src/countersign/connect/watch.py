"""The SQL that makes a PostgreSQL database record the changes of other applications in the tables of module texts, and
the SQL that removes the triggers again."""

from collections.abc import Iterable, Iterator

from countersign.connect import postgres, rights
from countersign.connect.schema import relation_id
from countersign.declare import Declared
from countersign.declare.text import printable
from countersign.kernel.database import postgres_admin, postgres_watch
from countersign.kernel.database.postgres_watch import EVENTS, SCHEMA, WatchedTable, identifier, literal

LOCK_TIMEOUT = "SET LOCAL lock_timeout = '5s'"

# The trigger function runs with the privileges of its owner, who must therefore also own the schema and its tables.
_CHECK = """
BEGIN
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = {role}) THEN
        RAISE EXCEPTION 'the role % does not exist: run the SQL of countersign connect rights first', {role};
    END IF;
    IF EXISTS (
        SELECT FROM pg_catalog.pg_namespace AS n
        WHERE n.nspname = '{schema}' AND n.nspowner <> (
            SELECT r.oid FROM pg_catalog.pg_roles AS r WHERE r.rolname = current_user
        )
    ) THEN
        RAISE EXCEPTION 'the schema {schema} belongs to another role: run this SQL as that role';
    END IF;
END
"""
_CREATE = (
    f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}",
    f"""
CREATE TABLE IF NOT EXISTS {SCHEMA}.outside_change (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    xid text NOT NULL DEFAULT pg_current_xact_id()::text,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    relation text NOT NULL,
    operation text NOT NULL,
    key text[],
    columns text[],
    row_count bigint,
    role text NOT NULL DEFAULT session_user,
    application text NOT NULL DEFAULT current_setting('application_name')
)
""",
    f"CREATE TABLE IF NOT EXISTS {SCHEMA}.progress (read_to bigint NOT NULL)",
    f"ALTER TABLE {SCHEMA}.progress ADD COLUMN IF NOT EXISTS lost_to bigint NOT NULL DEFAULT 0",
    f"CREATE SEQUENCE IF NOT EXISTS {SCHEMA}.lost_change_seq",
    f"INSERT INTO {SCHEMA}.progress SELECT 0 WHERE NOT EXISTS (SELECT FROM {SCHEMA}.progress)",
)
_GRANT = (
    "GRANT USAGE ON SCHEMA {schema} TO {name}",
    "GRANT SELECT, DELETE ON TABLE {schema}.outside_change TO {name}",
    "GRANT SELECT, UPDATE ON TABLE {schema}.progress TO {name}",
    "GRANT SELECT ON SEQUENCE {schema}.outside_change_id_seq, {schema}.lost_change_seq TO {name}",
)
_FUNCTION = """
CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    SET "DateStyle" = 'ISO, YMD' SET "TimeZone" = 'UTC' SET extra_float_digits = 1
    AS {tag}{source}{tag}
"""
# The owner of a table can give its key a type whose cast to text is a function of the owner of the type, which would
# run with the rights of the role that runs this. A cast of a domain is that of its base type. A partition or a child
# has its own statements, and PostgreSQL refuses writes to a partition that is a foreign table if a trigger reads the
# changed rows. A trigger that is as it should be is left alone, because creating one waits for all writers.
_TRIGGERS = """
DECLARE
    part regclass;
    event text;
    named text;
BEGIN
    SELECT tree.part::regclass INTO part
    FROM (
        WITH RECURSIVE tree AS (
            SELECT {relation}::regclass::oid AS part
            UNION
            SELECT i.inhrelid FROM tree JOIN pg_catalog.pg_inherits AS i ON i.inhparent = tree.part
        )
        SELECT tree.part FROM tree
    ) AS tree
    JOIN pg_catalog.pg_class AS c ON c.oid = tree.part AND c.relkind = 'f'
    LIMIT 1;
    IF part IS NOT NULL THEN
        RAISE WARNING 'changes of % are not recorded, because % is a foreign table', {relation}, part;
        DROP FUNCTION {function}() CASCADE;
        RETURN;
    END IF;
    FOR part IN
        WITH RECURSIVE tree AS (
            SELECT {relation}::regclass::oid AS part
            UNION
            SELECT i.inhrelid FROM tree JOIN pg_catalog.pg_inherits AS i ON i.inhparent = tree.part
        )
        SELECT tree.part::regclass FROM tree
        JOIN pg_catalog.pg_class AS c ON c.oid = tree.part AND c.relkind IN ('r', 'p')
        ORDER BY tree.part
    LOOP
        IF (SELECT c.relowner FROM pg_catalog.pg_class AS c WHERE c.oid = part) <> (
            SELECT r.oid FROM pg_catalog.pg_roles AS r WHERE r.rolname = current_user
        ) THEN
            RAISE EXCEPTION 'the table % belongs to another role: run this SQL as that role', part;
        END IF;
        IF EXISTS (
            WITH RECURSIVE type AS (
                SELECT t.typbasetype, t.typowner
                FROM pg_catalog.pg_attribute AS a
                JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid
                WHERE a.attrelid = part AND a.attnum > 0 AND NOT a.attisdropped AND a.attname IN ({key})
                UNION
                SELECT t.typbasetype, t.typowner FROM type JOIN pg_catalog.pg_type AS t ON t.oid = type.typbasetype
            )
            SELECT FROM type JOIN pg_catalog.pg_roles AS r ON r.oid = type.typowner
            WHERE r.rolname <> current_user AND NOT r.rolsuper
        ) THEN
            RAISE EXCEPTION 'the type of the key of % belongs to another role: make the owner of the table its owner',
                part;
        END IF;
        FOREACH event IN ARRAY ARRAY[{events}] LOOP
            named := {function_name} || '_' || lower(event);
            CONTINUE WHEN EXISTS (
                SELECT FROM pg_catalog.pg_trigger AS g
                WHERE g.tgrelid = part AND g.tgname = named AND g.tgenabled IN ('O', 'A') AND g.tgqual IS NULL
            );
            EXECUTE format('DROP TRIGGER IF EXISTS %I ON %s', named, part);
            EXECUTE format(
                'CREATE TRIGGER %I AFTER %s ON %s %s FOR EACH STATEMENT EXECUTE FUNCTION {function}()', named, event,
                part, CASE event
                    WHEN 'INSERT' THEN 'REFERENCING NEW TABLE AS new_rows'
                    WHEN 'DELETE' THEN 'REFERENCING OLD TABLE AS old_rows'
                    WHEN 'UPDATE' THEN 'REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows'
                    ELSE ''
                END
            );
        END LOOP;
    END LOOP;
END
"""
# Drop each function that no table of the module texts needs, together with its triggers.
_DROP_OTHERS = """
DECLARE
    other text;
BEGIN
    FOR other IN
        SELECT p.proname
        FROM pg_catalog.pg_proc AS p
        JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace AND n.nspname = '{schema}'
        WHERE p.proname NOT IN ({functions})
    LOOP
        EXECUTE format('DROP FUNCTION {schema}.%I() CASCADE', other);
    END LOOP;
END
"""


def watched_tables(models: Iterable[Declared]) -> list[WatchedTable]:
    """Return the PostgreSQL tables of the models, with the columns of their fields."""
    return postgres_watch.merge_columns(
        WatchedTable(
            *relation_id(model.table.relation),
            model.table.key_columns,
            tuple(column for field in model.fields.values() for column in field.table_columns),
        )
        for model in models
        if model.table is not None
    )


def script(models: Iterable[Declared], role: str, source: str) -> str:
    """Return the SQL that creates the triggers. `role` is the role of the server, whose changes are not recorded, and
    `source` names the module texts. The SQL can be run again."""
    return "\n".join(_lines(watched_tables(models), role, printable(source)))


async def unwatched(url: str, models: Iterable[Declared], role: str) -> list[str]:
    """Return the PostgreSQL tables of the models in which changes by other roles are not recorded.

    Raises:
        Unavailable: the server cannot be reached.
    """
    tables = watched_tables(models)
    async with (
        postgres_admin.admin_session(url, application=postgres.APPLICATION) as connection,
        connection.transaction(isolation="read_committed", readonly=True),
    ):
        await connection.execute(postgres_admin.FIXED_SEARCH_PATH)
        found = await postgres_watch.watched_relations(connection.fetch, tables, role)
    return [f"{each.schema}.{each.name}" for each in tables if each.relation not in found]


def _lines(tables: Iterable[WatchedTable], role: str, source: str) -> Iterator[str]:
    listed = list(tables)
    yield f"-- Records what other applications change in the tables of {source}: keys and names of columns, no values."
    yield "-- The owner of the tables runs it, and runs it again after each change of a module text. Name all module"
    yield "-- texts of a server: what they do not name is no longer recorded. Until it ends, the tables cannot be"
    yield "-- written."
    yield f"-- To remove everything: DROP SCHEMA {SCHEMA} CASCADE;"
    yield "SET client_encoding = 'UTF8';"
    yield "SET standard_conforming_strings = on;"
    statements = [_CHECK.format(role=literal(role), schema=SCHEMA), LOCK_TIMEOUT, *_CREATE]
    statements += [each.format(schema=SCHEMA, name=identifier(role)) for each in _GRANT]
    for table in listed:
        statements += _table_statements(table, role)
    functions = ", ".join(literal(each.function) for each in listed)
    statements.append(_DROP_OTHERS.format(schema=SCHEMA, functions=functions))
    yield from rights.part(statements)
    yield ""


def _table_statements(table: WatchedTable, role: str) -> Iterator[str]:
    function, source = f"{SCHEMA}.{table.function}", table.source(role)
    tag = next(each for number in range(len(source)) if (each := f"$source{number}$") not in source)
    yield _FUNCTION.format(function=function, tag=tag, source=source)
    yield f"REVOKE ALL ON FUNCTION {function}() FROM PUBLIC"
    yield _TRIGGERS.format(
        relation=literal(table.relation),
        events=", ".join(map(literal, EVENTS)),
        function=function,
        function_name=literal(table.function),
        key=", ".join(map(literal, table.key)),
    )


REMOVAL = "\n".join(
    (
        "-- Removes the triggers, their functions, and the changes that were recorded and not yet read.",
        *rights.part([LOCK_TIMEOUT, f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE"]),
        "",
    )
)
"""The SQL that removes what `script` creates. Only the owner of the schema can run it."""
