"""The key an organisation signs with: made at its first signature, followed by another when it is rotated."""

from countersign.distribution.context import Store
from countersign.distribution.signing import queries
from countersign.kernel import clock
from countersign.kernel.database.port import Transaction
from countersign.kernel.errors import Refused
from countersign.updates import trust
from countersign.updates.envelope import SigningKey, new_signing_key
from countersign.updates.wire import PublicKey


class KeyJustRotated(Refused):
    """Two rotations came at the same moment; one of them counts."""

    status = 409
    code = "key_just_rotated"
    title = "Key just rotated"
    resolution = "Look at the keys, and rotate again if it is still needed."


async def current(store: Store, org_id: str) -> SigningKey:
    """The organisation's key, made now if it has none; of several that ask first, all get the same.

    Raises:
        DecryptionFailed: the master key is not the one the key was sealed with.
    """
    known = await queries.newest(store.database, store.master, org_id)
    if known is None:
        async with store.database.transaction() as transaction:
            await queries.add(transaction, store.master, org_id, 1, new_signing_key(), None)
        known = await queries.newest(store.database, store.master, org_id)
    if known is None:
        raise LookupError(f"the signing key of {org_id} was removed while it was read")
    return known[1]


async def rotate(transaction: Transaction, store: Store, org_id: str, slug: str) -> PublicKey:
    """Name a fresh key by the present one, and sign with it from now on; the fresh key's public half.

    Raises:
        KeyJustRotated: another rotation came between.
        DecryptionFailed: the master key is not the one the key was sealed with.
    """
    fresh = new_signing_key()
    known = await queries.newest(transaction, store.master, org_id)
    number, rotation = 1, None
    if known is not None:
        number = known[0] + 1
        rotation = trust.rotate(slug, known[1], fresh.public, clock.rfc3339(clock.now()))
    if not await queries.add(transaction, store.master, org_id, number, fresh, rotation):
        raise KeyJustRotated("another rotation came at the same moment")
    return fresh.public
