"""The service's token-signing keys: made once, kept sealed in the database, shared by every worker and node."""

from countersign.kernel import clock
from countersign.kernel.database.port import Database
from countersign.kernel.security.jose import KeyRing
from countersign.kernel.security.masterkey import MasterKey
from countersign.kernel.security.sealed import seal, unseal

NAME = "token-keys"
PURPOSE = "token-keys"
STORED = "SELECT sealed FROM service_key WHERE name = $1"
STORE = "INSERT INTO service_key (name, sealed, created_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"


async def token_keys(database: Database, master: MasterKey) -> KeyRing:
    """The ring of signing keys; the first of several starters makes it, the others read it.

    Raises:
        CannotUnseal: the master key is not the one the ring was sealed with.
    """
    row = await database.fetch_one(STORED, NAME)
    if row is None:
        fresh = seal(master, KeyRing.new().to_json(), PURPOSE)
        async with database.transaction() as transaction:
            await transaction.run(STORE, NAME, fresh, clock.now())
            row = await transaction.fetch_one(STORED, NAME)
    if row is None:
        raise LookupError("the token keys were removed while they were read")
    return KeyRing.from_json(unseal(master, bytes(row[0]), PURPOSE))
