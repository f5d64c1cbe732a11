"""Rules about the options of a model's class statement."""

from collections import Counter
from collections.abc import Iterator

from countersign.declare.fields.kinds import Ref
from countersign.declare.model import EXTRA, GENERATED, ModelOptions
from countersign.declare.rules.declarations import Declarations, member_error


def options_are_known(declarations: Declarations) -> Iterator[str]:
    """Require that the options of the class statement are known."""
    for model in declarations.models.values():
        for name in model.unknown_options:
            known = ", ".join(ModelOptions.__annotations__)
            yield member_error(model, name, f"the class statement's {name} means nothing: correct it to one of {known}")


def commands_are_known(declarations: Declarations) -> Iterator[str]:
    """Require that `commands` contains only generated commands, without duplicates."""
    for model in declarations.models.values():
        for name, count in Counter(model.commands).items():
            if name not in GENERATED + EXTRA:
                known = ", ".join(GENERATED + EXTRA)
                yield member_error(model, "commands", f"no command {name!r} is generated: name some of {known}")
            if count > 1:
                yield member_error(model, "commands", f"{name} is there twice: take one out")


def shown_as_names_a_field(declarations: Declarations) -> Iterator[str]:
    """Require that the field in `shown_as` exists."""
    for model in declarations.models.values():
        if model.shown_as not in (*model.fields, "id"):
            text = f"there is no field {model.shown_as!r} to show: name a field of {model.name}, or id"
            yield member_error(model, "shown_as", text)


def locked_with_names_a_ref(declarations: Declarations) -> Iterator[str]:
    """Require that `locked_with` names a ref of the model."""
    for model in declarations.models.values():
        if model.locked_with is not None and not isinstance(model.fields.get(model.locked_with), Ref):
            text = f"{model.locked_with!r} is not a ref of {model.name}: name the ref to what locks it"
            yield member_error(model, "locked_with", text)


def needs_approval_names_commands(declarations: Declarations) -> Iterator[str]:
    """Require that `needs_approval` contains only the commands create and update."""
    for model in declarations.models.values():
        for name in model.needs_approval:
            if name not in ("create", "update"):
                text = f"{name} is not a command that the model can have proposed: name create or update"
                yield member_error(model, "needs_approval", text)
