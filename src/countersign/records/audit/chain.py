"""The audit: appends entries to hash chains (lanes), signs the end of each chain with a MAC, and records access
events."""

import hashlib
import struct
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

import msgspec

from countersign.kernel import clock, ids, telemetry
from countersign.kernel.database.joint_statements import Write, run_writes, with_writes
from countersign.kernel.database.port import Dialect, Row, Transaction
from countersign.kernel.security import encryption

LANES: dict[Dialect, int] = {"sqlite": 1, "postgres": 32}
"""The number of parallel chains (lanes), which are numbered from 0. Each concurrent writing transaction uses its own
lane."""

TEXTS = (
    "user_id",
    "agent_token",
    "agent",
    "command",
    "model",
    "record_id",
    "fields",
    "changes",
    "plan_id",
    "request_id",
)
COLUMNS = ("id", "revision", "changed", "at", "lane", "number", *TEXTS)
"""The hashed columns, in this order. Columns and order must never change, because the hashes of existing entries depend
on them."""

NO_HASH = bytes(32)
"""The previous hash of the first entry of a lane."""

_HEAD_STRUCT = struct.Struct(">qq32s")


class Head(NamedTuple):
    """The end of a lane: the number and hash of its last entry, or 0 and `NO_HASH` for an empty lane. `is_sound` is
    false if the stored MAC was not valid. Only a sound head is signed."""

    lane: int
    number: int
    hash: bytes
    is_sound: bool = True


class HeadSigner:
    """Computes and verifies the MACs of heads. Without the key, it is impossible to truncate or rewrite a lane
    unnoticed."""

    def __init__(self, secret: bytes) -> None:
        """Derive the key from `secret`, the database's secret."""
        self._signer = encryption.signer_for(secret, "audit/head")

    def mac(self, head: Head) -> bytes:
        """Return the MAC over lane, number and hash. For a head that is not sound, return an empty MAC, which is never
        valid."""
        return self._signer.sign(_HEAD_STRUCT.pack(head.lane, head.number, head.hash)) if head.is_sound else b""

    def verified_head(self, lane: int, number: int, last_hash: bytes, mac: bytes) -> Head:
        """Return the stored head. It is sound only if its MAC is valid."""
        # Check the length, because `pack` pads or truncates a hash of another length.
        is_sound = len(last_hash) == len(NO_HASH) and self._signer.verify(
            _HEAD_STRUCT.pack(lane, number, last_hash), mac
        )
        return Head(lane, number, last_hash, is_sound)


def entry_hash(previous_hash: bytes, columns: Sequence[None | int | str | bytes]) -> bytes:
    """Return the SHA-256 hash over the 32 bytes of the previous hash, followed by each of `COLUMNS`: `-` for NULL,
    otherwise the length, `:` and the value.

    Numbers are decimal, text is UTF-8 (passed as str or bytes), lengths are decimal and in bytes.
    """
    if any(isinstance(value, bytes) for value in columns):
        return _hash_of_bytes(previous_hash, columns)
    texts = ["-" if value is None else f"{len(text := str(value))}:{text}" for value in columns]
    joined_text = "".join(texts)
    # Most text is ASCII, so its lengths in characters and in bytes are equal.
    if not joined_text.isascii():
        return _hash_of_bytes(previous_hash, columns)
    return hashlib.sha256(previous_hash + joined_text.encode()).digest()


def _hash_of_bytes(previous_hash: bytes, columns: Sequence[None | int | str | bytes]) -> bytes:
    raws = [value if value is None or isinstance(value, bytes) else str(value).encode() for value in columns]
    pieces = [b"-" if raw is None else b"%d:%b" % (len(raw), raw) for raw in raws]
    return hashlib.sha256(previous_hash + b"".join(pieces)).digest()


_ADD_HEAD = "INSERT INTO audit_lane (lane, count, hash, mac) VALUES ($1, $2, $3, $4)"
_HEAD = "SELECT lane, count, hash, mac FROM audit_lane WHERE lane = $1"
_FREE_HEAD = f"""
SELECT lane, count, hash, mac
FROM audit_lane
ORDER BY (lane - $1 + {LANES["postgres"]}) % {LANES["postgres"]}
LIMIT 1
FOR UPDATE SKIP LOCKED
"""
_HEAD_WHEN_FREE = f"{_HEAD} FOR UPDATE"

