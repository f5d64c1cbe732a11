"""The command `delete`: a record goes, if nothing that must stay refers to it."""

from countersign.declare import Declared
from countersign.declare.registry import Referrer
from countersign.records.access.view import ModelView
from countersign.records.commands import conditions, locks, writing
from countersign.records.commands.given import Given
from countersign.records.commands.prepared import Prepared
from countersign.records.commands.refusals import BadInput
from countersign.records.commands.revision import require_revision
from countersign.records.commands.run import Body, Run
from countersign.records.commands.sql import Parameters
from countersign.records.commands.stored import StoredRecord

DEEPEST = 8
MOST_AT_ONCE = 10_000


async def check(run: Run, view: ModelView, body: Body) -> Prepared:
    """The input read; whether other records stand in the way is seen when it is done.

    Raises:
        BadInput: an unknown key, no such record, or it has changed since `revision`.
    """
    for name in body:
        if name not in ("id", "revision"):
            raise BadInput(f"unknown key {name} in {view.model.name}.delete")
    record = await writing.find(run, view.model, view.reach("delete"), body.get("id"))
    await require_revision(run, view, record, body)
    return Prepared(view.model.name, "delete", record.id, record.revision)


async def apply(run: Run, prepared: Prepared) -> str:
    """Delete the record with what hangs on it; its id.

    Raises:
        BadInput: it is gone or locked, or a record that stays refers to it.
    """
    model = run.engine.registry.models[prepared.model]
    record = await writing.find(run, model, None, prepared.record_id)
    await locks.require_open(run, model, record.values, prepared.id)
    await _remove(run, model, record, prepared.id, DEEPEST)
    return record.id


async def _remove(run: Run, model: Declared, record: StoredRecord, command: str, depth: int) -> None:
    if not depth:
        raise BadInput(f"{command}: records hang on it more than {DEEPEST} deep; delete those first")
    referrers = run.engine.registry.referrers[model.name]
    for referrer in referrers:
        if referrer.ref.on_delete == "refuse":
            await _require_free(run, referrer, record.id, command)
    for referrer in referrers:
        if referrer.ref.on_delete != "refuse":
            await _let_go(run, referrer, record.id, command, depth)
    await writing.delete(run, model, record, command)


async def _require_free(run: Run, referrer: Referrer, record_id: str, command: str) -> None:
    """Nobody learns of records that are hidden from them more than that one is in the way."""
    name, field = referrer.model.name, referrer.ref.name
    text = f'SELECT 1 FROM "{name}" WHERE "{field}" = $1 LIMIT 1'
    if await run.transaction.fetch_one(text, record_id) is None:
        return
    view = run.caller.view.models.get(name)
    if view is not None and view.sees_in_clear(field):
        parameters = Parameters(record_id)
        scope = conditions.Scope(run.engine.dialect, parameters, "t")
        seen = conditions.any_of(scope, view.model, view.visible)
        counted = f'SELECT count(*) FROM "{name}" AS t WHERE t."{field}" = $1 AND {seen}'
        row = await run.transaction.fetch_one(counted, *parameters.values)
        if row is not None and row[0]:
            words = f"{row[0]} {name} record{'s refer' if row[0] > 1 else ' refers'}"
            raise BadInput(f"{command} is refused: {words} to it by {name}.{field}")
    raise BadInput(f"{command} is refused: another record refers to it")


async def _let_go(run: Run, referrer: Referrer, record_id: str, command: str, depth: int) -> None:
    """Delete the records that hang on it, or empty their ref."""
    model, field = referrer.model, referrer.ref.name
    text = f'SELECT id FROM "{model.name}" WHERE "{field}" = $1 ORDER BY id LIMIT {MOST_AT_ONCE + 1}'
    rows = await run.transaction.fetch(text, record_id)
    if len(rows) > MOST_AT_ONCE:
        raise BadInput(f"{command} is refused: more than {MOST_AT_ONCE} {model.name} records hang on it")
    for (child_id,) in rows:
        child = await writing.find(run, model, None, child_id)
        if referrer.ref.on_delete == "cascade":
            await _remove(run, model, child, command, depth - 1)
        else:
            await writing.update(run, model, child, {field: Given(None)}, command)
