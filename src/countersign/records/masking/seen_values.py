"""The value ids of personal values in an existing database, from which placeholder tokens are computed.

The database of others has no column for value ids. An id is therefore derived from a keyed hash of the value, so that
the same value keeps its token. The vault stores the hash and a key for encrypted copies of the value, never the value.
The table `seen_place` has the record in which a reader last saw the value, so that a token can be resolved.
"""

import asyncio
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from itertools import chain
from typing import NamedTuple, Protocol

import msgspec

from countersign.kernel import ids as random_ids
from countersign.kernel.database.port import Dialect, Reader, Row, Transaction, Value
from countersign.kernel.errors import Unavailable
from countersign.kernel.security.encryption import derive_key
from countersign.records.masking.vault import ID_BITS, KEY_BYTES

_HASH_BYTES = 20
_ID_BYTES = ID_BITS // 8
_MAX_PROBES = 8
MAX_KNOWN = 65_536
"""The maximum number of value ids that a process keeps. They take about 10 MB."""
MAX_CHECKED = 60
"""The number of values up to which a read looks up all ids and places again. Another process may have deleted them."""
_LOOKUP_SIZE: Mapping[Dialect, int] = {"postgres": 20_000, "sqlite": 1_000}
"""The number of values in one lookup. SQLite runs it on the event loop."""

_FOUND = """
SELECT v.hash, v.id, v.gone_day, p.field, p.record_id
FROM pii_value AS v
LEFT JOIN seen_place AS p ON p.value_id = v.id AND p.domain_id = $3 AND p.model = $4
WHERE v.hash {is_listed}
"""
_FIND: Mapping[Dialect, str] = {
    # PostgreSQL builds the array once and looks up its elements in the index.
    "postgres": _FOUND.format(
        is_listed=f"= ANY (ARRAY(SELECT substring($1::bytea FROM n * {_HASH_BYTES} + 1 FOR {_HASH_BYTES}) "
        "FROM generate_series(0, $2::integer - 1) AS n))"
    ),
    "sqlite": "WITH RECURSIVE listed(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM listed WHERE n < $2 - 1)"
    + _FOUND.format(is_listed=f"IN (SELECT substr($1, n * {_HASH_BYTES} + 1, {_HASH_BYTES}) FROM listed)"),
}
# The one reference is that of the row in the existing database.
_ADD: Mapping[Dialect, str] = {
    "postgres": """
INSERT INTO pii_value (id, hash, label, key, refs)
SELECT (entry ->> 0)::bigint, decode(entry ->> 1, 'hex'), entry ->> 2, decode(entry ->> 3, 'hex'), 1
FROM jsonb_array_elements($1::text::jsonb) AS entry
ON CONFLICT DO NOTHING
RETURNING hash, id
""",
    "sqlite": """
INSERT INTO pii_value (id, hash, label, key, refs) VALUES ($1, unhex($2), $3, unhex($4), 1) ON CONFLICT DO NOTHING
""",
}
_REPLACE = """
ON CONFLICT (value_id, domain_id, model, field) DO UPDATE SET record_id = excluded.record_id, user_id = excluded.user_id
"""
_ADD_PLACE: Mapping[Dialect, str] = {
    "postgres": f"""
INSERT INTO seen_place (value_id, field, record_id, domain_id, model, user_id)
SELECT (entry ->> 0)::bigint, entry ->> 1, entry ->> 2, entry ->> 3, entry ->> 4, entry ->> 5
FROM jsonb_array_elements($1::text::jsonb) AS entry
{_REPLACE}""",
    "sqlite": f"""
INSERT INTO seen_place (value_id, field, record_id, domain_id, model, user_id) VALUES ($1, $2, $3, $4, $5, $6)
{_REPLACE}""",
}


# A value that was gone is back. The sweep may have read its earlier places today, and must not erase it.
_KEEP = "UPDATE pii_value SET gone_day = NULL WHERE id = $1"


