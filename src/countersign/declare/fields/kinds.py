"""The kinds of fields other than text: bool, date, moment, number, money, select, structure and ref."""

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, ClassVar, Literal, TypeAlias, Unpack

from countersign.declare.errors import BadValue
from countersign.declare.fields.field import (
    EQUALITY,
    ColumnType,
    Field,
    FieldOptions,
    Notation,
    Stored,
    renamed_option,
)
from countersign.declare.fields.text import LongText, Text
from countersign.declare.presentation import Option, Tone, default_tone
from countersign.kernel.normalization import normalized

_TRUE = ("true", "yes", "y", "1", "on", "ja", "j", "wahr")
_FALSE = ("false", "no", "n", "0", "off", "nein", "falsch")
_BOOLS = {**dict.fromkeys(_TRUE, True), **dict.fromkeys(_FALSE, False)}


class Bool(Field):
    """A value that is true or false. It is stored as 1 or 0."""

    kind: ClassVar[str] = "bool"
    column: ClassVar[ColumnType] = "BIGINT"
    operators: ClassVar[frozenset[str]] = EQUALITY
    is_countable: ClassVar[bool] = True

    def read(self, value: object) -> Stored:
        """Return 1 or 0.

        Raises:
            BadValue: the value is neither true nor false.
        """
        if value is True:
            return 1
        if value is False:
            return 0
        raise BadValue("must be true or false")

    def show(self, stored: Stored) -> object:
        """Return true or false."""
        return bool(stored)

    def read_cell(self, cell: str, notation: Notation) -> object:
        """Return true or false for a word in English or German."""
        return _BOOLS.get(cell.casefold(), cell)

    def show_cell(self, value: object, notation: Notation) -> str | None:
        """Return "yes" or "no"."""
        return "yes" if value else "no"

    def schema(self) -> Mapping[str, Any]:
        """Return the schema of a boolean."""
        return {"type": "boolean"}


_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_DATE_PARTS = re.compile(r"([0-9]{1,4})[-./ ]{1,2}([0-9]{1,2})[-./ ]{1,2}([0-9]{1,4})", re.ASCII)


class Date(Field):
    """A day. It is stored as text in the form YYYY-MM-DD, so that the order of the texts is the order of the days."""

    kind: ClassVar[str] = "date"
    is_countable: ClassVar[bool] = True

    def read(self, value: object) -> Stored:
        """Return the day.

        Raises:
            BadValue: the value is not a string YYYY-MM-DD for a real day of the years 0001 to 9999.
        """
        if isinstance(value, str) and _DATE.fullmatch(value):
            try:
                date.fromisoformat(value)
            except ValueError as error:
                raise BadValue("must be a real calendar date, YYYY-MM-DD") from error
            return value
        raise BadValue("must be a real calendar date, YYYY-MM-DD")

    def read_cell(self, cell: str, notation: Notation) -> object:
        """Convert a date in the notation's order to YYYY-MM-DD. Other text is returned unchanged."""
        date_parts = _DATE_PARTS.fullmatch(cell)
        if date_parts is None or _DATE.fullmatch(cell):
            return cell
        parts = dict(zip(notation.date_order, date_parts.groups(), strict=True))
        if len(parts["y"]) != 4 or max(len(parts["m"]), len(parts["d"])) > 2:
            return cell
        return f"{parts['y']}-{parts['m']:>02}-{parts['d']:>02}"

    def show_cell(self, value: object, notation: Notation) -> str | None:
        """Return the day in the notation's order."""
        if notation.date_order == "ymd":
            return None
        year, month, day = str(value).split("-")
        return f"{day}.{month}.{year}" if notation.date_order == "dmy" else f"{month}/{day}/{year}"

    def schema(self) -> Mapping[str, Any]:
        """Return the schema of a string with the format date."""
        return {"type": "string", "format": "date"}


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(Z|[+-][0-9]{2}:[0-9]{2})", re.ASCII)


class Moment(Field):
    """An instant in UTC. JSON contains an RFC 3339 text with milliseconds, and the database contains microseconds since
    1970.

    In a model with a table of an existing database, `zone` is the time zone of a column without one.
    """

    kind: ClassVar[str] = "moment"
    column: ClassVar[ColumnType] = "BIGINT"
    is_internal: ClassVar[bool] = True

    def __init__(self, *, zone: str = "UTC", **options: Unpack[FieldOptions]) -> None:
        super().__init__(**options)
        self.zone = zone

    def read(self, value: object) -> Stored:
        """Return the instant in microseconds since 1970.

        Raises:
            BadValue: the value is not an RFC 3339 text with a time zone.
        """
        if isinstance(value, str) and _INSTANT.fullmatch(value):
            try:
                return (datetime.fromisoformat(value).astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)
            except (ValueError, OverflowError) as error:
                raise BadValue("must be an RFC 3339 instant such as 2026-11-20T22:13:00.000Z") from error
        raise BadValue("must be an RFC 3339 instant such as 2026-11-20T22:13:00.000Z")

    def show(self, stored: Stored) -> object:
        """Return an RFC 3339 text in UTC with milliseconds."""
        moment = _EPOCH + timedelta(microseconds=int(stored or 0))
        return f"{moment.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"

    def schema(self) -> Mapping[str, Any]:
        """Return the schema of a string with the format date-time."""
        return {"type": "string", "format": "date-time"}


