"""Workflow actions: a record moves from one state to another, with guards, inputs and effects."""

from collections.abc import Mapping

from countersign.declare import TODAY, Declared, Move
from countersign.declare.fields.field import Stored
from countersign.declare.rules.computed import refs_to
from countersign.records.access.view import ModelView
from countersign.records.commands import bounds, effects, guard, incoming, locks, proposal_checks, record_rules, writing
from countersign.records.commands.conditions import today
from countersign.records.commands.given import Given
from countersign.records.commands.prepared import Prepared
from countersign.records.commands.refusals import BadInput, unknown_field
from countersign.records.commands.revision import require_revision
from countersign.records.commands.run import Body, Run
from countersign.records.commands.stored import StoredRecord


def move_of(model: Declared, command: str) -> Move:
    """The declared action of a command.

    Raises:
        LookupError: the model has no such action.
    """
    if model.workflow is None:
        raise LookupError(f"{model.name} has no workflow")
    return model.workflow.moves[command]


async def check(run: Run, view: ModelView, command: str, body: Body) -> Prepared:
    """The input read and compared with the record.

    Raises:
        BadInput: no such record; it has changed since `revision`; it is in another state; an input is missing,
            unknown or does not fit; a guard the caller may know of does not hold.
    """
    record = await writing.find(run, view.model, view.reach(command), body.get("id"))
    await require_revision(run, view, record, body)
    return await check_move(run, view, record, move_of(view.model, command), body, allowed=frozenset())


async def check_move(
    run: Run, view: ModelView, record: StoredRecord, move: Move, body: Body, *, allowed: frozenset[str]
) -> Prepared:
    """As `check`, for a record that is at hand; fields of `allowed` may be given beside the action's inputs."""
    fields = {name: value for name, value in body.items() if name not in ("id", "revision")}
    _require_known(view, move, fields, allowed)
    seen = await incoming.as_seen(run, view, record)
    read = await incoming.values(run, view, fields, inputs=frozenset(move.accepted_fields))
    given = incoming.to_change(view, seen, read)
    values = {**seen.values, **{name: each.stored for name, each in given.items()}}
    if not run.is_touched(record.id):
        await _require_allowed(run, view, record, move, values, given)
    if run.caller.is_agent and sets_more(move, given):
        await proposal_checks.require_changeable(run, view, record, given, f"{view.model.name}.update")
    return Prepared(view.model.name, move.name, record.id, record.revision, given)


async def _require_allowed(
    run: Run,
    view: ModelView,
    record: StoredRecord,
    move: Move,
    values: Mapping[str, Stored],
    given: Mapping[str, Given],
) -> None:
    """Insist on what must be known of the record before the action is done or proposed."""
    if run.caller.is_agent:
        await _require_as_seen(run, view, record, move, values, given)
    else:
        _require_state(view.model, view, record, move)
        _require_inputs(view.model, view, move, values)
    readable = [each for each in move.guards if view.sees_in_clear(each.field)]
    guard.require(view.model, view, readable, values, f"{view.model.name}.{move.name}")


async def _require_as_seen(
    run: Run,
    view: ModelView,
    record: StoredRecord,
    move: Move,
    values: Mapping[str, Stored],
    given: Mapping[str, Given],
) -> None:
    """Insist on what the caller sees by itself of the state, the inputs, the records that the action needs and its
    rules: it is offered no plan that can only fail."""
    if view.model.workflow is not None and view.sees_in_clear(view.model.workflow.field):
        _require_state(view.model, view, record, move)
    if all(name in view.fields for name in move.inputs):
        _require_inputs(view.model, view, move, values)
    if _sees_records(run, view, move):
        await _require_records(run, view.model, record, move)
    left = {**values, **{name: each.stored for name, each in _left_out(view.model, move, given).items()}}
    known = [*given, *(name for name in move.optional if name in view.fields)]
    await record_rules.require_as_seen(run, view, left, known, f"{view.model.name}.{move.name}", move.rules)


def _left_out(model: Declared, move: Move, given: Mapping[str, Given]) -> dict[str, Given]:
    """The values of the optional fields that are not given, or given as null."""
    found: dict[str, Given] = {}
    for name, value in move.optional.items():
        if name not in given or given[name].stored is None:
            stored = None if value is None else model.fields[name].read(today() if value is TODAY else value)
            found[name] = Given(stored, is_default=True)
    return found


def _require_known(view: ModelView, move: Move, fields: Mapping[str, object], allowed: frozenset[str]) -> None:
    for name in fields:
        if name not in move.accepted_fields and name not in allowed:
            if name in view.fields:
                raise BadInput(f"unknown key {name} in {view.model.name}.{move.name}")
            raise unknown_field(view.model.name, name)


