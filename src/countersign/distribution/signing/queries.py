"""SQL of signing keys: each organisation's chain, from its first key to the one that signs now."""

import msgspec

from countersign.distribution import events
from countersign.kernel import clock
from countersign.kernel.database.port import Reader, Transaction
from countersign.kernel.reencryption import EncryptedColumn
from countersign.kernel.security.encryption import decrypt, encrypt
from countersign.kernel.security.masterkey import MasterKey
from countersign.updates.envelope import SigningKey, signing_key
from countersign.updates.wire import Envelope, PublicKey

PURPOSE = "signing-key"

CHAIN = "SELECT keyid, public, rotation FROM signing_key WHERE org_id = $1 ORDER BY number"
NEWEST = "SELECT number, sealed FROM signing_key WHERE org_id = $1 ORDER BY number DESC LIMIT 1"
ADD = """
    INSERT INTO signing_key (org_id, number, keyid, public, sealed, rotation, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT DO NOTHING
"""

SEALED = EncryptedColumn(
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
    """The organisation's keys, oldest first, and the rotations between them; both empty before its first key."""
    rows = await reader.fetch(CHAIN, org_id)
    rotations = [msgspec.json.decode(rotation, type=Envelope) for _, _, rotation in rows if rotation is not None]
    return [PublicKey(keyid, public) for keyid, public, _ in rows], rotations


async def newest(reader: Reader, master: MasterKey, org_id: str) -> tuple[int, SigningKey] | None:
    """The number and the key that sign now.

    Raises:
        DecryptionFailed: the master key is not the one the key was sealed with.
    """
    row = await reader.fetch_one(NEWEST, org_id)
    return None if row is None else (row[0], signing_key(decrypt(master, bytes(row[1]), PURPOSE)))


async def add(
    transaction: Transaction, master: MasterKey, org_id: str, number: int, key: SigningKey, rotation: Envelope | None
) -> bool:
    """Put a key at the end of the chain; False when somebody else put theirs there."""
    said = None if rotation is None else msgspec.json.encode(rotation).decode()
    sealed = encrypt(master, key.private, PURPOSE)
    row = (org_id, number, key.public.keyid, key.public.public, sealed, said, clock.now())
    is_added = bool(await transaction.run(ADD, *row))
    if is_added:
        await events.key_added(transaction, org_id, key.public.keyid)
    return is_added
