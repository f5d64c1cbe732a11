"""Redacts plans and audit entries for a viewer: each value is shown in clear, masked or not at all, as the viewer's
view of its model allows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias, cast

import msgspec

from countersign.declare import Ref
from countersign.declare.fields.field import Stored
from countersign.kernel.concurrency import CooperativeIterator
from countersign.records.access.view import ModelView
from countersign.records.approvals import plan_summary, plan_visibility, rights, step_storage
from countersign.records.commands import (
    audit_history,
    call_log,
    mask_output,
    mentions,
    prepared_command,
    unmask_input,
)
from countersign.records.commands.run import Run
from countersign.records.commands.select import RecordReader
from countersign.records.masking import placeholder_tokens

ERASED = "[erased]"
"""The text for a personal value that no record visible to the viewer contains any more."""


WITHHELD = "[withheld]"
"""The text shown instead of a plan's text if the plan took it from a field that the viewer may not read."""

ENTRIES_TOGETHER = 100
"""The number of audit entries whose keys, occurrences and refs are looked up together. A statement supports about
32,000 parameters."""

_Changes: TypeAlias = Mapping[str, list[object]]
"""Maps each changed field to its value before and its value after the change."""


class _Copy(msgspec.Struct):
    """The copy of a personal value in audit entries and plans: its value id, its encrypted text, and its aliases (the
    value ids that only one token domain uses, keyed by domain)."""

    value: int
    sealed: str = ""
    aliases: dict[str, int] = {}


async def render(run: Run, record_reader: RecordReader, values: list[list[Any]]) -> None:
    """Replace each structure with the parts of it that the viewer may see.

    Raises:
        LookupError: a model has structures without a renderer.
    """
    index_by_name = {name: index for index, name in enumerate(record_reader.names)}
    if record_reader.view.model.name == "audit_entry":
        for start in range(0, len(values), ENTRIES_TOGETHER):
            await _render_entries(run, values[start : start + ENTRIES_TOGETHER], index_by_name)
    elif record_reader.view.model.name == "plan":
        async for row in CooperativeIterator(values):
            await _render_plan(run, row, index_by_name)
    elif record_reader.view.model.name == "agent_token":
        await _add_token_counts(run, values, index_by_name)
    elif record_reader.view.model.name == "comment":
        for start in range(0, len(values), ENTRIES_TOGETHER):
            await mentions.render(run, values[start : start + ENTRIES_TOGETHER], index_by_name)
    else:
        raise LookupError(f"{record_reader.view.model.name} has structures without a renderer")


async def _add_token_counts(run: Run, values: Sequence[list[Any]], places: Mapping[str, int]) -> None:
    """Fill in the numbers of calls and proposals of agent tokens."""
    names = ("calls_24h", "refused_24h", "proposals_open")
    for start in range(0, len(values), ENTRIES_TOGETHER):
        value_batch = values[start : start + ENTRIES_TOGETHER]
        counts = await call_log.counts(run.reader, [str(value[0]) for value in value_batch])
        for value in value_batch:
            for name, count in zip(names, counts[str(value[0])], strict=True):
                if name in places:
                    value[places[name]] = count


async def _render_entries(run: Run, entries: Sequence[list[Any]], places: Mapping[str, int]) -> None:
    """Show audit entries with the changes of the fields that the viewer sees now, regardless of the fields that it saw
    at the time of the change."""
    changes_by_view: list[tuple[ModelView | None, _Changes]] = []
    for values in entries:
        model = values[places["model"]] if "model" in places else ""
        run.mentioned_models.add(model)
        view = run.caller.view.models.get(model)
        changes: _Changes = {}
        if "changes" in places and values[places["changes"]] is not None:
            changes = msgspec.json.decode(bytes(values[places["changes"]]))
        changes_by_view.append((view, changes))
    shown = zip(entries, changes_by_view, await _visible_changes(run, changes_by_view), strict=True)
    for values, (view, changes), shown_changes in shown:
        if "changes" in places:
            values[places["changes"]] = shown_changes
        if "fields" in places:
            names = shown_changes if changes or view is None else _visible_names(view, values[places["fields"]])
            values[places["fields"]] = ",".join(names)
        _hide_roles(run, values, places)


