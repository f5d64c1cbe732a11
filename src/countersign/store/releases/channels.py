"""Channels: the release each is at, and the signed statements about it."""

from typing import NamedTuple

import msgspec

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Reader, Transaction
from countersign.kernel.errors import NotFound
from countersign.store import signing_keys
from countersign.store import signing_keys as signing
from countersign.store.context import Store
from countersign.store.releases.processing import queries as builds
from countersign.updates import trust
from countersign.updates.api_types import ChannelState, ChannelStatement, Envelope

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


async def product_row(reader: Reader, product_id: str) -> Product:
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


class NothingBuilt(NotFound):
    """The channel has no published release that was processed."""

    code = "nothing_built"
    title = "Nothing built"
    resolution = (
        "Ask for another channel, or download a file of a release. Its publisher makes a build of a published release "
        "with the job build.process."
    )


async def state(store: Store, product_id: str, channel: str) -> ChannelState:
    """The channel's signed statement with the keys that lead to it.

    The number is the time in seconds where it can be, so that it goes on rising when the service is restored from a
    backup; a statement lives `statement_ttl_s`, and is renewed when half of that is over.

    Raises:
        NothingBuilt: there is nothing to state.
    """
    product = await product_row(store.database, product_id)
    wanted = await _present(store.database, product, channel)
    known = await statement(store.database, product_id, channel)
    if known is None or known.said != wanted or await _is_outdated(store, product, known):
        known = await _say(store, product, channel)
    chain, rotations = await signing.chain(store.database, product.org_id)
    return ChannelState(msgspec.json.decode(known.envelope, type=Envelope), chain[0], rotations)


async def _present(reader: Reader, product: Product, channel: str) -> str:
    """What there is to say, as JSON: version and builds."""
    newest = await newest_built(reader, product.id, channel)
    if newest is None:
        raise NothingBuilt(f"the channel {channel} has no published release with a build")
    found = await builds.builds_of_release(reader, newest[0])
    return msgspec.json.encode((newest[1], found), order="deterministic").decode()


async def _is_outdated(store: Store, product: Product, known: Said) -> bool:
    """Whether half of its life is over, or another key signs by now."""
    if known.expires_at < clock.later(clock.now(), seconds=store.settings.statement_ttl_s / 2):
        return True
    key = await signing_keys.ensure_key(store, product.org_id)
    return msgspec.json.decode(known.envelope, type=Envelope).signatures[0].keyid != key.public.keyid


async def _say(store: Store, product: Product, channel: str) -> Said:
    await signing_keys.ensure_key(store, product.org_id)
    now = clock.now()
    expires_at = clock.later(now, seconds=store.settings.statement_ttl_s)
    async with store.database.transaction() as transaction:
        counter = await take(transaction, product.id, channel, now // clock.SECOND)
        # Asked again behind the number: who was slow would say with a higher one what was so before.
        wanted = await _present(transaction, product, channel)
        version, found = msgspec.json.decode(wanted, type=tuple[str, dict[str, str]])
        newest = await signing.current_key(transaction, store.master, product.org_id)
        if newest is None:
            raise LookupError(f"the signing key of {product.org_id} was removed while it was read")
        statement = ChannelStatement(
            org=product.org,
            product_id=product.id,
            product=product.slug,
            channel=channel,
            version=version,
            builds=found,
            counter=counter,
            issued_at=clock.rfc3339(now),
            expires_at=clock.rfc3339(expires_at),
        )
        signed = msgspec.json.encode(trust.sign_statement(statement, newest[1])).decode()
        said = Said(counter, wanted, signed, expires_at)
        await say(transaction, product.id, channel, said)
    return said
