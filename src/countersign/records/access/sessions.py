"""Signs people in, locks a user name after failed attempts, and ends sessions and agent tokens."""

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
_ACTIVE = {
    "session": 'SELECT id FROM "session" WHERE "user" = $1 AND ended_at IS NULL ORDER BY id',
    "agent_token": 'SELECT id FROM "agent_token" WHERE "user" = $1 AND ended_at IS NULL ORDER BY id',
}
_USER_OF_TOKEN = 'SELECT "user" FROM "agent_token" WHERE id = $1'
_END_EVERY = (
    "UPDATE credential SET ended_at = $1 WHERE ended_at IS NULL",
    'UPDATE "session" SET ended_at = $1, revision = revision + 1 WHERE ended_at IS NULL',
    'UPDATE "agent_token" SET ended_at = $1, revision = revision + 1 WHERE ended_at IS NULL',
)
_END_LINKS = "UPDATE credential SET ended_at = $2 WHERE user_id = $1 AND kind = 'setup' AND ended_at IS NULL"


async def end_credential(transaction: Transaction, model: str, record_id: str) -> Instant | None:
    """End the session or agent token with this record. The model must be `session` or `agent_token`. Return the time at
    which it ended, or None if it had ended before. The caller must write the audit entry.

    After the transaction is committed, every worker refuses the token. When the last token of a label ends, the agent's
    token domain is closed, unless a pending plan needs it.
    """
    now = clock.now()
    await transaction.run(_END_CREDENTIALS, record_id, now)
    if not await transaction.run(_END_RECORD[model], record_id, now):
        return None
    if model == "agent_token":
        person = await transaction.fetch_one(_USER_OF_TOKEN, record_id)
        if person is not None:
            await close_unused_domains(transaction, person[0])
    await versions.bump(transaction, "access")
    return now


async def end_all_of_user(
    transaction: Transaction, user_id: str, models: tuple[str, ...] = ("session", "agent_token")
) -> tuple[tuple[str, str], ...]:
    """End every session, agent token and set-up link of a person who is deactivated or deleted. Return the model and
    the record id of each session and token, for the audit."""
    now = clock.now()
    ended_sessions: list[tuple[str, str]] = []
    for model in models:
        for row in await transaction.fetch(_ACTIVE[model], user_id):
            await end_credential(transaction, model, row[0])
            ended_sessions.append((model, row[0]))
    await transaction.run(_END_LINKS, user_id, now)
    return tuple(ended_sessions)


async def end_every(transaction: Transaction) -> None:
    """End every session, agent token and set-up link of all people. This is required after a database is restored to an
    earlier time, because tokens that have ended since then would be valid again. No audit entry is written."""
    now = clock.now()
    for statement in _END_EVERY:
        await transaction.run(statement, now)
    await close_unused_domains(transaction, None)
    await versions.bump(transaction, "access")


FAILURES = 5
WITHIN_S = 60
LOCKED_S = 60
SKEW_S = 60
"""The allowed difference between the clocks of nodes, in seconds."""

_LATEST_FAILURES = f"SELECT at FROM sign_in_failure WHERE username = $1 AND at <= $2 ORDER BY at DESC LIMIT {FAILURES}"
_ADD_FAILURE = "INSERT INTO sign_in_failure (username, at) VALUES ($1, $2)"
_DELETE_OLD_FAILURES = "DELETE FROM sign_in_failure WHERE at < $1 OR at > $2"
_LOCK_NAME = "SELECT pg_advisory_xact_lock($1)"


class LockedOut(Refused):
    """There were too many failed sign-ins with this user name. The error does not depend on whether a person has that
    name."""

    status = 429
    code = "locked_out"
    title = "Sign-in locked"
    resolution = "Wait for the time in Retry-After, then try again."


def lockout_key(secret: bytes, username: str) -> bytes:
    """Return the key under which failures are counted. It is a keyed hash of the case-folded user name, so that the
    table contains no names."""
    return signer_for(secret, "sign-in/username").sign(folded(username).encode("utf-8", "surrogatepass"))


