"""The response of `GET /api/meta` for a caller: modules, models, fields, actions and commands."""

from collections.abc import Mapping
from typing import Any

from countersign.declare import Ref, Select
from countersign.declare.registry import Registry
from countersign.records.access.view import Caller, ModelView
from countersign.records.commands import command, presentation
from countersign.records.commands.command import describe


class Approvals:
    """The commands that an agent can only propose. Approvals that depend on the input of a command are not included."""

    def __init__(
        self, declared_ids: frozenset[str], settings: frozenset[str], lifted: frozenset[str] = frozenset()
    ) -> None:
        self.ids = declared_ids | settings
        self.lifted = lifted

    def becomes_plan(self, command_id: str) -> bool:
        """Return whether an agent's call of the command becomes a plan."""
        return command_id in self.ids

    def fields(self, view: ModelView) -> tuple[str, ...]:
        """Return the fields of a model whose changes an agent can only propose, although it may call `update`."""
        update = f"{view.model.name}.update"
        if update in self.ids or update in self.lifted:
            return ()
        return tuple(name for name in view.fields if view.model.fields[name].needs_approval and name in view.writable)


BuiltinCommands = Mapping[str, Mapping[str, str]]
"""Maps models to their built-in commands, and each command to its description."""


def command_list(caller: Caller, approvals: Approvals, builtin_commands: BuiltinCommands) -> list[dict[str, Any]]:
    """Return the descriptors of the commands (API document), sorted by id."""
    command_rows = [
        {
            "id": f"{name}.{command}",
            "description": describe(
                view,
                command,
                builtin_commands.get(name, {}),
                needs_approval=becomes_plan,
                proposed_fields=approvals.fields(view),
            ),
            "needs_approval": becomes_plan,
        }
        for name, view in caller.view.models.items()
        for command in view.commands
        for becomes_plan in (approvals.becomes_plan(f"{name}.{command}"),)
    ]
    return sorted(command_rows, key=lambda command_row: command_row["id"])


def meta_document(caller: Caller, registry: Registry, approvals: Approvals) -> dict[str, Any]:
    """Return the modules, models, readable fields and actions that are visible to this caller."""
    views = caller.view.models
    modules = [
        {"name": module.name, "version": module.version, "label": module.label, **presentation.of_module(module)}
        for module in registry.modules
        if any(model.declared.name in views for model in module.models)
    ]
    models = [
        {
            **_model_meta(views[name], views, registry, approvals),
            "views": presentation.views_of(views[name], caller.user_id),
        }
        for name in sorted(views)
    ]
    caller_document = {
        "kind": caller.kind,
        "name": caller.agent if caller.is_agent else caller.username,
        "scopes": list(caller.scopes),
    }
    return {"modules": modules, "models": models, "caller": caller_document}


def add_currency(document: Mapping[str, Any], currency: str | None) -> None:
    """Add the currency of the installation to the fields of money in what `meta_document` returned."""
    for model in document["models"]:
        for field in model["fields"]:
            if field["kind"] == "money":
                field["currency"] = currency


def _model_meta(
    view: ModelView, views: Mapping[str, ModelView], registry: Registry, approvals: Approvals
) -> dict[str, Any]:
    model = view.model
    return {
        "name": model.name,
        "label": model.label,
        "plural": model.plural,
        "module": registry.module_of[model.name].name,
        "help": model.summary,
        "shown_as": model.shown_as if model.shown_as in view.fields else "id",
        "fields": [_field_meta(view, name, registry, approvals) for name in view.fields],
        "commands": sorted(f"{model.name}.{name}" for name in view.commands),
        "actions": [_action_meta(view, name, approvals) for name in command.moves(model) if name in view.commands],
        **presentation.of_model(view, views, registry),
    }


def _field_meta(view: ModelView, name: str, registry: Registry, approvals: Approvals) -> dict[str, Any]:
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
        "may_hide": name in view.partly_visible,
        "masked": view.fields[name] == "masked",
        "is_personal": bool(field.personal),
        "token_label": field.personal,
        "needs_approval": name in approvals.fields(view),
        **({} if field.sortable else {"sortable": False}),
        **presentation.of_field(view, field),
    }


def _action_meta(view: ModelView, name: str, approvals: Approvals) -> dict[str, Any]:
    if view.model.workflow is None:
        raise LookupError(f"{view.model.name} has no workflow")
    move = view.model.workflow.moves[name]
    shows_states = view.sees_in_clear(view.model.workflow.field)
    return {
        "id": f"{view.model.name}.{name}",
        "label": move.label,
        "inputs": [input_ for input_ in move.inputs if input_ in view.fields],
        "optional_inputs": [name for name in move.optional if name in view.fields],
        "from": list(move.sources) if shows_states else [],
        "to": move.to if shows_states else None,
        "needs_approval": approvals.becomes_plan(f"{view.model.name}.{name}"),
        **presentation.of_command(view, name),
    }
