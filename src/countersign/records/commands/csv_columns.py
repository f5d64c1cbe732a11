"""The columns of CSV text, and what is in their cells: which field a name in the first row means, and the JSON value of
each cell by the kind of its field."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from countersign.declare import Field, Select
from countersign.kernel.normalization import normalized
from countersign.records.access.view import ModelView
from countersign.records.commands.csv_text import Notation, unguarded
from countersign.records.commands.refusals import BadInput, unknown_field

AMOUNT = ":amount"
"""After the name of a money field: its column has amounts (12.34), not minor units (1234)."""

_OWN = ("id", "revision")
_WHOLE = re.compile("-?[0-9]{1,18}")
_PARTS = re.compile(r"([0-9]{1,4})[-./ ]{1,2}([0-9]{1,2})[-./ ]{1,2}([0-9]{1,4})", re.ASCII)
_MAX_AMOUNT = 40
_BOOLS = {
    **dict.fromkeys(("true", "yes", "y", "1", "on", "ja", "j", "wahr"), True),
    **dict.fromkeys(("false", "no", "n", "0", "off", "nein", "falsch"), False),
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name in the first row, the field that it means (None: left out; `id` and `revision` have none), and
    whether money is an amount there rather than minor units."""

    header: str
    name: str | None
    field: Field | None = None
    is_amount: bool = False


class Headers:
    """The names and labels that a column of a model may have, for one caller: in any case, and without regard to
    spaces and punctuation."""

    def __init__(self, view: ModelView) -> None:
        self._model = view.model.name
        self._fields = {name: view.model.fields[name] for name in view.fields}
        self._names = {_plain(name): name for name in (*self._fields, *_OWN)}
        labels: dict[str, list[str]] = {}
        for name, field in self._fields.items():
            for label in {_plain(field.label), _plain(name.removesuffix("_minor"))}:
                labels.setdefault(label, []).append(name)
        self._labels = {label: names[0] for label, names in labels.items() if len(names) == 1}

    def column(self, header: str) -> Column | None:
        """The column that this name in the first row means; None where it means none. Money is an amount under its
        label, and minor units under its name."""
        exact = header.strip()
        plain = _plain(exact.removesuffix(AMOUNT))
        name = exact if exact in self._fields else self._names.get(plain)
        is_label = name is None
        if name is None:
            name = self._labels.get(plain)
        if name is None:
            return None
        field = self._fields.get(name)
        is_money = field is not None and field.kind == "money"
        if exact.endswith(AMOUNT) and not is_money:
            return None
        return Column(header, name, field, is_money and (is_label or exact.endswith(AMOUNT)))

    def found(self, header: str) -> Column | None:
        """As `column`; one without a name is left out."""
        return self.column(header) if header.strip() else Column("", None)

    def shown(self, name: str) -> Column:
        """The column of a field under its label, or under its name where the label would mean another one."""
        field = self._fields.get(name)
        found = None if field is None else self.column(field.label)
        return found if found is not None and found.name == name else Column(name, name, field)

    def raw(self, name: str) -> Column:
        """The column of a field under its name.

        Raises:
            BadInput: the caller sees no such field.
        """
        if name not in self._fields and name not in _OWN:
            raise unknown_field(self._model, name)
        return Column(name, name, self._fields.get(name))

    def chosen(self, header: str, wanted: object) -> Column:
        """The column that the caller says the header means; None leaves it out.

        Raises:
            BadInput: it is no field that the caller sees.
        """
        if wanted is None:
            return Column(header, None)
        name = wanted if isinstance(wanted, str) else ""
        field = self._fields.get(name.removesuffix(AMOUNT))
        if name.endswith(AMOUNT) and field is not None and field.kind == "money":
            return Column(header, field.name, field, is_amount=True)
        column = self.raw(name)
        return Column(header, column.name, column.field)


def _plain(text: str) -> str:
    return "".join(each for each in normalized("NFKC", text).casefold() if each.isalnum())


