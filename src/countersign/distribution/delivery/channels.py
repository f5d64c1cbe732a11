"""What a channel is at, signed: said anew when it changes, and before it expires."""

import msgspec

from countersign.distribution.context import Store
from countersign.distribution.delivery import queries
from countersign.distribution.delivery.queries import Product, Said
from countersign.distribution.processing import queries as builds
from countersign.distribution.signing import keys
from countersign.distribution.signing import queries as signing
from countersign.kernel import clock
from countersign.kernel.database.port import Reader
from countersign.kernel.errors import NotFound
from countersign.updates import trust
from countersign.updates.wire import ChannelState, Envelope, Statement


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
    product = await queries.product(store.database, product_id)
    wanted = await _present(store.database, product, channel)
    known = await queries.statement(store.database, product_id, channel)
    if known is None or known.said != wanted or await _is_outdated(store, product, known):
        known = await _say(store, product, channel)
    chain, rotations = await signing.chain(store.database, product.org_id)
    return ChannelState(msgspec.json.decode(known.envelope, type=Envelope), chain[0], rotations)


async def _present(reader: Reader, product: Product, channel: str) -> str:
    """What there is to say, as JSON: version and builds."""
    newest = await queries.newest_built(reader, product.id, channel)
    if newest is None:
        raise NothingBuilt(f"the channel {channel} has no published release with a build")
    found = await builds.builds_of_release(reader, newest[0])
    return msgspec.json.encode((newest[1], found), order="deterministic").decode()


async def _is_outdated(store: Store, product: Product, known: Said) -> bool:
    """Whether half of its life is over, or another key signs by now."""
    if known.expires_at < clock.later(clock.now(), seconds=store.settings.statement_ttl_s / 2):
        return True
    key = await keys.current(store, product.org_id)
    return msgspec.json.decode(known.envelope, type=Envelope).signatures[0].keyid != key.public.keyid


async def _say(store: Store, product: Product, channel: str) -> Said:
    await keys.current(store, product.org_id)
    now = clock.now()
    expires_at = clock.later(now, seconds=store.settings.statement_ttl_s)
    async with store.database.transaction() as transaction:
        counter = await queries.take(transaction, product.id, channel, now // clock.SECOND)
        # Asked again behind the number: who was slow would say with a higher one what was so before.
        wanted = await _present(transaction, product, channel)
        version, found = msgspec.json.decode(wanted, type=tuple[str, dict[str, str]])
        newest = await signing.newest(transaction, store.master, product.org_id)
        if newest is None:
            raise LookupError(f"the signing key of {product.org_id} was removed while it was read")
        statement = Statement(
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
        signed = msgspec.json.encode(trust.state(statement, newest[1])).decode()
        said = Said(counter, wanted, signed, expires_at)
        await queries.say(transaction, product.id, channel, said)
    return said
