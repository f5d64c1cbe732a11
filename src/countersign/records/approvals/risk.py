"""Assesses the risk of a plan for one viewer. The result depends only on the parts of the plan that the viewer sees."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from countersign.declare import Money, Risk
from countersign.declare.fields.field import Stored
from countersign.declare.presentation import RISK_LEVELS, RiskLevel
from countersign.records.access.view import ModelView
from countersign.records.approvals import policy
from countersign.records.approvals.step_storage import Step
from countersign.records.base_models import RULING
from countersign.records.commands import preconditions
from countersign.records.commands.prepared_command import FieldInput

BULK = 20
"""A plan that affects more records than this has a high risk."""

_QUOTE = re.compile(
    r"[\"“„«][^\"“„«”»]{12,}[\"”“»]|https?://|(?<![\w.+-])[\w.+-]+@[\w-]+\.\w+"
    r"|\b(wrote|writes|said|says|asked|asks|replied|according to|e-?mail|message|letter|website"
    r"|schrieb|schreibt|sagte|bat|bittet|laut|nachricht|brief|webseite)\b",
    re.IGNORECASE,
)
"""Matches signs that the agent's reason quotes or reports a text from outside. Such a text may contain instructions to
the agent."""

_Found: TypeAlias = tuple[RiskLevel, str]


@dataclass(frozen=True, slots=True)
class Assessment:
    """The risk of a plan, and the keys of its reasons, the most serious first."""

    level: RiskLevel
    reasons: tuple[str, ...]


def assess(
    views: Mapping[str, ModelView], plan_steps: Sequence[Step], stated_reason: str | None, affected_count: int = 0
) -> Assessment:
    """Return the risk of a plan for a viewer. `affected_count` is the number of affected records that the viewer
    sees."""
    reasons_found: list[_Found] = []
    for step in plan_steps:
        view = views.get(step.model)
        if view is not None:
            reasons_found += _of_step(view, step)
    if max(affected_count, len(plan_steps)) > BULK:
        reasons_found.append(("high", "bulk"))
    if stated_reason and _QUOTE.search(stated_reason):
        reasons_found.append(("high", "outside_text"))
    ordered_reasons = sorted(reasons_found, key=lambda reason: -RISK_LEVELS.index(reason[0]))
    reasons = tuple(dict.fromkeys(reason for level, reason in ordered_reasons if level != "low"))
    return Assessment(ordered_reasons[0][0] if ordered_reasons else "low", reasons)


def _of_step(view: ModelView, step: Step) -> Iterator[_Found]:
    field_inputs = {name: field_input for name, field_input in step.given.items() if name in view.fields}
    yield from _of_command(view, step)
    yield from _of_input(view, field_inputs)
    values: dict[str, Stored] = {name: field_input.stored for name, field_input in field_inputs.items()}
    values |= policy.moved(view.model, step.command)
    for rule in view.model.risks:
        if _applies(view, step, rule, values):
            yield rule.level, rule.reason


def _of_input(view: ModelView, field_inputs: Mapping[str, FieldInput]) -> Iterator[_Found]:
    if any(field_input.origins for field_input in field_inputs.values()):
        yield "high", "personal_data"
    fields = view.model.fields
    if any(isinstance(fields[name], Money) for name, field_input in field_inputs.items() if not field_input.is_default):
        yield "medium", "money_field"


def _of_command(view: ModelView, step: Step) -> Iterator[_Found]:
    if view.model.name in RULING:
        yield "high", "access_rights"
    if step.command == "delete":
        yield "high", "deletes"
        if any(view.model.fields[name].personal for name in view.fields):
            yield "high", "personal_data"
    move = None if view.model.workflow is None else view.model.workflow.moves.get(step.command)
    if move is not None:
        yield move.risk, "state_change"


def _applies(view: ModelView, step: Step, rule: Risk, values: Mapping[str, Stored]) -> bool:
    """Return whether a rule of the model applies, as far as the viewer sees the fields that it names."""
    if rule.commands and step.command not in rule.commands:
        return False
    if rule.fields and not any(name in values for name in rule.fields):
        return False
    condition = rule.when
    if condition is None:
        return True
    return (
        condition.field in values
        and view.sees_in_clear(condition.field)
        and preconditions.is_met(view.model, values, condition)
    )
