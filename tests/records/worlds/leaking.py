"""Planted leaks. Each is a small patch that disables one defence, with the caller that would notice it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from countersign.declare import Field
from countersign.records import app, redaction
from countersign.records.access.view import ModelView
from countersign.records.approvals import plan_visibility, policy
from countersign.records.commands import (
    crud,
    dependents,
    filters,
    preconditions,
    revisions,
    select,
    unmask_input,
    value_aliases,
)
from countersign.records.commands.errors import BadInput
from countersign.records.commands.run import Run
from countersign.records.masking import vault
from tests.records.worlds import leaking_out
from tests.records.worlds.building import Audience

Patch = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class PatchedLeak:
    """A leak: its patch, and the audience and the caller that learn something from it."""

    name: str
    patch: Patch
    audience: Audience
    who: str = "agent"
    is_early: bool = False
    """Whether the patch must be applied before the worlds are opened, because they cache what the patch changes."""
    seed: int = 3
    """The seed of requests that reveal the leak early: most leaks within the first 20 requests, all within the first
    70."""


def value_ids_are_kept_by_holders(patch: pytest.MonkeyPatch) -> None:
    """A value that was removed gets its previous id again only if a hidden record has an equal value."""
    patch.setattr(vault, "_id_of", lambda _: vault._new_id())


masked_fields_are_filtered = leaking_out.masked_fields_are_filtered


def hidden_fields_are_filtered(patch: pytest.MonkeyPatch) -> None:
    """Filters and orders accept every field."""
    real = filters.clear_field

    def clear_field(view: ModelView, name: str) -> Field:
        return view.model.fields.get(name) or real(view, name)

    patch.setattr(filters, "clear_field", clear_field)


def totals_count_everything(patch: pytest.MonkeyPatch) -> None:
    """The total of a search ignores the row condition."""
    real_page, real_where = select.page_with_total, select.where_clause
    first = [False]

    def page_with_total(*given: Any) -> select.SelectStatement:
        first[0] = True
        return real_page(*given)

    def where(scope: Any, made: Any, rows: Any, query: Any) -> str:
        is_count, first[0] = first[0], False
        return real_where(scope, made, None if is_count else rows, query)

    patch.setattr(select, "page_with_total", page_with_total)
    patch.setattr(select, "where_clause", where)


def refs_tell_what_exists(patch: pytest.MonkeyPatch) -> None:
    """A ref is checked against the table and not against the caller's view."""

    async def exists(run: Run, model: str, record_id: str) -> bool:
        return await run.reader.fetch_one(f'SELECT 1 FROM "{model}" WHERE id = $1', record_id) is not None

    patch.setattr(unmask_input, "exists", exists)


def refs_show_hidden_records(patch: pytest.MonkeyPatch) -> None:
    """A ref to a hidden record is shown."""
    patch.setattr(filters.Scope, "value_of", lambda self, field: f'{self.alias}."{field.name}"')


def reading_by_id_ignores_rows(patch: pytest.MonkeyPatch) -> None:
    """Reading by id ignores the row condition."""
    real = select.one
    patch.setattr(select, "one", lambda made, rows, record_id: real(made, None, record_id))


def a_unique_clash_is_told(patch: pytest.MonkeyPatch) -> None:
    """An agent's input with a unique value of a hidden record is executed or refused, instead of becoming a plan."""
    patch.setattr(policy, "_may_conflict_with_hidden", lambda view, prepared: False)


def agents_delete_themselves(patch: pytest.MonkeyPatch) -> None:
    """A refused deletion reveals to an agent that hidden records refer to the record."""
    patch.setattr(policy, "is_declared", lambda registry, model, command: False)


def agents_read_effects(patch: pytest.MonkeyPatch) -> None:
    """A plan shows its proposer how many records would be deleted too."""

    async def shown(run: Run, raw: Any) -> object:
        return None if raw is None else str(bytes(raw))

    patch.setattr(plan_visibility, "describe_effects", shown)


def hidden_references_are_refused_at_once(patch: pytest.MonkeyPatch) -> None:
    """Whether an agent's deletion becomes a plan depends on hidden records."""
    real = dependents.find

    async def find(*given: Any, seen_by: Any = None, **more: Any) -> Any:
        return await real(*given, **more)

    patch.setattr(dependents, "find", find)


def guards_look_at_hidden_fields(patch: pytest.MonkeyPatch) -> None:
    """An agent's action is executed or refused depending on hidden fields."""
    patch.setattr(policy, "_would_reveal_hidden", lambda run, prepared: False)


def history_shows_that_something_happened(patch: pytest.MonkeyPatch) -> None:
    """Hidden changes are shown as empty entries of the history."""
    real = redaction.visible_changes

    async def changed(run: Run, view: ModelView | None, changes: Mapping[str, list[object]]) -> dict[str, list[object]]:
        return await real(run, view, changes) or {"hidden": [None, None]}

    patch.setattr(redaction, "visible_changes", changed)


