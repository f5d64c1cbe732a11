"""Sessions: signing in, the lockout after failed attempts, and revoking sessions and agent tokens."""

from collections.abc import Sequence

from countersign.declare import BadValue
from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.database import versions
from countersign.kernel.database.port import Database, Reader, Row, Transaction
from countersign.kernel.errors import Refused
from countersign.kernel.security import passwords, secrets
from countersign.kernel.security.encryption import signer_for
from countersign.records.access import people
from countersign.records.access.agent_tokens import close_unused_domains
from countersign.records.access.people import folded, insert
from countersign.records.audit.chain import AccessEvent, RecordEvent
from countersign.records.base_models import Session, User
from countersign.records.context import Records

_END_CREDENTIALS = "UPDATE credential SET ended_at = $2 WHERE record_id = $1 AND ended_at IS NULL AND kind <> 'setup'"
_END_RECORD = {
    "session": 'UPDATE "session" SET ended_at = $2, revision = revision + 1 WHERE id = $1 AND ended_at IS NULL',
    "agent_token": 'UPDATE "agent_token" SET ended_at = $2, revision = revision + 1 WHERE id = $1 AND ended_at IS NULL',
}
_LIVE = {
    "session": 'SELECT id FROM "session" WHERE "user" = $1 AND ended_at IS NULL ORDER BY id',
    "agent_token": 'SELECT id FROM "agent_token" WHERE "user" = $1 AND ended_at IS NULL ORDER BY id',
}
_PERSON = 'SELECT "user" FROM "agent_token" WHERE id = $1'
_END_EVERY = (
    "UPDATE credential SET ended_at = $1 WHERE ended_at IS NULL",
    'UPDATE "session" SET ended_at = $1, revision = revision + 1 WHERE ended_at IS NULL',
    'UPDATE "agent_token" SET ended_at = $1, revision = revision + 1 WHERE ended_at IS NULL',
)
_END_LINKS = "UPDATE credential SET ended_at = $2 WHERE user_id = $1 AND kind = 'setup' AND ended_at IS NULL"


async def end_credential(transaction: Transaction, model: str, record_id: str) -> Instant | None:
    """End the session or agent token of this record (model `session` or `agent_token`): once the transaction is
    durable, its token is refused everywhere. The moment it ended; None when it had ended before. The caller writes
    the audit entry.

    With the last token of its label, an agent's token domain is closed, unless a pending plan needs it.
    """
    now = clock.now()
    await transaction.run(_END_CREDENTIALS, record_id, now)
    if not await transaction.run(_END_RECORD[model], record_id, now):
        return None
    if model == "agent_token":
        person = await transaction.fetch_one(_PERSON, record_id)
        if person is not None:
            await close_unused_domains(transaction, person[0])
    await versions.bump(transaction, "access")
    return now


async def end_all_of_user(
    transaction: Transaction, user_id: str, models: tuple[str, ...] = ("session", "agent_token")
) -> tuple[tuple[str, str], ...]:
    """End every session, agent token and set-up link of a person, as when it is switched off or removed; what was
    ended as (model, record id), for the audit."""
    now = clock.now()
    ended: list[tuple[str, str]] = []
    for model in models:
        for row in await transaction.fetch(_LIVE[model], user_id):
            await end_credential(transaction, model, row[0])
            ended.append((model, row[0]))
    await transaction.run(_END_LINKS, user_id, now)
    return tuple(ended)


async def end_every(transaction: Transaction) -> None:
    """End every session, agent token and set-up link of everybody, for a database that was put back to an earlier
    moment: what was ended since would be alive again. Not in the audit, which goes on from that moment."""
    now = clock.now()
    for statement in _END_EVERY:
        await transaction.run(statement, now)
    await close_unused_domains(transaction, None)
    await versions.bump(transaction, "access")


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


def lockout_key(secret: bytes, username: str) -> bytes:
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


