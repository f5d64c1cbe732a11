"""The vault. It stores the value ids from which placeholder tokens are computed, their reference counts, and the keys
that encrypt (seal) copies of the values."""

import base64
import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias, TypeVar

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from countersign.kernel import ids
from countersign.kernel.concurrency import CooperativeIterator
from countersign.kernel.database.joint_statements import with_writes
from countersign.kernel.database.port import Dialect, Reader, Transaction, Value
from countersign.kernel.errors import Unavailable
from countersign.kernel.security.encryption import derive_key

ID_BITS = 48
KEY_BYTES = 16
_NONCE_BYTES = 12
_HASH_BYTES = 20
BATCH_SIZE = 500
"""The maximum number of values in one statement. A statement supports about 32,000 parameters."""

_Item = TypeVar("_Item")
_Entry: TypeAlias = tuple[int, bytes | None, bytes]
"""The id, the hash and the key in a row of the vault."""

_Link: TypeAlias = tuple[Value, ...]
"""A row of `pii_alias`: the model, id and field of a record, the id of a token domain, and the value id of the
alias."""

_KEYS = "SELECT id, key FROM pii_value WHERE id IN ({ids})"
_ADD_OR_REFERENCE = """
INSERT INTO pii_value (id, label, hash, key, refs, domain_id)
SELECT coalesce(
        (SELECT known.id FROM pii_value AS known WHERE known.hash = new.hash),
        CASE WHEN new.hash IS NOT NULL AND EXISTS (SELECT 1 FROM pii_value AS other WHERE other.id = new.id)
            THEN new.second_id ELSE new.id END
    ), label, hash, key, refs, domain_id
FROM (VALUES {rows}) AS new (id, label, hash, key, refs, domain_id, second_id)
ON CONFLICT (id) DO UPDATE SET refs = pii_value.refs + excluded.refs WHERE pii_value.hash = excluded.hash
RETURNING id, hash, key
"""
_ROW_TYPES = ("bigint", "text", "bytea", "bytea", "bigint", "text", "bigint")
_FIND = "SELECT id, hash, key FROM pii_value WHERE hash IN ({hashes}) OR id IN ({ids})"
_ADD = "INSERT INTO pii_value (id, label, hash, key, refs, domain_id) VALUES ($1, $2, $3, $4, $5, $6)"
_ADD_REFERENCES = "UPDATE pii_value SET refs = refs + $2 WHERE id = $1"
_ADD_REFERENCE = "UPDATE pii_value SET refs = refs + 1 WHERE id = $1 RETURNING id, hash, key"
_LINKED_ROWS = "SELECT id, label, hash, key FROM pii_value WHERE id IN ({ids}) AND hash IS NOT NULL"
_RELEASE = "UPDATE pii_value SET refs = refs - $2 WHERE id = $1"
_DELETE_UNREFERENCED = "DELETE FROM pii_value WHERE id = $1 AND refs <= 0"
_ALIASES = "SELECT value_id FROM pii_alias WHERE model = $1 AND record_id = $2 AND field = $3"
_ALIASES_OF = "SELECT field, domain_id, value_id FROM pii_alias WHERE model = $1 AND record_id = $2"
_DROP_ALIASES = "DELETE FROM pii_alias WHERE model = $1 AND record_id = $2 AND field = $3"
_ADD_ALIAS = "INSERT INTO pii_alias (model, record_id, field, domain_id, value_id) VALUES ($1, $2, $3, $4, $5)"


class ValueKey(NamedTuple):
    """A value id and the key that encrypts copies of the value."""

    id: int
    key: bytes


class PersonalValue(NamedTuple):
    """A personal value with the label of its field. Linked values with the same label and text share one value id, so
    they have the same token."""

    label: str
    text: str
    linked: bool


class NewAlias(NamedTuple):
    """An alias to create for a field of a record: a value id with this label that only one token domain uses."""

    model: str
    record_id: str
    field: str
    label: str
    domain_id: str


