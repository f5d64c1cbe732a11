"""Columns that are encrypted with the master key: finding the keys that they need, and re-encryption with the current
key."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import NamedTuple

from countersign.kernel.database.port import Database, Row, Value
from countersign.kernel.security import encryption
from countersign.kernel.security.encryption import DecryptionFailed
from countersign.kernel.security.masterkey import MasterKey

BATCH_SIZE = 100
"""The number of values in one transaction, which is small so that other writers do not wait for long."""
MAX_KEYS = 100
"""The maximum number of keys that are read from a column, since damaged values may look like many keys."""


@dataclass(frozen=True, slots=True)
class EncryptedColumn:
    """A column of encrypted values, declared next to the code that encrypts them; each service lists its own.

    page        reads at most $1 values with the keys of their rows, in the order of the keys, after the key $2, …
    first_key   sorts before the key of every row
    smallest    reads the smallest value that is not below $1
    replace     replaces the value $1 by $2 in the row with the key $3, …; no effect if the row's value is not $1
    """

    table: str
    purpose: str
    page: str
    first_key: tuple[Value, ...]
    smallest: str
    replace: str


class KeyUsage(NamedTuple):
    """The number of values that are encrypted with one key (empty: unknown), and how many cannot be decrypted."""

    table: str
    key_id: str
    values: int
    unopened: int


async def require_keys(database: Database, columns: Sequence[EncryptedColumn], master: MasterKey) -> None:
    """Check that every key that encrypted a value is present, without decrypting values.

    Raises:
        DecryptionFailed: keys are missing; the refusal names them.
        Unavailable: the database cannot be read.
    """
    needed_keys = {key_id for column in columns for key_id in await _key_ids(database, column)}
    missing = sorted(key_id for key_id in needed_keys if master.named(key_id) is None)
    if missing:
        raise encryption.missing_keys(missing, master)


async def _key_ids(database: Database, column: EncryptedColumn) -> list[str]:
    """List the keys that encrypted values of the column. One read for each key suffices, however many values there are:
    it skips from the smallest value of one key to the next key."""
    key_ids: list[str] = []
    position = b""
    for _ in range(MAX_KEYS):
        rows = await database.scan(column.smallest, position)
        if not rows:
            break
        value = bytes(rows[0][0])
        key_id = encryption.encryption_key_id(value)
        if key_id is None:
            position = value + b"\0"
            continue
        key_ids.append(key_id)
        position = encryption.upper_bound_of_key(key_id)
    return key_ids


async def key_usage(database: Database, column: EncryptedColumn, master: MasterKey) -> list[KeyUsage]:
    """Decrypt every value; returns the counts for each key.

    Raises:
        Unavailable: the database cannot be read.
    """
    counts: dict[str, tuple[int, int]] = {}
    async with aclosing(_pages(database, column)) as pages:
        async for rows in pages:
            for value, *_ in rows:
                key_id = encryption.encryption_key_id(bytes(value)) or ""
                values, unopened = counts.get(key_id, (0, 0))
                is_open = _decrypt_or_none(bytes(value), column, master) is not None
                counts[key_id] = (values + 1, unopened + (not is_open))
    return [KeyUsage(column.table, key_id, *counts_of_key) for key_id, counts_of_key in sorted(counts.items())]


async def reencrypt(database: Database, column: EncryptedColumn, master: MasterKey) -> int:
    """Re-encrypt the values of all other keys with the current key; returns the number of these values. Values that
    cannot be decrypted, or that change concurrently, are left unchanged. After an interruption, the next call
    continues.

    Raises:
        StorageFull, Unavailable: the database cannot be written.
    """
    changed_rows = 0
    async with aclosing(_pages(database, column)) as pages:
        async for rows in pages:
            anew = [each for row in rows if (each := _replacement(row, column, master)) is not None]
            if anew:
                async with database.transaction() as transaction:
                    for values in anew:
                        changed_rows += await transaction.run(column.replace, *values)
    return changed_rows


async def _pages(database: Database, column: EncryptedColumn) -> AsyncGenerator[list[Row]]:
    key = column.first_key
    while rows := await database.fetch(column.page, BATCH_SIZE, *key):
        yield rows
        _, *last_key = rows[-1]
        key = tuple(last_key)


def _replacement(row: Row, column: EncryptedColumn, master: MasterKey) -> tuple[Value, ...] | None:
    """Return the parameters of `replace` for the row, or None if its value has the current key or cannot be
    decrypted."""
    ciphertext, *key = row
    if encryption.encryption_key_id(bytes(ciphertext)) == master.current.id:
        return None
    plaintext = _decrypt_or_none(bytes(ciphertext), column, master)
    return None if plaintext is None else (ciphertext, encryption.encrypt(master, plaintext, column.purpose), *key)


def _decrypt_or_none(value: bytes, column: EncryptedColumn, master: MasterKey) -> bytes | None:
    try:
        return encryption.decrypt(master, value, column.purpose)
    except DecryptionFailed:
        return None
