"""Rules about code of packages in models."""

import inspect
from collections.abc import Iterator
from typing import NamedTuple

from countersign.declare.model import Declared
from countersign.declare.module import Module
from countersign.declare.package_code import Check
from countersign.declare.rules.declarations import BASE, Declarations, member_error, module_error
from countersign.declare.workflow import Effect


def checks_are_valid(declarations: Declarations) -> Iterator[str]:
    """Require that a validator names fields of its model, and takes their values as its parameters."""
    for model in declarations.models.values():
        for check in model.checks:
            yield from (member_error(model, check.name, text) for text in _check_errors(model, check))


def _check_errors(model: Declared, check: Check) -> Iterator[str]:
    if not check.fields:
        yield f'it checks no field: name fields of {model.name}, as in @check("serial")'
    for name in check.fields:
        if name not in model.fields:
            yield f"it checks {name!r}, and {model.name} has no such field: correct the name"
        elif model.fields[name].sum_of is not None:
            yield f"it checks {name}, a total, which changes without an input: take it out, or check what is added up"
    if set(check.parameters) != set(check.fields) or len(check.parameters) != len(check.fields):
        yield f"its parameters are {', '.join(check.parameters) or 'none'}: name them {', '.join(check.fields)}"
    if inspect.iscoroutinefunction(check.function):
        yield "it is an async function, and a validator only looks at values: take async out"


class ModelHook(NamedTuple):
    """A hook with its model and the events of that model."""

    model: str
    name: str
    events: frozenset[str]
    function: Effect


EVENTS = ("create", "update", "delete")


def hooks_of(module: Module) -> Iterator[ModelHook]:
    """Yield the hooks that a module declares in the classes of its models, and for models of other modules."""
    for model in (each.declared for each in module.models):
        for hook in model.hooks:
            yield ModelHook(model.name, hook.name, frozenset(hook.events), hook.function)
    for hook in module.hooks:
        for name in dict.fromkeys(event.partition(".")[0] for event in hook.events):
            events = frozenset(event.partition(".")[2] for event in hook.events if event.startswith(f"{name}."))
            yield ModelHook(name, hook.name, events, hook.function)


def hooks_are_valid(declarations: Declarations) -> Iterator[str]:
    """Require that the events of a hook exist, and that it belongs to a model of the module or of one that it needs."""
    for module in declarations.modules:
        for hook in hooks_of(module):
            text = _hook_error(declarations, module, hook)
            if text:
                yield module_error(module, f"the hook {hook.name}: {text}")


def _hook_error(declarations: Declarations, module: Module, hook: ModelHook) -> str | None:
    model = declarations.models.get(hook.model)
    if model is None:
        return f"there is no model {hook.model!r}: write events like party.create"
    if not declarations.may_use_model(module, hook.model):
        need = declarations.module_of[hook.model].name
        return f"{hook.model} belongs to {need}, which {module.name} does not need: add {need!r} to needs"
    if declarations.module_of[hook.model].name == BASE:
        return f"{hook.model} belongs to the engine, whose records run no hooks: take it out"
    if model.table is not None:
        return f"other applications write the table of {hook.model} and run no hooks: use a validator or an action"
    if not inspect.iscoroutinefunction(hook.function):
        return "it is not an async function: write async def"
    return _event_error(model, hook)


def _event_error(model: Declared, hook: ModelHook) -> str | None:
    for event in sorted(hook.events):
        name, colon, field = event.partition(":")
        if name not in EVENTS or (colon and name != "update"):
            return f"there is no event {event!r}: use create, update, update:<field> or delete"
        if colon and field not in model.fields:
            return f"{model.name} has no field {field!r}: correct the event"
        if colon and model.fields[field].sum_of is not None:
            return f"{field} is a total, whose changes run no hooks: name the model that is added up"
    return None if hook.events else "it names no event: name one, such as create"