_NAMES = ", ".join(f'"{name}"' for name in COLUMNS)
_PLACES = ", ".join(f"${number}" for number, _ in enumerate(COLUMNS, 2))
_INSERT = f"INSERT INTO audit_entry (hash, {_NAMES}) VALUES ($1, {_PLACES})"
_MOVE = "UPDATE audit_lane SET count = $2, hash = $3, mac = $4 WHERE lane = $1 AND hash = $5"
# `_MOVE` and `_INSERT` as one statement. Among the columns, $6 is the lane and $7 the number. A lane that another
# transaction has locked is skipped, because its head will soon differ from the cached head.
_EXTEND = f"""
WITH head AS (
    SELECT lane FROM audit_lane
    WHERE lane = $6 AND hash = ${len(COLUMNS) + 3}
    FOR UPDATE SKIP LOCKED
), moved AS (
    UPDATE audit_lane SET count = $7, hash = $1, mac = ${len(COLUMNS) + 2}
    FROM head WHERE audit_lane.lane = head.lane
    RETURNING audit_lane.lane
)
INSERT INTO audit_entry (hash, {_NAMES})
SELECT $1, {_PLACES} FROM moved
"""


@dataclass(frozen=True, slots=True)
class ChainEntry:
    """One audit entry. The time `at` is in µs.

    `user_id` is the person who acted, or for whom the agent acted. `fields` are the names of the changed fields,
    separated by commas. `changes` is JSON text in which personal values are encrypted.
    """

    at: int
    user_id: str
    agent_token: str | None
    agent: str | None
    command: str
    model: str
    record_id: str | None
    fields: str
    changes: str
    plan_id: str | None
    request_id: str


@dataclass(slots=True)
class _TransactionLane:
    """The lane that one transaction has locked, with its current head."""

    head: Head


