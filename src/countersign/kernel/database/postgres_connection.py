"""The part of asyncpg that this package uses, with types, and the cause and remedy of each connection error.

The texts name hosts, users and databases: they are meant for operators, and never sent to callers of the API.
"""

import ssl
from collections.abc import Awaitable, Iterable
from contextlib import AbstractAsyncContextManager
from socket import gaierror
from typing import Protocol, TypeVar, cast

import asyncpg

from countersign.kernel.connection_urls import DATABASE_SETTING, describe_postgres
from countersign.kernel.database.port import Row, Value
from countersign.kernel.errors import Unavailable


class Connection(Protocol):
    """A connection."""

    async def fetch(self, query: str, *args: Value) -> list[Row]:
        """Return all rows."""
        ...

    async def fetchrow(self, query: str, *args: Value) -> Row | None:
        """Return the first row, or None."""
        ...

    async def execute(self, query: str, *args: Value) -> str:
        """Run the query; returns PostgreSQL's command tag."""
        ...

    async def executemany(self, command: str, args: Iterable[tuple[Value, ...]]) -> None:
        """Run the command for every row."""
        ...

    async def cursor(self, query: str, *args: Value) -> "Cursor":
        """Return a cursor, inside a transaction."""
        ...

    def transaction(self, *, isolation: str, readonly: bool) -> AbstractAsyncContextManager[object]:
        """Return a context manager that runs its block in a transaction."""
        ...

    def terminate(self) -> None:
        """Close immediately, without notifying the server."""
        ...

    async def close(self) -> None:
        """Close the connection when it is idle."""
        ...


class Cursor(Protocol):
    """A cursor on the server."""

    async def fetch(self, n: int) -> list[Row]:
        """Return the next rows, at most `n`."""
        ...


PooledConnection = AbstractAsyncContextManager[Connection]


class Pool(Protocol):
    """The pool of connections."""

    def acquire(self) -> PooledConnection:
        """Return a context manager that takes a connection from the pool for its block."""
        ...

    async def close(self) -> None:
        """Close the pool when all of its connections are idle."""
        ...

    def terminate(self) -> None:
        """Close the pool's connections immediately, without notifying the server."""
        ...


class Driver(Protocol):
    """The functions of the module asyncpg."""

    def connect(self, dsn: str, *, timeout: float) -> Awaitable[Connection]:
        """Return a connection outside of any pool."""
        ...

    def create_pool(self, dsn: str, **options: object) -> Awaitable[Pool]:
        """Return a pool of connections."""
        ...


driver = cast(Driver, asyncpg)


ConnectionT = TypeVar("ConnectionT")

CONNECT_S = 10.0

_CONNECTION_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError, UnicodeError)
ADDRESS_SETTING = f"the database's address ({DATABASE_SETTING}, or what the command was given)"

_HBA_REMEDY = (
    f"Add a line for this machine, user and database to the server's pg_hba.conf, or correct {ADDRESS_SETTING}."
)

# Maps a part of PostgreSQL's English message for the SQLSTATE 28000 to the remedy.
_LOGIN_REMEDIES = {
    "no encryption": f"If it accepts this user over TLS only, add sslmode=require to {ADDRESS_SETTING}. {_HBA_REMEDY}",
    "pg_hba.conf": _HBA_REMEDY,
    "does not exist": f"Create the user (CREATE ROLE … LOGIN PASSWORD …), or correct its name in {ADDRESS_SETTING}.",
    "not permitted to log in": "Allow the user to log in: ALTER ROLE … LOGIN.",
}

# Maps an SQLSTATE to the remedy (PostgreSQL documentation, appendix A).
_REMEDIES = {
    "28P01": f"Correct user and password in {ADDRESS_SETTING}; special characters are percent-encoded there.",
    "28000": f"Correct user and TLS mode in {ADDRESS_SETTING}, or the user's rights and pg_hba.conf on the server.",
    "3D000": f"Create the database (CREATE DATABASE …), or correct its name in {ADDRESS_SETTING}.",
    "42501": "Allow the user to connect: GRANT CONNECT ON DATABASE … TO ….",
    "53300": "Raise the server's max_connections, or lower COUNTERSIGN_DATABASE_POOL.",
    "57P03": "Try again when it has started.",
}


async def connect(connecting: Awaitable[ConnectionT], url: str) -> ConnectionT:
    """Wait until the driver has connected to the URL. `require_postgres` must have checked the URL.

    Raises:
        Unavailable: the connection failed; the text names the cause, and never the password.
    """
    try:
        return await connecting
    except _CONNECTION_ERRORS as error:
        raise _connection_error(error, describe_postgres(url), asks_for_tls="sslmode=" in url) from error


def _connection_error(error: BaseException, where: str, *, asks_for_tls: bool) -> Unavailable:
    if isinstance(error, asyncpg.PostgresError):
        error_line = _first_line(error)
        return Unavailable(f"PostgreSQL at {where} refuses: {error_line}", resolution=_remedy(error, error_line))
    if isinstance(error, asyncpg.InterfaceError):
        why = f"PostgreSQL at {where} does not accept the connection options: {_first_line(error)}"
        return Unavailable(why, resolution=f"Correct the TLS mode and its files in {ADDRESS_SETTING}.")
    why, remedy = _no_answer(error, asks_for_tls=asks_for_tls)
    return Unavailable(f"PostgreSQL at {where} {why}", resolution=remedy)


def _remedy(error: asyncpg.PostgresError, error_line: str) -> str:
    state = str(getattr(error, "sqlstate", None) or "")
    advice = _REMEDIES.get(state, "Check its log, and try again.")
    if state != "28000":
        return advice
    return next((remedy for words, remedy in _LOGIN_REMEDIES.items() if words in error_line), advice)


def _no_answer(error: BaseException, *, asks_for_tls: bool) -> tuple[str, str]:
    """Return why no PostgreSQL server answered, and the remedy."""
    if isinstance(error, gaierror | UnicodeError):
        return (
            "cannot be found: the host name does not resolve",
            f"Correct the host in {ADDRESS_SETTING}, or check DNS.",
        )
    if isinstance(error, ssl.SSLCertVerificationError):
        remedy = f"Set sslrootcert in {ADDRESS_SETTING} to its authority, and use the host name of its certificate."
        return f"has a certificate that is not trusted: {_first_line(error)}", remedy
    is_about_tls = isinstance(error, ssl.SSLError) or "SSL upgrade" in str(error)
    if is_about_tls and not asks_for_tls:
        return "does not answer like PostgreSQL", f"Correct host and port in {ADDRESS_SETTING}."
    if is_about_tls:
        remedy = f"Enable TLS on the server, or remove sslmode from {ADDRESS_SETTING} if the network is trusted."
        return "does not support TLS, which the URL requires", remedy
    if isinstance(error, ConnectionRefusedError):
        return (
            "does not listen: the connection was refused",
            f"Start PostgreSQL, or correct host and port in {ADDRESS_SETTING}.",
        )
    if isinstance(error, TimeoutError):
        remedy = f"Correct host and port in {ADDRESS_SETTING}, or check the network: a firewall may drop packets."
        return f"did not answer within {CONNECT_S:.0f} s", remedy
    why = getattr(error, "strerror", None) or _first_line(error)
    return f"cannot be reached: {why}", f"Start PostgreSQL, or correct host, port and TLS files in {ADDRESS_SETTING}."


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
