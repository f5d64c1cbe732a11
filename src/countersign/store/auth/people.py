"""People, their roles, and the one-time link that creates the first organisation and its owner."""

import re

from countersign.kernel import clock, ids
from countersign.kernel.database import versions
from countersign.kernel.database.port import Reader, Transaction
from countersign.kernel.errors import NotFound, Refused, invalid_member
from countersign.kernel.security import passwords, secrets
from countersign.store.auth import organisations, queries
from countersign.store.auth.sessions import normalize_email
from countersign.store.context import Store
from countersign.store.scopes import Role

_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")


class EmailTaken(Refused):
    """A person with this e-mail address exists."""

    status = 409
    code = "email_taken"
    title = "E-mail taken"
    resolution = "Use another address, or set the person's password instead."


class LastOwner(Refused):
    """An organisation must have at least one owner."""

    status = 409
    code = "last_owner"
    title = "Last owner"
    resolution = "Make another person an owner first."


class MemberNotFound(NotFound):
    """No person with this address has a role in the organisation."""

    resolution = "List the members with GET /api/v1/org/members."


async def create_person(transaction: Transaction, email: str, password: str | None) -> queries.Person:
    """Add a person. If a password is given, the address counts as proven by the operator.

    Hashing the password takes tens of milliseconds. On the event loop of a server, hash the password in a thread and
    call `add_person` instead.

    Raises:
        InvalidRequest: the address is not an e-mail address.
        WeakPassword: the password is too short, too long or blank.
        EmailTaken: the address is in use.
    """
    password_hash = None if password is None else await passwords.hash_password(password, email)
    return await add_person(transaction, email, password_hash)


async def add_person(transaction: Transaction, email: str, password_hash: str | None) -> queries.Person:
    """Add a person with a password hash.

    Raises:
        InvalidRequest, EmailTaken: the same conditions as in `create_person`.
    """
    address = normalize_email(email)
    if not _EMAIL.fullmatch(address) or len(address) > 254:
        raise invalid_member("/email", "must be an e-mail address")
    new_person = queries.Person(ids.new_uuid(), address, password_hash)
    proven_at = clock.now() if password_hash else None
    if not await transaction.run(queries.INSERT_PERSON, *new_person, proven_at, clock.now()):
        raise EmailTaken(f"a person with the address {address} exists")
    return new_person


async def set_password(transaction: Transaction, person_id: str, password_hash: str) -> None:
    """Set a person's password. Every session of the person ends, and the address then counts as proven."""
    await transaction.run(queries.CHANGE_PASSWORD, person_id, password_hash, clock.now())
    await transaction.run(queries.DELETE_SESSIONS_OF, person_id)
    await versions.bump(transaction, "identity")


async def person_to_prove(transaction: Transaction, email: str) -> tuple[str, bool]:
    """Return the id of the person with this (normalized) address, and true if the address is not proven yet. If no
    person has the address, create a person. The person's row remains locked until the transaction ends, so that no
    concurrent transaction binds an agent to the person."""
    await transaction.run(queries.INSERT_PERSON, ids.new_uuid(), email, None, None, clock.now())
    await transaction.run(queries.LOCK_PERSON, email)
    row = await transaction.fetch_one(queries.PROVEN_AT, email)
    if row is None:
        raise LookupError("the person was removed within the transaction")
    person_id, proven_at = row
    return person_id, proven_at is None


async def set_role(transaction: Transaction, org_id: str, email: str, role: Role) -> None:
    """Set the role of the person with this address. If the address is unknown, create a person without a password, who
    can sign in after proving the address.

    Raises:
        InvalidRequest: the address is not an e-mail address.
        LastOwner: the organisation would have no owner.
    """
    person = await queries.person_with_email(transaction, normalize_email(email))
    if person is None:
        person = await _add_or_get_person(transaction, email)
    if role != "owner":
        await _require_another_owner(transaction, org_id, person.id)
    await transaction.run(queries.SET_ROLE, person.id, org_id, role, clock.now())
    await versions.bump(transaction, "identity")