class Vault:
    """The vault of a database. It stores no values. For a linked value, it stores a keyed hash."""

    def __init__(self, secret: bytes, dialect: Dialect = "sqlite") -> None:
        """Derive the keys from `secret`, the secret of the database. `dialect` determines whether there may be
        concurrent writers."""
        self._dialect: Dialect = dialect
        self._hash_key = derive_key(secret, b"", "vault/hash")
        self._seal_key = derive_key(secret, b"", "vault/seal")

    async def hold(
        self,
        transaction: Transaction,
        values: Sequence[PersonalValue],
        releasing: Collection[int] = (),
        aliases: Sequence[NewAlias] = (),
    ) -> list[ValueKey]:
        """Add a reference to each value, and create the aliases. Return the value ids and keys in the order of
        `values`, followed by those of `aliases`.

        The id of a linked value is derived from the value, so a value that is deleted and written again gets the same
        id. Other values get random ids.

        `releasing` are the ids that the same transaction releases next. Their rows are locked together with the rows of
        the values. All transactions lock rows in the same order, so two transactions never wait for each other.
        """
        hashes = list(map(self._hash_of, values))
        places = [hashed_value or ids.random_bytes(_HASH_BYTES) for hashed_value in hashes]
        counts = Counter(places)
        rows: dict[bytes, list[Value]] = {
            index: [_id_of(hashed_value), value.label, hashed_value, ids.random_bytes(KEY_BYTES), counts[index], None]
            for index, hashed_value, value in zip(places, hashes, values, strict=True)
        }
        value_keys = {index: _value_key(row) for index, row in rows.items()}
        alias_rows = [_alias_row(alias.label, alias.domain_id) for alias in aliases]
        links = [
            (*alias[:3], alias.domain_id, row[0]) for alias, row in zip(aliases, alias_rows, strict=True)
        ]
        all_rows = await self._rows_to_lock(transaction, releasing) | rows
        sorted_rows = [all_rows[index] for index in sorted(all_rows)]
        value_keys |= await self._insert_all(transaction, [*sorted_rows, *alias_rows], links)
        return [*(value_keys[index] for index in places), *map(_value_key, alias_rows)]

    async def _insert_all(
        self, transaction: Transaction, rows: Sequence[list[Value]], links: Sequence[_Link]
    ) -> dict[bytes, ValueKey]:
        """Add references to the rows in their order, and store the links of aliases. Map the hash of each row that has
        one to the id and key of the stored row."""
        value_keys: dict[bytes, ValueKey] = {}
        insert = _insert_with_one_writer if self._dialect == "sqlite" else _insert
        for batch in _batches(rows):
            inserted_rows = await insert(transaction, batch, links)
            links = ()
            linked_rows = (
                (number, value_hash, key) for number, value_hash, key in inserted_rows if value_hash is not None
            )
            value_keys |= {bytes(value_hash): ValueKey(number, bytes(key)) for number, value_hash, key in linked_rows}
        return value_keys

    async def _rows_to_lock(self, transaction: Transaction, value_ids: Collection[int]) -> dict[bytes, list[Value]]:
        """Return the rows of these values, each with 0 references to add. Writing these rows locks them and changes
        nothing."""
        if not value_ids or self._dialect == "sqlite":
            # SQLite needs no locks, because it allows only one writer at a time.
            return {}
        return {
            bytes(value_hash): [value_id, label, value_hash, key, 0, None]
            async for batch in CooperativeIterator(_batches(list(value_ids)), 1)
            for value_id, label, value_hash, key in await transaction.fetch(
                _LINKED_ROWS.format(ids=_parameter_list(batch)), *batch
            )
        }

    def _hash_of(self, value: PersonalValue) -> bytes | None:
        return self._hash(value.label, value.text) if value.linked else None

    async def hold_existing(self, transaction: Transaction, value_id: int) -> ValueKey | None:
        """Add a reference to the value with this id. Return None if the value is deleted."""
        row = await transaction.fetch_one(_ADD_REFERENCE, value_id)
        return None if row is None else ValueKey(row[0], bytes(row[2]))

    async def create_alias_id(self, transaction: Transaction, label: str, domain_id: str) -> ValueKey:
        """Create an alias: a value id that only one token domain uses. It has one reference. An equal value never gets
        the same id (design, 4.4)."""
        row = _alias_row(label, domain_id)
        await transaction.run(_ADD, *row)
        return _value_key(row)

    async def release(self, transaction: Transaction, value_ids: Iterable[int]) -> None:
        """Remove a reference from each value. A value without references is deleted with its key, so its encrypted
        copies become unreadable."""
        released_ids = sorted(value_ids)
        if len(released_ids) > 1:
            # Lock the rows first, in the order that `hold` uses.
            await self.hold(transaction, (), released_ids)
        async for value_id in CooperativeIterator(released_ids):
            await transaction.run(_RELEASE, value_id, 1)
            await transaction.run(_DELETE_UNREFERENCED, value_id)

    async def add_alias(
        self, transaction: Transaction, model: str, record_id: str, field: str, domain_id: str, value_id: int
    ) -> None:
        """Store the alias `value_id` for this field and token domain. The token that the domain sees is then computed
        from the alias. The caller must have added the reference to the value before."""
        await transaction.run(_ADD_ALIAS, model, record_id, field, domain_id, value_id)

    async def aliases(self, reader: Reader, model: str, record_id: str) -> Mapping[str, Mapping[str, int]]:
        """Map each field of the record to its aliases. The aliases map the id of a token domain to the value id that
        only this domain uses."""
        aliases_by_label: dict[str, dict[str, int]] = {}
        for field, domain_id, value_id in await reader.fetch(_ALIASES_OF, model, record_id):
            aliases_by_label.setdefault(field, {})[domain_id] = value_id
        return aliases_by_label

    async def drop_aliases(self, transaction: Transaction, model: str, record_id: str, field: str) -> None:
        """Delete the aliases of a field whose value has changed or was deleted."""
        rows = await transaction.fetch(_ALIASES, model, record_id, field)
        if rows:
            await transaction.run(_DROP_ALIASES, model, record_id, field)
            await self.release(transaction, [row[0] for row in rows])

    async def keys(self, reader: Reader, value_ids: Sequence[int]) -> Mapping[int, bytes]:
        """Map those values that still exist to their keys."""
        return {
            row[0]: bytes(row[1])
            async for batch in CooperativeIterator(_batches(value_ids), 2)
            for row in await reader.fetch(_KEYS.format(ids=_parameter_list(batch)), *batch)
        }

    def seal(self, key: bytes, text: str) -> str:
        """Return an encrypted copy of the value as base64 text. The copy is readable as long as the value exists in the
        vault."""
        nonce = ids.random_bytes(_NONCE_BYTES)
        return base64.b64encode(nonce + self._cipher(key).encrypt(nonce, text.encode(), None)).decode()

    def unseal(self, key: bytes, sealed_text: str) -> str | None:
        """Return the value in an encrypted copy, or None if the copy was encrypted with another key."""
        raw = base64.b64decode(sealed_text)
        try:
            return self._cipher(key).decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], None).decode()
        except InvalidTag:
            return None

    def keyed(self, data: bytes) -> bytes:
        """Return a keyed hash of the data. Without the key, hashes reveal only whether the data is equal."""
        return hashlib.blake2b(data, key=self._hash_key, digest_size=_HASH_BYTES, person=b"keyed").digest()

    def _cipher(self, key: bytes) -> AESGCM:
        return AESGCM(hashlib.blake2b(key, key=self._seal_key, digest_size=32).digest())

    def _hash(self, label: str, text: str) -> bytes:
        return hashlib.blake2b(f"{label}\0{text}".encode(), key=self._hash_key, digest_size=_HASH_BYTES).digest()


