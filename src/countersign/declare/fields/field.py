"""The base class of all kinds of fields, with the interface that the engine uses."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, TypedDict, TypeVar, Unpack

from countersign.declare.condition import Where

Stored: TypeAlias = None | int | str
"""A value as stored in the database: text, or an integer (money in minor units, bool as 0 and 1)."""

ColumnType: TypeAlias = Literal["TEXT", "BIGINT"]
"""The portable type of a column: TEXT and INTEGER in SQLite, TEXT COLLATE "C" and BIGINT in PostgreSQL."""

Separator: TypeAlias = Literal[",", ";", "\t"]
DecimalMark: TypeAlias = Literal[".", ","]
DateOrder: TypeAlias = Literal["ymd", "dmy", "mdy"]


@dataclass(frozen=True, slots=True)
class Notation:
    """The format of a CSV file: its separator, its decimal mark, and the order of day, month and year.

    Without a `separator`, the separator of the first row applies.
    """

    separator: Separator | None = None
    decimal: DecimalMark = "."
    date_order: DateOrder = "ymd"


EQUALITY = frozenset({"eq", "ne", "in", "is_null"})
RANGES = frozenset({"gt", "gte", "lt", "lte"})


class FieldOptions(TypedDict, total=False):
    """The options of a field of any kind; `Field` describes each of them."""

    label: str
    label_de: str
    help: str
    required: bool
    default: object
    unique: bool
    unique_with: str
    shared_by: str
    index: bool
    personal: str
    linked: bool
    restricted: tuple[str, ...]
    needs_approval: bool | Where
    readonly: bool
    computed: Callable[..., object]
    sum_of: str
    declassify: bool
    former_name: str
    column: str
    sortable: bool


_Option = TypeVar("_Option")


def renamed_option(former_name: str, former_value: _Option | None, name: str, value: _Option) -> _Option:
    """Return the value of a renamed option. Its former name is still accepted, with a deprecation warning.

    `former_value` is the value that the declaration gives under the former name; None if it does not use that name.
    """
    if former_value is None:
        return value
    # Skip this function and the constructor of the field, so that the warning names the line of the declaration.
    warnings.warn(f"the option {former_name} is called {name}: rename it", DeprecationWarning, stacklevel=3)
    return former_value


class Field(ABC):
    """One field of a model.

    label       the name shown to people; default: the name with spaces
    label_de    the name in German; default: the label
    help        a sentence for people and agents
    required    every record must have a value
    default     the value of a new record if the input has none: a JSON value, `CALLER` or `TODAY`
    unique      no two records have the same value
    unique_with the name of a ref of the model: of the records that refer to the same record with it, no two have the
                same value in this field
    shared_by   with `unique_with`, a field of the referenced record: records with different refs may have the same
                value only if this field is equal in the referenced records. The field of a referenced record cannot be
                changed while a referring record has a value in the unique field
    index       an index supports filters and order by the field
    personal    a label, such as EMAIL or PERSON: the values are personal. Callers who may not see them in clear receive
                placeholder tokens that begin with the label
    linked      equal values have equal tokens, so that agents can join records; not available for free text
    restricted  the only roles that may see the field, regardless of grants to other roles
    needs_approval  True, or a condition. An agent cannot change the field of an existing record; it can only propose
                the change, unless a setting permits it. With a condition, this applies only to records that meet the
                condition
    readonly    only the engine and the effects of the module write the field
    computed    a function that computes the value from the fields that its parameters name; the value is empty if
                one of these fields is empty
    sum_of      the field is the total of a field of all referring records: "invoice_line.amount_minor"
    declassify  a computed field may be visible although a source is hidden: the module guarantees that it is safe
    former_name the name of the field in an earlier version: an upgrade renames its column, and the former name in
                grants, audit entries and history refers to this field
    column      in a model with a table of an existing database, the column; default: the name of the field
    sortable    in such a model, whether lists can be ordered by the field and filtered by ranges of it. It should be
                false if the table is large and no index of that database sorts by the column; default: true
    """

    kind: ClassVar[str]
    """The name of the kind in `GET /api/meta`, in error texts and in the installed schema."""
    column: ClassVar[ColumnType] = "TEXT"
    operators: ClassVar[frozenset[str]] = EQUALITY | RANGES
    """The filter operators."""
    is_folded: ClassVar[bool] = False
    """Whether a case-folded copy of each value is stored, which `contains` searches."""
    is_maskable: ClassVar[bool] = False
    """Whether a field may be personal, so that its values are shown as placeholder tokens. Only kinds derived from
    `Text` can be maskable."""
    is_countable: ClassVar[bool] = False
    """Whether `count_by` accepts fields of the kind. Such a kind has only a few different values."""
    is_long: ClassVar[bool] = False
    """Whether values may be so long that the engine handles other requests between the rows of a page."""
    is_internal: ClassVar[bool] = False
    """Whether only the models of `base` may have fields of this kind."""
    widens: ClassVar[frozenset[str]] = frozenset()
    """The kinds whose stored values are all valid for this kind. An upgrade from one of them to this kind keeps the
    values."""

    def __init__(self, **options: Unpack[FieldOptions]) -> None:
        self.name = ""
        self.unknown_options = tuple(options.keys() - FieldOptions.__annotations__.keys())
        self._label = options.get("label", "")
        self._label_de = options.get("label_de", "")
        self.help = options.get("help", "")
        self.required = options.get("required", False)
        self.default = options.get("default")
        self.unique = options.get("unique", False)
        self.unique_with = options.get("unique_with", "")
        self.shared_by = options.get("shared_by", "")
        self.index = options.get("index", False) or self.unique
        self.personal = options.get("personal")
        self.linked = options.get("linked", self.personal in LINKED)
        self.restricted = options.get("restricted", ())
        self.needs_approval = options.get("needs_approval", False)
        self.computed = options.get("computed")
        self.sum_of = options.get("sum_of")
        self.declassify = options.get("declassify", False)
        self.former_name = options.get("former_name", "")
        self.column_option = options.get("column", "")
        self.sortable = options.get("sortable", True)
        self.readonly = options.get("readonly", False) or self.computed is not None or self.sum_of is not None

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @property
    def table_columns(self) -> tuple[str, ...]:
        """Return the columns of the table of an existing database that contain the value."""
        return (self.column_option or self.name,)

    @property
    def label(self) -> str:
        """Return the name of the field that is shown to people."""
        return self._label or self.name.removesuffix("_minor").replace("_", " ").capitalize()

    @property
    def labels(self) -> Mapping[str, str]:
        """Return the label by language."""
        return {"en": self.label, "de": self._label_de or self.label}

    @abstractmethod
    def read(self, value: object) -> Stored:
        """Convert the JSON value of an input (never null) to the stored value.

        Raises:
            BadValue: the value has the wrong type, is out of range, or is too long.
        """

    def operand(self, value: object) -> Stored:
        """Convert the JSON value of a filter condition to the stored form. The range of the field does not apply.

        Raises:
            BadValue: the value has the wrong type.
        """
        return self.read(value)

    def show(self, stored: Stored) -> object:
        """Convert a stored value (never null) to the JSON value."""
        return stored

    @property
    def shows_as_stored(self) -> bool:
        """Return whether `show` returns its argument unchanged. Callers can then skip the call."""
        return type(self).show is Field.show

    def ordered(self, column: str) -> str:
        """Return the SQL expression that orders records by this field, given the expression of its column."""
        return column

    def rank(self, stored: Stored) -> Stored:
        """Return the value that the expression returned by `ordered` has for a stored value. Range filters compare this
        value."""
        return stored

    def read_cell(self, cell: str, notation: Notation) -> object:
        """Convert a CSV cell that is not empty to a JSON value.

        If the text does not have the expected form, return it unchanged: `read` then refuses it. A kind may instead
        raise BadValue to name a more specific reason.

        Raises:
            BadValue: see above.
        """
        return cell

    def show_cell(self, value: object, notation: Notation) -> str | None:
        """Return the text of a JSON value in a CSV file for people, or None if the value is not converted."""
        return None

    @abstractmethod
    def schema(self) -> Mapping[str, Any]:
        """Return the JSON Schema (2020-12) of the value. It does not include null."""

    @property
    def form(self) -> str:
        """Return the name of the control that a form shows for the field."""
        return self.kind


LINKED = frozenset({"EMAIL", "PHONE", "PERSON", "TAXID"})
"""The labels whose fields are linked by default.

Their values identify a person, so it is useful to see that two values are equal. The values are so diverse that
equality reveals nothing else.
"""

LITERAL = "LITERAL"
"""The label of the tokens that replace ordinary text which only looks like a placeholder token, so that masked
callers cannot confuse the two. No field may have this label."""
