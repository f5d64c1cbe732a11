"""Statements on tables of other applications, inside our own transactions.

An error of these tables may quote their rows. Its text therefore reaches neither a caller nor the log.
"""

from collections.abc import Sequence
from typing import NoReturn

import asyncpg

from countersign.kernel import telemetry
from countersign.kernel.database import read_only
from countersign.kernel.database.port import ConnectedSession, Row, Value
from countersign.kernel.database.postgres_connection import Connection
from countersign.kernel.errors import InvalidRequest, Unavailable, disk_full, is_disk_full

LOCK_WAIT_MS = 2_000
STATEMENT_MS = 10_000
IDLE_MS = 15_000
_ABOUT_ROWS = frozenset({"42501", "0A000", "25006"})
"""The SQLSTATEs by which a table refuses to be written, while it can still be read."""
_LOCKS = (read_only.LOCK, read_only.DELETE_LOCK)
_NAMES = ("schema", "table", "constraint", "column")
_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)
# A trigger may have changed settings of the session, so reset all of them. The locks of the transaction block other
# applications, so the idle timeout ends the transaction if this process hangs.
_END = "; ".join(("RESET ROLE", "RESET ALL", f"SET LOCAL idle_in_transaction_session_timeout = {IDLE_MS}"))


async def fetch(
    connection: Connection, session: ConnectedSession, statement: str, values: Sequence[Value]
) -> list[Row]:
    """Run a statement under the search path and the settings of the session, and return its rows.

    Raises:
        ConnectedRefusal: the database refused the statement with these values.
        Unavailable: the database cannot answer now, or a table has changed.
    """
    read_only.require_few_values(len(values))
    try:
        await _begin(connection, session)
        rows = await connection.fetch(statement, *values)
        await connection.execute(_END)
    except _ERRORS as error:
        _refuse(error, is_writing=is_writing(statement) or statement.endswith(_LOCKS))
    return rows


def is_writing(statement: str) -> bool:
    """Return whether the statement writes rows."""
    return not statement.startswith("SELECT")


async def check_constraints(connection: Connection, session: ConnectedSession) -> None:
    """Check the deferred constraints, and run the deferred triggers, under the search path and the settings of the
    session. Constraints are not deferred afterwards, so call this after the last statement on these tables.

    Raises:
        ConnectedRefusal: a constraint is violated.
        Unavailable: the database cannot answer now.
    """
    check = f"SET CONSTRAINTS ALL IMMEDIATE; {_END}"
    try:
        if session.settings:
            await _begin(connection, session)
            await connection.execute(check)
        else:
            await connection.execute(f"{_settings(session)}; {check}")
    except _ERRORS as error:
        _refuse(error, is_writing=True)


def refuse_commit(error: BaseException) -> NoReturn:
    """Raise the refusal for an error of COMMIT, which a deferred trigger of these tables may cause.

    Raises:
        InvalidRequest: a trigger refused the transaction.
        Unavailable: the database cannot answer now.
    """
    try:
        _refuse(error, is_writing=True)
    except read_only.ConnectedRefusal:
        raise InvalidRequest(read_only.REFUSED) from None


async def _begin(connection: Connection, session: ConnectedSession) -> None:
    await connection.execute(_settings(session))
    if session.settings:
        await connection.execute(read_only.SET_SETTINGS, read_only.settings_text(session.settings))


def _settings(session: ConnectedSession) -> str:
    # Operators and functions of PostgreSQL itself are found first.
    schemas = dict.fromkeys(("pg_catalog", *session.search_path))
    path = ", ".join('"' + schema.replace('"', '""') + '"' for schema in schemas)
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
    refusal = read_only.refusal_for_state(state)
    is_about_row = is_writing and state in _ABOUT_ROWS and not isinstance(error, asyncpg.InvalidCachedStatementError)
    if isinstance(refusal, Unavailable) and not is_about_row:
        raise refusal from None
    schema, table, constraint, column = (str(getattr(error, f"{name}_name", None) or "") for name in _NAMES)
    raise read_only.ConnectedRefusal(state, (schema, table), constraint, column) from None