def revisions_count_hidden_changes(patch: pytest.MonkeyPatch) -> None:
    """The revision counts hidden changes."""
    patch.setattr(revisions, "visible_revision", lambda alias, model, visible_fields, bits: f"{alias}.revision")


def the_audit_tells_everybody(patch: pytest.MonkeyPatch) -> None:
    """A caller that may read the audit reads all of it."""
    patch.setattr(app, "with_audit", lambda caller, dialect: caller)


def swapped_values_are_measured(patch: pytest.MonkeyPatch) -> None:
    """The error of a limit on the value of a token reveals the length of the value."""
    real = unmask_input._replaced

    async def swapped(run: Run, field: Field, text: str, name: str, *, is_masked: bool, is_connected: bool) -> Any:
        value, given = await real(run, field, text, name, is_masked=is_masked, is_connected=is_connected)
        if len(value) > 19:
            raise BadInput(f"{name} is too long")
        return value, given

    patch.setattr(unmask_input, "_replaced", swapped)


def tokens_are_swapped_anywhere(patch: pytest.MonkeyPatch) -> None:
    """A token in a clear field is replaced by its value (laundering)."""
    real = unmask_input._replaced

    async def swapped(run: Run, field: Field, text: str, name: str, *, is_masked: bool, is_connected: bool) -> Any:
        return await real(run, field, text, name, is_masked=True, is_connected=is_connected)

    patch.setattr(unmask_input, "_replaced", swapped)
    patch.setattr(unmask_input, "_allowed", lambda field, labels: labels)
    # With other words around them, most tokens would be too long for a text that is not free text.
    patch.setattr(unmask_input, "_require_fitting", lambda *given: None)


def guesses_are_confirmed(patch: pytest.MonkeyPatch) -> None:
    """Text that an agent writes in clear is shown as the token of an equal existing value."""

    async def no_alias(*given: object) -> None:
        return None

    patch.setattr(value_aliases, "_alias_of", no_alias)
    patch.setattr(value_aliases, "of_plain_texts", lambda *given: [])


def _reaching_all(patch: pytest.MonkeyPatch, command: str) -> None:
    real = ModelView.reach

    def reach(self: ModelView, name: str) -> Any:
        return None if name == command else real(self, name)

    patch.setattr(ModelView, "reach", reach)


def counts_by_field_count_everything(patch: pytest.MonkeyPatch) -> None:
    """count_by ignores the row condition."""
    _reaching_all(patch, "count_by")


def exports_hold_everything(patch: pytest.MonkeyPatch) -> None:
    """An export ignores the row condition."""
    _reaching_all(patch, "export")


def lists_hold_everything(patch: pytest.MonkeyPatch) -> None:
    """A list ignores the row condition."""
    _reaching_all(patch, "list")


def hidden_records_can_be_changed(patch: pytest.MonkeyPatch) -> None:
    """An update finds records that a get does not find."""
    _reaching_all(patch, "update")
    bounds_bind_nothing(patch)


def bounds_bind_nothing(patch: pytest.MonkeyPatch) -> None:
    """A command may leave a record outside the rows of the caller."""
    patch.setattr(preconditions, "require_within_rows", lambda *given: None)


def plans_show_hidden_values(patch: pytest.MonkeyPatch) -> None:
    """The difference of a plan is shown as stored."""

    async def stored(run: object, copies: object, diff: Sequence[Any]) -> list[Any]:
        return list(diff)

    patch.setattr(redaction, "_diff", stored)


def plans_show_their_digest(patch: pytest.MonkeyPatch) -> None:
    """The digest of a plan also depends on hidden values."""
    patch.setattr(redaction, "_hide_from_agent", lambda values, places: None)


def order_follows_hidden_edits(patch: pytest.MonkeyPatch) -> None:
    """Records are ordered by the time of their last change."""
    real = select.order_terms
    patch.setattr(select, "order_terms", lambda *given: [select.Term("t.revision", True), *real(*given)])


def audit_shows_hidden_refs(patch: pytest.MonkeyPatch) -> None:
    """Copies in history and audit contain the ids of hidden records."""

    async def among(run: Run, model: str, record_ids: Sequence[str]) -> frozenset[str]:
        return frozenset(record_ids)

    patch.setattr(unmask_input, "visible_ids", among)


def errors_tell_where_a_ref_leads(patch: pytest.MonkeyPatch) -> None:
    """A ref to a hidden record has another error than a ref to a missing record."""
    real = crud.read_record

    async def read(run: Run, model: str, record_id: object) -> object:
        text = f'SELECT 1 FROM "{model}" WHERE id = $1'
        is_there = await run.reader.fetch_one(text, str(record_id)) is not None
        try:
            return await real(run, model, record_id)
        except BadInput as error:
            raise BadInput("you may not see this record" if is_there else error.detail) from error

    patch.setattr(crud, "read_record", read)


