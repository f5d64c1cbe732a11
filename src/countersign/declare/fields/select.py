"""The kind `select`: one of the declared options, ordered as they are declared."""

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

from countersign.declare.errors import BadValue
from countersign.declare.fields.field import Field, FieldOptions, Stored


class Select(Field):
    """One of the options."""

    kind: ClassVar[str] = "select"

    def __init__(self, *choices: str, **options: Unpack[FieldOptions]) -> None:
        super().__init__(**options)
        self.options = choices

    def read(self, value: object) -> Stored:
        """The option.

        Raises:
            BadValue: it is none of them.
        """
        if isinstance(value, str) and value in self.options:
            return value
        raise BadValue(f"must be one of {', '.join(self.options)}")

    def ordered(self, column: str) -> str:
        """The option's position. Written as a constant text, so that an index can be built on it."""
        # Options are checked to be plain words, so that they can stand in a statement.
        places = " ".join(f"WHEN '{option}' THEN {place}" for place, option in enumerate(self.options))
        return f"CASE {column} {places} END"

    def rank(self, stored: Stored) -> int:
        """The position of an option, for range filters."""
        return self.options.index(str(stored))

    def schema(self) -> Mapping[str, Any]:
        """A string, one of the options."""
        return {"type": "string", "enum": list(self.options)}
