"""The database's secret, from which all keys of the service are derived.

The secret is created once and stored encrypted under the master key.
"""

from countersign.kernel import ids
from countersign.kernel.database.port import Database
from countersign.kernel.reencryption import EncryptedColumn
from countersign.kernel.security.encryption import decrypt, encrypt
from countersign.kernel.security.masterkey import MasterKey
from countersign.records.audit.chain import Chain

NAME = "secret"
PURPOSE = "records/secret"
SECRET_BYTES = 32

_STORED = "SELECT sealed FROM service_key WHERE name = $1"
_STORE = "INSERT INTO service_key (name, sealed) VALUES ($1, $2) ON CONFLICT DO NOTHING"

ENCRYPTED_COLUMN = EncryptedColumn(
    table="service_key",
    purpose=PURPOSE,
    page="SELECT sealed, name FROM service_key WHERE name > $2 ORDER BY name LIMIT $1",
    first_key=("",),
    smallest="SELECT sealed FROM service_key WHERE sealed >= $1 ORDER BY sealed LIMIT 1",
    replace="UPDATE service_key SET sealed = $2 WHERE sealed = $1 AND name = $3",
)


async def secret(database: Database, master: MasterKey) -> bytes:
    """Return the secret. If several processes start at the same time, one of them creates the secret, and the others
    read it.

    Raises:
        DecryptionFailed: the secret was encrypted with another master key.
    """
    row = await database.fetch_one(_STORED, NAME)
    if row is None:
        new_secret = ids.random_bytes(SECRET_BYTES)
        async with database.transaction() as transaction:
            if await transaction.run(_STORE, NAME, encrypt(master, new_secret, PURPOSE)):
                # Start the audit together with the secret, because the heads of its empty chains must be signed only
                # once.
                await Chain(database.dialect, new_secret).create_lanes(transaction)
            row = await transaction.fetch_one(_STORED, NAME)
    if row is None:
        raise LookupError("the secret was removed while it was read")
    return decrypt(master, bytes(row[0]), PURPOSE)


async def require_readable(database: Database, master: MasterKey) -> None:
    """Require that the master key decrypts the secret, if the secret exists. This function never creates a secret.

    Raises:
        DecryptionFailed: the secret was encrypted with another master key.
    """
    row = await database.fetch_one(_STORED, NAME)
    if row is not None:
        decrypt(master, bytes(row[0]), PURPOSE)
