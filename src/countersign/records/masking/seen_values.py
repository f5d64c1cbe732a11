"""The value ids of personal values in an existing database, from which placeholder tokens are computed.

The database of others has no column for value ids. An id is therefore derived from a keyed hash of the value, so that
the same value keeps its token. The vault stores the hash and a key for encrypted copies of the value, never the value.
"""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol

from countersign.kernel import ids as random_ids
from countersign.kernel.database.port import Reader, Transaction
from countersign.kernel.errors import Unavailable
from countersign.kernel.security.encryption import derive_key
from countersign.records.masking.vault import BATCH_SIZE, ID_BITS, KEY_BYTES

_HASH_BYTES = 20
_ID_BYTES = ID_BITS // 8
_MAX_PROBES = 8
MAX_KNOWN = 65_536
"""The maximum number of value ids that a process keeps. They take about 10 MB."""

_FIND = "SELECT hash, id FROM pii_value WHERE hash IN ({hashes})"
# The one reference is that of the row in the existing database.
_ADD = "INSERT INTO pii_value (id, hash, label, key, refs) VALUES {rows} ON CONFLICT DO NOTHING"
_ROWS_AT_ONCE = 100


class SeenValue(NamedTuple):
    """A personal value with its label. `place` is the model, the record and the field of a value that is not linked. It
    is empty for a linked value: equal linked values with the same label share one id."""

    label: str
    text: str
    place: tuple[str, ...] = ()


class OwnTables(Protocol):
    """Our own database, as a command uses it."""

    @property
    def reader(self) -> Reader:
        """The reader of the command."""
        ...

    def writing(self) -> AbstractAsyncContextManager["OwnTables"]:
        """Open a transaction, or a savepoint inside of one."""
        ...

    @property
    def transaction(self) -> Transaction:
        """The open transaction."""
        ...

    @property
    def open_transaction(self) -> Transaction | None:
        """The open transaction, or None."""
        ...


class SeenValues:
    """Gives values their ids. Each process has one."""

    def __init__(self, secret: bytes) -> None:
        """Derive the key from `secret`, the secret of our database."""
        self._key = derive_key(secret, b"", "adopted/seen")
        self._known: dict[bytes, int] = {}

    async def ids(self, tables: OwnTables, values: Sequence[SeenValue]) -> list[int]:
        """Return the ids of the values, in the same order. The ids of new values are stored before this returns.

        Raises:
            Unavailable: the ids of too many values collide.
        """
        hashes = [self._hash(value) for value in values]
        known_ids = self._known
        id_by_hash = {hash_: known_ids[hash_] for hash_ in hashes if hash_ in known_ids}
        label_by_hash = {
            value_hash: value.label
            for value_hash, value in zip(hashes, values, strict=True)
            if value_hash not in id_by_hash
        }
        if label_by_hash:
            stored_ids = await self._stored(tables, label_by_hash)
            id_by_hash |= stored_ids
            if tables.open_transaction is None:
                self._remember(stored_ids)
            else:
                # A rollback would remove the rows.
                tables.open_transaction.after_commit(lambda: self._remember(stored_ids))
        return [id_by_hash[hash_] for hash_ in hashes]

    async def stored_ids(self, tables: OwnTables, values: Sequence[SeenValue]) -> list[int]:
        """Return the ids as `ids` does, each of which is in the vault. Another process may have deleted an id that this
        process knows.

        Raises:
            Unavailable: the ids of too many values collide.
        """
        hashes = [self._hash(value) for value in values]
        labels = {value_hash: each.label for value_hash, each in zip(hashes, values, strict=True)}
        id_by_hash = await self._stored(tables, labels)
        return [id_by_hash[each] for each in hashes]

    def _remember(self, stored: Mapping[bytes, int]) -> None:
        if len(self._known) + len(stored) > MAX_KNOWN:
            self._known.clear()
        self._known.update(stored)

    def _hash(self, value: SeenValue) -> bytes:
        data = "\0".join((value.label, *value.place, value.text)).encode("utf-8", "surrogatepass")
        person = b"place" if value.place else b"linked"
        return hashlib.blake2b(data, key=self._key, digest_size=_HASH_BYTES, person=person).digest()

    async def _stored(self, tables: OwnTables, labels: Mapping[bytes, str]) -> dict[bytes, int]:
        id_by_hash = await _find(tables.reader, list(labels))
        missing_hashes = [label for label in labels if label not in id_by_hash]
        if not missing_hashes:
            return id_by_hash
        async with tables.writing() as writer:
            for probe in range(_MAX_PROBES):
                await _add(
                    writer.transaction, {value_hash: labels[value_hash] for value_hash in sorted(missing_hashes)}, probe
                )
                # Another process may have stored the value, and another value may have the id.
                id_by_hash |= await _find(writer.transaction, missing_hashes)
                missing_hashes = [value_id for value_id in missing_hashes if value_id not in id_by_hash]
                if not missing_hashes:
                    return id_by_hash
        raise Unavailable("No free id was found for a value.")


def _id_of(hashed: bytes, probe: int) -> int:
    """Return the id to try for a value. The first one consists of the first bits of the hash."""
    source = hashed if not probe else hashlib.blake2b(hashed + bytes((probe,)), digest_size=_HASH_BYTES).digest()
    return int.from_bytes(source[:_ID_BYTES])


async def _add(transaction: Transaction, labels: Mapping[bytes, str], probe: int) -> None:
    """Insert values in this order, many with each statement."""
    hashes = list(labels)
    for start in range(0, len(hashes), _ROWS_AT_ONCE):
        batch = hashes[start : start + _ROWS_AT_ONCE]
        values = [
            value
            for item in batch
            for value in (_id_of(item, probe), item, labels[item], random_ids.random_bytes(KEY_BYTES))
        ]
        rows = ", ".join(f"(${at + 1}, ${at + 2}, ${at + 3}, ${at + 4}, 1)" for at in range(0, len(values), 4))
        await transaction.run(_ADD.format(rows=rows), *values)


async def _find(reader: Reader, hashes: Sequence[bytes]) -> dict[bytes, int]:
    id_by_hash: dict[bytes, int] = {}
    for start in range(0, len(hashes), BATCH_SIZE):
        batch = hashes[start : start + BATCH_SIZE]
        placeholders = ", ".join(f"${number}" for number in range(1, len(batch) + 1))
        id_by_hash |= {
            bytes(row[0]): int(row[1]) for row in await reader.fetch(_FIND.format(hashes=placeholders), *batch)
        }
    return id_by_hash
