"""What an agent is refused at once: a plan that can only fail, for a reason that the agent sees, is never proposed."""

from collections.abc import Collection, Mapping

from countersign.declare.computing import computed
from countersign.declare.fields.field import Stored
from countersign.kernel.turns import Turns
from countersign.records.access.view import ModelView, Rows
from countersign.records.commands import conditions, dependents, incoming, locks, record_rules, writing
from countersign.records.commands.given import Given
from countersign.records.commands.prepared import Prepared
from countersign.records.commands.run import Run
from countersign.records.commands.sql import Parameters
from countersign.records.commands.stored import StoredRecord


async def require_creatable(run: Run, view: ModelView, given: Mapping[str, Given], command: str) -> None:
    """Insist on what an agent sees by itself of the locks, the rules and the unique values of a new record.

    Raises:
        BadInput: the record cannot be made.
    """
    if not run.caller.is_agent:
        return
    values: dict[str, Stored] = {name: None for name in view.model.fields}
    values |= {name: each.stored for name, each in given.items()}
    await locks.require_open_as_seen(run, view.model, values, command)
    if not _is_touched(run, values):
        await record_rules.require_as_seen(run, view, values, list(view.model.fields), command)
    await _require_unique(run, view, values, given, None)
    values |= computed(view.model, values)
    writing.require_in_range(run, view.model, values)
    await _require_totals(run, view, values, None)


async def require_changeable(
    run: Run, view: ModelView, record: StoredRecord, given: Mapping[str, Given], command: str
) -> None:
    """The same of a change of a record, and of where it moves to.

    Raises:
        BadInput: the record cannot be changed so.
    """
    if not run.caller.is_agent or run.is_touched(record.id):
        return
    values = {**record.values, **{name: each.stored for name, each in given.items()}}
    await locks.require_open_as_seen(run, view.model, record.values, command)
    if view.model.locked_with in given:
        await locks.require_open_as_seen(run, view.model, values, command)
    if not _is_touched(run, values):
        await record_rules.require_as_seen(run, view, values, list(given), command)
    await _require_unique(run, view, values, given, record.id)
    await _require_totals(run, view, {**values, **computed(view.model, values)}, record.values)


async def require_deletable(run: Run, view: ModelView, record: StoredRecord, prepared: Prepared) -> None:
    """The same of a deletion, and of what it takes along.

    Raises:
        BadInput: the record cannot be deleted, or one that goes along or changes cannot be.
    """
    if not run.caller.is_agent or run.is_touched(record.id):
        return
    await locks.require_open_as_seen(run, view.model, record.values, prepared.id)
    if not prepared.cascade:
        return
    found = await dependents.find(run, view.model.name, record.id, cascade=True, seen_by=run.caller.view)
    along = dict.fromkeys((*found.deleted[1:], *(link.source for link in found.cleared)))
    async for name, record_id in Turns(along):
        model = run.engine.registry.models[name]
        if (model.locked or model.locked_with) and not run.is_touched(record_id):
            other = await writing.find(run, model, None, record_id)
            await locks.require_open_as_seen(run, model, other.values, prepared.id)


async def _require_totals(
    run: Run, view: ModelView, values: Mapping[str, Stored], before: Mapping[str, Stored] | None
) -> None:
    """Of the totals that the record counts into, those that the caller sees stay within what every client reads;
    `before` are the values of a record that is there."""
    for total in run.engine.registry.totals[view.model.name]:
        above, parent_id, amount = run.caller.view.models.get(total.parent.name), values[total.by], values[total.of]
        if above is None or not above.knows(total.field) or not isinstance(parent_id, str):
            continue
        if before is not None and not (view.knows(total.of) and view.knows(total.by)):
            continue
        if run.is_touched(parent_id) or not await incoming.exists(run, total.parent.name, parent_id):
            continue
        parent = await writing.find(run, total.parent, None, parent_id)
        counted = before[total.of] if before is not None and before[total.by] == parent_id else 0
        left = int(parent.values[total.field] or 0) - int(counted or 0) + int(amount or 0)
        writing.require_in_range(run, total.parent, {total.field: left})


def _is_touched(run: Run, values: Mapping[str, Stored]) -> bool:
    """Whether an earlier step of the plan is about a record that this one refers to."""
    return any(run.is_touched(each) for each in values.values() if isinstance(each, str))


async def _require_unique(
    run: Run, view: ModelView, values: Mapping[str, Stored], given: Collection[str], own_id: str | None
) -> None:
    """Among the records that the caller sees: others are not spoken of."""
    # Who does not look records up by their values is not told that one has this value.
    looked_up = next((each for each in ("list", "search", "export") if each in view.commands), None)
    if run.earlier:
        return
    for name in given:
        field = view.model.fields[name]
        is_unique = field.unique or field.unique_with
        if looked_up is None or values[name] is None or not is_unique or not view.sees_in_clear(name):
            continue
        tests = {name: values[name]}
        if field.unique_with and not field.unique:
            if not view.knows(field.unique_with) or values[field.unique_with] is None:
                continue
            tests[field.unique_with] = values[field.unique_with]
        if await _is_there(run, view, view.reach(looked_up), tests, own_id or ""):
            raise writing.taken(view.model, name)


async def _is_there(run: Run, view: ModelView, rows: Rows, tests: Mapping[str, Stored], own_id: str) -> bool:
    parameters = Parameters(own_id)
    scope = conditions.Scope(run.engine.dialect, parameters, "t")
    seen = conditions.any_of(scope, view.model, rows)
    equal = " AND ".join(f't."{name}" = {parameters.put(value)}' for name, value in tests.items())
    text = f'SELECT 1 FROM "{view.model.name}" AS t WHERE t.id <> $1 AND {equal} AND {seen} LIMIT 1'
    return await run.transaction.fetch_one(text, *parameters.values) is not None
