"""The kinds `text` and `longtext`: Unicode strings, compared and ordered by code point."""

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

from countersign.declare.errors import BadValue
from countersign.declare.fields.field import EQUALITY, RANGES, Field, FieldOptions, Stored, renamed_option
from countersign.declare.fields.formats import CASELESS, FORMATS, SCHEMA_FORMATS, Format

MAX_TEXT_LENGTH = 1_000
MAX_LONGTEXT_LENGTH = 1_000_000


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
    """A line of text of at most `max_length` (up to 1,000) characters.

    With a `format`, what is written is checked and stored in one form: see `formats`. Values that were stored before
    the field had its format stay as they are.
    """

    kind: ClassVar[str] = "text"
    operators: ClassVar[frozenset[str]] = EQUALITY | RANGES | {"contains"}
    is_folded: ClassVar[bool] = True
    is_maskable: ClassVar[bool] = True
    widens: ClassVar[frozenset[str]] = frozenset({"select", "date"})
    length_limit: ClassVar[int] = MAX_TEXT_LENGTH

    def __init__(
        self,
        *,
        max_length: int | None = None,
        format: Format | None = None,
        longest: int | None = None,
        **options: Unpack[FieldOptions],
    ) -> None:
        """Takes the length and format; `longest` is the deprecated name of `max_length`."""
        super().__init__(**options)
        allowed = self.length_limit if max_length is None else max_length
        self.max_length = renamed_option("longest", longest, "max_length", allowed)
        self.format: Format | None = format

    @property
    def has_format(self) -> bool:
        """Whether texts are checked and stored in one form: by a `format`, or by the kind's own `formatted`."""
        return self.format is not None or type(self).formatted is not Text.formatted

    @property
    def ignores_case(self) -> bool:
        """Whether two texts that differ in case alone are the same value where it must be unique."""
        return self.format in CASELESS

    def read(self, value: object) -> Stored:
        """The text, with line ends written as newlines, in the field's format.

        Raises:
            BadValue: it is no string, longer than the field, contains a control character or half of a surrogate
                pair, is blank though the field is required, or does not fit the field's format.
        """
        text = self.of_any_length(value)
        if len(text) <= max(self.max_length, MAX_TEXT_LENGTH if self.has_format else 0):
            # A format says more of a text that is too long, and may make it shorter.
            text = self.formatted(text)
        if len(text) > self.max_length:
            raise BadValue(f"must have {self.max_length} characters at most")
        return text

    def formatted(self, text: str) -> str:
        """The text in the field's format; as it is where the field has none.

        Raises:
            BadValue: it does not fit the format.
        """
        return text if self.format is None else FORMATS[self.format](text)

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
        known = None if self.format is None else SCHEMA_FORMATS.get(self.format)
        named = {} if known is None else {"format": known}
        return {"type": "string", "maxLength": self.max_length, **least, **named}


class LongText(Text):
    """Text of several lines, of at most 1,000,000 characters."""

    kind: ClassVar[str] = "longtext"
    is_long: ClassVar[bool] = True
    widens: ClassVar[frozenset[str]] = frozenset({"text", "select", "date"})
    length_limit: ClassVar[int] = MAX_LONGTEXT_LENGTH
