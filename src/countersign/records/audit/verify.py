"""Verification of the audit from its first entry to its last, to find changes made outside the service."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from countersign.kernel.database.port import Database, Dialect, Row
from countersign.records.audit.chain import COLUMNS, LANES, NO_HASH, TEXTS, Head, HeadSigner, entry_hash

MAX_FAULTS = 1_000

# Text as bytes, so that invalid text is a changed entry and not an error of the driver.
_AS_BYTES: dict[Dialect, str] = {"sqlite": "CAST({name} AS BLOB)", "postgres": "convert_to({name}, 'UTF8')"}
_AS_TEXT = frozenset(("id", *TEXTS))

What: TypeAlias = Literal["changed", "missing", "added", "cut", "head"]
"""The first defect of a lane: an entry (or the one before it) was changed; an entry is missing before this one; an
entry was added that the service did not append; the last entries are missing; or the head is missing or was not signed
by the service."""


@dataclass(frozen=True, slots=True)
class ChainDefect:
    """The first defect of a lane: its number, and the id of the entry with that number."""

    lane: int | None
    number: int | None
    id: str | None
    what: What


@dataclass(frozen=True, slots=True)
class ChainReport:
    """How many entries were read, and the first defect of each lane, up to `MAX_FAULTS`."""

    entries: int
    faults: tuple[ChainDefect, ...]

    @property
    def is_intact(self) -> bool:
        """Whether no defect was found."""
        return not self.faults


async def verify(database: Database, secret: bytes) -> ChainReport:
    """Read the audit once, from one snapshot and in constant memory; appending continues meanwhile.

    `secret` is the database's secret. Without it, entries cannot be changed, removed, added, moved or truncated
    unnoticed; write access to the database does not include it.
    """
    reading = _LaneReader(HeadSigner(secret), LANES[database.dialect])
    async for rows in database.stream(_everything(database.dialect)):
        for row in rows:
            reading.read(row)
    return reading.report()


def _everything(dialect: Dialect) -> str:
    """Heads and entries by lane and number, the head first: lane, number, hash, then a head's count and MAC (never
    NULL), or NULLs and an entry's `COLUMNS`."""
    columns = [_AS_BYTES[dialect].format(name=f'"{name}"') if name in _AS_TEXT else f'"{name}"' for name in COLUMNS]
    nothing = ", ".join("NULL" for _ in COLUMNS)
    return f"""
SELECT lane, number, hash, NULL AS count, NULL AS mac, {", ".join(columns)}
FROM audit_entry
UNION ALL
SELECT lane, 0, hash, count, mac, {nothing}
FROM audit_lane
ORDER BY 1, 2
"""


class _Lane:
    """The verification state of one lane."""

    def __init__(self, lane: int | None) -> None:
        self.lane = lane
        self.head: Head | None = None
        self.fault: ChainDefect | None = None
        self._count = 0
        self._hash = NO_HASH

    def read(self, number: int | None, stored_hash: bytes, columns: Row) -> None:
        """Check that this entry is the next one that was appended. After a defect the rest of the lane cannot be
        verified."""
        if self.fault is not None:
            return
        expected = self._count + 1
        fault: tuple[int | None, What]
        if number is None or number < expected:
            fault = number, "added"
        elif number > expected:
            fault = expected, "missing"
        elif entry_hash(self._hash, columns) != stored_hash:
            fault = number, "changed"
        elif self.head is not None and number > self.head.number:
            fault = number, "added"
        else:
            self._count, self._hash = number, stored_hash
            return
        self.fault = ChainDefect(self.lane, fault[0], _text(columns[0]), fault[1])

    def end(self) -> ChainDefect | None:
        """The first defect, after the last entry."""
        if self.fault is not None:
            return self.fault
        if self.head is None:
            return ChainDefect(self.lane, 0, None, "head")
        if self._count < self.head.number:
            return ChainDefect(self.lane, self._count + 1, None, "cut")
        if not self.head.is_sound or self._hash != self.head.hash:
            return ChainDefect(self.lane, self._count, None, "head")
        return None


class _LaneReader:
    """Reads the lanes one after another."""

    def __init__(self, signer: HeadSigner, lanes: int) -> None:
        self._signer = signer
        self._unseen = set(range(lanes))
        self._lane: _Lane | None = None
        self._entries = 0
        self._faults: list[ChainDefect] = []

    def read(self, row: Row) -> None:
        """One row of `_everything`."""
        number_of_lane, number, stored_hash, count, mac, *columns = row
        lane = self._lane
        if lane is None or lane.lane != number_of_lane:
            self._end()
            self._lane = lane = _Lane(number_of_lane)
        if mac is not None:
            lane.head = self._signer.checked(number_of_lane, count, stored_hash, mac)
        else:
            self._entries += 1
            lane.read(number, stored_hash, tuple(columns))

    def _end(self) -> None:
        if self._lane is None:
            return
        if self._lane.lane is not None:
            self._unseen.discard(self._lane.lane)
        self._add(self._lane.end())

    def _add(self, fault: ChainDefect | None) -> None:
        if fault is not None and len(self._faults) < MAX_FAULTS:
            self._faults.append(fault)

    def report(self) -> ChainReport:
        """The result, after the last row."""
        self._end()
        for lane in sorted(self._unseen):
            self._add(ChainDefect(lane, 0, None, "head"))
        return ChainReport(self._entries, tuple(self._faults))


def _text(raw: bytes | None) -> str | None:
    return None if raw is None else raw.decode(errors="replace")
