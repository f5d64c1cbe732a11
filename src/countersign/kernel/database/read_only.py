"""Read access to an existing database that other applications write: the interface and its refusals.

An error of that database may quote its rows. The text of an error is therefore neither returned to a caller nor logged;
the log contains only the SQLSTATE.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final, NoReturn, Protocol

from countersign.kernel import telemetry
from countersign.kernel.database.port import Dialect, Row, Value
from countersign.kernel.errors import InvalidRequest, Refused, Unavailable

AWAY: Final = "The connected database cannot be reached now; try again."
CHANGED: Final = "A table of the connected database has changed, or can no longer be read."
SLOW: Final = "The connected database did not answer in time; narrow the search, or try again."
SUSPENDED: Final = "A table of the connected database has changed since its review; an administrator must look at it."
BUSY: Final = "Too many reads of the connected database are running; try again."
REFUSED: Final = "the connected database refused this"

LOCK = "FOR NO KEY UPDATE"
"""Locks the selected rows until the transaction ends. FOR UPDATE would also block other applications that insert
rows with a foreign key to these rows."""
DELETE_LOCK = "FOR UPDATE"
"""Locks rows that the transaction deletes: no row with a foreign key to them can be inserted before it ends."""
SLOT_WAIT_S = 2.0
MAX_VALUES = 32_000

_CHANGED = frozenset({"42703", "42P01", "42883", "42804", "0A000", "42501", "3F000"})
"""The SQLSTATEs of statements that no longer fit the tables or the privileges."""
_AWAY = ("08", "53", "55", "57", "58", "28", "3D", "40", "25", "26")
"""The classes of SQLSTATEs of a database that cannot answer now."""
_CANCELLED = "57014"


NO_SETTINGS: Final[Mapping[str, str]] = {}
SET_SETTINGS = """
SELECT pg_catalog.set_config(given.key, given.value, true) FROM pg_catalog.jsonb_each_text($1::text::jsonb) AS given
"""
"""Sets settings until the end of the transaction. PostgreSQL then resets them, also after an error, so that they do not
apply to the next user of the connection."""


def settings_text(settings: Mapping[str, str]) -> str:
    """Return the value of SET_SETTINGS."""
    return json.dumps(dict(settings))


class ConnectedRefusal(Exception):
    """A table of another application refused a statement. `state` is the SQLSTATE. `table` is the schema and name of
    the table whose rule was violated, `constraint` the name of the rule, and `column` a column without its required
    value. They are empty if PostgreSQL does not name them. `columns` are those of the rule, which only SQLite names.
    The transaction is aborted."""

    def __init__(
        self,
        state: str,
        table: tuple[str, str] = ("", ""),
        constraint: str = "",
        column: str = "",
        columns: Sequence[str] = (),
    ) -> None:
        super().__init__(state)
        self.state = state
        self.table = table
        self.constraint = constraint
        self.column = column
        self.columns = columns


class TableChanged(Unavailable):
    """A statement no longer fits the tables or the privileges."""


class TooSlow(Unavailable):
    """A statement did not end within the deadline of reads."""

    def __init__(self) -> None:
        super().__init__(SLOW)


class Busy(Refused):
    """The maximum number of concurrent statements on the existing database is reached."""

    status = 429
    code = "busy"
    title = "Too many reads of the connected database"
    resolution = "Wait for the seconds in Retry-After, then try again."


class Slots:
    """Limits the number of concurrent statements on an existing database. Streams use at most half of the slots, so
    that the other half remains for short reads."""

    def __init__(self, count: int) -> None:
        self._all = asyncio.Semaphore(count)
        self._streams = asyncio.Semaphore(max(1, count // 2))

    @asynccontextmanager
    async def use(self, *, is_stream: bool = False) -> AsyncGenerator[None]:
        """Use a slot while the block lasts.

        Raises:
            Busy: no slot is free within SLOT_WAIT_S.
        """
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(SLOT_WAIT_S):
                    if is_stream:
                        await stack.enter_async_context(self._streams)
                    await stack.enter_async_context(self._all)
            except TimeoutError:
                raise Busy(BUSY, headers={"Retry-After": "2"}) from None
            yield


class ExistingDatabase(Protocol):
    """An existing database that is only read. Statements use `$1`, `$2`, … for values."""

    @property
    def dialect(self) -> Dialect:
        """The SQL dialect of the engine."""
        ...

    async def scan(self, statement: str, *values: Value, settings: Mapping[str, str] = NO_SETTINGS) -> list[Row]:
        """Return all rows. `settings` are values that policies of PostgreSQL read.

        Raises:
            Unavailable: the database cannot answer now, the deadline passed, or a table has changed.
            Busy: too many statements are running.
            InvalidRequest: the database refused the statement with these values.
        """
        ...

    def stream(
        self, statement: str, *values: Value, settings: Mapping[str, str] = NO_SETTINGS
    ) -> AsyncGenerator[list[Row]]:
        """Yield the rows of one snapshot in batches, in constant memory. Use `contextlib.aclosing`.

        All rows are read before the first batch is yielded, within the deadline of reads. The statement has then ended,
        so a slow caller keeps neither a lock nor a snapshot open in the database.

        Raises:
            TooManyRows: the rows are larger than a process may keep.
            Other errors as in `scan`.
        """
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...


def require_few_values(count: int) -> None:
    """Refuse a statement with more values than both engines accept.

    Raises:
        InvalidRequest: there are too many values.
    """
    if count > MAX_VALUES:
        raise InvalidRequest(f"the conditions have more than {MAX_VALUES} values together")


def refusal_for_state(state: str) -> Refused:
    """Return the refusal for an SQLSTATE of PostgreSQL."""
    if state == _CANCELLED:
        return TooSlow()
    if state in _CHANGED:
        return TableChanged(CHANGED)
    return Unavailable(AWAY) if state.startswith(_AWAY) else InvalidRequest(REFUSED)


def refuse(error: BaseException, refusal: Refused, state: str = "") -> NoReturn:
    """Raise the refusal for an error of an existing database, and log the SQLSTATE and the class of the error.

    Raises:
        Unavailable: the database cannot answer now, the deadline passed, or a table has changed.
        InvalidRequest: the database refused the statement with these values.
    """
    telemetry.logger("connected-database").warning(
        "the connected database refused a read", sqlstate=state, error=type(error).__name__
    )
    # Leave out the cause, whose text may be logged with this error.
    raise refusal from None
