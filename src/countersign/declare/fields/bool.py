"""The kind `bool`: true or false."""

from collections.abc import Mapping
from typing import Any, ClassVar

from countersign.declare.errors import BadValue
from countersign.declare.fields.field import EQUALITY, ColumnType, Field, Stored


class Bool(Field):
    """True or false; stored as 1 and 0."""

    kind: ClassVar[str] = "bool"
    column: ClassVar[ColumnType] = "BIGINT"
    operators: ClassVar[frozenset[str]] = EQUALITY

    def read(self, value: object) -> Stored:
        """1 or 0.

        Raises:
            BadValue: it is neither true nor false.
        """
        if value is True:
            return 1
        if value is False:
            return 0
        raise BadValue("must be true or false")

    def show(self, stored: Stored) -> object:
        """True or false."""
        return bool(stored)

    def schema(self) -> Mapping[str, Any]:
        """A boolean."""
        return {"type": "boolean"}