async def require_unlocked(reader: Reader, name: bytes) -> None:
    """Require that the user name is not locked.

    Raises:
        LockedOut: the last five failures happened within a minute, and the last failure was less than a minute ago.
    """
    wait_us = _locked_for_us(await reader.fetch(_LATEST_FAILURES, name, _latest_plausible_time()))
    if wait_us > 0:
        wait_s = -(-wait_us // clock.SECOND)
        raise LockedOut("too many failed sign-ins; try again later", headers={"Retry-After": str(wait_s)})


def _locked_for_us(latest_failures: Sequence[Row]) -> int:
    if len(latest_failures) < FAILURES or latest_failures[0][0] - latest_failures[-1][0] >= WITHIN_S * clock.SECOND:
        return 0
    return latest_failures[0][0] + LOCKED_S * clock.SECOND - clock.now()


def _latest_plausible_time() -> clock.Instant:
    """Return the latest plausible time of a failure. It is a little in the future, because the clocks of nodes differ
    slightly. A failure with a later time was written before the clock was set back. It would lock the user name until
    that time, or hide newer failures."""
    return clock.later(clock.now(), seconds=SKEW_S)


async def serialize_attempts(database: Database, transaction: Transaction, name: bytes) -> None:
    """Lock sign-ins with this user name on all workers until the transaction ends. SQLite needs no such lock, because
    it runs one writing transaction at a time."""
    if database.dialect == "postgres":
        await transaction.fetch_one(_LOCK_NAME, int.from_bytes(name[:8], signed=True))


async def forget_old_failures(transaction: Transaction) -> None:
    """Delete failures that no longer count towards a lock."""
    oldest_kept = clock.later(clock.now(), seconds=-2 * (WITHIN_S + LOCKED_S))
    await transaction.run(_DELETE_OLD_FAILURES, oldest_kept, _latest_plausible_time())


async def count_failure(transaction: Transaction, name: bytes) -> None:
    """Record a failed sign-in."""
    await transaction.run(_ADD_FAILURE, name, clock.now())


PREFIX = "css_session"
SESSION_S = 12 * 3600

_CREDENTIAL = """
INSERT INTO credential (digest, kind, record_id, user_id, expires_at, ended_at)
VALUES ($1, 'session', $2, $3, $4, NULL)
"""


MAX_USERNAME = 1_000
"""The length to which a user name is truncated. Valid user names are shorter."""


class WrongSignIn(Refused):
    """The user name or the password is wrong, or the person is inactive. The response is the same in all cases."""

    status = 401
    code = "wrong_sign_in"
    title = "Wrong user name or password"
    resolution = "Check both; ask an administrator for a new password."


async def sign_in(records: Records, username: str, password: str, record_event: RecordEvent | None = None) -> str:
    """Open a session of twelve hours for the person with this user name, and return its token (API document,
    Authentication 2, 5).

    Each attempt costs one password hash, whether or not the person exists. Attempts with the same user name are then
    serialized. Of any number of concurrent wrong attempts, at most five get the response "wrong user name or password",
    and the others get "locked". `record_event` receives the event `session.create`.

    Raises:
        LockedOut: five sign-ins with this user name, ignoring case, have failed within a minute.
        WrongSignIn: the person does not exist or is inactive, or the password is wrong.
        Unavailable: too many passwords are being checked, or the database cannot be reached.
    """
    # Truncate the user name, because folding a text of megabytes would block all other requests. No valid name is
    # longer.
    username = username[:MAX_USERNAME]
    name = lockout_key(records.secret, username)
    # Check the lock also before the password is hashed, so that attempts with a locked name cost no hash.
    await require_unlocked(records.database, name)
    person = await people.find_account(records.database, _storable_or_empty(username))
    is_password_right = await passwords.verify(password, person.password_hash if person else None)
    token = None
    async with records.database.transaction() as transaction:
        await serialize_attempts(records.database, transaction, name)
        await require_unlocked(transaction, name)
        if person is not None and is_password_right and await _is_unchanged(transaction, person):
            token = await _open_session(transaction, person.id, record_event)
        else:
            await count_failure(transaction, name)
    if token is None:
        raise WrongSignIn("wrong user name or password", headers={"WWW-Authenticate": "Bearer"})
    return token


def _storable_or_empty(username: str) -> str:
    """Return the user name. If the database cannot accept the text, return an empty text, which no person has as a
    name."""
    try:
        User.username.operand(username)
    except BadValue:
        return ""
    return username


async def _is_unchanged(transaction: Transaction, person: people.Account) -> bool:
    """Return whether the person is still active and the password is still the one that was checked."""
    if not await people.lock_active(transaction, person.id):
        return False
    return await people.has_password(transaction, person.id, person.password_hash)


async def _open_session(transaction: Transaction, user_id: str, record_event: RecordEvent | None) -> str:
    token = secrets.new_secret(PREFIX)
    now = clock.now()
    expires_at = clock.later(now, seconds=SESSION_S)
    values = {"user": user_id, "started_at": now, "expires_at": expires_at}
    session_id = await insert(transaction, Session.declared, values)
    await transaction.run(_CREDENTIAL, secrets.digest(token), session_id, user_id, expires_at)
    if record_event is not None:
        await record_event(transaction, AccessEvent(user_id, "session.create", "session", session_id, values))
    return token
