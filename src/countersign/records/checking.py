"""audit_entry.verify: whether the audit is as it was written, for a person who asks instead of running the command."""

import asyncio
from dataclasses import dataclass

import msgspec

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.records.audit import verify
from countersign.records.audit.verify import Report, What
from countersign.records.commands.errors import refuse_unknown_keys
from countersign.records.commands.run import Body, Run


class FaultFound(msgspec.Struct):
    """The first fault of a lane, as `countersign audit verify --json` names it."""

    lane: int | None
    number: int | None
    id: str | None
    what: What


class Checked(msgspec.Struct):
    """What reading the whole audit, begun at `checked_at`, came to.

    How many entries there are, and which one is wrong, is told to administrators alone: to everybody else it would
    say how much is hidden from them.
    """

    is_intact: bool
    checked_at: str
    entries: int | None
    faults: list[FaultFound] | None


@dataclass(frozen=True, slots=True)
class _Reading:
    begun: Instant
    report: asyncio.Task[Report]


class AuditCheck:
    """One reading of the audit at a time in this process: who asks while it goes on is told what it finds."""

    def __init__(self) -> None:
        self._reading: _Reading | None = None

    async def verify(self, run: Run, model: str, body: Body) -> object:
        """Read the audit from its first entry to its last.

        Raises:
            BadInput: it was given an input.
            Unavailable: the database cannot be reached.
        """
        refuse_unknown_keys(body, (), "audit_entry.verify")
        reading = self._reading
        if reading is None or reading.report.done():
            records = run.engine.records
            report = asyncio.create_task(verify.verify(records.database, records.secret))
            self._reading = reading = _Reading(clock.now(), report)
        # Whoever began it may leave before it ends; the others still wait for it.
        report = await asyncio.shield(reading.report)
        is_told = run.caller.is_administrator
        return Checked(
            report.is_intact,
            clock.rfc3339(reading.begun),
            report.entries if is_told else None,
            [FaultFound(each.lane, each.number, each.id, each.what) for each in report.faults] if is_told else None,
        )