class SeenValue(NamedTuple):
    """A personal value in a field of a record. Equal linked values with the same label share one id. Other values have
    an id for each record and field."""

    label: str
    text: str
    model: str
    record_id: str
    field: str
    is_linked: bool


class SeenColumn(NamedTuple):
    """The values of one field in several records of a model."""

    label: str
    model: str
    field: str
    is_linked: bool
    texts: Sequence[str]
    record_ids: Sequence[str]

    def value(self, index: int) -> SeenValue:
        """Return the value of one of the records."""
        return SeenValue(
            self.label, self.texts[index], self.model, self.record_ids[index], self.field, self.is_linked
        )


class SeenBy(NamedTuple):
    """Who sees values: the id of a token domain, and the person whose rights and session apply. For values that an
    audit entry contains, the id is that of its record: several records may have one value, and each keeps it."""

    domain_id: str
    user_id: str


class OwnTables(Protocol):
    """Our own database, as a command uses it."""

    @property
    def dialect(self) -> Dialect:
        """The SQL dialect."""
        ...

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


class _VaultEntries(NamedTuple):
    """The ids of hashes, the records in which the reader last saw their values, by value id and field, and the hashes
    of values that the sweep has not found in any record."""

    ids: dict[bytes, int]
    places: dict[tuple[int, str], str]
    gone: set[bytes]


_ValuesByField = dict[tuple[bytes, str], SeenValue]
"""Maps the hash of a value and the name of its field to the first such value."""


