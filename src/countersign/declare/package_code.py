"""Code that a package attaches to a model: validators of its fields, and hooks. Module texts contain no code."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from countersign.declare.workflow import Effect, Work

Validator = Callable[..., str | None]
"""A function of field values that returns why they are invalid, or None. Its parameters are named after the fields."""


class Check:
    """A validator of one or several fields. The decorator `check` creates it."""

    def __init__(self, fields: tuple[str, ...], function: Validator) -> None:
        self.name = ""
        self.fields = fields
        self.function = function

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __call__(self, **values: Any) -> str | None:
        """Return why these values are invalid, or None. Tests of a package call a validator like this."""
        return self.function(**values)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Return the names of the parameters of the function."""
        return tuple(inspect.signature(self.function).parameters)


def check(*fields: str) -> Callable[[Validator], Check]:
    """Declare that a function in the class of a model validates these fields.

    The function is pure: its parameters are named after the fields, and it returns the reason why their values are
    invalid, or None. The reason follows the names of the fields in the answer: "must begin with EQ-". It must not
    repeat a personal value. Values are JSON values, as in commands, or None for an empty field. The function does not
    run while all of its fields are empty.
    """

    def declare(function: Validator) -> Check:
        return Check(fields, function)

    return declare


class Hook:
    """A function that runs after writes of a record, in the same transaction. The decorator `on` creates it."""

    def __init__(self, events: tuple[str, ...], function: Effect) -> None:
        self.name = getattr(function, "__name__", "")
        self.events = events
        self.function = function

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __call__(self, work: Work) -> Awaitable[None]:
        """Run the function. Tests of a package call a hook like this."""
        return self.function(work)


def on(*events: str) -> Callable[[Effect], Hook]:
    """Declare that an async function runs after these events of a record, in the same transaction.

    The events are create, update, update:<field> and delete. In the class of a model, they are events of that model.
    A function outside of a class belongs into `hooks` of the module, and its events begin with a model that the module
    needs: "party.create". The function takes a `Work`, with which it changes records or refuses the command.
    """

    def declare(function: Effect) -> Hook:
        return Hook(events, function)

    return declare
