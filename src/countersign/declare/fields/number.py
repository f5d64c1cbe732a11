"""The kinds `number` and `money`: whole numbers that every JSON client keeps exact."""

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

from countersign.declare.errors import BadValue
from countersign.declare.fields.field import ColumnType, Field, FieldOptions, Stored

LARGEST = 2**53 - 1


class Number(Field):
    """A whole number from `least` to `most`, at the widest ±(2^53 - 1)."""

    kind: ClassVar[str] = "number"
    column: ClassVar[ColumnType] = "BIGINT"

    def __init__(self, *, least: int = -LARGEST, most: int = LARGEST, **options: Unpack[FieldOptions]) -> None:
        super().__init__(**options)
        self.least = least
        self.most = most

    def read(self, value: object) -> Stored:
        """The number.

        Raises:
            BadValue: it is no integer (a float, a numeric string or a bool is none), or out of range.
        """
        number = self.operand(value)
        if not self.least <= number <= self.most:
            raise BadValue(f"must lie between {self.least} and {self.most}")
        return number

    def operand(self, value: object) -> int:
        """Any whole number within ±(2^53 - 1).

        Raises:
            BadValue: it is none.
        """
        if type(value) is not int:
            raise BadValue("must be an integer")
        if not -LARGEST <= value <= LARGEST:
            raise BadValue(f"must lie between {-LARGEST} and {LARGEST}")
        return value

    def schema(self) -> Mapping[str, Any]:
        """An integer in the field's range."""
        return {"type": "integer", "minimum": self.least, "maximum": self.most}


class Money(Number):
    """An amount in minor units of the currency (12.34 is 1234); its name ends in `_minor`."""

    kind: ClassVar[str] = "money"
