"""What hangs on a record that a plan deletes or moves: it must still be what it was when the plan is carried out."""

from collections.abc import Iterator

import msgspec

from countersign.declare import Declared
from countersign.declare.registry import Referrer
from countersign.records.commands import command as commands
from countersign.records.commands.delete import DEEPEST, MOST_AT_ONCE
from countersign.records.commands.run import Run


async def fingerprint(run: Run, model: str, command: str, record_id: str | None) -> str:
    """Another text when a record was added, changed or taken away that the command would take along; empty where it
    takes none. On PostgreSQL the records are locked until the transaction ends."""
    declared = run.engine.registry.models[model]
    if record_id is None or command not in ("delete", *commands.moves(declared)):
        return ""
    found: list[tuple[str, str, int]] = []
    await _collect(run, declared, command, record_id, found, DEEPEST)
    return run.engine.vault.keyed(msgspec.json.encode(found)).hex() if found else ""


async def _collect(
    run: Run, model: Declared, command: str, record_id: str, found: list[tuple[str, str, int]], depth: int
) -> None:
    lock = " FOR UPDATE" if run.engine.dialect == "postgres" else ""
    for each in _taken(run, model, command):
        name, most = each.model.name, MOST_AT_ONCE + 1
        text = f'SELECT id, revision FROM "{name}" WHERE "{each.ref.name}" = $1 ORDER BY id LIMIT {most}{lock}'
        for child_id, revision in await run.transaction.fetch(text, record_id):
            found.append((name, child_id, revision))
            if command == "delete" and each.ref.on_delete == "cascade" and depth:
                await _collect(run, each.model, command, child_id, found, depth - 1)


def _taken(run: Run, model: Declared, command: str) -> Iterator[Referrer]:
    """Whose records go along: on deletion all that do not stand in its way, on an action those locked with it."""
    for each in run.engine.registry.referrers[model.name]:
        is_deleted_along = command == "delete" and each.ref.on_delete != "refuse"
        is_locked_along = command != "delete" and each.model.locked_with == each.ref.name
        if is_deleted_along or is_locked_along:
            yield each