def _hide_roles(run: Run, values: list[Any], places: Mapping[str, int]) -> None:
    """Take the names of roles and applications of a connected database out of an audit entry, for callers who see
    tokens."""
    if run.caller.domain is None:
        return
    for name, hide in (("user_id", audit_history.without_role), ("request_id", audit_history.without_application)):
        place = places.get(name)
        if place is not None and values[place] is not None:
            values[place] = hide(values[place])


def _visible_names(view: ModelView, fields: object) -> list[str]:
    """Return the visible fields of an entry without values: a change of another application that its database has
    recorded."""
    names = map(view.model.present_name, str(fields or "").split(","))
    return [name for name in names if name in view.fields]


async def past_record(run: Run, view: ModelView, copies: Mapping[str, object]) -> dict[str, object]:
    """Return a past version of a record. `copies` contains the copies of the fields that the viewer sees now."""
    record_copies = _Copies(run)
    await record_copies.find([(view, name, value) for name, value in copies.items()])
    return {name: record_copies.displayed(view, name, value) for name, value in copies.items()}


async def visible_changes(
    run: Run, view: ModelView | None, changes: Mapping[str, list[object]]
) -> dict[str, list[object]]:
    """Return the values before and after the change, for the fields that the viewer sees. The result is empty for an
    unknown model."""
    return (await _visible_changes(run, [(view, changes)]))[0]


async def _visible_changes(
    run: Run, entries: Sequence[tuple[ModelView | None, _Changes]]
) -> list[dict[str, list[object]]]:
    changes_by_view = [(view, _changes_in_view(view, changes)) for view, changes in entries]
    copies = _Copies(run)
    await copies.find(list(_values(changes_by_view)))
    return [{} if view is None else _visible_entries(run, copies, view, changes) for view, changes in changes_by_view]


def _visible_entries(run: Run, copies: "_Copies", view: ModelView, changes: _Changes) -> dict[str, list[object]]:
    shown_pairs = {name: [copies.displayed(view, name, value) for value in pair] for name, pair in changes.items()}
    if run.caller.is_agent and view.model.name == "plan" and "error" in shown_pairs:
        is_stale = "stale" in shown_pairs.get("state", ())
        shown_pairs["error"] = [_kind_of(value, is_stale=is_stale) for value in shown_pairs["error"]]
    return {name: pair for name, pair in shown_pairs.items() if not _is_empty_for_viewer(view, name, pair)}


def _is_empty_for_viewer(view: ModelView, name: str, pair: Sequence[object]) -> bool:
    """Return whether a ref is empty for the viewer both before and after the change. The viewer then sees no change."""
    return isinstance(view.model.fields[name], Ref) and not any(pair)


def _changes_in_view(view: ModelView | None, changes: _Changes) -> _Changes:
    if view is None:
        return {}
    named_changes = ((view.model.present_name(name), pair) for name, pair in changes.items())
    # The pair of a connected record may be followed by how its column was read.
    return {name: pair[:2] for name, pair in named_changes if name in view.fields}


def _values(entries: Iterable[tuple[ModelView | None, _Changes]]) -> Iterator[tuple[ModelView, str, object]]:
    for view, changes in entries:
        if view is not None:
            yield from ((view, name, value) for name, pair in changes.items() for value in pair)


