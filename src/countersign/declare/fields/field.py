"""What every kind of field has in common, and the protocol the engine works it by."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, TypedDict, TypeVar, Unpack

from countersign.declare.condition import Where

Stored: TypeAlias = None | int | str
"""A value as the database keeps it: text, or a whole number (money in minor units, bool as 0 and 1)."""

ColumnType: TypeAlias = Literal["TEXT", "BIGINT"]
"""The portable type of a column: TEXT and INTEGER in SQLite, TEXT COLLATE "C" and BIGINT in PostgreSQL."""

Separator: TypeAlias = Literal[",", ";", "\t"]
DecimalMark: TypeAlias = Literal[".", ","]
DateOrder: TypeAlias = Literal["ymd", "dmy", "mdy"]


@dataclass(frozen=True, slots=True)
class Notation:
    """How a CSV file is written: the separator of its cells (None: the one that separates the names in its first row),
    the mark before the decimals of amounts, and the order of day, month and year."""

    separator: Separator | None = None
    decimal: DecimalMark = "."
    date_order: DateOrder = "ymd"


EQUALITY = frozenset({"eq", "ne", "in", "is_null"})
RANGES = frozenset({"gt", "gte", "lt", "lte"})


class FieldOptions(TypedDict, total=False):
    """What may be said of a field of any kind; see `Field` for each meaning."""

    label: str
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


_Option = TypeVar("_Option")


def renamed_option(former: str, value: _Option | None, name: str, current: _Option) -> _Option:
    """The value of an option that a declaration may still give by its former name, with a deprecation warning."""
    if value is None:
        return current
    # Past this function, the constructor of the field and nothing else: the line of the declaration.
    warnings.warn(f"the option {former} is called {name}: rename it", DeprecationWarning, stacklevel=3)
    return value


class Field(ABC):
    """One field of a model.

    label       what people read; default: the name with spaces
    help        a sentence for people and agents
    required    a record cannot be without it
    default     the value a new record gets when none is given: a JSON value, or `CALLER`, `TODAY`
    unique      no two records have the same value
    unique_with a ref: no two records that refer to the same record by it have the same value
    shared_by   with `unique_with`, a field of the record that the ref leads to: records that refer to different ones
                may have the same value only where this is the same; it cannot be changed while one with a value refers
    index       filters and order on it are answered by an index
    personal    LABEL of its placeholder tokens (EMAIL, PERSON); callers without a clear view get these
    linked      equal values get equal tokens, so that agents can join; free text never is
    restricted  the roles that may see it at all, whatever others are granted
    needs_approval  an agent only proposes to change it in a record that is there, or in one that meets the condition,
                unless a setting lifts it
    readonly    only the engine and the module's effects write it
    computed    makes the value from the fields its parameters name; empty when one of them is
    sum_of      the total of a field of the records that refer to this one: "invoice_line.amount_minor"
    declassify  a computed field may be seen though a source is hidden: the module vouches for it
    former_name the name the field had in an earlier version: an upgrade renames its column, and grants, audit entries
                and history that name the former one speak of this field
    """

    kind: ClassVar[str]
    """The name of the kind in `GET /api/meta`, in error texts and in the installed schema."""
    column: ClassVar[ColumnType] = "TEXT"
    operators: ClassVar[frozenset[str]] = EQUALITY | RANGES
    """The filter operators."""
    is_folded: ClassVar[bool] = False
    """Whether a case-folded copy is stored, for `contains`."""
    is_maskable: ClassVar[bool] = False
    """Whether a field may be personal, with placeholder tokens for its values: only kinds derived from `Text` can."""
    is_countable: ClassVar[bool] = False
    """Whether `count_by` takes it: a kind of few different values."""
    is_long: ClassVar[bool] = False
    """Whether values may be so long that other requests get a turn between the rows of a page."""
    is_internal: ClassVar[bool] = False
    """Whether only the models of `base` have it."""
    widens: ClassVar[frozenset[str]] = frozenset()
    """The kinds whose stored values are all valid for this one: an upgrade from them keeps the values."""

    def __init__(self, **options: Unpack[FieldOptions]) -> None:
        self.name = ""
        self.misspelt = tuple(options.keys() - FieldOptions.__annotations__.keys())
        self._label = options.get("label", "")
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
        self.readonly = options.get("readonly", False) or self.computed is not None or self.sum_of is not None

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @property
    def label(self) -> str:
        """What people read as the field's name."""
        return self._label or self.name.removesuffix("_minor").replace("_", " ").capitalize()

    @abstractmethod
    def read(self, value: object) -> Stored:
        """The JSON value of an input (never null) as it is stored.

        Raises:
            BadValue: it is of another kind, out of range, or too long.
        """

    def operand(self, value: object) -> Stored:
        """The JSON value of a filter condition: of the field's kind, whatever its range.

        Raises:
            BadValue: it is of another kind.
        """
        return self.read(value)

    def show(self, stored: Stored) -> object:
        """The stored value (never null) as JSON shows it."""
        return stored

    @property
    def shows_as_stored(self) -> bool:
        """Whether `show` changes nothing, so that it need not be called."""
        return type(self).show is Field.show

    def ordered(self, column: str) -> str:
        """The SQL expression that orders records by this field, given its column's expression."""
        return column

    def rank(self, stored: Stored) -> Stored:
        """The value that `ordered` gives for a stored one, for range filters."""
        return stored

    def read_cell(self, cell: str, notation: Notation) -> object:
        """The JSON value of a CSV cell that is not empty. Text that is not a value is returned as it is: `read` refuses
        it.

        Raises:
            BadValue: the cell cannot be read.
        """
        return cell

    def show_cell(self, value: object, notation: Notation) -> str | None:
        """The text of a JSON value in a CSV file for people; None where it is the value itself."""
        return None

    @abstractmethod
    def schema(self) -> Mapping[str, Any]:
        """JSON Schema (2020-12) of the value, null aside."""

    @property
    def form(self) -> str:
        """Which control a form shows for it."""
        return self.kind


LINKED = frozenset({"EMAIL", "PHONE", "PERSON", "TAXID"})
"""Labels that are linked unless a field says otherwise: values that tell who somebody is, so that equality is useful,
and rich enough that equality gives nothing else away."""

LITERAL = "LITERAL"
"""The label of tokens that stand for clear text which only looks like a token; no field has it."""
