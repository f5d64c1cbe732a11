"""The one-time set-up link that makes the first organisation and its owner, without demo data."""

from countersign.distribution.context import Store
from countersign.distribution.identity import organisations, people, queries
from countersign.kernel import clock
from countersign.kernel.database.port import Reader, Transaction
from countersign.kernel.errors import NotFound
from countersign.kernel.security import secrets

ANY_PERSON = "SELECT 1 FROM person LIMIT 1"
FORGET_LINKS = "DELETE FROM setup_link WHERE used_at IS NULL"
INSERT_LINK = "INSERT INTO setup_link (token_hash, created_at, used_at) VALUES ($1, $2, NULL)"
UNUSED_LINK = """
    SELECT 1 FROM setup_link
    WHERE token_hash = $1 AND used_at IS NULL AND created_at > $2 AND NOT EXISTS (SELECT 1 FROM person)
"""
USE_LINK = """
    UPDATE setup_link SET used_at = $2
    WHERE token_hash = $1 AND used_at IS NULL AND created_at > $3 AND NOT EXISTS (SELECT 1 FROM person)
"""
VALID_S = 24 * 3600


class LinkSpent(NotFound):
    """The set-up link was used, has expired, never was one, or a first person exists already."""

    resolution = "Start the service again on its empty database: it prints a new link."


async def first_link(store: Store) -> str | None:
    """A fresh set-up address while the store has no person; None when it has. Older unused links end."""
    if await has_people(store.database):
        return None
    token = secrets.new_secret("cls")
    async with store.database.transaction() as transaction:
        await transaction.run(FORGET_LINKS)
        await transaction.run(INSERT_LINK, secrets.digest(token), clock.now())
    return f"{store.root_url}/auth/setup?token={token}"


async def has_people(reader: Reader) -> bool:
    """Whether the store was set up, so that a person can sign in."""
    return await reader.fetch_one(ANY_PERSON) is not None


async def require_unused(store: Store, token: str) -> None:
    """Insist that a link can still be used.

    Raises:
        LinkSpent: it cannot.
    """
    oldest = clock.later(clock.now(), seconds=-VALID_S)
    if await store.database.fetch_one(UNUSED_LINK, secrets.digest(token), oldest) is None:
        raise LinkSpent("this set-up link is used up or expired")


async def use_link(
    transaction: Transaction, token: str, slug: str, name: str, email: str, password_hash: str
) -> queries.Organisation:
    """Make the organisation and its owner, and spend the link: exactly one call of many succeeds.

    Raises:
        LinkSpent, InvalidRequest, SlugTaken, EmailTaken: nothing is made then.
    """
    now = clock.now()
    oldest = clock.later(now, seconds=-VALID_S)
    if not await transaction.run(USE_LINK, secrets.digest(token), now, oldest):
        raise LinkSpent("this set-up link is used up or expired")
    organisation = await organisations.create_organisation(transaction, slug, name)
    await people.add_person(transaction, email, password_hash)
    await people.set_role(transaction, organisation.id, email, "owner")
    return organisation