async def _add_or_get_person(transaction: Transaction, email: str) -> queries.Person:
    """Return the person with this address. If no person has the address, add a person."""
    try:
        return await add_person(transaction, email, None)
    except EmailTaken:
        person = await queries.person_with_email(transaction, normalize_email(email))
        if person is None:
            raise
        return person


async def remove_member(transaction: Transaction, org_id: str, email: str) -> None:
    """Remove a person's role. The person loses the scopes of the role at once, even in tokens that were issued before.

    Raises:
        MemberNotFound: the person has no role in the organisation.
        LastOwner: the organisation would have no owner.
    """
    person = await queries.person_with_email(transaction, normalize_email(email))
    if person is None or org_id not in await queries.roles(transaction, person.id):
        raise MemberNotFound("no member has this address")
    await _require_another_owner(transaction, org_id, person.id)
    await transaction.run(queries.REMOVE_MEMBER, person.id, org_id)
    await versions.bump(transaction, "identity")


async def _require_another_owner(transaction: Transaction, org_id: str, removed_id: str) -> None:
    if (await queries.roles(transaction, removed_id)).get(org_id) != "owner":
        return
    # Lock the organisation's row for every removal of an owner, so that two owners cannot remove each other.
    await transaction.run(queries.LOCK_ORGANISATION, org_id)
    row = await transaction.fetch_one(queries.OTHER_OWNERS, org_id, removed_id)
    if row is None or row[0] == 0:
        raise LastOwner("the organisation would have no owner")


ANY_PERSON = "SELECT 1 FROM person LIMIT 1"
DELETE_UNUSED_LINKS = "DELETE FROM setup_link WHERE used_at IS NULL"
INSERT_LINK = "INSERT INTO setup_link (token_hash, created_at, used_at) VALUES ($1, $2, NULL)"
UNUSED_LINK = """
    SELECT 1 FROM setup_link
    WHERE token_hash = $1 AND used_at IS NULL AND created_at > $2 AND NOT EXISTS (SELECT 1 FROM person)
"""
USE_LINK = """
    UPDATE setup_link SET used_at = $2
    WHERE token_hash = $1 AND used_at IS NULL AND created_at > $3 AND NOT EXISTS (SELECT 1 FROM person)
"""
LINK_VALID_S = 24 * 3600


class SetupLinkSpent(NotFound):
    """The set-up link was used, has expired, does not exist, or a person exists already."""

    resolution = "Start the service again on its empty database: it prints a new link."


async def create_setup_link(store: Store) -> str | None:
    """Create a set-up link and return its address, or return None if the store has a person. Older unused links become
    invalid."""
    if await has_people(store.database):
        return None
    token = secrets.new_secret("cls")
    async with store.database.transaction() as transaction:
        await transaction.run(DELETE_UNUSED_LINKS)
        await transaction.run(INSERT_LINK, secrets.digest(token), clock.now())
    return f"{store.root_url}/auth/setup?token={token}"


async def has_people(reader: Reader) -> bool:
    """Whether the store has a person who can sign in."""
    return await reader.fetch_one(ANY_PERSON) is not None


async def require_unused_link(store: Store, token: str) -> None:
    """Require a set-up link that can still be used.

    Raises:
        SetupLinkSpent: the link cannot be used.
    """
    oldest_valid = clock.later(clock.now(), seconds=-LINK_VALID_S)
    if await store.database.fetch_one(UNUSED_LINK, secrets.digest(token), oldest_valid) is None:
        raise SetupLinkSpent("this set-up link is used up or expired")


async def use_link(
    transaction: Transaction, token: str, slug: str, name: str, email: str, password_hash: str
) -> queries.Organisation:
    """Create the organisation and its owner, and mark the link as used. If calls are concurrent, exactly one succeeds.

    Raises:
        SetupLinkSpent, InvalidRequest, SlugTaken, EmailTaken: the call failed, and nothing was changed.
    """
    now = clock.now()
    oldest_valid = clock.later(now, seconds=-LINK_VALID_S)
    if not await transaction.run(USE_LINK, secrets.digest(token), now, oldest_valid):
        raise SetupLinkSpent("this set-up link is used up or expired")
    organisation = await organisations.create_organisation(transaction, slug, name)
    await add_person(transaction, email, password_hash)
    await set_role(transaction, organisation.id, email, "owner")
    return organisation