class _Copies:
    """Decrypts copies of personal values for one viewer, and determines which of the referenced records the viewer
    sees."""

    def __init__(
        self, run: Run, texts: Mapping[int, str] | None = None, withheld: frozenset[int] = frozenset()
    ) -> None:
        self._run = run
        self._texts = texts or {}
        self._withheld = withheld
        self._keys: Mapping[int, bytes] = {}
        self._seen: set[tuple[str, object]] = set()
        self._held: frozenset[int] = frozenset()
        self._literals: Mapping[str, str] = {}

    async def find(self, values: Sequence[tuple[ModelView, str, object]]) -> None:
        """Fetch the data needed to show these values."""
        wanted_ids: set[int] = set()
        ids_by_target: dict[str, set[int]] = {}
        targets: dict[str, set[str]] = {}
        async for view, name, value in CooperativeIterator(values, step_storage.VALUES_PER_TURN):
            field = view.model.fields[name]
            if isinstance(value, dict):
                copy = msgspec.convert(value, _Copy)
                wanted_ids.add(copy.value)
                if field.linked and field.personal:
                    ids_by_target.setdefault(field.personal, set()).add(self._id(view, name, copy))
            elif isinstance(field, Ref) and isinstance(value, str):
                targets.setdefault(field.target, set()).add(value)
        self._keys = await self._run.engine.vault.keys(self._run.reader, sorted(wanted_ids))
        for label, value_ids in ids_by_target.items():
            self._held |= await unmask_input.value_ids_in(self._run, label, sorted(value_ids))
        for target, record_ids in targets.items():
            seen_ids = await unmask_input.visible_ids(self._run, target, sorted(record_ids))
            self._seen |= {(target, seen_id) for seen_id in seen_ids}
        self._literals = await mask_output.literals(self._run, list(self._clear_texts(values)))

    def _clear_texts(self, values: Sequence[tuple[ModelView, str, object]]) -> Iterator[str]:
        if not self._run.caller.view.is_masked:
            return
        for view, name, value in values:
            plain_text = self._plain(view, name, value) if view.sees_in_clear(name) else None
            if isinstance(plain_text, str):
                yield plain_text

    def displayed(self, view: ModelView, name: str, value: object) -> object:
        """Return a value as the viewer sees the field: in clear, as a token, or erased. A ref to a hidden record is
        empty, as in the record itself. Ordinary text that looks like a token becomes a LITERAL token."""
        plain_text = self._plain(view, name, value)
        if isinstance(plain_text, str) and view.sees_in_clear(name):
            return placeholder_tokens.replace_tokens(self._run.engine.grammar, plain_text, self._literals)
        return plain_text

    def _plain(self, view: ModelView, name: str, value: object) -> object:
        field = view.model.fields[name]
        if value is None:
            return None
        if isinstance(field, Ref):
            return self._ref(field, value)
        if not isinstance(value, dict):
            # The copy was made before the field became personal, so the value has no token.
            return ERASED if view.fields[name] == "masked" else field.show(cast(Stored, value))
        return self._personal(view, name, msgspec.convert(value, _Copy))

    def _ref(self, field: Ref, value: object) -> object:
        step = prepared_command.step_index(value)
        if step is not None:
            return {prepared_command.STEP: step}
        return value if (field.target, value) in self._seen else None

    def _personal(self, view: ModelView, name: str, copy: _Copy) -> str:
        masks = self._run.masks
        if not self._is_known(view, name, copy):
            return ERASED
        if view.fields[name] == "masked":
            label = view.model.fields[name].personal
            return ERASED if masks is None else f"{label}_{masks.numbers([self._id(view, name, copy)])[0]}"
        if not copy.sealed:
            # The texts of a plan are stored separately, and deleted when the plan is decided.
            return WITHHELD if copy.value in self._withheld else self._texts.get(copy.value, ERASED)
        return self._run.engine.vault.unseal(self._keys[copy.value], copy.sealed) or ERASED

    def _is_known(self, view: ModelView, name: str, copy: _Copy) -> bool:
        """Return whether a record visible to the viewer still contains the value. Otherwise the value is shown as
        erased. If it were shown, the viewer would learn that a hidden record contains it.

        The vault does not know which records of a connected table contain a linked value. So the viewer always sees its
        token, also after no record has had it for so long that its copies are erased: the token is computed from the
        value id alone."""
        is_connected = view.model.table is not None
        if is_connected and copy.sealed and view.fields[name] == "masked" and view.model.fields[name].linked:
            return True
        if copy.value not in self._keys:
            return False
        if is_connected:
            return True
        is_alone = not view.model.fields[name].linked or copy.value in self._texts
        return is_alone or self._id(view, name, copy) in self._held

    def _id(self, view: ModelView, name: str, copy: _Copy) -> int:
        """Return the value id that is shown to the viewer. Text that the viewer's own agents wrote in clear is never
        linked to an equal existing value."""
        domain = self._run.caller.domain
        if domain is None or view.fields[name] != "masked":
            return copy.value
        return copy.aliases.get(domain.id, copy.value)


