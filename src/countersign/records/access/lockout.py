"""The lockout of a user name after five failed sign-ins within a minute, counted in the database."""

from collections.abc import Sequence

from countersign.kernel import clock
from countersign.kernel.database.port import Database, Reader, Row, Transaction
from countersign.kernel.errors import Refused
from countersign.kernel.security.encryption import signer_for
from countersign.records.access.folding import folded

FAILURES = 5
WITHIN_S = 60
LOCKED_S = 60
SKEW_S = 60
"""By how much the clocks of nodes may differ."""

_LATEST = f"SELECT at FROM sign_in_failure WHERE username = $1 AND at <= $2 ORDER BY at DESC LIMIT {FAILURES}"
_FAILED = "INSERT INTO sign_in_failure (username, at) VALUES ($1, $2)"
_FORGET = "DELETE FROM sign_in_failure WHERE at < $1 OR at > $2"
_ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock($1)"


class LockedOut(Refused):
    """Too many failed sign-ins with this user name, whether or not there is somebody of that name."""

    status = 429
    code = "locked_out"
    title = "Sign-in locked"
    resolution = "Wait for the time in Retry-After, then try again."


def name_of(secret: bytes, username: str) -> bytes:
    """What failures are counted by: a keyed hash of the user name without case, so that the table names nobody."""
    return signer_for(secret, "sign-in/username").sign(folded(username).encode("utf-8", "surrogatepass"))


async def require_unlocked(reader: Reader, name: bytes) -> None:
    """Insist that the user name is not locked.

    Raises:
        LockedOut: the last five failures lie within a minute, and less than a minute has passed since the last.
    """
    wait_us = _locked_for_us(await reader.fetch(_LATEST, name, _newest()))
    if wait_us > 0:
        wait_s = -(-wait_us // clock.SECOND)
        raise LockedOut("too many failed sign-ins; try again later", headers={"Retry-After": str(wait_s)})


def _locked_for_us(latest: Sequence[Row]) -> int:
    if len(latest) < FAILURES or latest[0][0] - latest[-1][0] >= WITHIN_S * clock.SECOND:
        return 0
    return latest[0][0] + LOCKED_S * clock.SECOND - clock.now()


def _newest() -> clock.Instant:
    """Until when a failure is believed to have been. Nodes differ by a little; what is later was written before the
    clock went back, and would lock the name until then, or keep newer failures from being counted."""
    return clock.later(clock.now(), seconds=SKEW_S)


async def take_turn(database: Database, transaction: Transaction, name: bytes) -> None:
    """Wait until nobody else decides on a sign-in with this user name, on whichever worker, and keep it so until the
    transaction ends. On SQLite, transactions that write come one after the other anyway."""
    if database.dialect == "postgres":
        await transaction.fetch_one(_ONE_AT_A_TIME, int.from_bytes(name[:8], signed=True))


async def forget_old(transaction: Transaction) -> None:
    """Forget failures that can lock nobody any more."""
    await transaction.run(_FORGET, clock.later(clock.now(), seconds=-2 * (WITHIN_S + LOCKED_S)), _newest())


async def count_failure(transaction: Transaction, name: bytes) -> None:
    """Write down that a sign-in failed now."""
    await transaction.run(_FAILED, name, clock.now())
