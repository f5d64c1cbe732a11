"""Determines what a viewer sees of a pending plan: whether its records have changed, and which other records a deletion
affects."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import msgspec

from countersign.declare import Ref
from countersign.declare.fields.field import Stored
from countersign.records.access.view import ModelView
from countersign.records.approvals.step_storage import Step
from countersign.records.commands import unmask_input
from countersign.records.commands.dependents import Key
from countersign.records.commands.run import Run


async def is_stale(run: Run, plan_steps: Sequence[Step]) -> bool:
    """Return whether a record of the plan no longer exists for the viewer, or has a change that the viewer sees.

    The result reveals no more than reading the records would. Changes of hidden fields do not count. Changes of records
    that the plan reads do not count if the viewer does not see these records. Indirect dependencies are checked only
    when a person approves the plan.
    """
    for view, steps_of_model in _by_model(run, plan_steps):
        current_revisions = await unmask_input.revisions(run, view, [step.record_id or "" for step in steps_of_model])
        for step in steps_of_model:
            revision = current_revisions.get(step.record_id or "")
            if revision is None or (revision != step.revision and not view.denied):
                return True
    return await _has_changed_reads(run, plan_steps)


async def _has_changed_reads(run: Run, plan_steps: Sequence[Step]) -> bool:
    revisions_by_model: dict[str, dict[str, int]] = {}
    for model, record_id, revision in (revision for step in plan_steps for revision in step.read_revisions):
        revisions_by_model.setdefault(model, {})[record_id] = revision
    for name, revisions in revisions_by_model.items():
        view = run.caller.view.models.get(name)
        if view is None or view.denied:
            continue
        current_revisions = await unmask_input.revisions(run, view, list(revisions))
        if any(revision != revisions[record_id] for record_id, revision in current_revisions.items()):
            return True
    return False


def _by_model(run: Run, plan_steps: Sequence[Step]) -> Iterator[tuple[ModelView, list[Step]]]:
    with_record = [step for step in plan_steps if step.record_id is not None]
    for name in dict.fromkeys(step.model for step in with_record):
        view = run.caller.view.models.get(name)
        if view is not None:
            yield view, [step for step in with_record if step.model == name]


Link: TypeAlias = tuple[str, str, str, str, str, str]
"""A reference: the model and id of the referring record, the field, the model and id of the target, and what happens to
the referring record."""


class _Effect(msgspec.Struct):
    """The links that a cascading deletion clears, or deletes with the referring record. Plans of older versions have a
    number of records for each model instead.

    An effect with `code` is a change by the code of a package: the record that is created or changed, and its values
    before and after, without those of personal fields.

    For a model with a connected table, an effect also contains the triggers that run, or says that the table keeps the
    deleted rows and marks them.
    """

    model: str
    id: str = ""
    links: list[Link] = []
    count: int = 0
    what: str = ""
    triggers: list[str] = []
    is_marked: bool = False
    is_cascade: bool = False
    code: str = ""
    changes: dict[str, tuple[Stored, Stored]] = {}


async def describe_effects(run: Run, raw: msgspec.Raw | None) -> list[str]:
    """Describe the effects of a plan in words. Records that the viewer does not see are left out. A record that is
    linked to the deleted record only through hidden records is left out too."""
    if raw is None:
        return []
    sentences: list[str] = []
    reached_models: set[str] = set()
    for effect in msgspec.json.decode(bytes(raw), type=list[_Effect]):
        if effect.code:
            sentences += await _sentences_of_code(run, effect)
        elif effect.count:
            sentences += _sentences_of_counts(run, effect)
        elif effect.model in run.caller.view.models:
            links = await _visible_links(run, effect)
            reached_models |= {link[0] for link in links}
            sentences += _sentences(run, links)
            # What happens in a table must not show that a hidden record refers to the deleted one.
            if effect.model in reached_models or not effect.is_cascade:
                sentences += _sentences_of_table(run, effect)
    return sentences


def _sentences_of_table(run: Run, effect: _Effect) -> Iterator[str]:
    """Describe what a connected database does. Only administrators see names of the database."""
    label = run.caller.view.models[effect.model].model.label.lower()
    if effect.is_marked:
        yield f"the row of the {label} stays in its table, marked as deleted"
    if effect.triggers:
        count = len(effect.triggers)
        names = f" ({', '.join(effect.triggers)})" if run.caller.is_administrator else ""
        yield f"the database itself does more: {count} {'trigger' if count == 1 else 'triggers'} of {label}{names}"


async def _sentences_of_code(run: Run, effect: _Effect) -> list[str]:
    """Describe a change by the code of a package. Agents do not see it, because it may depend on values that they do
    not see."""
    view = run.caller.view.models.get(effect.model)
    if run.caller.is_agent or view is None:
        return []
    if effect.id and not await unmask_input.exists(run, effect.model, effect.id):
        return []
    label = view.model.label.lower()
    if effect.code == "created":
        return [f"code of the module creates one {label}"]
    return [
        f"code of the module changes {view.model.fields[name].label.lower()} of the {label}{_values(view, name, pair)}"
        for name, pair in effect.changes.items()
        if name in view.fields
    ]


def _values(view: ModelView, name: str, pair: Sequence[Stored]) -> str:
    """Return the values before and after, if the viewer may see them in words."""
    field = view.model.fields[name]
    if not view.sees_in_clear(name) or field.personal or isinstance(field, Ref):
        return ""
    before, after = ("empty" if value is None else field.show(value) for value in pair)
    return f" from {before} to {after}"


def _sentences_of_counts(run: Run, effect: _Effect) -> list[str]:
    """Describe the counts of a plan of an older version. The counts include records that row conditions hide, so they
    are shown only to viewers who see every record."""
    view = run.caller.view.models.get(effect.model)
    if run.caller.is_agent or view is None or view.visible is not None:
        return []
    return [f"{effect.count} {_label(view, effect.count)} {effect.what}"]


async def visible_links(run: Run, raw: msgspec.Raw | None) -> list[Link]:
    """Return those links of the plan's cascading deletions that the viewer sees."""
    if raw is None:
        return []
    effects = msgspec.json.decode(bytes(raw), type=list[_Effect])
    visible_effects = [effect for effect in effects if effect.links and effect.model in run.caller.view.models]
    return [link for effect in visible_effects for link in await _visible_links(run, effect)]


