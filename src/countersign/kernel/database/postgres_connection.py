"""Why PostgreSQL could not be connected to: each cause in words of its own, with its remedy, for who runs the service.

Names of hosts, users and databases are told, so these texts are for starts and commands, never for callers.
"""

import ssl
from collections.abc import Awaitable
from socket import gaierror
from typing import TypeVar

import asyncpg

from countersign.kernel.database.address import SETTING, shown
from countersign.kernel.errors import Unavailable

ConnectionT = TypeVar("ConnectionT")

CONNECT_S = 10.0

_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError, UnicodeError)
ADDRESS = f"the database's address ({SETTING}, or what the command was given)"

_HBA = f"Add a line for this machine, user and database to pg_hba.conf there and reload it, or correct {ADDRESS}."

# What PostgreSQL says for the SQLSTATE 28000, as far as its words are English, and the remedy.
_LOGINS = {
    "no encryption": f"If it lets this user in by TLS alone, add sslmode=require to {ADDRESS}. {_HBA}",
    "pg_hba.conf": _HBA,
    "does not exist": f"Create the user there (CREATE ROLE … LOGIN PASSWORD …), or correct its name in {ADDRESS}.",
    "not permitted to log in": "Let the user log in there: ALTER ROLE … LOGIN.",
}

# SQLSTATE (PostgreSQL documentation, appendix A), and the remedy.
_STATES = {
    "28P01": f"Correct user and password in {ADDRESS}; special characters are percent-encoded there.",
    "28000": f"Correct user and TLS mode in {ADDRESS}, or the user's rights and pg_hba.conf there.",
    "3D000": f"Create the database there (CREATE DATABASE …), or correct its name in {ADDRESS}.",
    "42501": "Let the user connect to it: GRANT CONNECT ON DATABASE … TO ….",
    "53300": "Raise max_connections there, or lower COUNTERSIGN_DATABASE_POOL.",
    "57P03": "Try again when it has started.",
}


async def connected(connecting: Awaitable[ConnectionT], url: str) -> ConnectionT:
    """The connection that is being made to the address, which can be read (`address.require_postgres`).

    Raises:
        Unavailable: it cannot be made, and why; the password is not told.
    """
    try:
        return await connecting
    except _ERRORS as error:
        raise _meaning(error, shown(url), asks_for_tls="sslmode=" in url) from error


def _meaning(error: BaseException, where: str, *, asks_for_tls: bool) -> Unavailable:
    if isinstance(error, asyncpg.PostgresError):
        said = _first_line(error)
        return Unavailable(f"PostgreSQL at {where} refuses: {said}", resolution=_remedy(error, said))
    if isinstance(error, asyncpg.InterfaceError):
        why = f"PostgreSQL at {where} cannot be asked as the address says: {_first_line(error)}"
        return Unavailable(why, resolution=f"Correct the TLS mode and its files in {ADDRESS}.")
    why, remedy = _unreached(error, asks_for_tls=asks_for_tls)
    return Unavailable(f"PostgreSQL at {where} {why}", resolution=remedy)


def _remedy(error: asyncpg.PostgresError, said: str) -> str:
    state = str(getattr(error, "sqlstate", None) or "")
    known = _STATES.get(state, "Look into its log, and try again.")
    return next((each for words, each in _LOGINS.items() if words in said), known) if state == "28000" else known


def _unreached(error: BaseException, *, asks_for_tls: bool) -> tuple[str, str]:
    """Why no PostgreSQL answered, and the remedy."""
    if isinstance(error, gaierror | UnicodeError):
        return "cannot be found: no such host is known here", f"Correct the host in {ADDRESS}, or see to the names."
    if isinstance(error, ssl.SSLCertVerificationError):
        remedy = f"Name its authority as sslrootcert in {ADDRESS}, and the host as its certificate does."
        return f"shows a certificate that is not believed: {_first_line(error)}", remedy
    is_about_tls = isinstance(error, ssl.SSLError) or "SSL upgrade" in str(error)
    if is_about_tls and not asks_for_tls:
        return "does not answer as PostgreSQL does", f"Correct host and port in {ADDRESS}."
    if is_about_tls:
        remedy = f"Turn TLS on there, or take sslmode out of {ADDRESS} where nobody can listen on the way."
        return "does not speak TLS, which the address asks for", remedy
    if isinstance(error, ConnectionRefusedError):
        return "does not listen: the connection was refused", f"Start it, or correct host and port in {ADDRESS}."
    if isinstance(error, TimeoutError):
        remedy = f"Correct host and port in {ADDRESS}, or open the way there: a firewall may drop what is sent."
        return f"did not answer within {CONNECT_S:.0f} s", remedy
    why = getattr(error, "strerror", None) or _first_line(error)
    return f"cannot be reached: {why}", f"Start it, or correct host, port and files of TLS in {ADDRESS}."


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
