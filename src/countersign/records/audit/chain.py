"""The audit: entries in hash chains whose heads carry a MAC, and recording what happens in access."""

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
"""How many chains there are side by side, numbered from 0: one for each transaction that may write at a time."""

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
"""The columns under the hash, in this order, for ever: another order or column would be another chain."""

NO_HASH = bytes(32)
"""Stands before the first entry of a lane."""

_HEAD_STRUCT = struct.Struct(">qq32s")


class Head(NamedTuple):
    """Where a lane ends: number and hash of its last entry, 0 and `NO_HASH` without one. Only a sound one is signed."""

    lane: int
    number: int
    hash: bytes
    is_sound: bool = True


class HeadSigner:
    """Makes and checks the MACs of heads: without the key nobody can shorten a lane, or write it anew."""

    def __init__(self, secret: bytes) -> None:
        """Takes the database's secret, from which the key derives."""
        self._signer = encryption.signer_for(secret, "audit/head")

    def mac(self, head: Head) -> bytes:
        """The MAC over lane, number and hash; empty, which is never valid, when the head is not sound."""
        return self._signer.sign(_HEAD_STRUCT.pack(head.lane, head.number, head.hash)) if head.is_sound else b""

    def checked(self, lane: int, number: int, last: bytes, mac: bytes) -> Head:
        """The head as stored, sound only with its own MAC."""
        # A hash of another length would be padded or cut to one that fits.
        is_sound = len(last) == len(NO_HASH) and self._signer.verify(_HEAD_STRUCT.pack(lane, number, last), mac)
        return Head(lane, number, last, is_sound)


def entry_hash(previous: bytes, columns: Sequence[None | int | str | bytes]) -> bytes:
    """SHA-256 over the 32 bytes of the hash before, then each of `COLUMNS`: `-` for NULL, else its length, `:` and it.

    Numbers are decimal, text is UTF-8 (given as such or as its bytes), lengths are decimal and in bytes.
    """
    if any(isinstance(value, bytes) for value in columns):
        return _hash_of_bytes(previous, columns)
    texts = ["-" if value is None else f"{len(text := str(value))}:{text}" for value in columns]
    whole = "".join(texts)
    # Most text is ASCII, where a length in characters is the one in bytes.
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
# is no longer where it was remembered; there is no point in waiting for it.
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
    """One thing that was done, at a moment in µs.

    `user_id` is the person who did it or on whose behalf the agent did; `fields` are the names changed, separated by
    commas; `changes` is JSON text in which personal values are sealed already.
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
    """The audit of one database, for any number of transactions at a time and processes beside this one.

    Heads are remembered from entry to entry, which saves reading them. A remembered head may be wrong (the
    transaction or savepoint was rolled back, another process went on): a lane is moved only from the very hash that
    the new entry follows, and read when it is not there.
    """

    def __init__(self, dialect: Dialect, secret: bytes) -> None:
        """Takes the database's secret, from which the key of the heads derives."""
        self._is_postgres = dialect == "postgres"
        self._lanes = LANES[dialect]
        self._signer = HeadSigner(secret)
        self._log = telemetry.logger("audit")
        # Processes begin to look at different lanes, so that each finds its own where it left them.
        self._start = int.from_bytes(ids.random_bytes(2)) % self._lanes
        self._free: dict[int, Head] = {}
        self._held: WeakKeyDictionary[Transaction, _TransactionLane] = WeakKeyDictionary()

    async def begin(self, transaction: Transaction) -> None:
        """Write the heads of the empty lanes: once, in the transaction that stores the database's secret.

        Made later, or again, they would be what somebody needs who deleted a lane altogether.

        Raises:
            ConstraintViolation: there are heads already.
        """
        heads = [Head(lane, 0, NO_HASH) for lane in range(self._lanes)]
        await transaction.run_many(_BEGIN, [(head.lane, 0, head.hash, self._signer.mac(head)) for head in heads])

    async def widen(self, transaction: Transaction) -> None:
        """Write the heads of the lanes that SQLite does not have, once, in the transaction that moves the audit from
        there: see `begin`.

        Raises:
            ConstraintViolation: there are heads already.
        """
        heads = [Head(lane, 0, NO_HASH) for lane in range(LANES["sqlite"], self._lanes)]
        await transaction.run_many(_BEGIN, [(head.lane, 0, head.hash, self._signer.mac(head)) for head in heads])

    async def append(self, transaction: Transaction, entry: ChainEntry) -> None:
        """Add the entry to a lane, to be kept or rolled back with everything else in the transaction.

        A head found without its MAC is logged as an error and never gets a valid one again, so that work goes on and
        verifying the audit shows it.

        Raises:
            Unavailable: every lane was taken for too long.
            RuntimeError: the lanes are missing.
        """
        entry_id = ids.new_record_id()
        head = self._remembered(transaction)
        following = None if head is None else await self._extend(transaction, head, entry_id, entry)
        if following is None:
            following = await self._extend(transaction, await self._take(transaction), entry_id, entry)
        if following is None:
            raise RuntimeError("a lane of the audit moved although this transaction holds it")
        self._remember(transaction, following)

    def _remembered(self, transaction: Transaction) -> Head | None:
        holding = self._held.get(transaction) if self._is_postgres else None
        if holding is not None:
            return holding.head
        return self._free.popitem()[1] if self._free else None

    def _remember(self, transaction: Transaction, head: Head) -> None:
        if not self._is_postgres:
            # Whoever writes next sees this entry, unless it was rolled back.
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
        """Add the entry after this head; None when the lane is elsewhere by now, or taken."""
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
        """The head of a lane that nobody else can move until this transaction ends."""
        row = await self._locked(transaction) if self._is_postgres else await transaction.fetch_one(_HEAD, 0)
        if row is None:
            raise RuntimeError("the audit has no lanes: restore the table audit_lane from a backup")
        head = self._signer.checked(*row)
        if not head.is_sound:
            self._log.error("head of the audit changed by somebody else", lane=head.lane, number=head.number)
        return head

    async def _locked(self, transaction: Transaction) -> Row | None:
        row = await transaction.fetch_one(_FREE_HEAD, self._start)
        if row is not None:
            return row
        # All are taken: wait for one, each waiting transaction for the next.
        self._start = (self._start + 1) % self._lanes
        return await transaction.fetch_one(_HEAD_WHEN_FREE, self._start)


@dataclass(frozen=True, slots=True)
class AccessEvent:
    """One thing a person did: the command it counts as, the record it was done to, and what fields it set."""

    user_id: str
    command: str
    model: str
    record_id: str
    values: Mapping[str, object] = field(default_factory=dict[str, object])


RecordEvent: TypeAlias = Callable[[Transaction, AccessEvent], Awaitable[None]]
"""Writes a happening down; whoever opens a transaction of its own calls it before the end."""


def audit_recorder(chain: Chain, request_id: str) -> RecordEvent:
    """What access calls in its transactions: the happening becomes an entry, its values, none of them personal, what
    they were set to."""

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
