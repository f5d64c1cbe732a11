"""SQL of mailed links: each proves one address, once, for a while."""

from typing import NamedTuple

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Reader, Transaction


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