async def _render_plan(run: Run, values: list[Any], places: Mapping[str, int]) -> None:
    """Show a plan. Input, diff and effects are limited to the parts that the viewer sees. The digest is hidden from
    agents, and details of an error from everybody except the person who decided."""
    plan_id = str(values[0])
    plan_steps = step_storage.decode_steps(bytes(values[places["input"]]).decode()) if "input" in places else []
    run.mentioned_models.update(step.model for step in plan_steps)
    texts = await step_storage.stored_texts(run, run.reader, plan_id)
    copies = _Copies(run, texts, await _hidden_value_ids(run, plan_steps))
    diff: list[dict[str, Any]] = msgspec.json.decode(bytes(values[places["diff"]])) if "diff" in places else []
    structure = chain(_seen_in_diff(run, diff), _seen_in_input(run, plan_steps))
    await copies.find([member async for member in CooperativeIterator(structure, step_storage.VALUES_PER_TURN)])
    if "input" in places:
        values[places["input"]] = await _input(run, copies, plan_steps)
    if "diff" in places:
        values[places["diff"]] = await _diff(run, copies, diff)
    raw_effects = values[places["effects"]] if "effects" in places else None
    if "effects" in places:
        values[places["effects"]] = await plan_visibility.describe_effects(run, values[places["effects"]])
    await _mask_names(run, values, places)
    await _add_summary(run, values, places, plan_steps, raw_effects)
    _hide_details(run, values, places)
    await _mark_stale(run, values, places, plan_steps)


async def _add_summary(
    run: Run,
    values: list[Any],
    places: Mapping[str, int],
    plan_steps: Sequence[step_storage.Step],
    raw: msgspec.Raw | None,
) -> None:
    """Fill in the summary of the plan. It is computed from the parts of the plan that this viewer sees."""
    if not {"input", "diff", "why", "agent", "title"} <= places.keys():
        return
    plan_members = {name: values[places[name]] for name in ("why", "agent", "input", "diff")}
    summary = await plan_summary.summarize(run, plan_steps, plan_members, raw)
    for name, value in msgspec.structs.asdict(summary).items():
        values[places[name]] = value
    approvals, state = values[places["approvals"]], values[places["state"]]
    raw_approvals = msgspec.json.decode(msgspec.json.encode(approvals), type=list[msgspec.Raw])
    values[places["needs_left"]] = max(values[places["needs"]] - len(raw_approvals), 0) if state == "pending" else 0


async def _mask_names(run: Run, values: list[Any], places: Mapping[str, int]) -> None:
    for name in ("approvals", "proposed_by"):
        if name in places and run.caller.view.is_masked:
            values[places[name]] = await _with_literal_tokens(run, msgspec.json.decode(bytes(values[places[name]])))


async def _mark_stale(
    run: Run, values: list[Any], places: Mapping[str, int], plan_steps: Sequence[step_storage.Step]
) -> None:
    """Mark a pending plan as stale if its records have changed. Agents do not see the mark."""
    if run.caller.is_agent or "error" not in places or "state" not in places:
        return
    if values[places["state"]] == "pending" and await plan_visibility.is_stale(run, plan_steps):
        values[places["error"]] = "stale"


def _hide_details(run: Run, values: list[Any], places: Mapping[str, int]) -> None:
    if run.caller.is_agent:
        _hide_from_agent(values, places)
    elif "decided_by" not in places or values[places["decided_by"]] != run.caller.user_id:
        _hide_from_others(values, places)


async def _with_literal_tokens(run: Run, structure: object) -> object:
    """Return the structure with LITERAL tokens instead of ordinary texts that look like tokens."""
    tokens = await mask_output.literals(run, list(_texts(structure)))

    def spoken(value: object) -> object:
        if isinstance(value, dict):
            return {name: spoken(member) for name, member in cast("dict[str, object]", value).items()}
        if isinstance(value, list):
            return [spoken(member) for member in cast("list[object]", value)]
        return placeholder_tokens.replace_tokens(run.engine.grammar, value, tokens) if isinstance(value, str) else value

    return spoken(structure)


