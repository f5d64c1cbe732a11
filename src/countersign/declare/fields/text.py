"""The kinds `text` and `longtext`. Their values are Unicode strings, which are compared and ordered by code point."""

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
    """Return the text with all line endings converted to newlines.

    Raises:
        BadValue: the text contains a control character other than tab and newline, or half of a surrogate pair.
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    control_character = _CONTROL.search(text)
    if control_character is not None:
        raise BadValue(f"must not contain the control character U+{ord(control_character[0]):04X}")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise BadValue("must be valid Unicode") from error
    return text


class Text(Field):
    """A line of text of at most `max_length` (up to 1,000) characters.

    With a `format`, new values are checked and stored in a canonical form: see `formats`. Values that were stored
    before the field had its format remain unchanged.
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
        """Create a field with this maximum length and format. `longest` is the deprecated name of `max_length`."""
        super().__init__(**options)
        allowed = self.length_limit if max_length is None else max_length
        self.max_length = renamed_option("longest", longest, "max_length", allowed)
        self.format: Format | None = format

    @property
    def has_format(self) -> bool:
        """Return whether a `format`, or a method `formatted` of the kind, converts texts to a canonical form."""
        return self.format is not None or type(self).formatted is not Text.formatted

    @property
    def ignores_case(self) -> bool:
        """Return whether the uniqueness check ignores case."""
        return self.format in CASELESS

    def read(self, value: object) -> Stored:
        """Return the text in the field's format, with all line endings converted to newlines.

        Raises:
            BadValue: the value is not a string, is too long, contains a control character or half of a surrogate pair,
                is blank although the field is required, or does not match the field's format.
        """
        text = self.of_any_length(value)
        if len(text) <= max(self.max_length, MAX_TEXT_LENGTH if self.has_format else 0):
            # Apply the format before the length check: its errors are more specific, and it may shorten the text.
            text = self.formatted(text)
        if len(text) > self.max_length:
            raise BadValue(f"must have {self.max_length} characters at most")
        return text

    def formatted(self, text: str) -> str:
        """Return the text in the field's format, or unchanged if the field has no format.

        Raises:
            BadValue: the text does not match the format.
        """
        return text if self.format is None else FORMATS[self.format](text)

    def of_any_length(self, value: object) -> str:
        """Check a text like `read`, but without the length and the format.

        Raises:
            BadValue: the value is not a string, contains a control character or half of a surrogate pair, or is blank
                although the field is required.
        """
        text = self.operand(value)
        if self.required and not text.strip():
            raise BadValue("must not be blank")
        return text

    def operand(self, value: object) -> str:
        """Return a valid text of any length.

        Raises:
            BadValue: the value is not a string, or contains a control character or half of a surrogate pair.
        """
        if not isinstance(value, str):
            raise BadValue("must be a string")
        return plain(value)

    def schema(self) -> Mapping[str, Any]:
        """Return the schema of a string with the maximum length of the field."""
        min_length = {"minLength": 1} if self.required else {}
        known = None if self.format is None else SCHEMA_FORMATS.get(self.format)
        named = {} if known is None else {"format": known}
        return {"type": "string", "maxLength": self.max_length, **min_length, **named}


class LongText(Text):
    """Text of several lines, with at most 1,000,000 characters."""

    kind: ClassVar[str] = "longtext"
    is_long: ClassVar[bool] = True
    widens: ClassVar[frozenset[str]] = frozenset({"text", "select", "date"})
    length_limit: ClassVar[int] = MAX_LONGTEXT_LENGTH
