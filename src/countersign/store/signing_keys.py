"""The keys that organisations sign builds and channels with: /org/signing-keys; requires admin:org."""

import msgspec

from countersign.kernel import clock
from countersign.kernel.database.port import Reader, Transaction
from countersign.kernel.errors import Refused
from countersign.kernel.http import response
from countersign.kernel.http.response import Response
from countersign.kernel.http.routing import Nothing, route
from countersign.kernel.reencryption import EncryptedColumn
from countersign.kernel.security.encryption import decrypt, encrypt
from countersign.kernel.security.masterkey import MasterKey
from countersign.store import webhook_events
from countersign.store.auth.callers import StoreRequest
from countersign.store.auth.organisations import organisation_of
from countersign.store.auth.schemas import OrgQuery
from countersign.store.context import Store
from countersign.updates import trust
from countersign.updates.api_types import Envelope, PublicKey
from countersign.updates.dsse import SigningKey, new_signing_key, signing_key

PURPOSE = "signing-key"

SELECT_CHAIN = "SELECT keyid, public, rotation FROM signing_key WHERE org_id = $1 ORDER BY number"
SELECT_CURRENT = "SELECT number, sealed FROM signing_key WHERE org_id = $1 ORDER BY number DESC LIMIT 1"
ADD = """
    INSERT INTO signing_key (org_id, number, keyid, public, sealed, rotation, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT DO NOTHING
"""

ENCRYPTED_COLUMN = EncryptedColumn(
    table="signing_key",
    purpose=PURPOSE,
    page="""
    SELECT sealed, org_id, number FROM signing_key
    WHERE (org_id, number) > ($2, $3)
    ORDER BY org_id, number
    LIMIT $1
""",
    first_key=("", 0),
    smallest="SELECT sealed FROM signing_key WHERE sealed >= $1 ORDER BY sealed LIMIT 1",
    replace="UPDATE signing_key SET sealed = $2 WHERE sealed = $1 AND org_id = $3 AND number = $4",
)


async def chain(reader: Reader, org_id: str) -> tuple[list[PublicKey], list[Envelope]]:
    """The organisation's keys, oldest first, and the rotations between them. Without a key, both lists are empty."""
    rows = await reader.fetch(SELECT_CHAIN, org_id)
    rotations = [msgspec.json.decode(rotation, type=Envelope) for _, _, rotation in rows if rotation is not None]
    return [PublicKey(keyid, public_bytes) for keyid, public_bytes, _ in rows], rotations


async def current_key(reader: Reader, master: MasterKey, org_id: str) -> tuple[int, SigningKey] | None:
    """The current signing key, with its number.

    Raises:
        DecryptionFailed: the master key is not the one that encrypted the key.
    """
    row = await reader.fetch_one(SELECT_CURRENT, org_id)
    return None if row is None else (row[0], signing_key(decrypt(master, bytes(row[1]), PURPOSE)))


async def add(
    transaction: Transaction, master: MasterKey, org_id: str, number: int, key: SigningKey, rotation: Envelope | None
) -> bool:
    """Append a key to the chain. Return False if a concurrent call appended a key first."""
    rotation_json = None if rotation is None else msgspec.json.encode(rotation).decode()
    encrypted_key = encrypt(master, key.private, PURPOSE)
    row = (org_id, number, key.public.keyid, key.public.public, encrypted_key, rotation_json, clock.now())
    is_added = bool(await transaction.run(ADD, *row))
    if is_added:
        await webhook_events.key_added(transaction, org_id, key.public.keyid)
    return is_added


class KeyJustRotated(Refused):
    """A concurrent request rotated the key first."""

    status = 409
    code = "key_just_rotated"
    title = "Key just rotated"
    resolution = "List the keys, and rotate again if it is still needed."


async def ensure_key(store: Store, org_id: str) -> SigningKey:
    """The organisation's key, created if it has none; concurrent calls get the same key.

    Raises:
        DecryptionFailed: the master key is not the one that encrypted the key.
    """
    existing_key = await current_key(store.database, store.master, org_id)
    if existing_key is None:
        async with store.database.transaction() as transaction:
            await add(transaction, store.master, org_id, 1, new_signing_key(), None)
        existing_key = await current_key(store.database, store.master, org_id)
    if existing_key is None:
        raise LookupError(f"the signing key of {org_id} was removed while it was read")
    return existing_key[1]


async def rotate(transaction: Transaction, store: Store, org_id: str, slug: str) -> PublicKey:
    """Rotate to a new key, signed by the current one; return the public key.

    Raises:
        KeyJustRotated: a concurrent call rotated the key first.
        DecryptionFailed: the master key is not the one that encrypted the key.
    """
    new_key = new_signing_key()
    existing_key = await current_key(transaction, store.master, org_id)
    number, rotation = 1, None
    if existing_key is not None:
        number = existing_key[0] + 1
        rotation = trust.sign_rotation(slug, existing_key[1], new_key.public, clock.rfc3339(clock.now()))
    if not await add(transaction, store.master, org_id, number, new_key, rotation):
        raise KeyJustRotated("a concurrent rotation was first")
    return new_key.public


ADMIN = "admin:org"


async def list_signing_keys(call: StoreRequest[OrgQuery, Nothing]) -> Response:
    """List the organisation's signing keys, oldest first; the last key is the current key."""
    org = await organisation_of(call.context.database, call.caller, call.query.org, ADMIN)
    public_keys, _ = await chain(call.context.database, org.id)
    return response.json(public_keys)


async def rotate_signing_key(call: StoreRequest[OrgQuery, Nothing]) -> Response:
    """Rotate to a new key, which the previous key signs. Clients that trust the previous key accept the new key
    automatically."""
    org = await organisation_of(call.transaction, call.caller, call.query.org, ADMIN)
    return response.json(await rotate(call.transaction, call.context, org.id, org.slug), 201)


ROUTES = (
    route("GET", "/org/signing-keys", list_signing_keys, query=OrgQuery, answers={200: list[PublicKey]}, scope=ADMIN),
    route(
        "POST",
        "/org/signing-keys",
        rotate_signing_key,
        query=OrgQuery,
        answers={201: PublicKey},
        refusals=(KeyJustRotated,),
        scope=ADMIN,
        writes=True,
    ),
)
