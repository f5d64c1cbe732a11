"""The audit: entries in hash chains whose heads have a MAC, and the recording of access events."""

import hashlib
import struct
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

import msgspec

from countersign.kernel import clock, ids, telemetry
from countersign.kernel.database.port import Dialect, Row, Transaction
from countersign.kernel.security import encryption

LANES: dict[Dialect, int] = {"sqlite": 1, "postgres": 32}
"""The number of parallel chains, numbered from 0: one for each concurrent writing transaction."""

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
"""The hashed columns, in this order. They must never change: the hashes of existing entries depend on them."""

NO_HASH = bytes(32)
"""The previous hash of the first entry of a lane."""

_HEAD_STRUCT = struct.Struct(">qq32s")


class Head(NamedTuple):
    """The end of a lane: number and hash of its last entry, or 0 and `NO_HASH`. Only a sound head is signed."""

    lane: int
    number: int
    hash: bytes
    is_sound: bool = True


class HeadSigner:
    """Computes and verifies the MACs of heads: without the key, a lane cannot be truncated or rewritten unnoticed."""

    def __init__(self, secret: bytes) -> None:
        """The key is derived from `secret`, the database's secret."""
        self._signer = encryption.signer_for(secret, "audit/head")

    def mac(self, head: Head) -> bytes:
        """The MAC over lane, number and hash; empty, which is never valid, if the head is not sound."""
        return self._signer.sign(_HEAD_STRUCT.pack(head.lane, head.number, head.hash)) if head.is_sound else b""

    def checked(self, lane: int, number: int, last: bytes, mac: bytes) -> Head:
        """The stored head; it is sound only if its MAC is valid."""
        # A hash of another length would be padded or truncated.
        is_sound = len(last) == len(NO_HASH) and self._signer.verify(_HEAD_STRUCT.pack(lane, number, last), mac)
        return Head(lane, number, last, is_sound)


def entry_hash(previous: bytes, columns: Sequence[None | int | str | bytes]) -> bytes:
    """SHA-256 over the 32 bytes of the previous hash, then each of `COLUMNS`: `-` for NULL, else its length, `:` and
    value.

    Numbers are decimal, text is UTF-8 (passed as str or bytes), lengths are decimal and in bytes.
    """
    if any(isinstance(value, bytes) for value in columns):
        return _hash_of_bytes(previous, columns)
    texts = ["-" if value is None else f"{len(text := str(value))}:{text}" for value in columns]
    whole = "".join(texts)
    # Most text is ASCII, where the lengths in characters and in bytes are equal.
    return hashlib.sha256(previous + whole.encode()).digest() if whole.isascii() else _hash_of_bytes(previous, columns)


def _hash_of_bytes(previous: bytes, columns: Sequence[None | int | str | bytes]) -> bytes:
    raws = [value if value is None or isinstance(value, bytes) else str(value).encode() for value in columns]
    pieces = [b"-" if raw is None else b"%d:%b" % (len(raw), raw) for raw in raws]
    return hashlib.sha256(previous + b"".join(pieces)).digest()


