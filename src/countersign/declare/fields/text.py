"""The kinds `text` and `longtext`: Unicode strings, compared and ordered by code point."""

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

from countersign.declare.errors import BadValue
from countersign.declare.fields.field import EQUALITY, RANGES, Field, FieldOptions, Stored

LONGEST_TEXT = 1_000
LONGEST_LONGTEXT = 1_000_000


_CONTROL = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f]")


def plain(text: str) -> str:
    """The text with line ends written as newlines.

    Raises:
        BadValue: it contains another control character than tab and newline, or half of a surrogate pair.
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    found = _CONTROL.search(text)
    if found is not None:
        raise BadValue(f"must not contain the control character U+{ord(found[0]):04X}")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise BadValue("must be valid Unicode") from error
    return text


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
        """The text, with line ends written as newlines.

        Raises:
            BadValue: it is no string, longer than the field, contains a control character or half of a surrogate
                pair, or is blank though the field is required.
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
            BadValue: it is no string, contains a control character or half of a surrogate pair.
        """
        if not isinstance(value, str):
            raise BadValue("must be a string")
        return plain(value)

    def schema(self) -> Mapping[str, Any]:
        """A string up to the field's length."""
        least = {"minLength": 1} if self.required else {}
        return {"type": "string", "maxLength": self.longest, **least}


class LongText(Text):
    """Text of several lines, of at most 1,000,000 characters."""

    kind: ClassVar[str] = "longtext"
    most: ClassVar[int] = LONGEST_LONGTEXT
