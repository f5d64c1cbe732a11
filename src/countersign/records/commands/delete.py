"""The command `delete`: a record that no other one refers to; with `cascade`, also what its references declare."""

from dataclasses import replace

from countersign.declare import Declared
from countersign.declare.fields.field import Stored
from countersign.records.access.view import ModelView
from countersign.records.commands import dependents, locks, proposal_checks, writing
from countersign.records.commands.dependents import Dependents, Key
from countersign.records.commands.given import Given
from countersign.records.commands.prepared import Prepared
from countersign.records.commands.refusals import BadInput, refuse_unknown_keys
from countersign.records.commands.revision import require_revision
from countersign.records.commands.run import Body, Run
from countersign.records.commands.stored import StoredRecord


async def check(run: Run, view: ModelView, body: Body) -> Prepared:
    """The input read. Of the records that refer to this one, only those that an agent sees count here: the others are
    looked at when the deletion is done.

    Raises:
        BadInput: an unknown key, no such record, it has changed since `revision`, or an agent sees a record that
            prevents the deletion.
    """
    name = view.model.name
    refuse_unknown_keys(body, ("id", "revision", "cascade"), f"{name}.delete")
    cascade = body.get("cascade", False)
    if not isinstance(cascade, bool):
        raise BadInput("cascade must be true or false")
    record = await writing.find(run, view.model, view.reach("delete"), body.get("id"))
    await require_revision(run, view, record, body)
    prepared = Prepared(name, "delete", record.id, record.revision, cascade=cascade)
    if run.caller.is_agent and await dependents.is_blocked_as_seen(run, prepared):
        raise BadInput(dependents.REFUSAL)
    await proposal_checks.require_deletable(run, view, record, prepared)
    return prepared


async def apply(run: Run, prepared: Prepared) -> str:
    """Delete the record, and with `cascade` what its references declare; its id.

    Raises:
        BadInput: it is gone or locked; a record that stays refers to it, or to one that goes along; one of those that
            go along or change is locked; or there are too many of them.
    """
    model = run.engine.registry.models[prepared.model]
    record = await writing.find(run, model, None, prepared.record_id)
    await locks.require_open(run, model, record.values, prepared.id)
    limit = dependents.MAX_RECORDS if prepared.cascade else 0
    found = await dependents.find(run, model.name, record.id, cascade=prepared.cascade, locks=True, limit=limit)
    if found.blocking:
        raise BadInput(dependents.REFUSAL)
    if not found.complete:
        more = f"more than {limit} other records"
        raise BadInput(f"{prepared.id} is refused: it would delete or change {more}; delete some of them first")
    await _clear(run, found, prepared.id)
    await _remove(run, found, record, prepared.id)
    return record.id


async def _clear(run: Run, found: Dependents, command: str) -> None:
    """Empty the refs of records that stay, several refs of a record in one change."""
    fields: dict[Key, dict[str, Given]] = {}
    for link in found.cleared:
        fields.setdefault(link.source, {})[link.field] = Given(None, is_default=True)
    for key, given in fields.items():
        model, record = await _open(run, key, command)
        await writing.update(run, model, record, given, command)


async def _remove(run: Run, found: Dependents, root: StoredRecord, command: str) -> None:
    """Delete the records, those that refer to others before these."""
    order, exists = found.leaves_first()
    emptied = {} if exists else await _untie(run, found)
    gone = frozenset(found.deleted)
    for key in order:
        model, record = run.engine.registry.models[key[0]], root
        if key != found.deleted[0]:
            model, record = await _open(run, key, command)
            record = replace(record, values={**record.values, **emptied.get(key, {})})
        await writing.delete(run, model, record, command, gone)


async def _open(run: Run, key: Key, command: str) -> tuple[Declared, StoredRecord]:
    """A record that is deleted or changed along.

    Raises:
        BadInput: it is locked.
    """
    model = run.engine.registry.models[key[0]]
    record = await writing.find(run, model, None, key[1])
    await locks.require_open(run, model, record.values, command)
    return model, record


async def _untie(run: Run, found: Dependents) -> dict[Key, dict[str, Stored]]:
    """Empty the refs among deleted records that refer to each other in a circle, since the database checks each
    deletion by itself; the refs that they had."""
    gone = frozenset(found.deleted)
    had: dict[Key, dict[str, Stored]] = {}
    for link in found.links:
        if link.source in gone and link.target in gone:
            name, record_id = link.source
            had.setdefault(link.source, {})[link.field] = link.target[1]
            await run.transaction.run(f'UPDATE "{name}" SET "{link.field}" = NULL WHERE id = $1', record_id)
    return had