class SeenValues:
    """Gives values their ids. Each process has one."""

    def __init__(self, secret: bytes) -> None:
        """Derive the key from `secret`, the secret of our database."""
        key = derive_key(secret, b"", "adopted/seen")
        self._linked, self._unlinked = (
            hashlib.blake2b(key=key, digest_size=_HASH_BYTES, person=person) for person in (b"linked", b"place")
        )
        self._known: dict[bytes, int] = {}
        self._placed: set[tuple[int, str, str, str]] = set()

    async def ids(
        self, tables: OwnTables, columns: Sequence[SeenColumn], seen_by: SeenBy | None = None
    ) -> list[int]:
        """Return the ids of the values of records of one model, column by column. The ids of new values are stored
        before this returns, with `seen_by` also the records in which they are.

        Raises:
            Unavailable: the ids of too many values collide.
        """
        hashes = list(map(self._hashes, columns))
        is_checked = seen_by is not None and sum(map(len, hashes)) <= MAX_CHECKED
        known_ids = {} if is_checked else self._known
        all_hashes = list(chain.from_iterable(hashes))
        id_by_hash = {value_hash: known_ids[value_hash] for value_hash in all_hashes if value_hash in known_ids}
        found: _ValuesByField = {}
        for column, column_hashes in zip(columns, hashes, strict=True):
            for index in self._unknown(column, list(map(id_by_hash.get, column_hashes)), seen_by):
                found.setdefault((column_hashes[index], column.field), column.value(index))
        if found:
            stored = await self._stored(tables, found, seen_by, replaces=is_checked)
            id_by_hash |= stored
            if tables.open_transaction is None:
                self._remember(found, stored, seen_by)
            else:
                # A rollback would remove the rows.
                tables.open_transaction.after_commit(lambda: self._remember(found, stored, seen_by))
        return [id_by_hash[value_hash] for value_hash in all_hashes]

    async def stored_ids(self, tables: OwnTables, values: Sequence[SeenValue], user_id: str) -> list[int]:
        """Return the ids of values of one record as `ids` does, each of which is in the vault with the record. Another
        process may have deleted an id that this process knows.

        Raises:
            Unavailable: the ids of too many values collide.
        """
        hashes = list(map(self.hash_of, values))
        found = {(value_hash, value.field): value for value_hash, value in zip(hashes, values, strict=True)}
        id_by_hash = await self._stored(tables, found, SeenBy(values[0].record_id, user_id), replaces=True)
        return [id_by_hash[value_hash] for value_hash in hashes]

    def has_hash(self, value: SeenValue, value_hash: bytes) -> bool:
        """Return whether this is the value whose hash the vault stores."""
        return self.hash_of(value) == value_hash

    def _unknown(
        self, column: SeenColumn, value_ids: Sequence[int | None], seen_by: SeenBy | None
    ) -> Iterable[int]:
        """Return the positions of the values whose id, or the record in which the reader sees them, is not known."""
        if seen_by is None:
            return (index for index, value_id in enumerate(value_ids) if value_id is None)
        placed, domain_id, model, field = self._placed, seen_by.domain_id, column.model, column.field
        return (
            index
            for index, value_id in enumerate(value_ids)
            if value_id is None or (value_id, domain_id, model, field) not in placed
        )

    def _remember(self, found: _ValuesByField, stored: Mapping[bytes, int], seen_by: SeenBy | None) -> None:
        if len(self._known) + len(stored) > MAX_KNOWN:
            self._known.clear()
        self._known.update(stored)
        if seen_by is None:
            return
        if len(self._placed) + len(found) > MAX_KNOWN:
            self._placed.clear()
        self._placed.update(_place(stored[value_hash], seen_by, value) for (value_hash, _), value in found.items())

    def hash_of(self, value: SeenValue) -> bytes:
        """Return the keyed hash of a value. The vault stores it instead of the value."""
        label, text, *place, is_linked = value
        data = "\0".join((label, text) if is_linked else (label, *place, text)).encode("utf-8", "surrogatepass")
        # A copy is faster than a new object.
        value_hash = (self._linked if is_linked else self._unlinked).copy()
        value_hash.update(data)
        return value_hash.digest()

    def _hashes(self, column: SeenColumn) -> list[bytes]:
        """Return the hashes of the values of a column as `hash_of` does."""
        if not column.is_linked:
            return [self.hash_of(column.value(index)) for index in range(len(column.texts))]
        begun = self._linked.copy()
        begun.update(f"{column.label}\0".encode())
        hashes: list[bytes] = []
        for text in column.texts:
            value_hash = begun.copy()
            value_hash.update(text.encode("utf-8", "surrogatepass"))
            hashes.append(value_hash.digest())
        return hashes

    async def _stored(
        self, tables: OwnTables, found: _ValuesByField, seen_by: SeenBy | None, *, replaces: bool
    ) -> dict[bytes, int]:
        """Return the ids of the values, and store those that are missing. Store the records of values without a record,
        and with `replaces` of those with another one."""
        model = next(iter(found.values())).model
        labels = {value_hash: value.label for (value_hash, _), value in found.items()}
        stored = await _find(tables.reader, tables.dialect, list(labels), seen_by, model)
        # Write the rows in this order, so that two transactions never wait for each other.
        missing = sorted(labels.keys() - stored.ids.keys())
        has_news = seen_by is not None and bool(stored.gone or _new_places(found, stored, replaces=replaces))
        if not missing and not has_news:
            return stored.ids
        async with tables.writing() as writer:
            if missing:
                stored.ids.update(await _add_all(writer, {value_hash: labels[value_hash] for value_hash in missing}))
            if seen_by is not None:
                await _note_seen(writer, stored, _new_places(found, stored, replaces=replaces), seen_by)
        return stored.ids


async def _note_seen(
    writer: OwnTables, stored: _VaultEntries, places: Sequence[tuple[int, SeenValue]], seen_by: SeenBy
) -> None:
    """Store the records of the values, and keep the values that were gone."""
    if places:
        await _add_places(writer, places, seen_by)
    if stored.gone:
        kept = [(stored.ids[value_hash],) for value_hash in sorted(stored.gone)]
        await writer.transaction.run_many(_KEEP, kept)


def _place(value_id: int, seen_by: SeenBy, value: SeenValue) -> tuple[int, str, str, str]:
    return value_id, seen_by.domain_id, value.model, value.field


