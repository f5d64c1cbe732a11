"""Checks tables of an existing database: finds tables without a unique index in which two rows have the same key, and
tables that the role cannot read although it has the privileges on their columns."""

from collections.abc import Mapping, Sequence

from countersign.connect import postgres, sqlite
from countersign.connect.schema import Relation
from countersign.declare.table import quoted
from countersign.kernel.database import postgres_admin
from countersign.kernel.database.open import open_existing
from countersign.kernel.errors import Refused
from countersign.kernel.security.encryption import MemoryCipher

TIMEOUT_S = 5.0
NOT_PERMITTED, TIMED_OUT, NO_EQUALITY = "42501", "57014", "42883"
"""The SQLSTATEs of a missing privilege, of a timeout, and of a comparison of values whose type has no equality
operator."""
UNKNOWN_SETTING = "42704"
NEEDS_SESSION = frozenset({UNKNOWN_SETTING, "22P02"})
"""The SQLSTATEs of a policy that reads a setting without a value: the setting does not exist, or is an empty text."""

# Rows with an empty value in the key are not records.
_REPEATED = "SELECT 1 FROM {table} WHERE {filled} GROUP BY {columns} HAVING {count} 1 LIMIT 1"
# Do not fetch values: for types that it does not know, the driver runs statements of its own, and the database may have
# replaced the operators in them.
_FIRST_ROW = "SELECT {columns} FROM {table} LIMIT 1"


async def has_repeated_key(url: str, relation: Relation, key: Sequence[str]) -> bool | str:
    """Return whether two rows have the same key. If the statement fails or takes longer than TIMEOUT_S, return its
    SQLSTATE, which is always TIMED_OUT for SQLite.

    Raises:
        Unavailable: the database cannot be reached.
    """
    columns = [quoted(each) for each in key]
    statement = _REPEATED.format(
        table=_table(relation),
        filled=" AND ".join(f"{each} IS NOT NULL" for each in columns),
        columns=", ".join(columns),
        count="count(*) >" if url.startswith(sqlite.SQLITE) else "pg_catalog.count(*) OPERATOR(pg_catalog.>)",
    )
    if url.startswith(sqlite.SQLITE):
        return await _in_sqlite(url, statement)
    async with postgres_admin.admin_session(url, application=postgres.APPLICATION) as connection:
        rows = await postgres_admin.fetch_or_code(connection, statement, [], timeout_ms=int(TIMEOUT_S * 1000))
    return rows if isinstance(rows, str) else bool(rows)


async def failures(url: str, tables: Mapping[str, tuple[Relation, Sequence[str]]]) -> dict[str, str]:
    """Read one row of each of these PostgreSQL tables, and map the name of each table that cannot be read to the
    SQLSTATE. A view, or a policy of a table, may need privileges on other tables, which only a read reveals. A read
    that takes longer than TIMEOUT_S is not a failure.

    Raises:
        Unavailable: the database cannot be reached.
    """
    found: dict[str, str] = {}
    async with postgres_admin.admin_session(url, application=postgres.APPLICATION) as connection:
        for name, (relation, columns) in tables.items():
            tested = ", ".join(f"{quoted(each)} IS NULL" for each in columns)
            statement = _FIRST_ROW.format(columns=tested, table=_table(relation))
            rows = await postgres_admin.fetch_or_code(connection, statement, [], timeout_ms=int(TIMEOUT_S * 1000))
            if isinstance(rows, str) and rows != TIMED_OUT:
                found[name] = rows
    return found


def _table(relation: Relation) -> str:
    return ".".join(map(quoted, filter(None, relation.id)))


async def _in_sqlite(url: str, statement: str) -> bool | str:
    database = await open_existing(url, pool=1, read_deadline_s=TIMEOUT_S, new_cipher=MemoryCipher)
    try:
        return bool(await database.scan(statement))
    except Refused:
        return TIMED_OUT
    finally:
        await database.close()