_BEGIN = "INSERT INTO audit_lane (lane, count, hash, mac) VALUES ($1, $2, $3, $4)"
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
# The same as one statement: $6 is the lane and $7 the number among the columns. A lane that another transaction has
# locked is about to move from the cached head, so waiting for it is useless.
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
    """One audit entry; its time is in µs.

    `user_id` is the person who acted, or for whom the agent acted; `fields` are the names of changed fields, separated
    by commas; `changes` is JSON text whose personal values are sealed already.
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
    """The lane of one transaction."""

    head: Head


class Chain:
    """The audit of one database, for any number of concurrent transactions and processes.

    Heads are cached between entries, which saves reading them. A cached head may be outdated (the transaction or
    savepoint was rolled back, or another process appended): an append succeeds only if the stored hash equals the
    cached one, else the head is read.
    """

    def __init__(self, dialect: Dialect, secret: bytes) -> None:
        """The key of the heads is derived from `secret`, the database's secret."""
        self._is_postgres = dialect == "postgres"
        self._lanes = LANES[dialect]
        self._signer = HeadSigner(secret)
        self._log = telemetry.logger("audit")
        # Processes start at different lanes, so that their cached heads stay valid.
        self._start = int.from_bytes(ids.random_bytes(2)) % self._lanes
        self._free: dict[int, Head] = {}
        self._held: WeakKeyDictionary[Transaction, _TransactionLane] = WeakKeyDictionary()

    async def begin(self, transaction: Transaction) -> None:
        """Write the heads of the empty lanes, once, in the transaction that stores the database's secret.

        If heads could be created later or again, deleting a whole lane would go unnoticed.

        Raises:
            ConstraintViolation: there are heads already.
        """
        heads = [Head(lane, 0, NO_HASH) for lane in range(self._lanes)]
        await transaction.run_many(_BEGIN, [(head.lane, 0, head.hash, self._signer.mac(head)) for head in heads])

    async def widen(self, transaction: Transaction) -> None:
        """Write the heads of the lanes that SQLite does not have, once, in the transaction that moves the audit from
        SQLite: see `begin`.

        Raises:
            ConstraintViolation: there are heads already.
        """
        heads = [Head(lane, 0, NO_HASH) for lane in range(LANES["sqlite"], self._lanes)]
        await transaction.run_many(_BEGIN, [(head.lane, 0, head.hash, self._signer.mac(head)) for head in heads])

    async def append(self, transaction: Transaction, entry: ChainEntry) -> None:
        """Append the entry to a lane, as part of the transaction.

        A head without a valid MAC is logged as an error and never gets a valid one again: the service keeps working,
        and verifying the audit reports it.

        Raises:
            Unavailable: every lane was locked for too long.
            RuntimeError: the lanes are missing.
        """
        entry_id = ids.new_record_id()
        head = self._remembered(transaction)
        following = None if head is None else await self._extend(transaction, head, entry_id, entry)
        if following is None:
            following = await self._extend(transaction, await self._take(transaction), entry_id, entry)
        if following is None:
            raise RuntimeError("a lane of the audit changed although this transaction has locked it")
        self._remember(transaction, following)

    def _remembered(self, transaction: Transaction) -> Head | None:
        holding = self._held.get(transaction) if self._is_postgres else None
        if holding is not None:
            return holding.head
        return self._free.popitem()[1] if self._free else None

    def _remember(self, transaction: Transaction, head: Head) -> None:
        if not self._is_postgres:
            # The next writer sees this entry, unless it is rolled back.
            self._free[head.lane] = head
            return
        holding = self._held.get(transaction)
        if holding is None:
            self._held[transaction] = holding = _TransactionLane(head)
            transaction.after_commit(lambda: self._give_back(holding))
        holding.head = head

    def _give_back(self, holding: _TransactionLane) -> None:
        self._free[holding.head.lane] = holding.head

    async def _extend(self, transaction: Transaction, head: Head, entry_id: str, entry: ChainEntry) -> Head | None:
        """Append the entry after this head; None if the lane has changed or is locked."""
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
        following = Head(head.lane, number, entry_hash(head.hash, columns), head.is_sound)
        mac = self._signer.mac(following)
        if self._is_postgres:
            return following if await transaction.run(_EXTEND, following.hash, *columns, mac, head.hash) else None
        if not await transaction.run(_MOVE, head.lane, number, following.hash, mac, head.hash):
            return None
        await transaction.run(_INSERT, following.hash, *columns)
        return following

    async def _take(self, transaction: Transaction) -> Head:
        """The head of a lane, locked until this transaction ends."""
        row = await self._locked(transaction) if self._is_postgres else await transaction.fetch_one(_HEAD, 0)
        if row is None:
            raise RuntimeError("the audit has no lanes: restore the table audit_lane from a backup")
        head = self._signer.checked(*row)
        if not head.is_sound:
            self._log.error("head of the audit was changed outside the service", lane=head.lane, number=head.number)
        return head

    async def _locked(self, transaction: Transaction) -> Row | None:
        row = await transaction.fetch_one(_FREE_HEAD, self._start)
        if row is not None:
            return row
        # All are locked: wait for one; each waiting transaction waits for the next lane.
        self._start = (self._start + 1) % self._lanes
        return await transaction.fetch_one(_HEAD_WHEN_FREE, self._start)


@dataclass(frozen=True, slots=True)
class AccessEvent:
    """An access event: the equivalent command, its record, and the fields that it set."""

    user_id: str
    command: str
    model: str
    record_id: str
    values: Mapping[str, object] = field(default_factory=dict[str, object])


RecordEvent: TypeAlias = Callable[[Transaction, AccessEvent], Awaitable[None]]
"""Records an access event; code that opens a transaction calls it before the end."""


def audit_recorder(chain: Chain, request_id: str) -> RecordEvent:
    """The recorder for transactions of the access package: it appends each event with its new values, none of which is
    personal."""

    async def note(transaction: Transaction, happening: AccessEvent) -> None:
        changes = {name: [None, value] for name, value in happening.values.items() if value is not None}
        entry = ChainEntry(
            at=clock.now(),
            user_id=happening.user_id,
            agent_token=None,
            agent=None,
            command=happening.command,
            model=happening.model,
            record_id=happening.record_id,
            fields=",".join(changes),
            changes=msgspec.json.encode(changes).decode(),
            plan_id=None,
            request_id=request_id,
        )
        await chain.append(transaction, entry)

    return note