async def _visible_links(run: Run, effect: _Effect) -> Sequence[Link]:
    """Return the links that lead to the deleted record only through records and fields that the viewer sees."""
    exists = await _existing(run, effect)
    visible_of_effect = [link for link in effect.links if link[:2] in exists and _sees_field(run, link[0], link[2])]
    by_target: dict[Key, list[Link]] = {}
    for link in visible_of_effect:
        by_target.setdefault(link[3:5], []).append(link)
    visible_found: list[Link] = []
    reached_keys: list[Key] = [(effect.model, effect.id)]
    while reached_keys:
        links_to_key = by_target.pop(reached_keys.pop(), [])
        visible_found += links_to_key
        reached_keys += [link[:2] for link in links_to_key if link[5] == "deleted"]
    return visible_found


async def _existing(run: Run, effect: _Effect) -> set[Key]:
    """Return the keys of those records that exist for the viewer."""
    ids: dict[str, set[str]] = {}
    for model, record_id, *_ in effect.links:
        ids.setdefault(model, set()).add(record_id)
    existing_keys: set[Key] = set()
    for model, steps_of_model in ids.items():
        existing_keys |= {(model, id_) for id_ in await unmask_input.visible_ids(run, model, sorted(steps_of_model))}
    return existing_keys


def _sees_field(run: Run, model: str, field: str) -> bool:
    view = run.caller.view.models.get(model)
    return view is not None and field in view.fields


def _sentences(run: Run, links: Sequence[Link]) -> list[str]:
    deleted_ids: dict[str, set[str]] = {}
    cleared_ids: dict[tuple[str, str], set[str]] = {}
    for model, record_id, field, _, _, link_action in links:
        if link_action == "deleted":
            deleted_ids.setdefault(model, set()).add(record_id)
        else:
            cleared_ids.setdefault((model, field), set()).add(record_id)
    views: Mapping[str, ModelView] = run.caller.view.models
    sentences = [f"{len(ids)} {_label(views[model], len(ids))} deleted" for model, ids in deleted_ids.items()]
    for (model, field), ids in cleared_ids.items():
        label = views[model].model.fields[field].label.lower()
        sentences.append(f"{label} of {len(ids)} {_label(views[model], len(ids))} emptied")
    return sentences


def _label(view: ModelView, count: int) -> str:
    return (view.model.label if count == 1 else view.model.plural).lower()
