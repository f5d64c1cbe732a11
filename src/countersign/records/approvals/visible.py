"""Which plans exist for a caller: an agent's own; for a person those of its agents, and those it may decide."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from countersign.declare import where
from countersign.kernel.database.port import Dialect, Value
from countersign.records.access.view import Caller, ModelView, Rows, View
from countersign.records.commands.conditions import Scope, any_of
from countersign.records.commands.sql import Borrowed

REWRITTEN = frozenset({"digest", "error"})
"""What a plan says of itself by who is asking: nobody else reads it out of the stored text by filtering."""


@dataclass(frozen=True, eq=False)
class Decidable:
    """That the person may run every step of the plan himself, on the record it is about."""

    view: View
    dialect: Dialect

    def sql(self, alias: str, put: Callable[[Value], str]) -> str:
        """No step is among those the person may not run."""
        runnable = " OR ".join(self._runnable(put)) or "1 = 0"
        return (
            f"NOT EXISTS (SELECT 1 FROM plan_step AS step WHERE step.plan_id = {alias}.id AND NOT ({runnable}))"
        )

    def _runnable(self, put: Callable[[Value], str]) -> list[str]:
        free: list[str] = []
        found: list[str] = []
        for name, view in self.view.models.items():
            for rows, commands in _by_rows(view):
                listed = ", ".join(put(f"{name}.{command}") for command in commands)
                if rows is None:
                    free.append(listed)
                    continue
                reached = any_of(Scope(self.dialect, Borrowed(put), "target"), view.model, rows)
                found.append(
                    f"(step.command IN ({listed}) AND (step.record_id IS NULL OR EXISTS "
                    f'(SELECT 1 FROM "{name}" AS target WHERE target.id = step.record_id AND {reached})))'
                )
        return [f"step.command IN ({', '.join(free)})", *found] if free else found


def _by_rows(view: ModelView) -> list[tuple[Rows, list[str]]]:
    """The commands by the records that they reach: most reach the same ones, and each condition costs."""
    found: list[tuple[Rows, list[str]]] = []
    for command in sorted(view.commands):
        rows = view.reach(command)
        commands = next((commands for known, commands in found if known == rows), None)
        if commands is None:
            found.append((rows, [command]))
        else:
            commands.append(command)
    return found


def with_plans(caller: Caller, dialect: Dialect) -> Caller:
    """The caller, its view of plans narrowed to those that exist for it."""
    view = caller.view.models.get("plan")
    if view is None:
        return caller
    own = where("person", eq=caller.user_id)
    rows: Rows
    if caller.is_agent:
        rows = ((own, where("agent", eq=caller.agent)),)
    else:
        rows = ((own,), (where("decided_by", eq=caller.user_id),), (Decidable(caller.view, dialect),))
    narrowed = replace(view, rows={command: rows for command in view.commands}, rewritten=REWRITTEN)
    models, own = {**caller.view.models, "plan": narrowed}, dict(caller.view.own)
    tokens = caller.view.models.get("agent_token")
    if caller.is_agent and (tokens is None or not tokens.is_readable):
        own[view.model.fields["agent_token"]] = caller.credential_id
    return replace(caller, view=replace(caller.view, models=models, own=own))
