"""Runs commands on trial before an agent proposes or runs them, to find out what the code of packages reads and
changes. Nothing of it stays."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from countersign.declare.registry import Registry
from countersign.kernel.database.port import ConstraintViolation
from countersign.kernel.errors import Refused
from countersign.records.commands import command
from countersign.records.commands.code_report import CodeReport
from countersign.records.commands.effects import CodeRefusal
from countersign.records.commands.prepared_command import MAX_STEPS, PreparedCommand, step_ids_replaced
from countersign.records.commands.run import Run


class _TrialEnded(Exception):
    """Ends the trial and rolls it back."""


async def preview(run: Run, prepared_commands: Sequence[PreparedCommand]) -> CodeReport | None:
    """Return what the code of packages reads and changes when these commands run, or None if no code can run or
    the plan is too large for a trial.

    Raises:
        CodeRefusal: the code refuses the commands, and it has read only values that the caller knows.
    """
    registry = run.engine.registry
    if len(prepared_commands) > MAX_STEPS or not any(_may_run_code(registry, each) for each in prepared_commands):
        return None
    report = CodeReport(is_trial=True)
    trial = replace(run, code_report=report)
    # Other refusals may depend on values that the caller does not see, so they are left to the command itself.
    with suppress(_TrialEnded, Refused, ConstraintViolation):
        try:
            async with run.transaction.savepoint():
                await _run_all(trial, prepared_commands)
        except CodeRefusal as refused:
            report.refusal = refused.detail
    if report.refusal and report.is_known:
        raise CodeRefusal(report.refusal)
    return report


async def _run_all(run: Run, prepared_commands: Sequence[PreparedCommand]) -> None:
    created: list[str] = []
    for prepared_command in prepared_commands:
        fields = run.engine.registry.models[prepared_command.model].fields
        created.append(await command.apply(run, step_ids_replaced(prepared_command, fields, created)))
    raise _TrialEnded


def _may_run_code(registry: Registry, prepared_command: PreparedCommand) -> bool:
    """Return whether hooks may run. An effect and a cascading deletion may write records of other models."""
    if not any(registry.hooks.values()):
        return False
    model = registry.models[prepared_command.model]
    move = None if model.workflow is None else model.workflow.moves.get(prepared_command.command)
    is_wide = prepared_command.cascade or (move is not None and move.effect is not None)
    return model.table is None and (is_wide or bool(registry.hooks[model.name]))
