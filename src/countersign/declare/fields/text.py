"""The kinds `text` and `longtext`: Unicode strings, compared and ordered by code point."""

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

from countersign.declare.errors import BadValue
from countersign.declare.fields.field import EQUALITY, RANGES, Field, FieldOptions, Stored

LONGEST_TEXT = 1_000
LONGEST_LONGTEXT = 1_000_000


class Text(Field):
    """A line of text of at most `longest` (up to 1,000) characters."""

    kind: ClassVar[str] = "text"
    operators: ClassVar[frozenset[str]] = EQUALITY | RANGES | {"contains"}
    is_folded: ClassVar[bool] = True
    most: ClassVar[int] = LONGEST_TEXT

    def __init__(self, *, longest: int | None = None, **options: Unpack[FieldOptions]) -> None:
        super().__init__(**options)
        self.longest = self.most if longest is None else longest

    def read(self, value: object) -> Stored:
        """The text, whole and unchanged.

        Raises:
            BadValue: it is no string, longer than the field, holds a NUL or half of a surrogate pair, or is blank
                though the field is required.
        """
        text = self.of_any_length(value)
        if len(text) > self.longest:
            raise BadValue(f"must have {self.longest} characters at most")
        return text

    def of_any_length(self, value: object) -> str:
        """As `read`, for a text whose length was looked at already.

        Raises:
            BadValue: as `read`, but for the length.
        """
        text = self.operand(value)
        if self.required and not text.strip():
            raise BadValue("must not be blank")
        return text

    def operand(self, value: object) -> str:
        """Any valid text.

        Raises:
            BadValue: it is no string, holds a NUL or half of a surrogate pair.
        """
        if not isinstance(value, str):
            raise BadValue("must be a string")
        if "\0" in value:
            raise BadValue("must not hold a NUL character")
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError as error:
                raise BadValue("must be valid Unicode") from error
        return value

    def schema(self) -> Mapping[str, Any]:
        """A string up to the field's length."""
        least = {"minLength": 1} if self.required else {}
        return {"type": "string", "maxLength": self.longest, **least}


class LongText(Text):
    """Text of several lines, of at most 1,000,000 characters."""

    kind: ClassVar[str] = "longtext"
    most: ClassVar[int] = LONGEST_LONGTEXT
