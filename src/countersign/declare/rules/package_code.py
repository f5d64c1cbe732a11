"""Rules about code of packages in models."""

import inspect
from collections.abc import Iterator

from countersign.declare.model import Declared
from countersign.declare.package_code import Check
from countersign.declare.rules.declarations import Declarations, member_error


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
