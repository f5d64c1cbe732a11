"""Database columns that are encrypted with the master key. This module finds the keys that the values need, and
re-encrypts the values with the current key."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import NamedTuple

from countersign.kernel.database.port import Database, Row, Value
from countersign.kernel.security import encryption
from countersign.kernel.security.encryption import DecryptionFailed
from countersign.kernel.security.masterkey import MasterKey

BATCH_SIZE = 100
"""The maximum number of values in one transaction. It is small, so that other writers do not wait for long."""
MAX_KEYS = 100
"""The maximum number of keys that are read from a column. Damaged values may look like values of many keys."""


@dataclass(frozen=True, slots=True)
class EncryptedColumn:
    """A column of encrypted values. It is declared next to the code that encrypts the values; each service lists its
    columns. The statements use the key of the row, not the key of the encryption.

    page        reads at most $1 values, each with the key of its row, in the order of the keys, after the key $2, …
    first_key   is smaller than the key of every row
    smallest    reads the smallest value that is not smaller than $1
    replace     sets the value $2 in the row with the key $3, … if the row's value is still $1
    """

    table: str
    purpose: str
    page: str
    first_key: tuple[Value, ...]
    smallest: str
    replace: str


class KeyUsage(NamedTuple):
    """How many values of a table are encrypted with one key, and how many of them cannot be decrypted. `key_id` is
    empty if a value does not name its key."""

    table: str
    key_id: str
    values: int
    unopened: int


async def require_keys(database: Database, columns: Sequence[EncryptedColumn], master: MasterKey) -> None:
    """Check that the master key contains every key that the values need. No value is decrypted.

    Raises:
        DecryptionFailed: keys are missing; the refusal names them.
        Unavailable: the database cannot be read.
    """
    needed_keys = {key_id for column in columns for key_id in await _key_ids(database, column)}
    missing_keys = sorted(key_id for key_id in needed_keys if master.named(key_id) is None)
    if missing_keys:
        raise encryption.missing_keys(missing_keys, master)


async def _key_ids(database: Database, column: EncryptedColumn) -> list[str]:
    """List the keys with which the values of the column are encrypted. A value starts with the id of its key, so one
    read for each key suffices: after each read, the search continues above all values of that key."""
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
    """Decrypt every value of the column, and return the counts for each key.

    Raises:
        Unavailable: the database cannot be read.
    """
    counts: dict[str, tuple[int, int]] = {}
    async with aclosing(_pages(database, column)) as pages:
        async for rows in pages:
            for value, *_ in rows:
                key_id = encryption.encryption_key_id(bytes(value)) or ""
                values, unopened_count = counts.get(key_id, (0, 0))
                is_decrypted = _decrypt_or_none(bytes(value), column, master) is not None
                counts[key_id] = (values + 1, unopened_count + (not is_decrypted))
    return [KeyUsage(column.table, key_id, *counts_of_key) for key_id, counts_of_key in sorted(counts.items())]


async def reencrypt(database: Database, column: EncryptedColumn, master: MasterKey) -> int:
    """Re-encrypt the values of all other keys with the current key, and return the number of changed values. Values
    that cannot be decrypted, or that change concurrently, are left unchanged. After an interruption, call it again.

    Raises:
        StorageFull, Unavailable: the database cannot be written.
    """
    changed_rows = 0
    async with aclosing(_pages(database, column)) as pages:
        async for rows in pages:
            replacements = [_replacement(row, column, master) for row in rows]
            changes = [replacement for replacement in replacements if replacement is not None]
            if changes:
                async with database.transaction() as transaction:
                    for values in changes:
                        changed_rows += await transaction.run(column.replace, *values)
    return changed_rows


async def _pages(database: Database, column: EncryptedColumn) -> AsyncGenerator[list[Row]]:
    key = column.first_key
    while rows := await database.fetch(column.page, BATCH_SIZE, *key):
        yield rows
        _, *last_key = rows[-1]
        key = tuple(last_key)


def _replacement(row: Row, column: EncryptedColumn, master: MasterKey) -> tuple[Value, ...] | None:
    """Return the parameters of the `replace` statement for the row. Return None if the value is encrypted with the
    current key, or cannot be decrypted."""
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
