"""The service's token-signing keys: made once, kept sealed in the database, shared by every worker and node."""

import asyncio
from collections.abc import Awaitable, Callable

from countersign.kernel import clock
from countersign.kernel.database import versions
from countersign.kernel.database.port import Database, Reader, Transaction
from countersign.kernel.errors import Refused
from countersign.kernel.reencryption import EncryptedColumn
from countersign.kernel.security.encryption import decrypt, encrypt
from countersign.kernel.security.jose import AccessTokens, KeyRing
from countersign.kernel.security.masterkey import MasterKey

NAME = "token-keys"
PURPOSE = "token-keys"
STORED = "SELECT sealed FROM service_key WHERE name = $1"
STORE = "INSERT INTO service_key (name, sealed, created_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
FORGET = "DELETE FROM service_key WHERE name = $1"
REPLACE = "UPDATE service_key SET sealed = $2, created_at = $3 WHERE name = $1 AND sealed = $4"

SEALED = EncryptedColumn(
    table="service_key",
    purpose=PURPOSE,
    page="SELECT sealed, name FROM service_key WHERE name > $2 ORDER BY name LIMIT $1",
    first_key=("",),
    smallest="SELECT sealed FROM service_key WHERE sealed >= $1 ORDER BY sealed LIMIT 1",
    replace="UPDATE service_key SET sealed = $2 WHERE sealed = $1 AND name = $3",
)


class KeysChanged(Refused):
    """The keys were changed by somebody else at the same moment."""

    status = 409
    code = "keys_changed"
    title = "Keys changed"
    resolution = "Look at the keys, and rotate again if it is still needed."


async def token_keys(database: Database, master: MasterKey) -> KeyRing:
    """The ring of signing keys; the first of several starters makes it, the others read it.

    Raises:
        DecryptionFailed: the master key is not the one the ring was sealed with.
    """
    known = await stored_keys(database, master)
    if known is not None:
        return known
    fresh = encrypt(master, KeyRing.new().to_json(), PURPOSE)
    async with database.transaction() as transaction:
        await transaction.run(STORE, NAME, fresh, clock.now())
    made = await stored_keys(database, master)
    if made is None:
        raise LookupError("the token keys were removed while they were read")
    return made


async def stored_keys(reader: Reader, master: MasterKey) -> KeyRing | None:
    """The ring that is stored, if one was made.

    Raises:
        DecryptionFailed: the master key is not the one the ring was sealed with.
    """
    row = await reader.fetch_one(STORED, NAME)
    return None if row is None else KeyRing.from_json(decrypt(master, bytes(row[0]), PURPOSE))


async def forget(transaction: Transaction) -> None:
    """Remove the ring: whoever opens the database next signs with a key of its own."""
    await transaction.run(FORGET, NAME)


async def rotate(database: Database, master: MasterKey, *, drop_previous: bool) -> KeyRing:
    """Make a fresh signing key. Earlier keys stay published until the last token that they signed has ended, unless
    they are dropped as well. Every worker takes the new ring with its next request.

    Raises:
        KeysChanged: another rotation came between.
        DecryptionFailed: the master key is not the one the ring was sealed with.
    """
    await token_keys(database, master)
    async with database.transaction() as transaction:
        row = await transaction.fetch_one(STORED, NAME)
        stored = b"" if row is None else bytes(row[0])
        before = KeyRing.from_json(decrypt(master, stored, PURPOSE))
        ring = KeyRing.new() if drop_previous else before.rotated()
        fresh = encrypt(master, ring.to_json(), PURPOSE)
        if not await transaction.run(REPLACE, NAME, fresh, clock.now(), stored):
            raise KeysChanged("the keys were changed at the same moment")
        await versions.bump(transaction, "identity")
    return ring


async def renew(transaction: Transaction, master: MasterKey) -> None:
    """Put a fresh ring in place of the one that is stored: every token of before has ended.

    Raises:
        DecryptionFailed: the master key is not the one the ring was sealed with.
    """
    if await stored_keys(transaction, master) is None:
        return
    await forget(transaction)
    await transaction.run(STORE, NAME, encrypt(master, KeyRing.new().to_json(), PURPOSE), clock.now())
    await versions.bump(transaction, "identity")


class Watched:
    """The counters of changes, as the store reads them, which bring along the keys of the moment: whoever has read
    the counters signs and verifies with the ring that was stored then. `position` is that of `identity` in them."""

    def __init__(
        self,
        current: Callable[[], Awaitable[tuple[int, ...]]],
        position: int,
        database: Database,
        master: MasterKey,
        tokens: AccessTokens,
    ) -> None:
        self._current = current
        self._position = position
        self._database = database
        self._master = master
        self._tokens = tokens
        self._identity = 0
        self._stored = b""
        self._renewing = asyncio.Lock()

    async def current(self) -> tuple[int, ...]:
        """The counters, never older than the call.

        Raises:
            Unavailable: the database cannot be reached.
            DecryptionFailed: the ring was sealed with a master key this process does not have.
        """
        numbers = await self._current()
        if numbers[self._position] != self._identity:
            async with self._renewing:
                await self._renew()
                self._identity = numbers[self._position]
        return numbers

    async def _renew(self) -> None:
        row = await self._database.fetch_one(STORED, NAME)
        stored = b"" if row is None else bytes(row[0])
        if stored and stored != self._stored:
            self._tokens.use(KeyRing.from_json(decrypt(self._master, stored, PURPOSE)))
            self._stored = stored
