"""The command `history`: what was done to one record, as far as its caller may see it now."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TypeAlias

import msgspec

from countersign.kernel import clock
from countersign.kernel.database.port import Row
from countersign.records.access.view import ModelView
from countersign.records.commands import get, incoming, outgoing
from countersign.records.commands.refusals import refuse_unknown_keys
from countersign.records.commands.run import Body, Run
from countersign.records.masking import swap

MAX_ENTRIES = 1_000

_ENTRIES = """
SELECT e.at, e.command, u.username, e.agent, e.changes, e.user_id
FROM audit_entry AS e
LEFT JOIN "user" AS u ON u.id = e.user_id
WHERE e.record_id = $1 AND e.model = $2
ORDER BY e.at DESC, e.number DESC
"""

Changed: TypeAlias = Callable[
    [Run, ModelView | None, Mapping[str, list[object]]], Awaitable[dict[str, list[object]]]
]
"""Shows before and after of the fields a viewer sees."""


class Entry(msgspec.Struct):
    """One thing that was done to the record; `by` whom, if the caller sees that user."""

    at: str
    command: str
    by: str | None
    agent: str | None
    changes: dict[str, list[object]]


async def history(run: Run, model: str, body: Body, changed: Changed) -> list[Entry]:
    """The newest changes first. What touched nothing the caller sees is left out, as if it had not happened.

    Raises:
        BadInput: an unknown key, or no such record for the caller.
    """
    refuse_unknown_keys(body, ("id",), f"{model}.history")
    await get.read(run, model, body.get("id"))
    view = run.view_of(model)
    rows = await run.reader.fetch(_ENTRIES, str(body["id"]), model)
    names = await _names(run, rows)
    found: list[Entry] = []
    for at, command, username, agent, changes, user_id in rows:
        seen = await changed(run, view, msgspec.json.decode(changes))
        # Counted after what is hidden was left out, or else hidden changes would push seen ones away.
        if seen and len(found) < MAX_ENTRIES:
            found.append(Entry(clock.rfc3339(at), command, names(user_id, username), names(None, agent), seen))
    return found


async def _names(run: Run, rows: Sequence[Row]) -> Callable[[str | None, str | None], str | None]:
    """How people (by id) and agents are named to the caller: the former only if it sees them."""
    people = await _seen_people(run, {row[5] for row in rows if row[5]})
    literals = await outgoing.literals(run, [text for row in rows for text in (row[2], row[3]) if text])

    def name(user_id: str | None, text: str | None) -> str | None:
        if text is None or (user_id is not None and user_id not in people):
            return None
        return swap.replaced(run.engine.grammar, text, literals)

    return name


async def _seen_people(run: Run, user_ids: Collection[str]) -> Collection[str]:
    """Those of the people whose names the caller may know: its own person's, and of the others those it sees."""
    view = run.caller.view.models.get("user")
    own = {run.caller.user_id}
    if view is None or not view.sees_in_clear("username") or not user_ids:
        return own
    return own | await incoming.among(run, "user", sorted(user_ids))
