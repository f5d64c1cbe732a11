"""What hangs on a record that a plan deletes or moves: it must still be what it was when the plan is carried out."""

import msgspec

from countersign.declare import Declared
from countersign.records.commands import command as commands
from countersign.records.commands import dependents
from countersign.records.commands.run import Run

_MANY = "more than a deletion takes along"


async def fingerprint(
    run: Run, model: str, command: str, record_id: str | None, *, cascade: bool = False, locks: bool = False
) -> str:
    """Another text when a record was added, changed or taken away that refers to one that the command deletes, or is
    locked by it; empty where there is none. With `locks`, the rows are locked until the transaction ends."""
    declared = run.engine.registry.models[model]
    if record_id is None:
        return ""
    found: object = None
    if command == "delete":
        found = await _dependents(run, model, record_id, cascade=cascade, locks=locks)
    elif command in commands.moves(declared):
        found = await _locked_along(run, declared, record_id, locks=locks)
    return run.engine.vault.keyed(msgspec.json.encode(found)).hex() if found else ""


async def _dependents(run: Run, model: str, record_id: str, *, cascade: bool, locks: bool) -> object:
    found = await dependents.find(run, model, record_id, cascade=cascade, locks=locks)
    return [[*link.source, link.field, link.revision] for link in found.links] if found.complete else _MANY


async def _locked_along(run: Run, model: Declared, record_id: str, *, locks: bool) -> object:
    lock = " FOR UPDATE" if locks and run.engine.dialect == "postgres" else ""
    found: list[tuple[str, str, int]] = []
    for each in run.engine.registry.referrers[model.name]:
        name = each.model.name
        if each.model.locked_with == each.ref.name:
            text = f'SELECT id, revision FROM "{name}" WHERE "{each.ref.name}" = $1 ORDER BY id{lock}'
            found += [(name, *row) for row in await run.transaction.fetch(text, record_id)]
    return found
