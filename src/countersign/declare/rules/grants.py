"""Rules about roles: the models, commands and fields that their grants name must exist."""

import re
from collections.abc import Iterator, Mapping

from countersign.declare.model import Declared
from countersign.declare.module import Grant, Module, Names, Role
from countersign.declare.rules.conditions import condition_error
from countersign.declare.rules.declarations import Declarations, module_error

BUILTIN_COMMANDS: Mapping[str, tuple[str, ...]] = {
    "plan": ("reject", "withdraw", "propose", "watch"),
    "session": ("revoke",),
    "agent_token": ("revoke", "calls"),
    "user": ("invite", "home", "find", "recent", "deactivate"),
    "audit_entry": ("verify",),
    "comment": ("people",),
}
"""Maps a built-in model to its commands that are built in and not generated."""

RIGHTS = ("base.unmask",)
"""The rights that do not belong to a model."""
MAX_CONDITIONS = 50

_ROLE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", re.ASCII)


def roles_named(declarations: Declarations) -> Iterator[str]:
    """Require that the name of a role is in snake_case and that its rights exist."""
    for module in declarations.modules:
        for role in module.roles:
            if not _ROLE.fullmatch(role.name) or len(role.name) > 100:
                text = "the name must be lower-case letters, digits and single underscores: rename it"
                yield _of_role(module, role, text)
            for right in role.rights:
                if right not in RIGHTS:
                    yield _of_role(module, role, f"there is no right {right!r}: name some of {', '.join(RIGHTS)}")


def granted_models_exist(declarations: Declarations) -> Iterator[str]:
    """Require that a grant names a model that exists and that belongs to the same module, `base`, or a module that it
    needs."""
    for module in declarations.modules:
        for role in module.roles:
            for grant in role.grants:
                text = _model_error(declarations, module, grant)
                if text:
                    yield _of_role(module, role, text)


def _model_error(declarations: Declarations, module: Module, grant: Grant) -> str | None:
    if grant.model not in declarations.models:
        return f"it grants the model {grant.model!r}, which there is not: correct the name"
    if not declarations.may_use_model(module, grant.model):
        need = declarations.module_of[grant.model].name
        return f"it grants {grant.model} of the module {need}, which {module.name} does not need: add {need!r} to needs"
    return None


def grants_are_valid(declarations: Declarations) -> Iterator[str]:
    """Require that the commands, fields and row conditions of a grant are valid for its model."""
    for module in declarations.modules:
        for role in module.roles:
            for grant in role.grants:
                model = declarations.models.get(grant.model)
                if model is not None:
                    yield from (_of_role(module, role, text) for text in _grant_errors(model, grant))


def _grant_errors(model: Declared, grant: Grant) -> Iterator[str]:
    moves = () if model.workflow is None else tuple(model.workflow.moves)
    commands = (*model.commands, *moves, *BUILTIN_COMMANDS.get(model.name, ()))
    for name in _named(grant.commands):
        if name not in commands:
            yield f"it grants {model.name}.{name}, and there is no such command: name some of {', '.join(commands)}"
    for name in dict.fromkeys((*_named(grant.clear), *_named(grant.masked), *_named(grant.write))):
        field = model.fields.get(name)
        if field is None:
            yield f"it grants {model.name}.{name}, and there is no such field: correct the name"
            continue
        if name in grant.masked and not field.personal:
            yield f"it grants {model.name}.{name} masked, which has no tokens: name it in clear, or make it personal"
        if name in grant.write and field.readonly:
            yield f"it lets {model.name}.{name} be written, which is readonly: take it out of write"
    yield from _row_errors(model, grant)


def _row_errors(model: Declared, grant: Grant) -> Iterator[str]:
    if len(grant.rows) > MAX_CONDITIONS:
        yield f"its rows of {model.name} have more than {MAX_CONDITIONS} conditions: use in_ for several values"
    for condition in grant.rows:
        text = condition_error(model, condition, is_row_rule=True)
        if text:
            yield f"its rows of {model.name}: {text}"


def _named(names: Names) -> tuple[str, ...]:
    return () if names == "*" else names


def _of_role(module: Module, role: Role, text: str) -> str:
    return module_error(module, f"role {role.name}: {text}")