def _batches(items: Sequence[_Item]) -> Iterator[Sequence[_Item]]:
    return (items[start : start + BATCH_SIZE] for start in range(0, len(items), BATCH_SIZE))


def _parameter_list(values: Sequence[object]) -> str:
    return ", ".join(f"${number}" for number in range(1, len(values) + 1))


async def _insert(
    transaction: Transaction, rows: Sequence[list[Value]], links: Sequence[_Link] = ()
) -> list[_Entry]:
    width = len(_ROW_TYPES)
    groups = (
        ", ".join(f"${width * row + column_number}::{kind}" for column_number, kind in enumerate(_ROW_TYPES, 1))
        for row in range(len(rows))
    )
    text = _ADD_OR_REFERENCE.format(rows=", ".join(f"({group})" for group in groups))
    values = [value for row in rows for value in (*row, _second_id(row))]
    text, values = with_writes(text, values, [(_ADD_ALIAS, link) for link in links])
    entries = [(row[0], row[1], row[2]) for row in await transaction.fetch(text, *values)]
    if len(entries) != len(rows):
        raise Unavailable("Two values were given one id at the same moment; try again.")
    return entries


async def _insert_with_one_writer(
    transaction: Transaction, rows: Sequence[list[Value]], links: Sequence[_Link] = ()
) -> list[_Entry]:
    """Like `_insert`, but for databases that have only one writer at a time.

    SQLite keeps a journal for each statement that may fail after its first row. This includes statements that insert
    several rows or have DO UPDATE. To truncate this journal, SQLite visits all pages that the transaction has changed.
    The time for n such statements is therefore proportional to n * n.
    """
    known_entries, taken_ids = await _stored_entries(transaction, rows)
    new_rows = [row for row in rows if row[2] not in known_entries]
    for row in new_rows:
        if row[0] in taken_ids and row[2] is not None:
            row[0] = _second_id(row)
        await transaction.run(_ADD, *row)
    for row in rows:
        if row[2] in known_entries:
            await transaction.run(_ADD_REFERENCES, known_entries[row[2]][0], row[4])
    for link in links:
        await transaction.run(_ADD_ALIAS, *link)
    return [*known_entries.values(), *map(_entry, new_rows)]


