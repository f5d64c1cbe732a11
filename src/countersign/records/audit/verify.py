"""Verifies the audit from its first to its last entry, to find changes that were made outside the service."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from countersign.kernel.database.port import Database, Dialect, Row
from countersign.records.audit.chain import COLUMNS, LANES, NO_HASH, TEXTS, Head, HeadSigner, entry_hash

MAX_DEFECTS = 1_000

# Read text as bytes. Invalid text is then reported as a changed entry and does not cause an error in the driver.
_AS_BYTES: dict[Dialect, str] = {"sqlite": "CAST({name} AS BLOB)", "postgres": "convert_to({name}, 'UTF8')"}
_AS_TEXT = frozenset(("id", *TEXTS))

DefectKind: TypeAlias = Literal["changed", "missing", "added", "cut", "head"]
"""The kind of the first defect of a lane. `changed`: this entry or the entry before it was changed. `missing`: an entry
before this entry is missing. `added`: the service did not append this entry. `cut`: the last entries are missing.
`head`: the head is missing, or the service did not sign it."""


@dataclass(frozen=True, slots=True)
class ChainDefect:
    """The first defect of a lane, with the number and the id of the entry at which it was found."""

    lane: int | None
    number: int | None
    id: str | None
    what: DefectKind


@dataclass(frozen=True, slots=True)
class ChainReport:
    """The number of entries that were read, and the first defect of each lane, `MAX_DEFECTS` defects at most."""

    entries: int
    faults: tuple[ChainDefect, ...]

    @property
    def is_intact(self) -> bool:
        """Return whether no defect was found."""
        return not self.faults


async def verify(database: Database, secret: bytes) -> ChainReport:
    """Read the audit once, from one snapshot and in constant memory. Entries can be appended at the same time.

    `secret` is the database's secret. Somebody who can write to the database but does not know the secret cannot
    change, remove, add or move entries unnoticed.
    """
    reader = _LaneReader(HeadSigner(secret), LANES[database.dialect])
    async for rows in database.stream(_all_rows(database.dialect)):
        for row in rows:
            reader.read(row)
    return reader.report()


def _all_rows(dialect: Dialect) -> str:
    """Return the statement for all heads and entries, ordered by lane and number, each head before its entries. The
    first columns are lane, number and hash. For a head, its count and MAC follow, which are never NULL. For an entry,
    two NULLs and the entry's `COLUMNS` follow."""
    columns = [_AS_BYTES[dialect].format(name=f'"{name}"') if name in _AS_TEXT else f'"{name}"' for name in COLUMNS]
    nulls = ", ".join("NULL" for _ in COLUMNS)
    return f"""
SELECT lane, number, hash, NULL AS count, NULL AS mac, {", ".join(columns)}
FROM audit_entry
UNION ALL
SELECT lane, 0, hash, count, mac, {nulls}
FROM audit_lane
ORDER BY 1, 2
"""


class _Lane:
    """The verification state of one lane."""

    def __init__(self, lane: int | None) -> None:
        self.lane = lane
        self.head: Head | None = None
        self.defect: ChainDefect | None = None
        self._count = 0
        self._hash = NO_HASH

    def read(self, number: int | None, stored_hash: bytes, columns: Row) -> None:
        """Check that this entry is the next entry of the lane. After the first defect, the rest of the lane cannot be
        verified and is skipped."""
        if self.defect is not None:
            return
        expected = self._count + 1
        defect: tuple[int | None, DefectKind]
        if number is None or number < expected:
            defect = number, "added"
        elif number > expected:
            defect = expected, "missing"
        elif entry_hash(self._hash, columns) != stored_hash:
            defect = number, "changed"
        elif self.head is not None and number > self.head.number:
            defect = number, "added"
        else:
            self._count, self._hash = number, stored_hash
            return
        self.defect = ChainDefect(self.lane, defect[0], _text(columns[0]), defect[1])

    def end(self) -> ChainDefect | None:
        """Return the first defect of the lane, or None. Call this after the last entry."""
        if self.defect is not None:
            return self.defect
        if self.head is None:
            return ChainDefect(self.lane, 0, None, "head")
        if self._count < self.head.number:
            return ChainDefect(self.lane, self._count + 1, None, "cut")
        if not self.head.is_sound or self._hash != self.head.hash:
            return ChainDefect(self.lane, self._count, None, "head")
        return None


class _LaneReader:
    """Verifies the lanes one after the other."""

    def __init__(self, signer: HeadSigner, lanes: int) -> None:
        self._signer = signer
        self._unseen = set(range(lanes))
        self._lane: _Lane | None = None
        self._entries = 0
        self._defects: list[ChainDefect] = []

    def read(self, row: Row) -> None:
        """Process one row of the statement `_all_rows`."""
        lane_number, number, stored_hash, count, mac, *columns = row
        lane = self._lane
        if lane is None or lane.lane != lane_number:
            self._end_lane()
            self._lane = lane = _Lane(lane_number)
        if mac is not None:
            lane.head = self._signer.verified_head(lane_number, count, stored_hash, mac)
        else:
            self._entries += 1
            lane.read(number, stored_hash, tuple(columns))

    def _end_lane(self) -> None:
        if self._lane is None:
            return
        if self._lane.lane is not None:
            self._unseen.discard(self._lane.lane)
        self._add_defect(self._lane.end())

    def _add_defect(self, defect: ChainDefect | None) -> None:
        if defect is not None and len(self._defects) < MAX_DEFECTS:
            self._defects.append(defect)

    def report(self) -> ChainReport:
        """Return the result. Call this after the last row."""
        self._end_lane()
        for lane in sorted(self._unseen):
            self._add_defect(ChainDefect(lane, 0, None, "head"))
        return ChainReport(self._entries, tuple(self._defects))


def _text(raw: bytes | None) -> str | None:
    return None if raw is None else raw.decode(errors="replace")
