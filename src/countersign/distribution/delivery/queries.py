"""SQL of deliveries: which release a channel is at, and the statements that say so."""

from typing import NamedTuple

from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Reader, Transaction

NEWEST_BUILT = """
    SELECT r.id, r.version
    FROM release r
    WHERE r.product_id = $1 AND r.channel = $2 AND r.status = 'published'
      AND EXISTS (SELECT 1 FROM build b WHERE b.release_id = r.id)
    ORDER BY r.published_at DESC, r.sort_key DESC, r.id DESC
    LIMIT 1
"""
STATEMENT = "SELECT counter, said, envelope, expires_at FROM channel_statement WHERE product_id = $1 AND channel = $2"
# The row is held until the transaction ends: whoever comes second counts on from the first.
TAKE = """
    INSERT INTO channel_statement (product_id, channel, counter, said, envelope, expires_at)
    VALUES ($1, $2, $3, '', '', 0)
    ON CONFLICT (product_id, channel) DO UPDATE SET counter = CASE
        WHEN excluded.counter > channel_statement.counter THEN excluded.counter
        ELSE channel_statement.counter + 1
    END
"""
SAY = """
    UPDATE channel_statement SET said = $3, envelope = $4, expires_at = $5
    WHERE product_id = $1 AND channel = $2
"""
PRODUCT = """
    SELECT p.id, p.slug, o.id, o.slug
    FROM product p
    JOIN organisation o ON o.id = p.org_id
    WHERE p.id = $1
"""
RELEASE = "SELECT id, status FROM release WHERE product_id = $1 AND version = $2"


class Product(NamedTuple):
    """A product and its organisation, by id and slug."""

    id: str
    slug: str
    org_id: str
    org: str


class Said(NamedTuple):
    """A stored statement: its counter, what it says beside number and dates, the envelope, and when it expires."""

    counter: int
    said: str
    envelope: str
    expires_at: Instant


async def product(reader: Reader, product_id: str) -> Product:
    """The product of a known id."""
    row = await reader.fetch_one(PRODUCT, product_id)
    if row is None:
        raise LookupError(f"no product {product_id}")
    return Product(*row)


async def newest_built(reader: Reader, product_id: str, channel: str) -> tuple[str, str] | None:
    """Id and version of the newest published release of the channel that has a build."""
    row = await reader.fetch_one(NEWEST_BUILT, product_id, channel)
    return None if row is None else (row[0], row[1])


async def release(reader: Reader, product_id: str, version: str) -> tuple[str, str] | None:
    """Id and status of a release."""
    row = await reader.fetch_one(RELEASE, product_id, version)
    return None if row is None else (row[0], row[1])


async def statement(reader: Reader, product_id: str, channel: str) -> Said | None:
    """What was said of the channel last."""
    row = await reader.fetch_one(STATEMENT, product_id, channel)
    return None if row is None else Said(*row)


async def take(transaction: Transaction, product_id: str, channel: str, least: int) -> int:
    """The number of the next statement: above every one before, and at least `least`."""
    await transaction.run(TAKE, product_id, channel, least)
    row = await transaction.fetch_one(STATEMENT, product_id, channel)
    if row is None:
        raise LookupError("a row that is held is gone")
    return row[0]


async def say(transaction: Transaction, product_id: str, channel: str, said: Said) -> None:
    """Keep the statement."""
    await transaction.run(SAY, product_id, channel, said.said, said.envelope, said.expires_at)