def _texts(structure: object) -> Iterator[str]:
    if isinstance(structure, str):
        yield structure
    elif isinstance(structure, dict | list):
        members = cast("dict[str, object] | list[object]", structure)
        member_values = members.values() if isinstance(members, dict) else members
        for member in member_values:
            yield from _texts(member)


async def _hidden_value_ids(run: Run, plan_steps: Sequence[step_storage.Step]) -> frozenset[int]:
    """Return the value ids of the texts that are hidden from the viewer, although the viewer reads the fields that
    contain them."""
    withheld_ids: set[int] = set()
    async for step in CooperativeIterator(plan_steps):
        origins = {name: field_input.origins for name, field_input in step.given.items() if field_input.origins}
        hidden_names = await rights.hidden_fields(run, step.model, origins)
        withheld_ids |= {
            field_input.sealed_id
            for name, field_input in step.given.items()
            if name in hidden_names and field_input.sealed_id is not None
        }
    return frozenset(withheld_ids)


def _hide_from_agent(values: list[Any], places: Mapping[str, int]) -> None:
    """Hide the digest and the error's details from an agent, because they may depend on values that the agent may not
    see."""
    if "digest" in places:
        values[places["digest"]] = None
    _hide_from_others(values, places)


def _hide_from_others(values: list[Any], places: Mapping[str, int]) -> None:
    """Hide the details of an error from other viewers, because they may name data that only the deciding person may
    see."""
    if "error" in places:
        is_stale = "state" in places and values[places["state"]] == "stale"
        values[places["error"]] = _kind_of(values[places["error"]], is_stale=is_stale)


def _kind_of(error: object, *, is_stale: bool) -> str | None:
    """Return the kind of an error, which other viewers see instead of the error's text."""
    if error is None:
        return None
    return "stale" if is_stale else "refused"


def _seen_in_diff(run: Run, diff: Sequence[Mapping[str, Any]]) -> Iterator[tuple[ModelView, str, object]]:
    for entry in diff:
        view = run.caller.view.models.get(entry["model"])
        if view is not None and entry["field"] in view.fields:
            yield view, entry["field"], entry["before"]
            yield view, entry["field"], entry["after"]


def _seen_in_input(run: Run, plan_steps: Sequence[step_storage.Step]) -> Iterator[tuple[ModelView, str, object]]:
    for step in plan_steps:
        view = run.caller.view.models.get(step.model)
        if view is not None:
            visible_inputs = ((name, value) for name, value in step.given.items() if name in view.fields)
            yield from ((view, name, step_storage.stored_copy(value)) for name, value in visible_inputs)


async def _input(run: Run, copies: _Copies, plan_steps: Sequence[step_storage.Step]) -> object:
    visible_inputs: list[dict[str, object]] = []
    async for step in CooperativeIterator(plan_steps):
        view = run.caller.view.models.get(step.model)
        members: dict[str, object] = {} if step.record_id is None else {"id": step.record_id}
        if step.cascade:
            members["cascade"] = True
        for name, value in step.given.items():
            if view is not None and name in view.fields:
                members[name] = copies.displayed(view, name, step_storage.stored_copy(value))
        visible_inputs.append({"command": step.id, "input": members})
    return visible_inputs[0]["input"] if len(visible_inputs) == 1 else {"steps": visible_inputs}


async def _diff(run: Run, copies: _Copies, diff: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    visible_diff: list[dict[str, Any]] = []
    async for entry in CooperativeIterator(diff, step_storage.VALUES_PER_TURN):
        view = run.caller.view.models.get(entry["model"])
        if view is not None and entry["field"] in view.fields:
            sides = {side: copies.displayed(view, entry["field"], entry[side]) for side in ("before", "after")}
            if not _is_empty_for_viewer(view, entry["field"], list(sides.values())):
                visible_diff.append({**entry, **sides})
    return visible_diff
