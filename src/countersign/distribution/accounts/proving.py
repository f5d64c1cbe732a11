"""What happens when somebody opens a mailed link and chooses a password: the address is proven, the account theirs."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeAlias

from countersign.distribution.accounts import queries
from countersign.distribution.accounts.queries import Link
from countersign.distribution.context import Store
from countersign.distribution.identity import people, sessions
from countersign.kernel.database.port import Transaction
from countersign.kernel.errors import NotFound
from countersign.kernel.security import secrets

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
    link = await queries.unused(store.database, secrets.digest(token))
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
        link = await queries.use(transaction, secrets.digest(token))
        if link is None:
            raise LinkSpent("this link is used up or expired")
        person_id, is_first = await people.person_to_prove(transaction, link.email)
        if is_first:
            await first_proof(transaction, person_id)
        await people.set_password(transaction, person_id, password_hash)
        session = await sessions.start(transaction, person_id, store.settings.session_ttl_s)
    return Proven(session, link.return_to)