def sight_of_computed_fields_is_their_own(patch: pytest.MonkeyPatch) -> None:
    """A grant on a computed field shows values computed from hidden fields."""
    from countersign.records.access import visibility

    real = visibility.view_of

    def view_of(registry: Any, commands: Any, standing: Any, cut: Any = None) -> Any:
        view = real(registry, commands, standing, cut)
        invoice = view.models.get("invoice")
        if invoice is None:
            return view
        fields = {**invoice.fields, "total_minor": "clear"}
        return replace(view, models={**view.models, "invoice": replace(invoice, fields=fields)})

    patch.setattr(visibility, "view_of", view_of)


LEAKS: tuple[PatchedLeak, ...] = (
    PatchedLeak("value ids are kept by holders", value_ids_are_kept_by_holders, "alice"),
    PatchedLeak("value ids are kept by holders in hidden rows", value_ids_are_kept_by_holders, "dan", seed=1),
    PatchedLeak("masked fields are filtered", masked_fields_are_filtered, "bob", seed=4),
    PatchedLeak("hidden fields are filtered", hidden_fields_are_filtered, "dan", seed=9),
    PatchedLeak("totals count everything", totals_count_everything, "dan", seed=2),
    PatchedLeak("refs tell what exists", refs_tell_what_exists, "dan", seed=7),
    PatchedLeak("refs show hidden records", refs_show_hidden_records, "dan", seed=1),
    PatchedLeak("reading by id ignores rows", reading_by_id_ignores_rows, "dan", seed=2),
    PatchedLeak("a unique clash is told", a_unique_clash_is_told, "carol", seed=2),
    PatchedLeak("a unique clash with a hidden record is told", a_unique_clash_is_told, "dan"),
    PatchedLeak("agents delete themselves", agents_delete_themselves, "dan", seed=5),
    PatchedLeak("agents read effects", agents_read_effects, "dan", seed=13),
    PatchedLeak("hidden references are refused at once", hidden_references_are_refused_at_once, "dan", seed=5),
    PatchedLeak("guards look at hidden fields", guards_look_at_hidden_fields, "dan", seed=8),
    PatchedLeak("history shows that something happened", history_shows_that_something_happened, "dan", seed=9),
    PatchedLeak("revisions count hidden changes", revisions_count_hidden_changes, "dan", "person"),
    PatchedLeak("the audit tells everybody", the_audit_tells_everybody, "dan", "person", seed=8),
    PatchedLeak("swapped values are measured", swapped_values_are_measured, "bob", seed=13),
    PatchedLeak("tokens are swapped anywhere", tokens_are_swapped_anywhere, "bob", seed=13),
    PatchedLeak("guesses are confirmed", guesses_are_confirmed, "bob", seed=7),
    PatchedLeak("counts by field count everything", counts_by_field_count_everything, "dan", seed=13),
    PatchedLeak("exports hold everything", exports_hold_everything, "dan", seed=5),
    PatchedLeak("lists hold everything", lists_hold_everything, "dan", "person", seed=1),
    PatchedLeak("hidden records can be changed", hidden_records_can_be_changed, "dan", seed=8),
    PatchedLeak("plans show hidden values", plans_show_hidden_values, "dan", seed=13),
    PatchedLeak("plans show their digest", plans_show_their_digest, "dan", seed=13),
    PatchedLeak("order follows hidden edits", order_follows_hidden_edits, "dan"),
    PatchedLeak("history shows hidden refs", audit_shows_hidden_refs, "dan", seed=9),
    PatchedLeak("errors tell what exists", errors_tell_where_a_ref_leads, "dan", seed=11),
    PatchedLeak("masked fields are ordered", leaking_out.masked_fields_are_ordered, "bob", seed=1),
    PatchedLeak("errors echo what tokens stand for", leaking_out.errors_echo_what_tokens_stand_for, "alice", seed=10),
    PatchedLeak("tokens are counted", leaking_out.tokens_are_counted, "bob"),
    PatchedLeak("tokens follow a common counter", leaking_out.tokens_follow_a_common_counter, "alice"),
    PatchedLeak("hidden models are forbidden", leaking_out.hidden_models_are_forbidden, "bob", is_early=True, seed=12),
    PatchedLeak("exports hold clear values", leaking_out.exports_hold_clear_values, "alice", seed=6),
    PatchedLeak("openapi names every model", leaking_out.openapi_names_every_model, "bob", is_early=True, seed=11),
    PatchedLeak("meta names every module", leaking_out.meta_names_every_module, "dan", "person", seed=12),
    PatchedLeak("plans of others are listed", leaking_out.plans_of_others_are_listed, "alice", seed=5),
    PatchedLeak("plans of one label are shared", leaking_out.plans_of_one_label_are_shared, "carol"),
    PatchedLeak("plans follow hidden edits", leaking_out.plans_follow_hidden_edits, "alice", seed=1),
    PatchedLeak("right guesses change nothing", leaking_out.right_guesses_change_nothing, "bob", seed=7),
    PatchedLeak("computed fields show hidden ones", sight_of_computed_fields_is_their_own, "dan"),
)
