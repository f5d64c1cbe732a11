"""GET /api/commands and GET /api/meta: what there is for this caller, and nothing else."""

from collections.abc import Mapping
from typing import Any

from countersign.declare import Ref, Select
from countersign.declare.registry import Registry
from countersign.records.access.view import Caller, ModelView
from countersign.records.commands import command
from countersign.records.commands.command import describe


class Approvals:
    """Which commands an agent can only propose, as far as that is known before an input is."""

    def __init__(
        self, declared: frozenset[str], settings: frozenset[str], lifted: frozenset[str] = frozenset()
    ) -> None:
        self.ids = declared | settings
        self.lifted = lifted

    def ask_for(self, command_id: str) -> bool:
        """Whether an agent's call of the command becomes a plan."""
        return command_id in self.ids

    def fields(self, view: ModelView) -> tuple[str, ...]:
        """Of a model whose `update` an agent may call, the fields that it can only propose to change."""
        update = f"{view.model.name}.update"
        if update in self.ids or update in self.lifted:
            return ()
        return tuple(name for name in view.fields if view.model.fields[name].needs_approval and name in view.writable)


Own = Mapping[str, Mapping[str, str]]
"""The engine's own commands: by model and name, their sentence."""


def commands(caller: Caller, approvals: Approvals, own: Own) -> list[dict[str, Any]]:
    """The command descriptors (API document), sorted by id."""
    found = [
        {
            "id": f"{name}.{each}",
            "description": describe(
                view, each, own.get(name, {}), needs_approval=needs_approval, proposed=approvals.fields(view)
            ),
            "needs_approval": needs_approval,
        }
        for name, view in caller.view.models.items()
        for each in view.commands
        for needs_approval in (approvals.ask_for(f"{name}.{each}"),)
    ]
    return sorted(found, key=lambda each: each["id"])


def meta(caller: Caller, registry: Registry, approvals: Approvals) -> dict[str, Any]:
    """Modules, models, readable fields and actions visible to this caller."""
    views = caller.view.models
    modules = [
        {"name": module.name, "version": module.version, "label": module.label}
        for module in registry.modules
        if any(model.declared.name in views for model in module.models)
    ]
    models = [_model(views[name], registry, approvals) for name in sorted(views)]
    caller_shown = {
        "kind": caller.kind,
        "name": caller.agent if caller.is_agent else caller.username,
        "scopes": list(caller.scopes),
    }
    return {"modules": modules, "models": models, "caller": caller_shown}


def _model(view: ModelView, registry: Registry, approvals: Approvals) -> dict[str, Any]:
    model = view.model
    return {
        "name": model.name,
        "label": model.label,
        "plural": model.plural,
        "module": registry.module_of[model.name].name,
        "help": model.summary,
        "shown_as": model.shown_as if model.shown_as in view.fields else "id",
        "fields": [_field(view, name, registry, approvals) for name in view.fields],
        "commands": sorted(f"{model.name}.{each}" for each in view.commands),
        "actions": [_action(view, name, approvals) for name in command.moves(model) if name in view.commands],
    }


def _field(view: ModelView, name: str, registry: Registry, approvals: Approvals) -> dict[str, Any]:
    field, filled_from = view.model.fields[name], view.model.filling_ref(name)
    return {
        "name": name,
        "kind": field.kind,
        "label": field.label,
        "help": field.help,
        "required": field.required,
        "filled_from": filled_from if filled_from in view.fields else None,
        "readonly": field.readonly or name not in view.writable,
        "options": list(field.options) if isinstance(field, Select) else None,
        "ref": field.target if isinstance(field, Ref) else None,
        "on_delete": field.on_delete if isinstance(field, Ref) else None,
        "is_part": isinstance(field, Ref) and registry.is_part(view.model, field),
        "may_hide": name in view.partly,
        "masked": view.fields[name] == "masked",
        "needs_approval": name in approvals.fields(view),
    }


def _action(view: ModelView, name: str, approvals: Approvals) -> dict[str, Any]:
    if view.model.workflow is None:
        raise LookupError(f"{view.model.name} has no workflow")
    move = view.model.workflow.moves[name]
    shows_states = view.sees_in_clear(view.model.workflow.field)
    return {
        "id": f"{view.model.name}.{name}",
        "label": move.label,
        "inputs": [each for each in move.inputs if each in view.fields],
        "optional_inputs": [each for each in move.optional if each in view.fields],
        "from": list(move.sources) if shows_states else [],
        "to": move.to if shows_states else None,
        "needs_approval": approvals.ask_for(f"{view.model.name}.{name}"),
    }
