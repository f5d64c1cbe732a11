"""Set-up links, with which the first administrator and invited people choose a password."""

from typing import NamedTuple

from countersign.declare import ADMINISTRATOR, BadValue
from countersign.kernel import clock
from countersign.kernel.database import versions
from countersign.kernel.database.port import Reader, Transaction
from countersign.kernel.errors import NotFound, Refused
from countersign.kernel.security import passwords, secrets
from countersign.records.access import people, sessions
from countersign.records.access.people import insert
from countersign.records.audit.chain import AccessEvent, RecordEvent
from countersign.records.base_models import User, UserRole
from countersign.records.context import Records

PREFIX = "css_setup"
VALID_S = 24 * 3600

ANY_USER = 'SELECT 1 FROM "user" LIMIT 1'
_DELETE_FIRST_LINK = "DELETE FROM credential WHERE kind = 'setup' AND user_id IS NULL"
_DELETE_LINKS = "DELETE FROM credential WHERE kind = 'setup' AND user_id = $1"
_INSERT = """
INSERT INTO credential (digest, kind, record_id, user_id, expires_at, ended_at)
VALUES ($1, 'setup', $4, $2, $3, NULL)
"""
_LINK = """
SELECT credential.user_id, person.username
FROM credential
LEFT JOIN "user" AS person ON person.id = credential.user_id
WHERE credential.digest = $1 AND credential.kind = 'setup'
AND credential.ended_at IS NULL AND credential.expires_at > $2
"""
_USE_UP = """
UPDATE credential SET ended_at = $2
WHERE digest = $1 AND kind = 'setup' AND ended_at IS NULL AND expires_at > $2
"""
_END_FOR_MEMBERS = """
UPDATE credential SET ended_at = $2
WHERE kind = 'setup' AND record_id <> '' AND ended_at IS NULL
AND user_id IN (SELECT "user" FROM "user_role" WHERE "role" = $1)
"""
_ROLE = 'SELECT id FROM "role" WHERE title = $1'


class InvitationUsed(NotFound):
    """The set-up link was already used, has expired, does not exist, or is no longer needed."""

    resolution = "Ask for a new link. While there is no person yet, starting the service again prints one."


class BadUsername(Refused):
    """The user name is not accepted. The detail of the error gives the reason."""

    code = "bad_username"
    title = "User name not accepted"


class InvitationLink(NamedTuple):
    """The purpose of an unused link. It sets the password of the person `user_id`. A link without a person creates the
    first administrator."""

    user_id: str | None
    username: str | None


async def new_first_link(records: Records) -> str | None:
    """Return a new set-up address, valid for a day, if no person exists yet. Otherwise, return None. Older links become
    invalid."""
    if await has_people(records.database):
        return None
    async with records.database.transaction() as transaction:
        await transaction.run(_DELETE_FIRST_LINK)
        secret = await _new_link(transaction, None)
    return address(records, secret)


def address(records: Records, secret: str) -> str:
    """Return the address of the link with this secret."""
    return f"{records.root_url}/setup?token={secret}"


async def invite(transaction: Transaction, user_id: str, creator_id: str = "") -> str:
    """Return the secret of a new link, valid for a day, with which the person sets a password. Older links of the
    person become invalid. `creator_id` is the id of the person who created the link, if that person may have fewer
    rights than the invited person. The caller must write the audit entry."""
    await transaction.run(_DELETE_LINKS, user_id)
    return await _new_link(transaction, user_id, creator_id)


async def end_links_of_members(transaction: Transaction, role_id: str) -> None:
    """End the links that people with fewer rights created for members of the role. The rights of the role have changed,
    and the creators may still know the links."""
    await transaction.run(_END_FOR_MEMBERS, role_id, clock.now())


async def _new_link(transaction: Transaction, user_id: str | None, creator_id: str = "") -> str:
    secret = secrets.new_secret(PREFIX)
    expires_at = clock.later(clock.now(), seconds=VALID_S)
    await transaction.run(_INSERT, secrets.digest(secret), user_id, expires_at, creator_id)
    return secret


async def has_people(reader: Reader) -> bool:
    """Return whether any person exists. If so, the service is already set up."""
    return await reader.fetch_one(ANY_USER) is not None


async def find_link(reader: Reader, secret: str) -> InvitationLink:
    """Return the purpose of the link, so that its page can be shown.

    Raises:
        InvitationUsed: the link can no longer be used.
    """
    row = await reader.fetch_one(_LINK, secrets.digest(secret), clock.now())
    if row is None or (row[0] is None and await has_people(reader)):
        raise InvitationUsed("this set-up link is used up or expired")
    return InvitationLink(row[0], row[1])


async def redeem_setup(
    records: Records, secret: str, password: str, username: str | None = None, record_event: RecordEvent | None = None
) -> str:
    """Set the password, use up the link, and return the person's id. If several calls are made at the same time,
    exactly one succeeds.

    The first administrator's link requires a user name and creates the person. Setting a password ends the person's
    sessions. `record_event` receives the event `user.create` or `user.update`, without the password.

    Raises:
        InvitationUsed: the link was already used, has expired or does not exist, or the person is deleted or inactive.
        WeakPassword, BadUsername: the password or the user name is refused. Nothing changes, and the link can still be
            used.
        Unavailable: too many passwords are being hashed.
    """
    link = await find_link(records.database, secret)
    name = _checked_username(username) if link.user_id is None else None
    password_hash = await passwords.hash_password(password, name or link.username or "")
    async with records.database.transaction() as transaction:
        # Update the counter first, so that a concurrent call on PostgreSQL waits here until this transaction ends.
        await versions.bump(transaction, "access")
        if not await transaction.run(_USE_UP, secrets.digest(secret), clock.now()):
            raise InvitationUsed("this set-up link is used up or expired")
        if link.user_id is None:
            user_id, command = await _add_first_administrator(transaction, name or ""), "user.create"
        else:
            user_id, command = await _reset_access(transaction, link.user_id), "user.update"
        await people.set_password(transaction, user_id, password_hash)
        if record_event is not None:
            values = {} if name is None else {"username": name}
            await record_event(transaction, AccessEvent(user_id, command, "user", user_id, values))
    return user_id


def _checked_username(username: str | None) -> str:
    if username is None:
        raise BadUsername("a user name is required")
    try:
        User.username.read(username)
    except BadValue as error:
        raise BadUsername(f"the user name {error}") from error
    if not people.is_unambiguous(username.strip()):
        raise BadUsername(f"the user name {people.RULE}")
    return username.strip()


async def _add_first_administrator(transaction: Transaction, username: str) -> str:
    if await transaction.fetch_one(ANY_USER) is not None:
        raise InvitationUsed("a first person exists already")
    role = await transaction.fetch_one(_ROLE, ADMINISTRATOR)
    if role is None:
        raise LookupError("the role administrator is missing: it is seeded when the service starts")
    user_id = await insert(transaction, User.declared, {"username": username, "is_active": 1})
    await insert(transaction, UserRole.declared, {"user": user_id, "role": role[0]})
    return user_id


async def _reset_access(transaction: Transaction, user_id: str) -> str:
    if not await people.lock_active(transaction, user_id):
        raise InvitationUsed("this person no longer signs in here")
    await sessions.end_all_of_user(transaction, user_id, ("session",))
    return user_id
