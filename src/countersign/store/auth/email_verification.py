"""Links by e-mail that prove an address: their table, the e-mails, and what opening one does."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple, TypeAlias

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Reader, Transaction
from countersign.kernel.errors import NotFound
from countersign.kernel.http.rate_limit import RateLimited
from countersign.kernel.mail.queue import Email
from countersign.kernel.security import secrets
from countersign.store.auth import people, queries, sessions, sign_in_pages
from countersign.store.auth.sessions import normal_email
from countersign.store.context import Store


class Link(NamedTuple):
    """What a mailed link proves, and where it leads on."""

    email: str
    return_to: str


INSERT_LINK = """
    INSERT INTO email_proof (token_hash, email, return_to, created_at, expires_at, used_at)
    VALUES ($1, $2, $3, $4, $5, NULL)
"""
UNUSED_LINK = """
    SELECT email, return_to FROM email_proof WHERE token_hash = $1 AND used_at IS NULL AND expires_at > $2
"""
# Links of one address are locked together and in one order: two of them used at once wait for each other.
LOCK_LINKS = """
    UPDATE email_proof SET used_at = used_at WHERE email = (SELECT email FROM email_proof WHERE token_hash = $1)
"""
USE_LINK = """
    UPDATE email_proof SET used_at = $2 WHERE token_hash = $1 AND used_at IS NULL AND expires_at > $2