LARGEST = 2**53 - 1
_WHOLE = re.compile("-?[0-9]{1,18}")
_DECIMAL = re.compile(r"-?[0-9]{1,100}(\.[0-9]{1,100})?", re.ASCII)


class Number(Field):
    """An integer from `min_value` to `max_value`. Both bounds must be within ±(2^53 - 1)."""

    kind: ClassVar[str] = "number"
    column: ClassVar[ColumnType] = "BIGINT"
    widens: ClassVar[frozenset[str]] = frozenset({"money"})

    def __init__(
        self,
        *,
        min_value: int = -LARGEST,
        max_value: int = LARGEST,
        least: int | None = None,
        most: int | None = None,
        **options: Unpack[FieldOptions],
    ) -> None:
        """Create a field with these bounds. `least` and `most` are the deprecated names of the bounds."""
        super().__init__(**options)
        self.min_value = renamed_option("least", least, "min_value", min_value)
        self.max_value = renamed_option("most", most, "max_value", max_value)

    def read(self, value: object) -> Stored:
        """Return the number.

        Raises:
            BadValue: the value is not an integer (floats, numeric strings and bools are refused), or is out of range.
        """
        number = self.operand(value)
        if not self.min_value <= number <= self.max_value:
            raise BadValue(f"must lie between {self.min_value} and {self.max_value}")
        return number

    def operand(self, value: object) -> int:
        """Return an integer within ±(2^53 - 1).

        Raises:
            BadValue: the value is not an integer in this range.
        """
        if type(value) is not int:
            raise BadValue("must be an integer")
        if not -LARGEST <= value <= LARGEST:
            raise BadValue(f"must lie between {-LARGEST} and {LARGEST}")
        return value

    def read_cell(self, cell: str, notation: Notation) -> object:
        """Return the integer in the cell."""
        return int(cell) if _WHOLE.fullmatch(cell) else cell

    def schema(self) -> Mapping[str, Any]:
        """Return the schema of an integer in the range of the field."""
        return {"type": "integer", "minimum": self.min_value, "maximum": self.max_value}


class Money(Number):
    """An amount in minor units of the currency, so 12.34 is 1234. The name of the field must end with `_minor`.

    In a model with a table of an existing database, the column contains the amount in the currency, with `scale` digits
    after the decimal point.
    """

    kind: ClassVar[str] = "money"
    widens: ClassVar[frozenset[str]] = frozenset({"number"})

    def __init__(
        self,
        *,
        scale: int = 2,
        min_value: int = -LARGEST,
        max_value: int = LARGEST,
        least: int | None = None,
        most: int | None = None,
        **options: Unpack[FieldOptions],
    ) -> None:
        """Create a field with this scale and these bounds. `least` and `most` are the deprecated names of the
        bounds."""
        super().__init__(**options)
        self.min_value = renamed_option("least", least, "min_value", min_value)
        self.max_value = renamed_option("most", most, "max_value", max_value)
        self.scale = scale


class Decimal(Field):
    """An exact decimal number. JSON contains a text such as "12.3400", because the interface has no floating-point
    numbers. Only models with a table of an existing database have such fields."""

    kind: ClassVar[str] = "decimal"
    is_internal: ClassVar[bool] = True

    def read(self, value: object) -> Stored:
        """Return the text of the number.

        Raises:
            BadValue: the value is not a text of digits with an optional sign and decimal point.
        """
        if isinstance(value, str) and _DECIMAL.fullmatch(value):
            return value
        raise BadValue('must be a decimal number as text, such as "12.34"')

    def schema(self) -> Mapping[str, Any]:
        """Return the schema of a string with a decimal number."""
        return {"type": "string", "pattern": "^-?[0-9]{1,100}([.][0-9]{1,100})?$"}

    @property
    def form(self) -> str:
        """Return the name of the control that a form shows for the field."""
        return "text"


