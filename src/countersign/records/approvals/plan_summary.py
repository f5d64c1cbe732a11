"""Summarizes a plan for a viewer: its title, its record, the affected records, and the key of plans with the same
commands and inputs."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from countersign.declare.presentation import RiskLevel
from countersign.records.access.view import ModelView
from countersign.records.approvals import risk
from countersign.records.approvals.plan_visibility import Link, visible_links
from countersign.records.approvals.step_storage import Step
from countersign.records.commands import presentation, record_names
from countersign.records.commands.run import Run

MAX_AFFECTED = 50
"""The maximum number of affected records that a plan names."""
COMPUTED_MEMBERS = (
    *("risk", "risk_reasons", "title", "record_name", "record_url", "reversible", "affected", "group_key"),
    "needs_left",
)
"""The members that are computed each time a plan is shown."""


class AffectedRecord(msgspec.Struct):
    """A record that the plan changes, and what happens to it: created, changed, deleted or cleared."""

    model: str
    id: str | None
    name: object
    change: str


class PlanSummary(msgspec.Struct):
    """The summary of a plan for one viewer."""

    risk: RiskLevel
    risk_reasons: tuple[str, ...]
    title: str
    record_name: object
    record_url: str | None
    reversible: bool
    affected: list[AffectedRecord]
    group_key: str


_CHANGES: Mapping[str, str] = {"create": "created", "delete": "deleted"}


async def summarize(
    run: Run, plan_steps: Sequence[Step], plan_members: Mapping[str, Any], raw_effects: msgspec.Raw | None
) -> PlanSummary:
    """Return the summary of a plan. `plan_members` contains the plan's why, agent, input and diff as the viewer sees
    them. Names of records are read now, as the viewer sees them, so a masked name is a placeholder token."""
    views = run.caller.view.models
    visible_steps = [step for step in plan_steps if step.model in views]
    links = await visible_links(run, raw_effects)
    names = await _names(run, visible_steps, links)
    affected_records = [
        AffectedRecord(
            step.model,
            step.record_id,
            _record_name(views[step.model], step, names, plan_members["diff"]),
            _CHANGES.get(step.command, "changed"),
        )
        for step in visible_steps
    ]
    affected_records += [
        AffectedRecord(model, record_id, names.get((model, record_id)), change)
        for model, record_id, _field, _target, _target_id, change in links
    ]
    assessment = risk.assess(views, plan_steps, plan_members["why"], len(affected_records))
    only_step = visible_steps[0] if len(plan_steps) == 1 and visible_steps else None
    return PlanSummary(
        assessment.level,
        assessment.reasons,
        _title(views, plan_steps, only_step, affected_records),
        affected_records[0].name if only_step is not None else None,
        _url(only_step, names),
        all(presentation.is_reversible(views[step.model], step.command) for step in visible_steps),
        affected_records[:MAX_AFFECTED],
        _group_key(plan_steps, plan_members),
    )


async def _names(run: Run, visible_steps: Sequence[Step], links: Sequence[Link]) -> dict[tuple[str, str], object]:
    """Map the records that exist for the viewer to their names. One statement reads the names of each model."""
    ids_by_model: dict[str, list[str]] = {}
    keys = [(step.model, step.record_id) for step in visible_steps] + [link[:2] for link in links]
    for model, record_id in keys:
        if record_id is not None:
            ids_by_model.setdefault(model, []).append(record_id)
    return {
        (model, record_id): name
        for model, ids in ids_by_model.items()
        for record_id, name in (await record_names.names(run, model, ids)).items()
    }


def _record_name(
    view: ModelView, step: Step, names: Mapping[tuple[str, str], object], diff: Sequence[Mapping[str, Any]]
) -> object:
    """Return the current name of the step's record. If the viewer cannot read it, return the name in the plan's diff,
    as the viewer sees it."""
    known_name = names.get((step.model, step.record_id or ""))
    if known_name is not None:
        return known_name
    side = "after" if step.record_id is None else "before"
    title = presentation.title_field(view)
    matching_entries = (entry for entry in diff if entry["model"] == step.model and entry["id"] == step.record_id)
    return next((matching_entry[side] for matching_entry in matching_entries if matching_entry["field"] == title), None)


def _url(step: Step | None, names: Mapping[tuple[str, str], object]) -> str | None:
    if step is None or step.record_id is None or (step.model, step.record_id) not in names:
        return None
    return f"/models/{step.model}/records/{step.record_id}"


def _title(
    views: Mapping[str, ModelView],
    plan_steps: Sequence[Step],
    only_step: Step | None,
    affected_records: Sequence[AffectedRecord],
) -> str:
    """Return a short sentence that describes the plan, such as: Delete lead “Trial at Harbour Tools”."""
    if only_step is not None:
        view = views[only_step.model]
        name = affected_records[0].name
        object_text = view.model.label.lower() + (f" “{name}”" if isinstance(name, str) and name else "")
        return _with_object(_verb(view, only_step), object_text)
    commands = {step.id for step in plan_steps}
    view = views.get(plan_steps[0].model) if plan_steps else None
    if len(commands) == 1 and view is not None and len(plan_steps) > 1:
        things = f"{len(plan_steps)} {view.model.plural.lower()}"
        return _with_object(presentation.of_command(view, plan_steps[0].command)["verb"]["en"], things)
    return f"{len(plan_steps)} changes" if len(plan_steps) > 1 else "Change"


def _verb(view: ModelView, step: Step) -> str:
    if step.command == "update":
        names = [name for name, field_input in step.given.items() if name in view.fields and not field_input.is_default]
        if len(names) == 1:
            return f"Change {_in_sentence(view.model.fields[names[0]].label)} of"
        return f"Change {len(names)} fields of" if names else "Change"
    return str(presentation.of_command(view, step.command)["verb"]["en"])


def _in_sentence(label: str) -> str:
    """Return a label as it is written inside a sentence. Abbreviations keep their capitals."""
    return label if label[1:2].isupper() else label[:1].lower() + label[1:]


def _with_object(verb: str, object_text: str) -> str:
    """Return the verb with its object: after the first word of the verb, as in Mark lead “…” as won, or, if the verb
    begins with Change, at its end."""
    if verb.startswith("Change "):
        return f"{verb} {object_text}"
    first_word, _, rest_of_verb = verb.partition(" ")
    return f"{first_word} {object_text} {rest_of_verb}".rstrip()


def _group_key(plan_steps: Sequence[Step], plan_members: Mapping[str, Any]) -> str:
    """Return a key that is equal for plans that run the same commands with the same input on different records."""
    inputs_by_name: dict[str, Any] = plan_members["input"] or {}
    step_inputs: list[dict[str, Any]] = inputs_by_name["steps"] if len(plan_steps) > 1 else [{"input": inputs_by_name}]
    inputs = [{name: value for name, value in step["input"].items() if name != "id"} for step in step_inputs]
    key_parts = [[step.id for step in plan_steps], inputs, plan_members["agent"]]
    return hashlib.blake2b(msgspec.json.encode(key_parts, order="sorted"), digest_size=12).hexdigest()