def _new_places(found: _ValuesByField, stored: _VaultEntries, *, replaces: bool) -> list[tuple[int, SeenValue]]:
    """Return the values whose record is not stored yet, with their ids. The id is 0 if it is missing."""
    places: dict[tuple[int, str], SeenValue] = {}
    for (value_hash, field), value in found.items():
        value_id = stored.ids.get(value_hash, 0)
        known_record = stored.places.get((value_id, field))
        if known_record is None or (replaces and known_record != value.record_id):
            places[value_id, field] = value
    return [(value_id, places[value_id, field]) for value_id, field in sorted(places)]


def _id_of(hashed: bytes, probe: int) -> int:
    """Return the id to try for a value. The first one consists of the first bits of the hash."""
    source = hashed if not probe else hashlib.blake2b(hashed + bytes((probe,)), digest_size=_HASH_BYTES).digest()
    return int.from_bytes(source[:_ID_BYTES])


async def _add_all(tables: OwnTables, labels: Mapping[bytes, str]) -> dict[bytes, int]:
    """Insert values in this order, and return their ids.

    Raises:
        Unavailable: the ids of too many values collide.
    """
    ids: dict[bytes, int] = {}
    missing = labels
    for probe in range(_MAX_PROBES):
        ids |= await _added(tables, missing, probe)
        missing = {value_hash: label for value_hash, label in missing.items() if value_hash not in ids}
        if missing:
            # Another process may have stored the value, and another value may have the id.
            ids |= (await _find(tables.transaction, tables.dialect, list(missing), None, "")).ids
            missing = {value_hash: label for value_hash, label in missing.items() if value_hash not in ids}
        if not missing:
            return ids
    raise Unavailable("No free id was found for a value.")


async def _added(tables: OwnTables, labels: Mapping[bytes, str], probe: int) -> dict[bytes, int]:
    """Insert values in this order, and return the ids of those that PostgreSQL has inserted."""
    rows: list[tuple[Value, ...]] = [
        (_id_of(value_hash, probe), value_hash.hex(), label, random_ids.random_bytes(KEY_BYTES).hex())
        for value_hash, label in labels.items()
    ]
    return {bytes(value_hash): int(value_id) for value_hash, value_id in await _insert(tables, _ADD, rows)}


async def _add_places(tables: OwnTables, places: Sequence[tuple[int, SeenValue]], seen_by: SeenBy) -> None:
    rows: list[tuple[Value, ...]] = [
        (value_id, value.field, value.record_id, seen_by.domain_id, value.model, seen_by.user_id)
        for value_id, value in places
    ]
    await _insert(tables, _ADD_PLACE, rows)


async def _insert(
    tables: OwnTables, statements: Mapping[Dialect, str], rows: Sequence[tuple[Value, ...]]
) -> list[Row]:
    """Insert the rows: on PostgreSQL with one statement, whose rows this returns. On SQLite, a statement that inserts
    several rows is slow in a long transaction (see `vault`)."""
    if tables.dialect == "postgres":
        return await tables.transaction.fetch(statements["postgres"], msgspec.json.encode(rows).decode())
    await tables.transaction.run_many(statements["sqlite"], rows)
    return []


async def _find(
    reader: Reader, dialect: Dialect, hashes: Sequence[bytes], seen_by: SeenBy | None, model: str
) -> _VaultEntries:
    stored = _VaultEntries({}, {}, set())
    for batch in _batches(hashes, _LOOKUP_SIZE[dialect]):
        if stored.ids:
            # Let other requests run.
            await asyncio.sleep(0)
        domain_id = None if seen_by is None else seen_by.domain_id
        rows = await reader.fetch(_FIND[dialect], b"".join(batch), len(batch), domain_id, model)
        for value_hash, value_id, gone_day, field, record_id in rows:
            stored.ids[bytes(value_hash)] = int(value_id)
            if gone_day is not None:
                stored.gone.add(bytes(value_hash))
            if field is not None:
                stored.places[int(value_id), field] = record_id
    return stored


def _batches(hashes: Sequence[bytes], size: int) -> Iterator[Sequence[bytes]]:
    return (hashes[start : start + size] for start in range(0, len(hashes), size))