"""
LINK = "SELECT email, return_to FROM email_proof WHERE token_hash = $1"
END_LINKS = "UPDATE email_proof SET used_at = $2 WHERE email = $1 AND used_at IS NULL"
END_EVERY_LINK = "UPDATE email_proof SET used_at = $1 WHERE used_at IS NULL"
DELETE_OLD_LINKS = "DELETE FROM email_proof WHERE expires_at <= $1"


async def add(transaction: Transaction, token_hash: bytes, link: Link, ttl_s: int) -> None:
    """Keep a link that works for `ttl_s` seconds; of its token only the hash."""
    now = clock.now()
    await transaction.run(INSERT_LINK, token_hash, link.email, link.return_to, now, clock.later(now, seconds=ttl_s))


async def unused(reader: Reader, token_hash: bytes) -> Link | None:
    """The link, while it can be used."""
    row = await reader.fetch_one(UNUSED_LINK, token_hash, clock.now())
    return None if row is None else Link(*row)


async def use(transaction: Transaction, token_hash: bytes) -> Link | None:
    """The link, spent by this call together with every other link of its address; None when it cannot be used. Of
    many calls one gets it."""
    now: Instant = clock.now()
    await transaction.run(LOCK_LINKS, token_hash)
    if not await transaction.run(USE_LINK, token_hash, now):
        return None
    row = await transaction.fetch_one(LINK, token_hash)
    if row is None:
        return None
    link = Link(*row)
    await transaction.run(END_LINKS, link.email, now)
    return link


async def forget_old(transaction: Transaction) -> int:
    """Remove every link that has expired; how many there were."""
    return await transaction.run(DELETE_OLD_LINKS, clock.now())


async def end_every_link(transaction: Transaction) -> None:
    """Nothing that was mailed proves an address any more."""
    await transaction.run(END_EVERY_LINK, clock.now())


MAILS_OF_ADDRESS = 5
MAILS_FOR_CLIENT = 20
HOUR_S = 3_600
PREFIX = "cep"

_NOT_YOU = "Was it not you? Then nothing has happened, and nothing needs to be done."


async def ask_sign_up(store: Store, client: str, email: str, onwards: str) -> None:
    """Send the address, once the answer is out, a link to open an account or word that it has one. `client` is the
    IP address that asks.

    Raises:
        RateLimited: 5 mails to this address in an hour, or 20 for this client.
        Unavailable: too many letters are waiting.
    """
    await _count(store, client, email)
    store.mail.enqueue(partial(_sign_up_letter, store, Link(normal_email(email), sign_in_pages.local(onwards))))


async def ask_reset(store: Store, client: str, email: str, onwards: str) -> None:
    """Send the address, once the answer is out, a link to a new password; nothing when nobody has the address.

    Raises:
        RateLimited, Unavailable: as `ask_sign_up`.
    """
    await _count(store, client, email)
    store.mail.enqueue(partial(_reset_letter, store, Link(normal_email(email), sign_in_pages.local(onwards))))


async def _count(store: Store, client: str, email: str) -> None:
    """Count a letter, whether or not it will be written: the limit tells nothing about who is known (attack T43)."""
    limits = ((f"mail-for\0{client}", MAILS_FOR_CLIENT), (f"mail-to\0{normal_email(email)}", MAILS_OF_ADDRESS))
    for key, limit in limits:
        standing = await store.counters.hit(key, limit, HOUR_S)
        if not standing.allowed:
            wait_s = max(1, standing.reset_s)
            text = f"{limit} letters in an hour were asked for already; wait {-(-wait_s // 60)} minutes"
            raise RateLimited(text, standing)


async def _sign_up_letter(store: Store, link: Link) -> Email:
    person = await queries.person_with_email(store.database, link.email)
    name = store.settings.resource_name
    if person is not None and person.password_hash is not None:
        text = (
            f"Somebody asked for an account at {name} with this address. There is one already.\n\n"
            f"Sign in:\n{store.root_url}{sign_in_pages.through('/auth/signin', link.return_to)}\n\n"
            f"Choose a new password:\n{store.root_url}{sign_in_pages.through('/auth/reset', link.return_to)}\n\n"
            f"{_NOT_YOU}\n"
        )
        return Email(link.email, f"You have an account at {name}", text)
    address = await _new_link(store, link)
    text = (
        f"To open your account at {name}, choose a password here:\n{address}\n\n"
        f"{_lasting(store)}\n\n{_NOT_YOU} Do not open the link then.\n"
    )
    return Email(link.email, f"Open your account at {name}", text)


async def _reset_letter(store: Store, link: Link) -> Email | None:
    if await queries.person_with_email(store.database, link.email) is None:
        return None
    name = store.settings.resource_name
    address = await _new_link(store, link)
    text = (
        f"To choose a new password at {name}, open:\n{address}\n\n"
        f"{_lasting(store)} The old password works until then.\n\n{_NOT_YOU} Do not open the link then.\n"
    )
    return Email(link.email, f"Choose a new password at {name}", text)


async def _new_link(store: Store, link: Link) -> str:
    token = secrets.new_secret(PREFIX)
    async with store.database.transaction() as transaction:
        await add(transaction, secrets.digest(token), link, store.settings.mail_link_ttl_s)
    return f"{store.root_url}/auth/prove?token={token}"


def _lasting(store: Store) -> str:
    return f"The link works once, for {max(1, store.settings.mail_link_ttl_s // 60)} minutes."


FirstProof: TypeAlias = Callable[[Transaction, str], Awaitable[None]]
"""Ends, in the proof's own transaction, whatever was bound to a person (by id) before anybody had proven the address:
it may have been bound by a stranger (attack T34: pre-hijacking)."""


class Proven(NamedTuple):
    """A new session's cookie value, and the path to go on to."""

    session: str
    return_to: str


class LinkSpent(NotFound):
    """The mailed link was used, has expired, was replaced by another one's use, or never was one."""

    resolution = "Ask for another one."


async def require_unused(store: Store, token: str) -> Link:
    """What a link would prove; looking changes nothing (attack T28: link scanners).

    Raises:
        LinkSpent: it can no longer be used.
    """
    link = await unused(store.database, secrets.digest(token))
    if link is None:
        raise LinkSpent("this link is used up or expired")
    return link


async def prove(store: Store, token: str, password_hash: str, first_proof: FirstProof) -> Proven:
    """Spend the link, and open a session of the address's person with the new password: of many calls one succeeds.

    The person is made now if there is none. Sessions opened with an old password end. When nobody had proven the
    address before, `first_proof` is called.

    Raises:
        LinkSpent: it can no longer be used; nothing is changed then.
    """
    async with store.database.transaction() as transaction:
        link = await use(transaction, secrets.digest(token))
        if link is None:
            raise LinkSpent("this link is used up or expired")
        person_id, is_first = await people.person_to_prove(transaction, link.email)
        if is_first:
            await first_proof(transaction, person_id)
        await people.set_password(transaction, person_id, password_hash)
        session = await sessions.start(transaction, person_id, store.settings.session_ttl_s)
    return Proven(session, link.return_to)
