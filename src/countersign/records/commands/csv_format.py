"""Reads and writes CSV text: separators, decimal marks, columns and cells. A cell of a reference may contain the name
of a record instead of its id."""

import csv
import io
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

from countersign.declare import BadValue, Field, Money, Ref, Text
from countersign.declare.fields.field import DateOrder, DecimalMark, Notation, Separator
from countersign.declare.fields.kinds import alphanumeric, is_record_id
from countersign.declare.fields.text import MAX_LONGTEXT_LENGTH
from countersign.records.access.people import folded
from countersign.records.access.view import ModelView
from countersign.records.commands import filters
from countersign.records.commands.errors import BadInput, unknown_field
from countersign.records.commands.filters import Parameters
from countersign.records.commands.run import Run

SEPARATORS: tuple[Separator, ...] = (",", ";", "\t")
DECIMAL_MARKS: tuple[DecimalMark, ...] = (".", ",")
DATE_ORDERS: tuple[DateOrder, ...] = ("ymd", "dmy", "mdy")
NOTATION_KEYS = ("separator", "decimal", "date_order")
"""The keys of the input that describe the format of a file."""

MAX_CELL_LENGTH = MAX_LONGTEXT_LENGTH + 1
"""The maximum length of a cell: the longest text, and the apostrophe that `escape_formula` adds."""
# The csv module has one limit for the whole process. The fields of the models have their own limits.
csv.field_size_limit(MAX_CELL_LENGTH)

# The texts before which `escape_formula` puts an apostrophe. A spreadsheet evaluates a cell that begins with one of
# these characters as a formula (CWE-1236). An empty text is included, because an empty cell means no value. Texts with
# apostrophes before such a character are included, so that `unescape_formula` restores them exactly.
_NEEDS_GUARD = re.compile("'*(?:[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]|$)")
# The same behind a line break.
_LINE_NEEDS_GUARD = re.compile("\n'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]|\n'*$")
_SEPARATOR_LINE = re.compile("sep=([,;\t])\n", re.IGNORECASE)

_T = TypeVar("_T", bound=str)


def read_notation(body: Mapping[str, object]) -> Notation:
    """Read the keys of the input that describe the format of the file.

    Raises:
        BadInput: a key has an invalid value.
    """
    separator = _one_of(body, "separator", SEPARATORS) if body.get("separator") is not None else None
    return Notation(separator, _one_of(body, "decimal", DECIMAL_MARKS), _one_of(body, "date_order", DATE_ORDERS))


def _one_of(body: Mapping[str, object], name: str, known_values: Sequence[_T]) -> _T:
    value = body.get(name, known_values[0])
    match = next((known_value for known_value in known_values if known_value == value), None)
    if match is None:
        raise BadInput(f"{name} must be {' or '.join('a tab' if value == chr(9) else value for value in known_values)}")
    return match


def escape_formula(text: str) -> str:
    """Return a cell that contains the text and that a spreadsheet does not evaluate as a formula. If needed, the cell
    begins with an apostrophe, which `unescape_formula` removes."""
    return f"'{text}" if _NEEDS_GUARD.match(text) else text


def escape_formulas(texts: Sequence[str | None]) -> Sequence[str | None]:
    """Return the cells of a column as `escape_formula` does. Most columns need no apostrophe, which one search over all
    their texts shows."""
    if _LINE_NEEDS_GUARD.search("\n".join(["", *filter(None, texts)])) is None and "" not in texts:
        return texts
    needs_guard = _NEEDS_GUARD.match
    return [text if text is None or needs_guard(text) is None else f"'{text}" for text in texts]


def unescape_formula(cell: str) -> str:
    """Return the text of a cell, without the apostrophe that `escape_formula` added."""
    return cell[1:] if cell[:1] == "'" and _NEEDS_GUARD.match(cell) else cell


def format_rows(rows: Iterable[Sequence[object]], separator: Separator = ",") -> str:
    """Return the rows in RFC 4180 format, with this separator."""
    text = io.StringIO()
    csv.writer(text, delimiter=separator, lineterminator="\r\n").writerows(rows)
    return text.getvalue()


