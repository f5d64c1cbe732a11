"""Runs the hooks (`@on`) of packages after each write of a record, in the same transaction."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from countersign.declare import Declared
from countersign.declare.fields.field import Stored
from countersign.declare.model import indirect_sources
from countersign.declare.rules.package_code import ModelHook
from countersign.kernel import clock, telemetry
from countersign.kernel.database.port import ConstraintViolation
from countersign.kernel.errors import Refused
from countersign.records.commands import checks, preconditions, record_writer
from countersign.records.commands.effects import CodeRefusal, EffectContext, linked_value_ids, pairs_of
from countersign.records.commands.errors import BadInput
from countersign.records.commands.prepared_command import FieldInput
from countersign.records.commands.run import RecordWrite, Run

MAX_DEPTH = 3
"""How deep hooks may be nested: a write of a hook runs the hooks of other models."""
TIME_LIMIT_S = 1.0
BUDGET_S = 0.050
"""A hook that takes longer is logged."""


async def run_hooks(run: Run, write: RecordWrite) -> None:
    """Run the hooks of the model for this write.

    Raises:
        BadInput: a hook refuses the command, fails or takes too long, or hooks are nested too deep.
    """
    name = write.model.name
    hooks = run.engine.registry.hooks[name]
    if not hooks or write.is_restored or name in run.hook_models:
        return
    run.code_report.is_known = run.code_report.is_known and _is_call_known(run, write)
    if write.after:
        write = replace(write, after={field: write.after.get(field) for field in write.model.fields})
    for hook in [hook for hook in hooks if _is_called(hook, write)]:
        write = replace(write, after=await _run_hook(_nested(run, write), hook, write))


def _nested(run: Run, write: RecordWrite) -> Run:
    """Return the run of a hook for this write.

    Raises:
        BadInput: hooks are nested too deep.
    """
    models = (*run.hook_models, write.model.name)
    if len(models) > MAX_DEPTH:
        telemetry.logger("modules").error("hooks are nested too deep", models=models)
        raise BadInput(f"{write.command} is refused: hooks of packages are nested more than {MAX_DEPTH} deep")
    return replace(run, hook_models=models)


def _is_called(hook: ModelHook, write: RecordWrite) -> bool:
    if not write.before:
        return "create" in hook.events
    if not write.after:
        return "delete" in hook.events
    # Values are not compared here: an agent must not learn whether a hidden value equals its guess.
    return "update" in hook.events or any(f"update:{name}" in hook.events for name in write.written)


def _is_call_known(run: Run, write: RecordWrite) -> bool:
    """Return whether the caller knows which hooks this write runs. A deletion may reach records that it does not see,
    and whether a computed field changes depends on its sources."""
    view = run.caller.view.models.get(write.model.name)
    if write.command.endswith(".delete"):
        return view is not None and view.reads_any_by("get", "list", "search", "export")
    watched = {event.partition(":")[2] for hook in run.engine.registry.hooks[write.model.name] for event in hook.events}
    return not write.before or all(
        view is not None and view.knows(name)
        for name in watched & write.model.fields.keys()
        if indirect_sources(write.model, name) & write.written
    )


def _sent(run: Run, write: RecordWrite) -> frozenset[str]:
    """Return the fields whose values the caller knows from its input. If the caller has sent no value, an effect or
    another hook may have created the record."""
    sent = checks.sent_in_clear(write.field_inputs)
    is_own_create = len(run.hook_models) == 1 and not write.before and bool(sent)
    return frozenset(checks.sent_values(write.model, write.field_inputs, is_new=is_own_create))


async def _run_hook(run: Run, hook: ModelHook, write: RecordWrite) -> Mapping[str, Stored]:
    """Run one hook and write its changes of the record. Return the values of the record afterwards."""
    model, command, sent = write.model, write.command, _sent(run, write)
    value_ids: Mapping[str, int] = {}
    if write.after:
        record = await record_writer.find(run, model, None, write.record_id)
        value_ids = await linked_value_ids(run, model, record, {})
    report, after = run.code_report, write.after
    deadline_s = clock.monotonic_s() + TIME_LIMIT_S
    work = EffectContext(
        run,
        model,
        write.record_id,
        after,
        command,
        value_ids,
        before=write.before,
        report=report,
        sent=sent,
        deadline_s=deadline_s,
    )
    await run_code(run, command, f"{model.name}.{hook.name}", lambda: hook.function(work))
    if work.changes and not after:
        raise BadInput(f"{command} is refused: a hook of a package changes a record that is deleted")
    return await _write_changes(run, write, work.changes, sent) if work.changes else after


async def _write_changes(
    run: Run, write: RecordWrite, changes: Mapping[str, FieldInput], sent: frozenset[str]
) -> Mapping[str, Stored]:
    model, report = write.model, run.code_report
    record = await record_writer.find(run, model, None, write.record_id)
    report.note_change(model, record.id, "changed", pairs_of(record.values, changes))
    report.is_known = report.is_known and _is_write_known(run, model, changes, sent)
    await record_writer.update(run, model, record, changes, write.command)
    return (await record_writer.find(run, model, None, record.id)).values


def _is_write_known(run: Run, model: Declared, changes: Mapping[str, FieldInput], sent: frozenset[str]) -> bool:
    """Return whether the caller knows everything on which the success of this write depends. It knows the changes,
    because they depend on what the hook has read."""
    view, known = run.caller.view.models.get(model.name), sent | changes.keys()
    if view is None:
        return False
    unique = [name for name in changes if model.fields[name].unique or model.fields[name].unique_with]
    sees_all = view.reads_any_by("list", "search", "export")
    rules = preconditions.rules_naming(model, changes)
    return (
        all(sees_all and view.sees_in_clear(name) for name in unique)
        and all(preconditions.is_rule_readable(run, view, rule, known) for rule in rules)
        and checks.are_results_known(view, changes, known)
    )


async def run_code(
    run: Run, command: str, code: str, call: Callable[[], Awaitable[object]], *, limit_s: float | None = None
) -> object:
    """Call a function of a package and return its result. Without `limit_s`, the time limit is that of hooks.

    Raises:
        BadInput: the function refuses the command, fails or takes too long. The error contains no text of the package
            except the reason of a refusal, without personal values.
    """
    started_s, limit_s = clock.monotonic_s(), limit_s or TIME_LIMIT_S
    try:
        async with asyncio.timeout(limit_s):
            result = await call()
        if clock.monotonic_s() - started_s > limit_s:
            raise TimeoutError
    except CodeRefusal as refused:
        reason = checks.safe_reason(run, code, refused.detail, run.code_report.personal_values)
        raise CodeRefusal(reason or f"{command} is refused") from refused
    except (Refused, ConstraintViolation):
        raise
    except TimeoutError as error:
        telemetry.logger("modules").error("the code of a package took too long", code=code, limit_s=limit_s)
        raise BadInput(f"{command} is refused: the code of a package took more than {limit_s:g} s") from error
    except Exception as error:  # code of a package can raise anything
        raise checks.failed(run, command, code, error) from error
    elapsed_s = clock.monotonic_s() - started_s
    if limit_s == TIME_LIMIT_S and elapsed_s > BUDGET_S:
        telemetry.logger("modules").warning("a hook is slow", code=code, elapsed_ms=round(elapsed_s * 1000))
    return result
