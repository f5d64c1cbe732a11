"""The command `history`: what was done to one record, as far as its caller may see it now."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

import msgspec

from countersign.kernel import clock
from countersign.records.access.view import ModelView
from countersign.records.commands import get
from countersign.records.commands.refusals import BadInput
from countersign.records.commands.run import Body, Run

MOST = 1_000

_ENTRIES = """
SELECT e.at, e.command, u.username, e.agent, e.changes
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
    """One thing that was done to the record."""

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
    for name in body:
        if name != "id":
            raise BadInput(f"unknown key {name} in {model}.history")
    await get.read(run, model, body.get("id"))
    view = run.view_of(model)
    found: list[Entry] = []
    for at, command, username, agent, changes in await run.reader.fetch(_ENTRIES, str(body["id"]), model):
        seen = await changed(run, view, msgspec.json.decode(changes))
        # Counted after what is hidden was left out, or else hidden changes would push seen ones away.
        if seen and len(found) < MOST:
            found.append(Entry(clock.rfc3339(at), command, username, agent, seen))
    return found
