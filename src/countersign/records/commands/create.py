"""The command `create`: a new record."""

from collections.abc import Mapping

from countersign.declare import CALLER, TODAY, BadValue, Field, Ref, Select
from countersign.declare.fields.field import Stored
from countersign.records.access.view import ModelView
from countersign.records.commands import bounds, granting, incoming, locks, proposal_checks, writing
from countersign.records.commands.conditions import today
from countersign.records.commands.given import Given
from countersign.records.commands.prepared import Prepared
from countersign.records.commands.promise import step_of
from countersign.records.commands.refusals import BadInput
from countersign.records.commands.run import Body, Run


class OtherStart(BadInput):
    """A new record is given another state than the first one of its workflow."""


async def check(run: Run, view: ModelView, body: Body) -> Prepared:
    """The input read, with defaults for what is not given.

    Raises:
        BadInput: a field is unknown, misses its value or does not fit; or the governed field is given another value
            than its first option; or the record would be none of those the caller may create.
    """
    given = await incoming.values(run, view, body)
    workflow = view.model.workflow
    if workflow is not None:
        field = view.model.fields[workflow.field]
        first = Given(first_option(field), is_default=True)
        if workflow.field in given and given[workflow.field].stored not in (None, first.stored):
            raise OtherStart(f"{view.model.name}.{workflow.field} starts at {first.stored}: leave it out on create")
        given[workflow.field] = first
    given |= await _filled(run, view, given)
    for name, field in view.model.fields.items():
        if name not in given and field.default is not None:
            given[name] = Given(default(run, field), is_default=True)
        if field.required and (name not in given or given[name].stored is None):
            raise _missing(view, name)
    _require_within(view, given)
    await proposal_checks.require_creatable(run, view, given, f"{view.model.name}.create")
    return Prepared(view.model.name, "create", given=given)


async def _filled(run: Run, view: ModelView, given: Mapping[str, Given]) -> dict[str, Given]:
    """The fields left out that refs of the record fill, as far as the caller reads them there in clear."""
    found: dict[str, Given] = {}
    for ref in (each for each in view.model.fields.values() if isinstance(each, Ref) and each.name in given):
        missing = {name: source for name, source in ref.fills.items() if name not in given}
        if missing:
            found |= await _copies(run, view, ref, given[ref.name].stored, missing)
    return found


async def _copies(
    run: Run, view: ModelView, ref: Ref, record_id: Stored, missing: Mapping[str, str]
) -> dict[str, Given]:
    above = run.caller.view.models.get(ref.target)
    if above is None or record_id is None or step_of(record_id) is not None:
        return {}
    record = await writing.find(run, above.model, None, record_id, locks=False)
    shown = {
        name: above.model.fields[source].show(stored)
        for name, source in missing.items()
        if above.sees_in_clear(source) and (stored := record.values[source]) is not None
    }
    return {name: Given(_copied(view, ref, name, value), is_default=True) for name, value in shown.items()}


def _copied(view: ModelView, ref: Ref, name: str, value: object) -> Stored:
    try:
        return view.model.fields[name].read(value)
    except BadValue as error:
        said = f"the value copied from {ref.name} does not fit ({error}); set {name} explicitly"
        raise BadInput(f"{view.model.name}.{name}: {said}") from error


def _require_within(view: ModelView | None, given: Mapping[str, Given]) -> None:
    """Whoever may only import makes records too, bound by the rows of that."""
    command = "create" if view is None or "create" in view.commands else "import"
    bounds.require_within(view, command, {name: each.stored for name, each in given.items()})


def first_option(field: Field) -> Stored:
    """Where a workflow starts: the first option of its select field."""
    if not isinstance(field, Select):
        raise LookupError(f"{field.name} governs a workflow and is no select; the declaration's check should say so")
    return field.options[0]


def default(run: Run, field: Field) -> Stored:
    """The value a new record gets where none is given."""
    if field.default is CALLER:
        return run.caller.user_id
    try:
        return field.read(today() if field.default is TODAY else field.default)
    except BadValue as error:
        raise LookupError(f"the default of {field.name} does not fit; the declaration's check should say so") from error


def _missing(view: ModelView, name: str) -> BadInput:
    if name in view.fields:
        return BadInput(f"{view.model.name}.{name} is required")
    # A hidden field is never named.
    return BadInput(f"{view.model.name}.create needs rights that you may not give; ask a person with wider rights")


async def apply(run: Run, prepared: Prepared) -> str:
    """Make the record; its id.

    Raises:
        BadInput: a value that must be unique is taken, or the record it would belong to is locked.
    """
    model = run.engine.registry.models[prepared.model]
    values = {name: each.stored for name, each in prepared.given.items()}
    await locks.require_open(run, model, values, prepared.id)
    _require_within(run.caller.view.models.get(prepared.model), prepared.given)
    await granting.require_own(run, model, "", {}, values, prepared.id)
    record_id = await writing.insert(run, model, prepared.given, prepared.id)
    await granting.settle(run, model, record_id, values)
    return record_id
