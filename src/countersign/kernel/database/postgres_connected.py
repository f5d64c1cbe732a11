"""Statements on tables of others, inside of a transaction of our own.

An error of these tables may quote their rows. Its text therefore reaches neither a caller nor the log.
"""

from collections.abc import Sequence
from typing import NoReturn

import asyncpg

from countersign.kernel import telemetry
from countersign.kernel.database import read_only
from countersign.kernel.database.port import Row, Value
from countersign.kernel.database.postgres_connection import Connection
from countersign.kernel.errors import Unavailable, disk_full, is_disk_full

LOCK = "FOR NO KEY UPDATE"
"""Locks the rows of a statement until the transaction ends. FOR UPDATE would also block other applications that insert
rows with a foreign key to these rows."""
LOCK_WAIT_MS = 2_000
STATEMENT_MS = 10_000
_NOT_ALLOWED = "42501"
_OWN = ("search_path", "statement_timeout", "lock_timeout", "DateStyle", "TimeZone", "extra_float_digits")
# The values of the start of the connection.
_BACK = "; ".join(f"SET LOCAL {each} TO DEFAULT" for each in _OWN)
# An error of a deferred constraint then belongs to the statement, and not to the COMMIT.
_END = f"SET CONSTRAINTS ALL IMMEDIATE; {_BACK}"


class ConnectedRefusal(Exception):
    """A table of others refused a statement. `state` is the SQLSTATE. `constraint` and `column` are the names of the
    violated constraint and of a column without its required value, or empty. The transaction is aborted."""

    def __init__(self, state: str, constraint: str = "", column: str = "") -> None:
        super().__init__(state)
        self.state = state
        self.constraint = constraint
        self.column = column


async def fetch(
    connection: Connection, search_path: Sequence[str], statement: str, values: Sequence[Value]
) -> list[Row]:
    """Run a statement under the search path of the tables, and return its rows.

    Raises:
        ConnectedRefusal: the database refused the statement with these values.
        Unavailable: the database cannot answer now, or a table has changed.
    """
    read_only.require_few_values(len(values))
    try:
        await connection.execute(_begin(search_path))
        rows = await connection.fetch(statement, *values)
        await connection.execute(_END)
    except (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError) as error:
        _refuse(error, is_writing=not statement.startswith("SELECT") or statement.endswith(LOCK))
    return rows


def _begin(search_path: Sequence[str]) -> str:
    # Operators and functions of PostgreSQL itself are found first.
    path = ", ".join('"' + each.replace('"', '""') + '"' for each in dict.fromkeys(("pg_catalog", *search_path)))
    return (
        f"SET LOCAL statement_timeout = {STATEMENT_MS}; SET LOCAL lock_timeout = {LOCK_WAIT_MS}; "
        "SET LOCAL DateStyle = 'ISO, YMD'; SET LOCAL TimeZone = 'UTC'; SET LOCAL extra_float_digits = 1; "
        f"SET LOCAL search_path = {path}"
    )


def _refuse(error: BaseException, *, is_writing: bool) -> NoReturn:
    """Raise the refusal for an error, and log the SQLSTATE and the class of the error.

    Raises:
        ConnectedRefusal: the database refused the values.
        Unavailable: the database cannot answer now, or a table has changed.
    """
    state = str(getattr(error, "sqlstate", None) or "")
    telemetry.logger("connected-database").warning(
        "the connected database refused a statement", sqlstate=state, error=type(error).__name__
    )
    # Leave out the cause, whose text may be logged with this error.
    if is_disk_full(error):
        raise disk_full("the database of the PostgreSQL server") from None
    if isinstance(error, OSError | TimeoutError | asyncpg.InterfaceError | asyncpg.InternalClientError):
        raise Unavailable(read_only.AWAY) from None
    refusal = read_only.refusal_of(state)
    if isinstance(refusal, Unavailable) and not (is_writing and state == _NOT_ALLOWED):
        raise refusal from None
    constraint, column = (str(getattr(error, name, None) or "") for name in ("constraint_name", "column_name"))
    raise ConnectedRefusal(state, constraint, column) from None
