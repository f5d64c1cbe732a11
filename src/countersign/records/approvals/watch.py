"""Watching plans: who asks what changed after a number misses nothing, and costs little while nothing does."""

import asyncio

import msgspec

from countersign.kernel import clock
from countersign.records.approvals import changes
from countersign.records.approvals.commands import require_known
from countersign.records.commands import listing
from countersign.records.commands.reading import Record
from countersign.records.commands.refusals import BadInput
from countersign.records.commands.run import Body, Run

MAX_WAIT_S = 25
_PAUSE_S = 0.1
_NEWEST: Body = {"order": [{"field": "proposed_at", "dir": "desc"}], "limit": changes.MAX_ROWS}


class Watched(msgspec.Struct):
    """Plans that changed, and where to go on; at 0 from the beginning, since the caller's rights may have changed.

    The cursor is the number of a change that the caller sees: what others do does not show in it.
    """

    plans: list[Record]
    cursor: int


async def watch(run: Run, model: str, body: Body) -> object:
    """Wait for plans that changed after `since` (the cursor of the answer before), up to `wait_s` seconds or until the
    server stops.

    Without `since`, or at 0, the newest plans there are.

    Raises:
        BadInput: a value is out of range.
    """
    require_known(body, "plan.watch", "since", "wait_s")
    since = _whole(body, "since", 2**53 - 1)
    until_s = clock.monotonic_s() + _whole(body, "wait_s", MAX_WAIT_S)
    records = run.engine.records
    rights = await records.versions()
    looked_up_to: int | None = since or None
    while True:
        if await records.versions() != rights:
            return Watched([], 0)
        (number,) = await records.plan_version()
        found = Watched([], since)
        if looked_up_to is None:
            found, looked_up_to = await _newest(run, number), number
        elif number > looked_up_to:
            found, looked_up_to = await _changed(run, since, looked_up_to, number)
        if found.plans or _is_over(run, until_s):
            return found
        if looked_up_to >= number:
            await asyncio.sleep(_PAUSE_S)


def _is_over(run: Run, until_s: float) -> bool:
    """Whether the wait was as long as wished, or the server stops."""
    return clock.monotonic_s() >= until_s or (run.stopping is not None and run.stopping.is_set())


def _whole(body: Body, name: str, most: int) -> int:
    value = body.get(name, 0)
    if type(value) is not int or not 0 <= value <= most:
        raise BadInput(f"{name} must be an integer from 0 to {most}")
    return value


async def _newest(run: Run, number: int) -> Watched:
    """The newest plans; what changed after the number, while they were read, is told again."""
    found = await listing.records(run, "plan", _NEWEST)
    changed = await changes.newest(run.reader, number)
    # Where none of them changed lately, one goes on from 1, and is told again of those that changed long ago: from 0
    # one would begin anew each time.
    return Watched(found, max((changed.get(_id(each), 1) for each in found), default=0))


async def _changed(run: Run, since: int, after: int, up_to: int) -> tuple[Watched, int]:
    """Those of the changed plans that the caller sees, in the order of their changes; and up to where was looked."""
    changed = await changes.between(run.reader, after, up_to)
    if not changed:
        return Watched([], since), up_to
    asked: Body = {"filter": [{"field": "id", "op": "in", "value": list(changed)}], "limit": changes.MAX_ROWS}
    found = sorted(await listing.records(run, "plan", asked), key=lambda each: changed[_id(each)])
    looked_up_to = up_to if len(changed) < changes.MAX_ROWS else max(changed.values())
    return Watched(found, changed[_id(found[-1])] if found else since), looked_up_to


def _id(record: Record) -> str:
    return str(msgspec.structs.astuple(record)[0])