def read_cell(column: Column, cell: str, notation: Notation, names: Mapping[str, str]) -> object:
    """The JSON value that a cell means, None for an empty one; what does not fit is left as text for the field to
    refuse. `names` are the ids of the records that the cells of a reference name.

    Raises:
        BadInput: an amount cannot be read.
    """
    text, field = unguarded(cell), column.field
    if field is None or field.kind in ("text", "longtext"):
        return text if cell else None
    text = text.strip()
    if not text:
        return None
    if column.is_amount:
        return _amount(text, notation)
    if field.kind == "date":
        return _date(text, notation)
    if field.kind == "ref":
        return names.get(text, text)
    return _plain_value(field, text)


def _plain_value(field: Field, text: str) -> object:
    if field.kind == "bool":
        return _BOOLS.get(text.casefold(), text)
    if field.kind in ("number", "money"):
        return int(text) if _WHOLE.fullmatch(text) else text
    return _option(field, text) if isinstance(field, Select) else text


def _option(field: Select, text: str) -> str:
    if text in field.options:
        return text
    return next((each for each in field.options if _plain(each) == _plain(text)), text)


def _amount(text: str, notation: Notation) -> int:
    """Minor units of an amount, in groups of three digits or in none."""
    decimal, group = ("\\.", ",") if notation.decimal == "." else (",", "\\.")
    bare = re.sub("[\\s\u00a0\u202f'\u2019]", "", text[: _MAX_AMOUNT + 1]).replace("\u2212", "-")
    pattern = f"(-?)([0-9]{{1,16}}|[0-9]{{1,3}}(?:{group}[0-9]{{3}}){{1,5}})(?:{decimal}([0-9]{{0,2}}))?"
    found = re.fullmatch(pattern, bare, re.ASCII)
    if found is None or len(text) > _MAX_AMOUNT:
        raise BadInput(f"must be an amount such as 1234{notation.decimal}50")
    digits = re.sub("[.,]", "", found[2]) + (found[3] or "").ljust(2, "0")
    return int(found[1] + digits)


def _date(text: str, notation: Notation) -> str:
    """YYYY-MM-DD; a text in another order than the notation's is left as it is."""
    found = _PARTS.fullmatch(text)
    if found is None or re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return text
    parts = dict(zip(notation.date_order, found.groups(), strict=True))
    if len(parts["y"]) != 4 or max(len(parts["m"]), len(parts["d"])) > 2:
        return text
    return f"{parts['y']}-{parts['m']:>02}-{parts['d']:>02}"


def shown_cell(column: Column, value: object, notation: Notation) -> str | None:
    """What people read for a value of this column; None where that is the value itself."""
    kind = "" if column.field is None else column.field.kind
    if isinstance(value, bool):
        return "yes" if value else "no"
    if column.is_amount and isinstance(value, int):
        digits = str(abs(value)).rjust(3, "0")
        return f"{'-' if value < 0 else ''}{digits[:-2]}{notation.decimal}{digits[-2:]}"
    if kind == "date" and notation.date_order != "ymd":
        year, month, day = str(value).split("-")
        return f"{day}.{month}.{year}" if notation.date_order == "dmy" else f"{month}/{day}/{year}"
    return None


def read_head(headers: Headers, head: Sequence[str], chosen: object) -> tuple[list[Column], list[str]]:
    """The columns of a table, and the names in its first row that mean no field; `chosen` are the fields that the
    caller says they mean.

    Raises:
        BadInput: `chosen` is no list of fields of the model, one for each column; or a field has two columns.
    """
    head = list(map(unguarded, head))
    unknown: list[str] = []
    columns: list[Column] = []
    wanted = None if chosen is None else _chosen(chosen, len(head))
    for place, header in enumerate(head):
        column = headers.found(header) if wanted is None else headers.chosen(header, wanted[place])
        columns.append(column or Column(header, None))
        if column is None:
            unknown.append(header)
    names = Counter(each.name for each in columns)
    if any(count > 1 for name, count in names.items() if name is not None):
        raise BadInput("csv names a field twice in its first row")
    return columns, unknown


def _chosen(chosen: object, count: int) -> list[object]:
    wanted = cast("list[object]", chosen) if isinstance(chosen, list) else []
    if len(wanted) != count:
        raise BadInput(f"columns must be an array with a field or null for each of the {count} columns")
    return wanted
