"""The command `export`: returns all matching records as CSV or NDJSON, with the same access checks as other
commands."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import msgspec

from countersign.declare import Ref
from countersign.declare.fields.field import Notation
from countersign.records.commands import csv_format, filters, limits, list_search, mask_output, select
from countersign.records.commands.csv_format import (
    NOTATION_KEYS,
    Column,
    ColumnFinder,
    escape_formula,
    escape_formulas,
    format_for_people,
    format_rows,
    read_notation,
)
from countersign.records.commands.errors import BadInput
from countersign.records.commands.filters import Query
from countersign.records.commands.run import Body, Run
from countersign.records.commands.select import RecordReader
from countersign.records.masking import placeholder_tokens

Format: TypeAlias = Literal["text/csv", "application/x-ndjson"]
FORMATS: tuple[Format, ...] = ("text/csv", "application/x-ndjson")
FORMS = ("raw", "shown")

_encoder = msgspec.json.Encoder()
_WRITTEN_AS_THEY_ARE = frozenset((int, type(None)))
_TEXTS = frozenset((str, type(None)))


class ExportResult(msgspec.Struct):
    """The whole export as text."""

    content_type: str
    text: str


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """The query, the columns and the form of an export. With `is_shown`, the form is for people: labels, decimal
    amounts, and names of records instead of ids."""

    query: Query
    content_type: Format
    columns: tuple[Column, ...]
    is_shown: bool
    notation: Notation

    @property
    def named(self) -> tuple[Ref, ...]:
        """The reference fields for which the export contains names of records."""
        refs = [column.field for column in self.columns if isinstance(column.field, Ref)]
        return tuple(refs) if self.is_shown else ()


def read(run: Run, model: str, body: Body) -> ExportRequest:
    """Read the input of an export.

    Raises:
        BadInput: the query is refused, or the format, the form or a field is unknown.
    """
    wanted_type, form = body.get("content_type", "text/csv"), body.get("form", "raw")
    matching_format: Format | None = next((format_ for format_ in FORMATS if format_ == wanted_type), None)
    if matching_format is None:
        raise BadInput(f"content_type must be {' or '.join(FORMATS)}")
    if form not in FORMS:
        raise BadInput(f"form must be {' or '.join(FORMS)}")
    if form == "shown" and matching_format != "text/csv":
        raise BadInput("form shown is for text/csv alone: leave it out")
    own_members = ("content_type", "form", "fields", *NOTATION_KEYS)
    query = list_search.read_query(
        run, model, "export", {name: value for name, value in body.items() if name not in own_members}
    )
    columns = _columns(run, model, body.get("fields"), is_shown=form == "shown")
    return ExportRequest(query, matching_format, columns, form == "shown", read_notation(body))


def _columns(run: Run, model: str, fields: object, *, is_shown: bool) -> tuple[Column, ...]:
    view = run.view_of(model)
    names: Sequence[object] = run.engine.reading(run.caller, view).names
    if fields is not None:
        names = cast("list[object]", fields) if isinstance(fields, list) else ()
        if not names or len({name for name in names if isinstance(name, str)}) != len(names):
            raise BadInput("fields must be an array of different names of fields")
    finder = ColumnFinder(view)
    columns = [finder.named_column(cast(str, name)) for name in names]
    return tuple(finder.labelled_column(cast(str, column.name)) for column in columns) if is_shown else tuple(columns)


def check(run: Run, model: str, request: ExportRequest) -> None:
    """Check the query before the first part of the response is sent.

    Raises:
        BadInput: a condition or a key is refused.
    """
    _statement(run, model, request)


async def export(run: Run, model: str, body: Body) -> ExportResult:
    """Return the whole export in one JSON response.

    Raises:
        BadInput: the query is refused, or the result is too large for one response. The caller can request a stream
            with the header Accept.
    """
    request = read(run, model, body)
    pieces: list[str] = []
    rows = size = 0
    async with aclosing(pieces_of(run, model, request)) as piece_stream:
        async for piece, count in piece_stream:
            rows += count
            if rows > limits.MAX_EXPORTED_RECORDS:
                raise BadInput(
                    f"more than {limits.MAX_EXPORTED_RECORDS} records match: give a limit, or send Accept: "
                    f"{request.content_type} for a stream"
                )
            size += len(piece)
            if size > limits.MAX_PAGE_BYTES:
                raise BadInput(
                    f"the export is longer than {limits.MAX_PAGE_BYTES >> 20} MiB: give a limit, or send "
                    f"Accept: {request.content_type} for a stream"
                )
            pieces.append(piece)
    return ExportResult(request.content_type, "".join(pieces))


async def pieces_of(run: Run, model: str, request: ExportRequest) -> AsyncGenerator[tuple[str, int]]:
    """Yield the text in parts, each with its number of records. For CSV, the first part contains the column names and
    no records."""
    record_reader = run.engine.reading(run.caller, run.view_of(model))
    is_csv = request.content_type == "text/csv"
    async with aclosing(_records(run, model, record_reader, request)) as batch_stream:
        # Read first, so that an error of the read comes before any part of the text.
        first_batch = await anext(batch_stream, None)
        if is_csv:
            headers = [escape_formula(column.header) for column in request.columns]
            yield format_rows([headers], request.notation.separator or ","), 0
        if first_batch is not None:
            yield (_csv(request, first_batch) if is_csv else _lines(request, first_batch)), len(first_batch.names)
        async for batch in batch_stream:
            yield (_csv(request, batch) if is_csv else _lines(request, batch)), len(batch.names)


class _Batch(NamedTuple):
    """The values of some records as the caller sees them, one sequence for each column of the export, and for each
    record a map from the reference fields to the names of the referenced records."""

    columns: Sequence[Sequence[Any]]
    names: Sequence[Mapping[str, str]]


def _csv(request: ExportRequest, batch: _Batch) -> str:
    cells = [_cells(request, *pair, batch.names) for pair in zip(request.columns, batch.columns, strict=True)]
    return format_rows(zip(*cells, strict=True), request.notation.separator or ",")


def _lines(request: ExportRequest, batch: _Batch) -> str:
    names = [column.name for column in request.columns]
    rows = zip(*batch.columns, strict=True)
    return "".join(_encoder.encode(dict(zip(names, row, strict=True))).decode() + "\n" for row in rows)


async def _records(
    run: Run, model: str, record_reader: RecordReader, request: ExportRequest
) -> AsyncGenerator[_Batch]:
    statement, count = _statement(run, model, request), len(record_reader.names)
    positions = [record_reader.names.index(cast(str, column.name)) for column in request.columns]
    async with aclosing(run.stream(record_reader, statement)) as row_batches:
        async for rows in row_batches:
            own = [row[:count] for row in rows] if request.named else rows
            values = await mask_output.masked_values(run, record_reader, own)
            names = await _names(run, request.named, [row[count:] for row in rows])
            columns = list(zip(*values, strict=True))
            if columns:
                yield _Batch([columns[position] for position in positions], names)


def _statement(run: Run, model: str, request: ExportRequest) -> select.SelectStatement:
    view = run.view_of(model)

    def named(scope: filters.Scope) -> list[str]:
        return [csv_format.name_expression(run, scope, ref) for ref in request.named]

    return select.page(run.engine.reading(run.caller, view), view.reach("export"), request.query, named)


async def _names(run: Run, refs: Sequence[Ref], rows: Sequence[Sequence[Any]]) -> list[dict[str, str]]:
    names_by_row = [{ref.name: str(name) for ref, name in zip(refs, row, strict=True) if name} for row in rows]
    tokens = await mask_output.literals(run, [name for row_names in names_by_row for name in row_names.values()])
    if not tokens:
        return names_by_row
    grammar = run.engine.grammar
    return [
        {ref: placeholder_tokens.replace_tokens(grammar, name, tokens) for ref, name in row_names.items()}
        for row_names in names_by_row
    ]


def _cells(
    request: ExportRequest, column: Column, values: Sequence[object], names: Sequence[Mapping[str, str]]
) -> Sequence[object]:
    """Return the values of a column as cells that a spreadsheet does not evaluate as formulas."""
    if request.is_shown:
        return [_shown_cell(request, column, *pair) for pair in zip(values, names, strict=True)]
    return _raw_cells(values)


def _raw_cells(values: Sequence[object]) -> Sequence[object]:
    """Return the values of a column as cells. The CSV writer writes whole numbers and empty cells itself."""
    kinds = set(map(type, values))
    if kinds <= _WRITTEN_AS_THEY_ARE:
        return values
    if kinds <= _TEXTS:
        return escape_formulas(cast("Sequence[str | None]", values))
    return [_raw_cell(value) for value in values]


def _shown_cell(request: ExportRequest, column: Column, value: object, names: Mapping[str, str]) -> str:
    text = None if value is None else format_for_people(column, value, request.notation)
    if text is None and isinstance(value, str):
        # The value of a reference is the id of a record. It is replaced by the name of the record if the caller can
        # read the name.
        return escape_formula(names.get(column.name or "", value))
    return _raw_cell(value) if text is None else text


def _raw_cell(value: object) -> str:
    if isinstance(value, str):
        return escape_formula(value)
    if type(value) is int:
        return str(value)
    return "" if value is None else _encoder.encode(value).decode()