def parse_rows(text: str, separator: Separator | None, *, max_rows: int, max_lines: int) -> list[list[str]]:
    """Parse CSV text and return the rows that are not empty. The first row contains the names of the columns;
    `max_rows` does not count it. With too many rows, max_rows + 2 rows are returned, and the caller refuses them. The
    text may have line ends of any kind, and may begin with a byte order mark and a line such as `sep=;`.

    Raises:
        BadInput: the text cannot be read as CSV, or has too many lines.
    """
    rows: list[list[str]] = []
    lines = 0
    reader = _reader(text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n"), separator)
    try:
        for lines, row in enumerate(reader):
            if row:
                rows.append(row)
            if len(rows) > max_rows + 1 or lines > max_lines:
                break
    except csv.Error as error:
        reason = (
            f"csv cannot be read after row {len(rows)}: it must be RFC 4180, with every quoted field closed, a "
            f"separator or a line break after it, and at most {MAX_LONGTEXT_LENGTH:,} characters in a field"
        )
        raise BadInput(reason) from error
    if len(rows) <= max_rows and lines > max_lines:
        raise BadInput(f"csv may have {max_lines} lines at most, empty ones included")
    return rows


def _reader(text: str, separator: Separator | None) -> Iterator[list[str]]:
    """Return a CSV reader for the text. It uses the given separator, the separator that a first line such as `sep=;`
    names, or the separator that the first row seems to use."""
    separator_line = _SEPARATOR_LINE.match(text)
    if separator_line is not None:
        text = text[separator_line.end() :]
        separator = separator or next(separator for separator in SEPARATORS if separator == separator_line[1])
    return csv.reader(io.StringIO(text), delimiter=separator or _guess_separator(text), strict=True)


def _guess_separator(text: str) -> Separator:
    """Return the separator that occurs most often outside quotes in the first line that is not empty."""
    start = len(text) - len(text.lstrip("\n"))
    end = text.find("\n", start)
    line = text[start : end if end >= 0 else len(text)]
    unquoted_line = "".join(line.split('"')[::2])
    return max(SEPARATORS, key=unquoted_line.count)


AMOUNT_SUFFIX = ":amount"
"""The suffix of a money field's name for a column that contains decimal amounts (12.34) instead of minor units
(1234)."""

_ADDITIONAL_COLUMNS = ("id", "revision")
_MAX_AMOUNT_LENGTH = 40


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a file.

    `header` is the text in the first row. `name` is the name of the field, or None if the column is ignored. The
    columns `id` and `revision` have a name but no field. With `is_amount`, the cells contain decimal amounts instead of
    minor units.
    """

    header: str
    name: str | None
    field: Field | None = None
    is_amount: bool = False


class ColumnFinder:
    """Finds columns by the names and labels of the fields that one caller sees. Case, spaces and punctuation are
    ignored."""

    def __init__(self, view: ModelView) -> None:
        self._model = view.model.name
        self._fields = {name: view.model.fields[name] for name in view.fields}
        self._names = {alphanumeric(name): name for name in (*self._fields, *_ADDITIONAL_COLUMNS)}
        labels: dict[str, list[str]] = {}
        for name, field in self._fields.items():
            for label in {alphanumeric(field.label), alphanumeric(name.removesuffix("_minor"))}:
                labels.setdefault(label, []).append(name)
        self._labels = {label: names[0] for label, names in labels.items() if len(names) == 1}

    def column(self, header: str) -> Column | None:
        """Return the column for a header, or None if the header names no field.

        The column of a money field contains minor units if the header is the field's name. It contains decimal amounts
        if the header is the field's label or ends with `AMOUNT_SUFFIX`.
        """
        text = header.strip()
        has_amount_suffix = text.endswith(AMOUNT_SUFFIX)
        key = alphanumeric(text.removesuffix(AMOUNT_SUFFIX))
        field_name = text if text in self._fields else self._names.get(key)
        name = self._labels.get(key) if field_name is None else field_name
        if name is None:
            return None
        field = self._fields.get(name)
        is_money = isinstance(field, Money)
        if has_amount_suffix and not is_money:
            return None
        return Column(header, name, field, is_money and (has_amount_suffix or field_name is None))

    def column_or_ignored(self, header: str) -> Column | None:
        """Return the column for a header as `column` does, and an ignored column for an empty header."""
        return self.column(header) if header.strip() else Column("", None)

    def labelled_column(self, name: str) -> Column:
        """Return the column of a field, with the field's label as header. If the label does not identify the field, the
        header is the field's name."""
        field = self._fields.get(name)
        column_index = None if field is None else self.column(field.label)
        return column_index if column_index is not None and column_index.name == name else Column(name, name, field)

    def named_column(self, name: str) -> Column:
        """Return the column of a field, with the field's name as header.

        Raises:
            BadInput: the field does not exist for the caller.
        """
        if name not in self._fields and name not in _ADDITIONAL_COLUMNS:
            raise unknown_field(self._model, name)
        return Column(name, name, self._fields.get(name))

    def assigned_column(self, header: str, assigned: object) -> Column:
        """Return the column for a header to which the caller assigned a field. `assigned` is the name of the field, or
        None if the column is ignored.

        Raises:
            BadInput: the field does not exist for the caller.
        """
        if assigned is None:
            return Column(header, None)
        name = assigned if isinstance(assigned, str) else ""
        field = self._fields.get(name.removesuffix(AMOUNT_SUFFIX))
        if name.endswith(AMOUNT_SUFFIX) and isinstance(field, Money):
            return Column(header, field.name, field, is_amount=True)
        column = self.named_column(name)
        return Column(header, column.name, column.field)


def read_cell(column: Column, cell: str, notation: Notation, ids_by_name: Mapping[str, str]) -> object:
    """Return the JSON value of a cell, or None for an empty cell. Text that the field cannot
    convert, and a name of a referenced record that `ids_by_name` does not contain, are returned unchanged; the field
    refuses them later. `ids_by_name` maps names of referenced records to the ids of the records.

    Raises:
        BadInput: the cell cannot be read.
    """
    text, field = unescape_formula(cell), column.field
    if field is None or isinstance(field, Text):
        return text if cell else None
    text = text.strip()
    if not text:
        return None
    if column.is_amount:
        return _amount(text, notation)
    if isinstance(field, Ref):
        return ids_by_name.get(text, text)
    try:
        return field.read_cell(text, notation)
    except BadValue as error:
        raise BadInput(str(error)) from error


def _amount(text: str, notation: Notation) -> int:
    """Return a decimal amount in minor units. The amount may have digit grouping."""
    decimal, group = ("\\.", ",") if notation.decimal == "." else (",", "\\.")
    compact_text = re.sub("[\\s\u00a0\u202f'\u2019]", "", text[: _MAX_AMOUNT_LENGTH + 1]).replace("\u2212", "-")
    pattern = f"(-?)([0-9]{{1,16}}|[0-9]{{1,3}}(?:{group}[0-9]{{3}}){{1,5}})(?:{decimal}([0-9]{{0,2}}))?"
    match = re.fullmatch(pattern, compact_text, re.ASCII)
    if match is None or len(text) > _MAX_AMOUNT_LENGTH:
        raise BadInput(f"must be an amount such as 1234{notation.decimal}50")
    digits = re.sub("[.,]", "", match[2]) + (match[3] or "").ljust(2, "0")
    return int(match[1] + digits)


def format_for_people(column: Column, value: object, notation: Notation) -> str | None:
    """Format a value for a human-readable file; None if it is written as JSON."""
    if column.is_amount and isinstance(value, int):
        digits = str(abs(value)).rjust(3, "0")
        return f"{'-' if value < 0 else ''}{digits[:-2]}{notation.decimal}{digits[-2:]}"
    return None if column.field is None else column.field.show_cell(value, notation)


def read_head(finder: ColumnFinder, head: Sequence[str], assigned: object) -> tuple[list[Column], list[str]]:
    """Return the columns of a table and its unknown headers. `head` is the first row. If the caller has assigned fields
    to the columns, `assigned` lists them.

    Raises:
        BadInput: `assigned` is not a list with a field or None for each column, or a field has two columns.
    """
    head = list(map(unescape_formula, head))
    unknown: list[str] = []
    columns: list[Column] = []
    fields = None if assigned is None else _assigned_fields(assigned, len(head))
    for position, header in enumerate(head):
        if fields is None:
            column = finder.column_or_ignored(header)
        else:
            column = finder.assigned_column(header, fields[position])
        columns.append(column or Column(header, None))
        if column is None:
            unknown.append(header)
    names = Counter(column.name for column in columns)
    if any(count > 1 for name, count in names.items() if name is not None):
        raise BadInput("csv names a field twice in its first row")
    return columns, unknown


def _assigned_fields(assigned: object, count: int) -> list[object]:
    fields = cast("list[object]", assigned) if isinstance(assigned, list) else []
    if len(fields) != count:
        raise BadInput(f"columns must be an array with a field or null for each of the {count} columns")
    return fields


_NAMES_AT_ONCE = 1_000


def _view_with_names(run: Run, ref: Ref) -> ModelView | None:
    """Return the caller's view of the referenced model if the caller can read the names of its records in clear. The
    name of a record is the value of its field `shown_as`."""
    view = run.caller.view.models.get(ref.target)
    if view is None or not view.is_readable or view.model.shown_as not in view.fields:
        return None
    name_field = view.model.fields[view.model.shown_as]
    return view if name_field.is_folded and view.sees_in_clear(name_field.name) else None


def name_expression(run: Run, scope: filters.Scope, ref: Ref) -> str:
    """Return the SQL expression for the name of the referenced record. The expression is NULL if the caller may not see
    the record or may not read its name in clear."""
    view = _view_with_names(run, ref)
    if view is None:
        return "NULL"
    return scope.name_of(ref, view)


async def match_names(run: Run, ref: Ref, cells: Iterable[str]) -> tuple[dict[str, str], dict[str, int]]:
    """Find the records that cells name. Return two maps: one from each cell that names exactly one visible record to
    the id of the record, and one from each ambiguous cell to the number of records with this name. If no name matches
    exactly, case is ignored."""
    view = _view_with_names(run, ref)
    names = {cell for cell in cells if not is_record_id(cell) and not _has_token(run, cell)}
    if view is None or not names:
        return {}, {}
    matches = await _matches_by_name(run, view, names)
    return (
        {cell: record_id for cell, (record_id, count) in matches.items() if count == 1},
        {cell: count for cell, (_, count) in matches.items() if count > 1},
    )


def _has_token(run: Run, cell: str) -> bool:
    """Return whether the cell contains a placeholder token. References refuse tokens, so such a cell is not looked
    up."""
    grammar = run.engine.grammar
    return run.caller.view.is_masked and grammar.might_hold_token(cell) and bool(grammar.tokens(cell))


async def _matches_by_name(run: Run, view: ModelView, names: Collection[str]) -> dict[str, tuple[str, int]]:
    """Map each name to the id of one matching record and the number of matches; names without a match are omitted."""
    exact, loose = dict[str, tuple[str, int]](), dict[str, tuple[str, int]]()
    for batch in _batches(sorted({folded(cell) for cell in names})):
        for name, key, record_id, count in await _records_with_names(run, view, batch):
            exact[name] = (record_id, count)
            loose[key] = (record_id, count + loose.get(key, ("", 0))[1])
    column_by_name = {cell: exact.get(cell) or loose.get(folded(cell)) for cell in names}
    return {name: match for name, match in column_by_name.items() if match is not None}


async def _records_with_names(run: Run, view: ModelView, names: Sequence[str]) -> Sequence[tuple[str, str, str, int]]:
    """Return the records that have one of the folded names, grouped by the spelling of the name. Each group consists of
    the name, its folded form, the id of one record, and the number of records."""
    name, parameters = view.model.shown_as, Parameters()
    scope = filters.Scope(run.engine.dialect, parameters, "t")
    placeholders = ", ".join(parameters.put(cell) for cell in names)
    visible_condition = filters.any_of(scope, view.model, view.visible)
    text = (
        f'SELECT t."{name}", t."{name}__folded", min(t.id), count(*) FROM "{view.model.name}" AS t '
        f'WHERE t."{name}__folded" IN ({placeholders}) AND {visible_condition} '
        f'GROUP BY t."{name}", t."{name}__folded"'
    )
    scan = run.engine.records.database.scan if run.open_transaction is None else run.reader.fetch
    rows = await scan(text, *parameters.values)
    return [(str(row[0]), str(row[1]), str(row[2]), int(row[3])) for row in rows]


def refuse_ambiguous(ref: Ref, cell: str, counts: Mapping[str, int]) -> None:
    """Require that a cell names only one record.

    Raises:
        BadInput: several records have this name.
    """
    if cell in counts:
        raise BadInput(f"names {counts[cell]} {ref.target} records: give the id of one")


def _batches(items: Sequence[str]) -> Iterable[Sequence[str]]:
    for start in range(0, len(items), _NAMES_AT_ONCE):
        yield items[start : start + _NAMES_AT_ONCE]