class Chain:
    """The audit of one database, for any number of concurrent transactions and processes.

    Heads are cached between entries, so that they need not be read for each entry. A cached head may be outdated,
    because the transaction or savepoint was rolled back or another process appended an entry. An append therefore
    succeeds only if the stored hash equals the cached hash. Otherwise, the head is read again.
    """

    def __init__(self, dialect: Dialect, secret: bytes) -> None:
        """Derive the key for the MACs of heads from `secret`, the database's secret."""
        self.dialect: Dialect = dialect
        self._is_postgres = dialect == "postgres"
        self._lanes = LANES[dialect]
        self._signer = HeadSigner(secret)
        self._log = telemetry.logger("audit")
        # Each process starts at a random lane, so that processes seldom invalidate each other's cached heads.
        self._start = int.from_bytes(ids.random_bytes(2)) % self._lanes
        self._cached: dict[int, Head] = {}
        # Ids of the same second keep the indexes of the audit dense, whose entries are inserted most often.
        self._entry_ids = ids.RecordIdSeries()
        self._locked_lanes: WeakKeyDictionary[Transaction, _TransactionLane] = WeakKeyDictionary()

    async def create_lanes(self, transaction: Transaction) -> None:
        """Write the heads of the empty lanes. Call this once, in the transaction that stores the database's secret.

        Heads are never created later or again. Otherwise, the deletion of a whole lane would not be noticed.

        Raises:
            ConstraintViolation: there are heads already.
        """
        heads = [Head(lane, 0, NO_HASH) for lane in range(self._lanes)]
        await transaction.run_many(_ADD_HEAD, [(head.lane, 0, head.hash, self._signer.mac(head)) for head in heads])

    async def add_missing_lanes(self, transaction: Transaction) -> None:
        """Write the heads of the lanes that SQLite does not have. Call this once, in the transaction that moves the
        audit from SQLite (see `create_lanes`).

        Raises:
            ConstraintViolation: there are heads already.
        """
        heads = [Head(lane, 0, NO_HASH) for lane in range(LANES["sqlite"], self._lanes)]
        await transaction.run_many(_ADD_HEAD, [(head.lane, 0, head.hash, self._signer.mac(head)) for head in heads])

    async def append(self, transaction: Transaction, entry: ChainEntry, writes: Sequence[Write] = ()) -> None:
        """Append the entry to a lane in the transaction, after the statements `writes`, which write its record. On
        PostgreSQL, all are one statement, if possible.

        A head without a valid MAC is logged as an error and never gets a valid MAC again. The service continues to
        work, and the verification of the audit reports the head.

        Raises:
            Unavailable: every lane was locked for too long.
            RuntimeError: the lanes are missing.
        """
        if not self._is_postgres:
            await run_writes(transaction, self.dialect, writes)
        entry_id = self._entry_ids.new_id()
        head = self._cached_head(transaction)
        next_head = None if head is None else await self._extend(transaction, head, entry_id, entry, writes)
        if next_head is None:
            # The writes were run even if the lane has changed since its head was cached.
            writes = writes if head is None else ()
            next_head = await self._extend(transaction, await self._lock_lane(transaction), entry_id, entry, writes)
        if next_head is None:
            raise RuntimeError("a lane of the audit changed although this transaction has locked it")
        self._cache_head(transaction, next_head)

    def _cached_head(self, transaction: Transaction) -> Head | None:
        locked_lane = self._locked_lanes.get(transaction) if self._is_postgres else None
        if locked_lane is not None:
            return locked_lane.head
        return self._cached.popitem()[1] if self._cached else None

    def _cache_head(self, transaction: Transaction, head: Head) -> None:
        if not self._is_postgres:
            # The next writer can use this head, unless the transaction is rolled back.
            self._cached[head.lane] = head
            return
        locked_lane = self._locked_lanes.get(transaction)
        if locked_lane is None:
            self._locked_lanes[transaction] = locked_lane = _TransactionLane(head)
            transaction.after_commit(lambda: self._release(locked_lane))
        locked_lane.head = head

    def _release(self, locked_lane: _TransactionLane) -> None:
        self._cached[locked_lane.head.lane] = locked_lane.head

    async def _extend(
        self, transaction: Transaction, head: Head, entry_id: str, entry: ChainEntry, writes: Sequence[Write]
    ) -> Head | None:
        """Append the entry after this head and return the new head. Return None if the lane has changed or is locked.
        On PostgreSQL, run the writes in both cases."""
        number = head.number + 1
        columns = (
            entry_id,
            1,
            0,
            entry.at,
            head.lane,
            number,
            entry.user_id,
            entry.agent_token,
            entry.agent,
            entry.command,
            entry.model,
            entry.record_id,
            entry.fields,
            entry.changes,
            entry.plan_id,
            entry.request_id,
        )
        next_head = Head(head.lane, number, entry_hash(head.hash, columns), head.is_sound)
        mac = self._signer.mac(next_head)
        if self._is_postgres:
            text, values = with_writes(_EXTEND, (next_head.hash, *columns, mac, head.hash), writes)
            return next_head if await transaction.run(text, *values) else None
        if not await transaction.run(_MOVE, head.lane, number, next_head.hash, mac, head.hash):
            return None
        await transaction.run(_INSERT, next_head.hash, *columns)
        return next_head

    async def _lock_lane(self, transaction: Transaction) -> Head:
        """Lock a lane until this transaction ends, and return its head."""
        row = await self._lock_any(transaction) if self._is_postgres else await transaction.fetch_one(_HEAD, 0)
        if row is None:
            raise RuntimeError("the audit has no lanes: restore the table audit_lane from a backup")
        head = self._signer.verified_head(*row)
        if not head.is_sound:
            self._log.error("head of the audit was changed outside the service", lane=head.lane, number=head.number)
        return head

    async def _lock_any(self, transaction: Transaction) -> Row | None:
        row = await transaction.fetch_one(_FREE_HEAD, self._start)
        if row is not None:
            return row
        # All lanes are locked, so wait for one. Each waiting transaction chooses the next lane.
        self._start = (self._start + 1) % self._lanes
        return await transaction.fetch_one(_HEAD_WHEN_FREE, self._start)


@dataclass(frozen=True, slots=True)
class AccessEvent:
    """An access event, such as a sign-in, described as a command: its name, its record, and the fields that it set."""

    user_id: str
    command: str
    model: str
    record_id: str
    values: Mapping[str, object] = field(default_factory=dict[str, object])


RecordEvent: TypeAlias = Callable[[Transaction, AccessEvent], Awaitable[None]]
"""A function that records an access event. Code that changes access rights calls it in the same transaction."""


def audit_recorder(chain: Chain, request_id: str) -> RecordEvent:
    """Return a function that appends an audit entry for each access event, with the new values. These values are never
    personal."""

    async def note(transaction: Transaction, event: AccessEvent) -> None:
        changes = {name: [None, value] for name, value in event.values.items() if value is not None}
        entry = ChainEntry(
            at=clock.now(),
            user_id=event.user_id,
            agent_token=None,
            agent=None,
            command=event.command,
            model=event.model,
            record_id=event.record_id,
            fields=",".join(changes),
            changes=msgspec.json.encode(changes).decode(),
            plan_id=None,
            request_id=request_id,
        )
        await chain.append(transaction, entry)

    return note
