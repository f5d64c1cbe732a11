"""Locked records: posted invoices and the like, and what hangs on them."""

from collections.abc import Mapping
from dataclasses import replace

from countersign.declare import Declared, Ref, Where
from countersign.declare.fields.field import Stored
from countersign.records.commands import condition_text, guard, incoming, select
from countersign.records.commands.refusals import BadInput
from countersign.records.commands.run import Run
from countersign.records.commands.stored import record_of


async def require_open(run: Run, model: Declared, values: Mapping[str, Stored], command: str) -> None:
    """Insist that a record, and the one it is locked with, can be changed.

    Raises:
        BadInput: it is locked. Which state locks it is said only to those who read that state.
    """
    if guard.is_locked(model, values):
        raise _refusal(run, model, command)
    parent = parent_of(run, model)
    parent_id = values.get(model.locked_with) if model.locked_with else None
    if parent is None or not isinstance(parent_id, str):
        return
    # Locked in the database too, so that it is not posted while this is written.
    statement = select.existing(parent, None, parent_id, run.engine.dialect)
    row = await run.transaction.fetch_one(statement.text, *statement.values)
    if row is not None and guard.hold(parent, record_of(parent, row).values, locks_of(model, parent)):
        raise _refusal(run, parent, command) if not model.locked_while else _refusal_with(run, model, parent, command)


async def require_open_as_seen(run: Run, model: Declared, values: Mapping[str, Stored], command: str) -> None:
    """As `require_open`, where the caller sees by itself what locks the record, before the command is proposed.

    Raises:
        BadInput: it is locked.
    """
    views = run.caller.view.models
    if guard.are_readable(views.get(model.name), model.locked) and guard.is_locked(model, values):
        raise _refusal(run, model, command)
    parent = parent_of(run, model)
    parent_id = values.get(model.locked_with) if model.locked_with else None
    if parent is None or not isinstance(parent_id, str) or not await incoming.exists(run, parent.name, parent_id):
        return
    if not run.is_touched(parent_id) and guard.are_readable(views.get(parent.name), locks_of(model, parent)):
        await require_open(run, replace(model, locked=()), values, command)


def locks_of(model: Declared, parent: Declared) -> tuple[Where, ...]:
    """The conditions on the record of `locked_with` under which a record of the model is locked."""
    return model.locked_while or parent.locked


def parent_of(run: Run, model: Declared) -> Declared | None:
    """The model whose records lock those of this one."""
    ref = model.fields.get(model.locked_with) if model.locked_with else None
    return run.engine.registry.models[ref.target] if isinstance(ref, Ref) else None


def are_readable(run: Run, model: Declared) -> bool:
    """Whether the caller can see by itself if a record of the model is locked."""
    parent = parent_of(run, model)
    views = run.caller.view.models
    if not guard.are_readable(views.get(model.name), model.locked):
        return False
    if parent is None:
        return True
    above = views.get(parent.name)
    # Which record it is, the ref says; whether it may be read at all is another matter.
    is_read = above is not None and above.reads_any_by("get", "list", "search", "export")
    return is_read and guard.are_readable(above, locks_of(model, parent))


def _refusal_with(run: Run, model: Declared, parent: Declared, command: str) -> BadInput:
    """The refusal where the record of `locked_with` locks those of this model alone."""
    if not guard.are_readable(run.caller.view.models.get(parent.name), model.locked_while):
        return BadInput(f"{command} is not allowed in this state")
    words = condition_text.clauses([replace(each, field=f"{parent.name}.{each.field}") for each in model.locked_while])
    return BadInput(f"{command} is not allowed in this state: {model.name} is locked while {words}")


def _refusal(run: Run, model: Declared, command: str) -> BadInput:
    if guard.are_readable(run.caller.view.models.get(model.name), model.locked):
        words = condition_text.clauses(model.locked)
        return BadInput(f"{command} is not allowed in this state: {model.name} is locked while {words}")
    return BadInput(f"{command} is not allowed in this state")