async def serialize_attempts(database: Database, transaction: Transaction, name: bytes) -> None:
    """Wait until nobody else decides on a sign-in with this user name, on whichever worker, and keep it so until the
    transaction ends. On SQLite, transactions that write come one after the other anyway."""
    if database.dialect == "postgres":
        await transaction.fetch_one(_ONE_AT_A_TIME, int.from_bytes(name[:8], signed=True))


async def forget_old_failures(transaction: Transaction) -> None:
    """Forget failures that can lock nobody any more."""
    await transaction.run(_FORGET, clock.later(clock.now(), seconds=-2 * (WITHIN_S + LOCKED_S)), _newest())


async def count_failure(transaction: Transaction, name: bytes) -> None:
    """Write down that a sign-in failed now."""
    await transaction.run(_FAILED, name, clock.now())


PREFIX = "css_session"
SESSION_S = 12 * 3600

_CREDENTIAL = """
INSERT INTO credential (digest, kind, record_id, user_id, expires_at, ended_at)
VALUES ($1, 'session', $2, $3, $4, NULL)
"""


MAX_USERNAME = 1_000
"""Of a user name, so many characters are looked at: more than any has."""


class WrongSignIn(Refused):
    """User name or password is wrong, or the person is switched off: one answer for all."""

    status = 401
    code = "wrong_sign_in"
    title = "Wrong user name or password"
    resolution = "Check both; ask an administrator for a new password."


async def sign_in(records: Records, username: str, password: str, note: RecordEvent | None = None) -> str:
    """Open a session of twelve hours for the person of this user name; its token (API document, Authentication 2, 5).

    The password is checked at the cost of one hash whether or not there is such a person. Then attempts with one user
    name are decided one after the other: however many arrive at once, five wrong ones at most are told that they are
    wrong, and all others that the name is locked. `note` gets the happening `session.create`.

    Raises:
        LockedOut: five sign-ins with this user name, in whatever case, have failed within a minute.
        WrongSignIn: no such person, none that may sign in, or another password.
        Unavailable: too many passwords are being checked, or the database cannot be reached.
    """
    # No longer one is anybody's, and folding a text of megabytes would keep every other request waiting.
    username = username[:MAX_USERNAME]
    name = lockout_key(records.secret, username)
    # Looked at before the hash too, so that hammering at a locked name costs nothing.
    await require_unlocked(records.database, name)
    person = await people.find_account(records.database, _storable(username))
    is_right = await passwords.verify(password, person.password_hash if person else None)
    token = None
    async with records.database.transaction() as transaction:
        await serialize_attempts(records.database, transaction, name)
        await require_unlocked(transaction, name)
        if person is not None and is_right and await _is_unchanged(transaction, person):
            token = await _open_session(transaction, person.id, note)
        else:
            await count_failure(transaction, name)
    if token is None:
        raise WrongSignIn("wrong user name or password", headers={"WWW-Authenticate": "Bearer"})
    return token


def _storable(username: str) -> str:
    """The user name, or one that nobody has when it is no text a database can be asked for."""
    try:
        User.username.operand(username)
    except BadValue:
        return ""
    return username


async def _is_unchanged(transaction: Transaction, person: people.Account) -> bool:
    """Whether the person may still sign in with the password that was checked."""
    if not await people.lock_active(transaction, person.id):
        return False
    return await people.has_password(transaction, person.id, person.password_hash)


async def _open_session(transaction: Transaction, user_id: str, note: RecordEvent | None) -> str:
    token = secrets.new_secret(PREFIX)
    now = clock.now()
    expires_at = clock.later(now, seconds=SESSION_S)
    values = {"user": user_id, "started_at": now, "expires_at": expires_at}
    session_id = await insert(transaction, Session.declared, values)
    await transaction.run(_CREDENTIAL, secrets.digest(token), session_id, user_id, expires_at)
    if note is not None:
        await note(transaction, AccessEvent(user_id, "session.create", "session", session_id, values))
    return token
