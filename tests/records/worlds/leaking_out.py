"""More planted leaks, through errors, tokens, documents and plans."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from countersign.declare import Field
from countersign.kernel.http.response import Response
from countersign.records import api_meta, app, rest_handlers
from countersign.records.access.view import ModelView
from countersign.records.approvals import proposals
from countersign.records.commands import export, filters, record_writer, select, unmask_input
from countersign.records.commands.errors import BadInput
from countersign.records.commands.run import Run
from countersign.records.masking.placeholder_tokens import DomainMasks


def masked_fields_are_filtered(patch: pytest.MonkeyPatch) -> None:
    """Filters and orders accept every visible field, including masked fields."""
    real = filters.clear_field

    def clear_field(view: ModelView, name: str) -> Field:
        return view.model.fields[name] if name in view.fields else real(view, name)

    patch.setattr(filters, "clear_field", clear_field)


def masked_fields_are_ordered(patch: pytest.MonkeyPatch) -> None:
    """Orders, but not filters, accept every visible field, including masked fields."""
    real = select.order_terms

    def order(scope: Any, reading: Any, query: Any) -> list[select.Term]:
        with pytest.MonkeyPatch.context() as inner:
            masked_fields_are_filtered(inner)
            return real(scope, reading, query)

    patch.setattr(select, "order_terms", order)


def errors_echo_what_tokens_stand_for(patch: pytest.MonkeyPatch) -> None:
    """The error for an invalid value contains the text in which tokens are already replaced by their values."""
    real = unmask_input._replaced

    async def swapped(run: Run, field: Field, text: str, name: str, *, is_masked: bool, is_connected: bool) -> Any:
        value, given = await real(run, field, text, name, is_masked=is_masked, is_connected=is_connected)
        if value != text and " " in value:
            raise BadInput(f"{name} may hold one word alone: {value}")
        return value, given

    patch.setattr(unmask_input, "_replaced", swapped)


def tokens_are_counted(patch: pytest.MonkeyPatch) -> None:
    """Tokens are numbered in the order in which they are first sent."""
    known: dict[DomainMasks, dict[int, int]] = {}

    def numbers(self: DomainMasks, ids: Sequence[int]) -> list[str]:
        known_ids = known.setdefault(self, {})
        return [str(known_ids.setdefault(id_, len(known_ids) + 1)) for id_ in ids]

    patch.setattr(DomainMasks, "numbers", numbers)


def tokens_follow_a_common_counter(patch: pytest.MonkeyPatch) -> None:
    """Tokens are numbered by a counter that all callers share."""
    known: dict[DomainMasks, dict[int, int]] = {}

    def numbers(self: DomainMasks, ids: Sequence[int]) -> list[str]:
        known_ids = known.setdefault(self, {})
        return [str(known_ids.setdefault(id_, 1000 * len(known) + 2 * len(known_ids))) for id_ in ids]

    patch.setattr(DomainMasks, "numbers", numbers)


def hidden_models_are_forbidden(patch: pytest.MonkeyPatch) -> None:
    """A command of a hidden model has another error than a command of an unknown model."""
    real = rest_handlers.Handlers.run

    async def run(self: rest_handlers.Handlers, call: Any) -> Response:
        """Run a command, or refuse a hidden model with another status."""
        model = call.path["model"]
        if model in self.dispatch.engine.registry.models and model not in call.caller.view.models:
            raise BadInput("not allowed")
        return await real(self, call)

    patch.setattr(rest_handlers.Handlers, "run", run)


def exports_hold_clear_values(patch: pytest.MonkeyPatch) -> None:
    """An export is not masked."""
    real = export.pieces_of

    async def pieces_of(run: Run, model: str, asked: export.ExportRequest) -> Any:
        view = run.view_of(model)
        views = {**run.caller.view.models, model: replace(view, fields=dict.fromkeys(view.fields, "clear"))}
        run = replace(run, caller=replace(run.caller, view=replace(run.caller.view, models=views)))
        async for piece in real(run, model, asked):
            yield piece

    patch.setattr(export, "pieces_of", pieces_of)


def openapi_names_every_model(patch: pytest.MonkeyPatch) -> None:
    """The OpenAPI document contains every model, as for a caller who sees everything."""

    async def openapi(self: rest_handlers.Handlers, call: Any) -> Response:
        """Return the OpenAPI document of every model."""
        models = self.dispatch.engine.registry.models
        paths = {f"/api/{name}/list": sorted(models[name].fields) for name in models}
        return rest_handlers._response_with_etag(call, {"paths": paths})

    patch.setattr(rest_handlers.Handlers, "openapi", openapi)


def meta_names_every_module(patch: pytest.MonkeyPatch) -> None:
    """The description of the service lists modules of which the caller sees nothing."""
    real = api_meta.meta_document

    def described(caller: Any, registry: Any, approvals: Any) -> dict[str, Any]:
        return {**real(caller, registry, approvals), "modules": [module.name for module in registry.modules]}

    patch.setattr(api_meta, "meta_document", described)


def plans_of_others_are_listed(patch: pytest.MonkeyPatch) -> None:
    """An agent can read every plan."""
    patch.setattr(app, "with_plans", lambda caller, dialect: caller)


def plans_of_one_label_are_shared(patch: pytest.MonkeyPatch) -> None:
    """Agents with the same label see each other's plans, even if they belong to different people."""
    from countersign.declare import where
    from countersign.records.approvals import rights

    real = rights.with_plans

    def with_plans(caller: Any, dialect: Any) -> Any:
        narrowed = real(caller, dialect)
        view = narrowed.view.models.get("plan")
        if view is None or not caller.is_agent:
            return narrowed
        rows = dict.fromkeys(view.rows, ((where("agent", eq=caller.agent),),))
        models = {**narrowed.view.models, "plan": replace(view, rows=rows)}
        return replace(narrowed, view=replace(narrowed.view, models=models))

    patch.setattr(app, "with_plans", with_plans)


def plans_follow_hidden_edits(patch: pytest.MonkeyPatch) -> None:
    """The same proposal becomes another plan if something hidden has changed."""

    async def as_seen(run: Run, prepared: Sequence[Any]) -> list[object]:
        records = [await proposals._record(run, command) for command in prepared]
        return [None if record is None else record.revision for record in records]

    patch.setattr(proposals, "_visible_revisions", as_seen)


def right_guesses_change_nothing(patch: pytest.MonkeyPatch) -> None:
    """An update that writes the existing value in clear does not count as a change."""

    async def is_change(run: Run, model: Any, record: Any, name: str, given: Any) -> bool:
        return given.stored != record.values[name]

    patch.setattr(record_writer, "is_change", is_change)