class Select(Field):
    """One of several options. A choice is a word, or an `Option` with a label in two languages and a tone.

    In a model with a table of an existing database, `values` maps the values of the column to options, and `unknown` is
    the option that is shown for all other values of the column.
    """

    kind: ClassVar[str] = "select"
    is_countable: ClassVar[bool] = True

    def __init__(
        self,
        *choices: str | Option,
        values: Mapping[int | str, str] | None = None,
        unknown: str = "",
        **options: Unpack[FieldOptions],
    ) -> None:
        super().__init__(**options)
        self.values: Mapping[int | str, str] = values or {}
        self.unknown = unknown
        named = {choice.value if isinstance(choice, Option) else choice for choice in choices}
        more = (option for option in dict.fromkeys((*self.values.values(), unknown)) if option and option not in named)
        self.choices = tuple(choice if isinstance(choice, Option) else Option(choice) for choice in (*choices, *more))
        self.options = tuple(choice.value for choice in self.choices)

    def tone(self, choice: Option, *, is_state: bool) -> Tone:
        """Return the tone of a choice. The state field of a workflow has default tones; other fields are grey."""
        if choice.tone is not None:
            return choice.tone
        return default_tone(self.options, choice.value) if is_state else "grey"

    def read(self, value: object) -> Stored:
        """Return the option.

        Raises:
            BadValue: the value is not one of the options.
        """
        if isinstance(value, str) and value in self.options:
            return value
        raise BadValue(f"must be one of {', '.join(self.options)}")

    def ordered(self, column: str) -> str:
        """Return an SQL expression for the position of the option. It is constant, so that an index can use it."""
        # A rule requires that options are plain words, so they are safe in a statement.
        places = " ".join(f"WHEN '{option}' THEN {place}" for place, option in enumerate(self.options))
        return f"CASE {column} {places} END"

    def rank(self, stored: Stored) -> int:
        """Return the position of an option, for range filters."""
        return self.options.index(str(stored))

    def read_cell(self, cell: str, notation: Notation) -> object:
        """Return the option that the cell names. Case, spaces and punctuation are ignored."""
        if cell in self.options:
            return cell
        return next((option for option in self.options if alphanumeric(option) == alphanumeric(cell)), cell)

    def schema(self) -> Mapping[str, Any]:
        """Return the schema of a string that is one of the options."""
        return {"type": "string", "enum": list(self.options)}


def alphanumeric(text: str) -> str:
    """Return the case-folded letters and digits of a text. Names in a CSV file are compared in this form."""
    return "".join(character for character in normalized("NFKC", text).casefold() if character.isalnum())


class Structure(Field):
    """A JSON value that only the engine writes and that queries can neither filter nor order by."""

    kind: ClassVar[str] = "structure"
    operators: ClassVar[frozenset[str]] = frozenset()
    is_long: ClassVar[bool] = True
    is_internal: ClassVar[bool] = True

    def read(self, value: object) -> Stored:
        """Refuse every input.

        Raises:
            BadValue: always.
        """
        raise BadValue("is written by the service alone")

    def schema(self) -> Mapping[str, Any]:
        """Return a schema that allows any JSON value."""
        return {}


OnDelete: TypeAlias = Literal["refuse", "clear", "cascade"]

_ID = re.compile(r"[0-9a-f]{24}", re.ASCII)


_CONNECTED_ID = re.compile("[0-9a-f]{32,1100}")
"""The ids of records of connected tables that are longer than 24 digits."""


def is_record_id(text: str) -> bool:
    """Return whether the text has the format of a record id: 24 lower-case hexadecimal digits."""
    return _ID.fullmatch(text) is not None


class Ref(Field):
    """The id of a record of the model `target`.

    `on_delete` defines the effect of deleting the referenced record: the deletion is refused, the ref becomes empty, or
    the referring record is deleted too.

    `fills` maps fields of this model to fields of the referenced record: {"unit_price_minor": "unit_price_minor"}. If
    the input of a new record omits such a field, its value is copied, provided that the caller can read the source
    field in clear.

    In a model with a table of an existing database, `columns` are the columns with the key of the referenced record, in
    the order of the key of its table.
    """

    kind: ClassVar[str] = "ref"
    operators: ClassVar[frozenset[str]] = EQUALITY
    is_countable: ClassVar[bool] = True

    def __init__(
        self,
        target: str,
        *,
        on_delete: OnDelete = "refuse",
        fills: Mapping[str, str] | None = None,
        columns: str | tuple[str, ...] = (),
        **options: Unpack[FieldOptions],
    ) -> None:
        super().__init__(**options)
        self.target = target
        self.columns = (columns,) if isinstance(columns, str) else tuple(columns)
        self.fills: Mapping[str, str] = fills or {}
        self.on_delete: OnDelete = on_delete
        # Deleting a referenced record and listing its referring records need this index.
        self.index = True

    @property
    def table_columns(self) -> tuple[str, ...]:
        """Return the columns of the table of an existing database that contain the key of the referenced record."""
        return self.columns or super().table_columns

    def read(self, value: object) -> Stored:
        """Return the id as text. The database checks that the record exists.

        Raises:
            BadValue: the value is not a string. A string that is not an id matches no record.
        """
        if not isinstance(value, str):
            raise BadValue(f"must be the id of a {self.target} record")
        return value if is_record_id(value) or _CONNECTED_ID.fullmatch(value) else ""

    def schema(self) -> Mapping[str, Any]:
        """Return the schema of a string, with the name of the target model."""
        return {"type": "string", "description": f"id of a {self.target} record"}


BUILTIN_KINDS: tuple[type[Field], ...] = (
    Text, LongText, Number, Money, Decimal, Select, Ref, Bool, Date, Moment, Structure
)  # fmt: skip
"""The built-in kinds. Modules can register other kinds (`Module(…, kinds=(…,))`)."""
