"""Rules about roles: the models, commands and fields that their grants name must exist."""

import re
from collections.abc import Iterator, Mapping

from countersign.declare.model import Declared
from countersign.declare.module import Grant, Module, Names, Role
from countersign.declare.rules.conditions import misfit
from countersign.declare.rules.declarations import Declarations, of_module

OWN: Mapping[str, tuple[str, ...]] = {
    "plan": ("reject", "withdraw", "propose", "watch"),
    "session": ("revoke",),
    "agent_token": ("revoke", "calls"),
    "user": ("invite", "home", "find", "recent", "deactivate"),
    "audit_entry": ("verify",),
}
"""The built-in commands of the built-in models. They are not generated."""

RIGHTS = ("base.unmask",)
MAX_CONDITIONS = 50

_ROLE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", re.ASCII)


def roles_named(whole: Declarations) -> Iterator[str]:
    """Require that the name of a role is in snake_case and that its rights exist."""
    for module in whole.modules:
        for role in module.roles:
            if not _ROLE.fullmatch(role.name) or len(role.name) > 100:
                text = "the name must be lower-case letters, digits and single underscores: rename it"
                yield _of_role(module, role, text)
            for right in role.rights:
                if right not in RIGHTS:
                    yield _of_role(module, role, f"there is no right {right!r}: name some of {', '.join(RIGHTS)}")


def grants_speak_of_models(whole: Declarations) -> Iterator[str]:
    """Require that a grant names a model that always exists together with the module."""
    for module in whole.modules:
        for role in module.roles:
            for grant in role.grants:
                text = _wrong_model(whole, module, grant)
                if text:
                    yield _of_role(module, role, text)


def _wrong_model(whole: Declarations, module: Module, grant: Grant) -> str | None:
    if grant.model not in whole.models:
        return f"it grants the model {grant.model!r}, which there is not: correct the name"
    if not whole.may_speak_of(module, grant.model):
        need = whole.module_of[grant.model].name
        return f"it grants {grant.model} of the module {need}, which {module.name} does not need: add {need!r} to needs"
    return None


def grants_fit(whole: Declarations) -> Iterator[str]:
    """Require that the commands, fields and row conditions of a grant are valid for its model."""
    for module in whole.modules:
        for role in module.roles:
            for grant in role.grants:
                model = whole.models.get(grant.model)
                if model is not None:
                    yield from (_of_role(module, role, text) for text in _wrong_grant(model, grant))


def _wrong_grant(model: Declared, grant: Grant) -> Iterator[str]:
    moves = () if model.workflow is None else tuple(model.workflow.moves)
    commands = (*model.commands, *moves, *OWN.get(model.name, ()))
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
    yield from _wrong_rows(model, grant)


def _wrong_rows(model: Declared, grant: Grant) -> Iterator[str]:
    if len(grant.rows) > MAX_CONDITIONS:
        yield f"its rows of {model.name} have more than {MAX_CONDITIONS} conditions: use in_ for several values"
    for condition in grant.rows:
        text = misfit(model, condition, is_row_rule=True)
        if text:
            yield f"its rows of {model.name}: {text}"


def _named(names: Names) -> tuple[str, ...]:
    return () if names == "*" else names


def _of_role(module: Module, role: Role, text: str) -> str:
    return of_module(module, f"role {role.name}: {text}")
