"""Schemas of a PostgreSQL database counted, and dropped in one transaction."""

from collections.abc import Sequence
from typing import NamedTuple

from countersign.kernel.database.postgres import APPLICATION
from countersign.kernel.database.postgres_admin import session
from countersign.kernel.errors import Refused

_TABLES = """
SELECT n.nspname, count(c.oid)
FROM pg_namespace AS n
LEFT JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relkind IN ('r', 'p')
WHERE n.nspname = ANY($1)
GROUP BY n.nspname
ORDER BY n.nspname
"""
_SERVED = """
SELECT coalesce(client_addr::text, 'this machine')
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = $1
LIMIT 1
"""
# Views and foreign keys of other schemas: CASCADE would drop them as well.
_DEPENDENTS = """
WITH ours AS (SELECT oid FROM pg_namespace WHERE nspname = ANY($1))
SELECT v.oid::regclass::text
FROM pg_depend AS d
JOIN pg_rewrite AS r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
JOIN pg_class AS v ON v.oid = r.ev_class
JOIN pg_class AS t ON d.refclassid = 'pg_class'::regclass AND t.oid = d.refobjid
WHERE t.relnamespace IN (SELECT oid FROM ours) AND v.relnamespace NOT IN (SELECT oid FROM ours)
UNION
SELECT k.conrelid::regclass::text
FROM pg_constraint AS k
JOIN pg_class AS c ON c.oid = k.conrelid
JOIN pg_class AS t ON t.oid = k.confrelid
WHERE k.contype = 'f'
    AND t.relnamespace IN (SELECT oid FROM ours) AND c.relnamespace NOT IN (SELECT oid FROM ours)
ORDER BY 1
LIMIT 10
"""
_HAS_ID = "SELECT 1 FROM pg_tables WHERE schemaname = $1 AND tablename = 'installation'"
_ID = "SELECT format('SELECT id, collected_at FROM %I.installation', $1::text)"
_DROP = "SELECT format('DROP SCHEMA IF EXISTS %I CASCADE', $1::text)"


class DatabaseInUse(Refused):
    """A service is connected to the database, or objects of other schemas depend on its tables."""

    status = 409
    code = "database_in_use"
    title = "Database in use"


class Schemas(NamedTuple):
    """The schemas that are there with how many tables each has, and the ids of installations in them with when each
    last collected its files."""

    tables: dict[str, int]
    ids: dict[str, int]


async def examine(url: str, names: Sequence[str]) -> Schemas:
    """What is there of the schemas.

    Raises:
        Unavailable: the server cannot be reached.
    """
    async with session(url) as connection:
        tables = {str(name): int(str(count)) for name, count in await connection.fetch(_TABLES, list(names))}
        found: dict[str, int] = {}
        for name in tables:
            if await connection.fetch(_HAS_ID, name):
                rows = await connection.fetch(await connection.fetchval(_ID, name))
                for own, at in rows:
                    found[str(own)] = max(int(str(at)), found.get(str(own), 0))
        return Schemas(tables, found)


async def drop(url: str, names: Sequence[str]) -> None:
    """Drop the schemas with all that is in them, in one transaction.

    Raises:
        DatabaseInUse: a service is connected, or something in another schema depends on their tables.
        Unavailable: the server cannot be reached, or the role may not drop them.
    """
    async with session(url) as connection, connection.transaction(isolation="read_committed", readonly=False):
        served = await connection.fetch(_SERVED, APPLICATION)
        if served:
            remedy = "Stop `countersign serve` and `countersign worker` on every node, then run it again."
            raise DatabaseInUse(f"a service is connected to the database from {served[0][0]}", resolution=remedy)
        dependents = [str(name) for (name,) in await connection.fetch(_DEPENDENTS, list(names))]
        if dependents:
            remedy = "Drop them first, then run it again."
            text = f"objects of other schemas depend on the tables: {', '.join(dependents)}"
            raise DatabaseInUse(text, resolution=remedy)
        for name in names:
            await connection.execute(await connection.fetchval(_DROP, name))
