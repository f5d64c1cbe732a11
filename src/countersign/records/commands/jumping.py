"""Pages far down a list, at once: the way there is gone in steps, and their ends are remembered while nothing changes.

OFFSET alone walks past every row before the page each time. A remembered place is as good as its list: it holds for
one version of the data, which every statement that uses it reads in its own snapshot. The version is the number of
entries in the audit, which every change of a record adds to.
"""

import asyncio
import hashlib

from countersign.declare.rules.whole import BASE
from countersign.kernel import clock
from countersign.kernel.database.port import Row
from countersign.records.commands.places import Known, Listed, Place, pieces
from countersign.records.commands.query import Query
from countersign.records.commands.run import Run
from countersign.records.commands.select import Statement

LEAST = 1_000
"""Rows that are walked past as fast as a place is looked up."""

MAX_LISTS = 32
_AUDIT = "audit_entry"


def is_far(run: Run, model: str, asked: Query) -> bool:
    """Whether the query is of a page so far down that it is worth remembering the way.

    Not of the engine's own models, some of whose columns change without an entry, but of the audit itself.
    """
    is_own = run.engine.registry.module_of[model].name == BASE and model != _AUDIT
    return asked.offset >= LEAST and not is_own


class Changed(Exception):
    """The data are no longer those that the remembered places are of."""


async def page(run: Run, listed: Listed, offset: int, limit: int) -> list[Row] | None:
    """The rows of a page; None when the data change on the way, so that it has to be read in one statement.

    Raises:
        Unavailable: a read took too long; the way so far is remembered for the next try.
    """
    lists = run.engine.places
    key = hashlib.blake2b(listed.identity().encode(), digest_size=16).digest()
    # Of many lists, the one that was not asked for longest is forgotten.
    known = lists.pop(key, None) or Known()
    if len(lists) >= MAX_LISTS:
        del lists[next(iter(lists))]
    lists[key] = known
    try:
        return await Way(run, listed, known).page(offset, limit)
    except Changed:
        if lists.get(key) is known:
            del lists[key]
        return None


class Way:
    """The way down one list, from the places that are known of it; each of its methods may raise `Changed`."""

    def __init__(self, run: Run, listed: Listed, known: Known) -> None:
        self._database = run.engine.records.database
        self._until_s = clock.monotonic_s() + run.engine.records.settings.read_deadline_s / 2
        self._listed = listed
        self._known = known

    async def page(self, offset: int, limit: int) -> list[Row]:
        """The rows from the offset on."""
        place = self._known.before(offset)
        while place.offset < offset:
            left = offset - place.offset
            # Late, the rest is gone in one: the deadline of a read is for that, and the way so far stays known.
            is_late = clock.monotonic_s() >= self._until_s
            following = await self._after(place, left if is_late else min(self._known.step, left))
            if following is None:
                return []
            if following.offset - place.offset == self._known.step:
                self._known.add(following)
            place = following
            # On SQLite a quick read never waits: others have their turn in between.
            await asyncio.sleep(0)
        return await self._rows(place, limit)

    async def _after(self, place: Place, skip: int) -> Place | None:
        """So many rows further; None where the list has no more."""
        left = skip
        for piece in pieces(place):
            ((*keys,),) = await self._read(self._listed.keys(place, piece, left))
            if keys[-1] is not None:
                return Place(place.offset + skip, tuple(keys))
            ((count,),) = await self._read(self._listed.size(place, piece, left))
            left -= count
        return None

    async def _rows(self, place: Place, limit: int) -> list[Row]:
        found: list[Row] = []
        for piece in pieces(place):
            rows = await self._read(self._listed.page(place, piece, limit - len(found)))
            found += [row for row in rows if row[0] is not None]
            if len(found) >= limit:
                break
        return found

    async def _read(self, made: Statement) -> list[Row]:
        rows = await self._database.scan(made.text, *made.values)
        if not self._known.holds(int(rows[0][0])):
            raise Changed
        return [row[1:] for row in rows]
