"""The letters that account pages ask for: a link that proves the address, or that there is an account already."""

from functools import partial

from countersign.distribution.accounts import queries as links
from countersign.distribution.accounts.queries import Link
from countersign.distribution.context import Store
from countersign.distribution.identity import queries, return_to
from countersign.distribution.identity.sessions import normal_email
from countersign.kernel.http.rate_limit import RateLimited
from countersign.kernel.mail.queue import Email
from countersign.kernel.security import secrets

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
    store.mail.enqueue(partial(_sign_up_letter, store, Link(normal_email(email), return_to.local(onwards))))


async def ask_reset(store: Store, client: str, email: str, onwards: str) -> None:
    """Send the address, once the answer is out, a link to a new password; nothing when nobody has the address.

    Raises:
        RateLimited, Unavailable: as `ask_sign_up`.
    """
    await _count(store, client, email)
    store.mail.enqueue(partial(_reset_letter, store, Link(normal_email(email), return_to.local(onwards))))


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
            f"Sign in:\n{store.root_url}{return_to.through('/auth/signin', link.return_to)}\n\n"
            f"Choose a new password:\n{store.root_url}{return_to.through('/auth/reset', link.return_to)}\n\n"
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
        await links.add(transaction, secrets.digest(token), link, store.settings.mail_link_ttl_s)
    return f"{store.root_url}/auth/prove?token={token}"


def _lasting(store: Store) -> str:
    return f"The link works once, for {max(1, store.settings.mail_link_ttl_s // 60)} minutes."
