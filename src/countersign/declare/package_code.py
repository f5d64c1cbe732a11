"""Code that a package attaches to a model: validators of its fields. Module texts contain no code."""

import inspect
from collections.abc import Callable
from typing import Any

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