def is_readable(run: Run, view: ModelView, move: Move) -> bool:
    """Whether the caller can see by itself if the action is allowed: the state, the fields of guards and rules, which
    of its inputs are there already, and the records that it needs."""
    workflow = view.model.workflow
    sees_state = workflow is not None and view.sees_in_clear(workflow.field)
    sees_inputs = all(name in view.fields for name in move.inputs)
    rules = (*move.rules, *record_rules.named_by(view.model, move.optional))
    sees_inputs = sees_inputs and all(record_rules.is_readable(run, view, each, ()) for each in rules)
    return sees_state and sees_inputs and guard.are_readable(view, move.guards) and _sees_records(run, view, move)


def _sees_records(run: Run, view: ModelView, move: Move) -> bool:
    """Whether the caller can see by itself if the records are there that the action needs."""
    for name in move.needs_records:
        child = run.caller.view.models.get(name)
        if child is None or not child.reads_any_by("list", "search", "export"):
            return False
        if any(each not in child.fields for each in refs_to(child.model, view.model)):
            return False
    return True


async def _require_records(run: Run, model: Declared, record: StoredRecord, move: Move) -> None:
    for name in move.needs_records:
        (ref,) = refs_to(run.engine.registry.models[name], model)
        if not await writing.is_referred_to(run, name, ref, record.id):
            command, view = f"{model.name}.{move.name}", run.caller.view.models.get(model.name)
            is_seen = view is not None and _sees_records(run, view, move)
            said = f": it needs at least one {name}; create one first" if is_seen else ""
            raise BadInput(f"{command} is not allowed in this state{said}")


def _require_state(model: Declared, view: ModelView | None, record: StoredRecord, move: Move) -> None:
    governed = "" if model.workflow is None else model.workflow.field
    now = record.values[governed]
    if now not in move.sources:
        said = f": {governed} is {now}" if view is not None and view.sees_in_clear(governed) else ""
        raise BadInput(f"{model.name}.{move.name} is not allowed in this state{said}")


def _require_inputs(model: Declared, view: ModelView | None, move: Move, values: Mapping[str, Stored]) -> None:
    for name in move.inputs:
        if values[name] is None:
            if view is not None and name in view.fields:
                raise BadInput(f"{model.name}.{name} is required")
            raise BadInput(f"{model.name}.{move.name} is not allowed in this state")


async def apply(run: Run, prepared: Prepared) -> str:
    """Run the action; the record's id.

    Raises:
        BadInput: the record is gone or in another state, a guard does not hold, or the effect refuses; or more fields
            are set than the inputs, and the record is locked.
    """
    model = run.engine.registry.models[prepared.model]
    record = await writing.find(run, model, None, prepared.record_id)
    move = move_of(model, prepared.command)
    if sets_more(move, prepared.given):
        await _require_changeable(run, model, record, prepared)
    values = {**record.values, **{name: each.stored for name, each in prepared.given.items()}}
    _require_inputs(model, run.caller.view.models.get(model.name), move, values)
    await perform(run, model, record, move, prepared.given)
    return record.id


def sets_more(move: Move, given: Mapping[str, object]) -> bool:
    """Whether fields are set beside the action's inputs, as an update that moves the record may."""
    return not given.keys() <= set(move.accepted_fields)


async def _require_changeable(run: Run, model: Declared, record: StoredRecord, prepared: Prepared) -> None:
    """What is set beside the inputs is updated like any field: not while locked, and not out of the caller's rows."""
    await locks.require_open(run, model, record.values, f"{model.name}.update")
    left = {**record.values, **{name: each.stored for name, each in prepared.given.items()}}
    bounds.require_within(run.caller.view.models.get(model.name), "update", left, record.id)


async def perform(run: Run, model: Declared, record: StoredRecord, move: Move, inputs: Mapping[str, Given]) -> None:
    """Move a locked record, with the action's effect.

    Raises:
        BadInput: as `apply`.
    """
    command = f"{model.name}.{move.name}"
    view = run.caller.view.models.get(model.name)
    _require_state(model, view, record, move)
    values = {**record.values, **{name: each.stored for name, each in inputs.items()}}
    guard.require(model, view, move.guards, values, command)
    await _require_records(run, model, record, move)
    given = dict(inputs) | _left_out(model, move, inputs)
    values |= {name: each.stored for name, each in given.items()}
    await record_rules.require_all(run, model, values, move.rules, given, command)
    given |= {name: Given(None, is_default=True) for name in move.clears}
    if model.workflow is not None and move.to is not None:
        given[model.workflow.field] = Given(move.to, is_default=True)
    if move.effect is not None:
        value_ids = await effects.linked(run, model, record, inputs)
        work = effects.Hands(run, model, record.id, values, command, value_ids)
        await move.effect(work)
        given |= work.changes
        # The effect may have written records that count into this one.
        record = await writing.find(run, model, None, record.id)
    await writing.update(run, model, record, given, command)
