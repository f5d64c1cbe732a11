"""Signing in with user name and password: a session token for the right one, one answer for everything wrong."""

from countersign.declare import BadValue
from countersign.kernel import clock
from countersign.kernel.database.port import Transaction
from countersign.kernel.errors import Refused
from countersign.kernel.security import passwords, secrets
from countersign.records.access import lockout, people
from countersign.records.access.audited import Happening, Note
from countersign.records.access.inserting import insert
from countersign.records.access.model import Session, User
from countersign.records.context import Records

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


async def sign_in(records: Records, username: str, password: str, note: Note | None = None) -> str:
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
    name = lockout.name_of(records.secret, username)
    # Looked at before the hash too, so that hammering at a locked name costs nothing.
    await lockout.require_unlocked(records.database, name)
    person = await people.with_password(records.database, _storable(username))
    is_right = await passwords.verify(password, person.password_hash if person else None)
    token = None
    async with records.database.transaction() as transaction:
        await lockout.take_turn(records.database, transaction, name)
        await lockout.require_unlocked(transaction, name)
        if person is not None and is_right and await _is_unchanged(transaction, person):
            token = await _open_session(transaction, person.id, note)
        else:
            await lockout.count_failure(transaction, name)
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


async def _is_unchanged(transaction: Transaction, person: people.WithPassword) -> bool:
    """Whether the person may still sign in with the password that was checked."""
    if not await people.hold_active(transaction, person.id):
        return False
    return await people.has_password(transaction, person.id, person.password_hash)


async def _open_session(transaction: Transaction, user_id: str, note: Note | None) -> str:
    token = secrets.new_secret(PREFIX)
    now = clock.now()
    expires_at = clock.later(now, seconds=SESSION_S)
    values = {"user": user_id, "started_at": now, "expires_at": expires_at}
    session_id = await insert(transaction, Session.declared, values)
    await transaction.run(_CREDENTIAL, secrets.digest(token), session_id, user_id, expires_at)
    if note is not None:
        await note(transaction, Happening(user_id, "session.create", "session", session_id, values))
    return token