async def _stored_entries(
    transaction: Transaction, rows: Sequence[list[Value]]
) -> tuple[dict[Value, _Entry], set[Value]]:
    """Map the hash of each row that is stored to its stored entry. Also return which ids of the rows with a hash are
    stored."""
    linked_rows = [row for row in rows if row[2] is not None]
    first_ids, hashes = [row[0] for row in linked_rows], [row[2] for row in linked_rows]
    entries = await transaction.fetch(_find_statement(len(hashes), len(first_ids)), *hashes, *first_ids)
    wanted_hashes = set(hashes)
    known_entries: dict[Value, _Entry] = {
        row[1]: (row[0], row[1], row[2]) for row in entries if row[1] in wanted_hashes
    }
    return known_entries, {row[0] for row in entries}


@lru_cache(maxsize=64)
def _find_statement(hashes: int, first_ids: int) -> str:
    numbers = [f"${number}" for number in range(1, hashes + first_ids + 1)]
    # PostgreSQL refuses an empty list.
    return _FIND.format(hashes=", ".join(numbers[:hashes]) or "NULL", ids=", ".join(numbers[hashes:]) or "NULL")


def _alias_row(label: str, domain_id: str) -> list[Value]:
    return [_new_id(), label, None, ids.random_bytes(KEY_BYTES), 1, domain_id]


def _entry(row: list[Value]) -> _Entry:
    return int(str(row[0])), None if row[2] is None else _bytes(row[2]), _bytes(row[3])


def _new_id() -> int:
    # Use a random id, so that another value does not get the id of a deleted value.
    return int.from_bytes(ids.random_bytes(ID_BITS // 8))


def _id_of(value_hash: bytes | None) -> int:
    return _new_id() if value_hash is None else _linked_id(value_hash)


def _linked_id(value_hash: bytes, start: int = 0) -> int:
    return int.from_bytes(value_hash[start : start + ID_BITS // 8])


def _second_id(row: list[Value]) -> int:
    """Return the second id of a value. A value gets its second id if another value has its first id, which happens
    about once in 2^48 values."""
    return _new_id() if row[2] is None else _linked_id(_bytes(row[2]), ID_BITS // 8)


def _value_key(row: list[Value]) -> ValueKey:
    return ValueKey(int(str(row[0])), _bytes(row[3]))


def _bytes(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError("a key is bytes")
    return value
