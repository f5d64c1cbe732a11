"""The command `import`: many new records from CSV text, all of them or none, with an error for each bad row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from countersign.declare import Ref
from countersign.kernel.concurrency import CooperativeIterator
from countersign.kernel.database.port import ConstraintViolation
from countersign.records.access.view import ModelView
from countersign.records.commands import create, record_names, restore
from countersign.records.commands.csv_columns import Column, Headers, read_cell, read_head
from countersign.records.commands.csv_text import NOTATION, Notation, read_notation, table, unguarded
from countersign.records.commands.prepared import Prepared
from countersign.records.commands.refusals import BadInput, TryAgain, refuse_unknown_keys, unknown_field
from countersign.records.commands.run import Body, Run

MAX_ROWS = 5_000
MAX_LINES = 20 * MAX_ROWS
MAX_COLUMNS = 1_000

_RESTORE = "an administrator imports exported records in other states, as posted invoices, with restore"
_MEMBERS = ("csv", "dry_run", "columns", "restore", *NOTATION)


class RowError(msgspec.Struct):
    """What is wrong with one row (the first after the head is 1, the head is 0)."""

    row: int
    error: str


class ColumnUse(msgspec.Struct):
    """What a column of the file is taken for: its name in the first row, and the field (None: it is left out)."""

    header: str
    field: str | None


class Imported(msgspec.Struct):
    """What an import did; with errors, nothing. `unchanged` records were there already, with the same values. `columns`
    are those of a trial."""

    rows: int
    created: int
    unchanged: int
    dry_run: bool
    errors: list[RowError]
    ids: list[str]
    columns: list[ColumnUse]


class _Undone(Exception):
    """Ends a trial: what was written is taken back."""


@dataclass(frozen=True, slots=True)
class ImportTable:
    """The text of an import as it was read: its columns, rows of cells, and the ids of the records that the cells of
    each reference name. `unknown` are names in the first row that mean no field."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    unknown: Sequence[str]
    notation: Notation
    ids: Mapping[str, Mapping[str, str]]
    ambiguous: Mapping[str, Mapping[str, int]]
    is_trial: bool
    is_restoring: bool


async def import_(run: Run, model: str, body: Body) -> Imported:
    """Make a record of each row, or with `dry_run` find out whether that could be done.

    Raises:
        BadInput: an unknown key; the text is no CSV with a head of known fields; there are too many rows.
    """
    view = run.view_of(model)
    found = await read(run, view, body)
    done = _empty(found)
    try:
        async with run.writing() as inside:
            done, _ = await check(inside, view, found, makes=True)
            if done.dry_run or done.errors:
                raise _Undone
    except _Undone:
        done.created, done.ids = 0, []
    return done


def _empty(found: ImportTable) -> Imported:
    columns = [ColumnUse(each.header, _field_name(each)) for each in found.columns] if found.is_trial else []
    errors = [RowError(0, f"no field is called {each}") for each in found.unknown]
    return Imported(len(found.rows), 0, 0, found.is_trial, errors, [], columns)


def _field_name(column: Column) -> str | None:
    return f"{column.name}:amount" if column.is_amount else column.name


async def check(
    run: Run, view: ModelView, found: ImportTable, *, makes: bool = False
) -> tuple[Imported, list[Prepared]]:
    """Every row read as an input of create, and with `makes` the record made; errors by row.

    Raises:
        TryAgain: a row conflicts with a concurrent change.
    """
    done, prepared, inserted = _empty(found), list[Prepared](), list[Prepared]()
    async for number, row in CooperativeIterator(enumerate(found.rows, 1)):
        try:
            body = _body(view, found, row)
            if found.is_restoring:
                one = await restore.check(run, view, body)
                if one is None:
                    done.unchanged += 1
                    continue
            else:
                one = await create.check(run, view, body)
            prepared.append(one)
            if makes:
                done.ids.append(await _made(run, one, is_restoring=found.is_restoring))
                inserted.append(one)
                done.created += 1
        except create.OtherStart as refused:
            done.errors.append(RowError(number, f"{refused.detail}; {_RESTORE}"))
        except BadInput as refused:
            done.errors.append(RowError(number, refused.detail))
        except ConstraintViolation as error:
            raise TryAgain(f"row {number} conflicts with a concurrent change; try again") from error
    if found.is_restoring:
        await restore.continue_numbers(run, view.model, inserted)
    return done, prepared


async def _made(run: Run, prepared: Prepared, *, is_restoring: bool) -> str:
    async with run.transaction.savepoint():
        return await (restore.apply(run, prepared) if is_restoring else create.apply(run, prepared))


async def read(run: Run, view: ModelView, body: Body) -> ImportTable:
    """The input, its text read, and the records looked up that it names.

    Raises:
        BadInput: an unknown key; the text is no CSV with a head of known fields; there are too many rows or columns;
            an agent may not create what the plan would.
    """
    text, is_trial, is_restoring = _members(view.model.name, body)
    _require_rights(run, view, is_trial=is_trial, is_restoring=is_restoring)
    notation = read_notation(body)
    lines = table(text, notation.separator, max_rows=MAX_ROWS, max_lines=MAX_LINES)
    if lines and len(lines[0]) > MAX_COLUMNS:
        raise BadInput(f"csv may have {MAX_COLUMNS} columns at most")
    columns, unknown = read_head(Headers(view), lines[0] if lines else [], body.get("columns"))
    if unknown and not is_trial:
        raise unknown_field(view.model.name, unknown[0])
    columns = _taken(columns, is_restoring=is_restoring)
    if not unknown and not any(each.name for each in columns):
        raise BadInput("csv needs a first row with the names of fields")
    if len(lines) > MAX_ROWS + 1:
        raise BadInput(f"csv may have {MAX_ROWS} rows at most")
    ids, ambiguous = await _named(run, columns, lines[1:])
    return ImportTable(columns, lines[1:], unknown, notation, ids, ambiguous, is_trial, is_restoring)


def _members(model: str, body: Body) -> tuple[str, bool, bool]:
    refuse_unknown_keys(body, _MEMBERS, f"{model}.import")
    text, is_trial, is_restoring = body.get("csv"), body.get("dry_run", False), body.get("restore", False)
    if not isinstance(text, str) or not isinstance(is_trial, bool) or not isinstance(is_restoring, bool):
        raise BadInput(f"{model}.import needs csv, a string, and takes dry_run and restore, true or false")
    return text, is_trial, is_restoring


def _require_rights(run: Run, view: ModelView, *, is_trial: bool, is_restoring: bool) -> None:
    model = view.model.name
    if run.caller.is_agent and not is_trial and "create" not in view.commands:
        raise BadInput(f"{model}.import needs the scope {model}.create too: that is what each row is in the plan")
    if is_restoring and not run.caller.is_administrator:
        kept = "ids, states and read-only values, as of posted invoices"
        raise BadInput(f"restore keeps {kept}: only an administrator may ask for it")


def _taken(columns: Sequence[Column], *, is_restoring: bool) -> list[Column]:
    return [each if _is_taken(each, is_restoring=is_restoring) else Column(each.header, None) for each in columns]


def _is_taken(column: Column, *, is_restoring: bool) -> bool:
    """Whether the column's values are written. What the service makes itself is left out; ids and read-only values
    are kept by a restore alone."""
    field = column.field
    if field is None:
        return column.name == "id" and is_restoring
    if field.computed is not None or field.sum_of is not None or field.kind == "structure":
        return False
    return is_restoring or not field.readonly


async def _named(
    run: Run, columns: Sequence[Column], rows: Sequence[Sequence[str]]
) -> tuple[dict[str, Mapping[str, str]], dict[str, Mapping[str, int]]]:
    """By reference, the ids of the records that its cells name, and the cells that name several."""
    ids, ambiguous = dict[str, Mapping[str, str]](), dict[str, Mapping[str, int]]()
    for place, column in enumerate(columns):
        if isinstance(column.field, Ref):
            cells = {_stripped(row[place]) for row in rows if place < len(row)}
            ids[column.field.name], ambiguous[column.field.name] = await record_names.ids_of(run, column.field, cells)
    return ids, ambiguous


def _body(view: ModelView, found: ImportTable, row: Sequence[str]) -> dict[str, object]:
    """The input that a row means. An empty cell is no value, for which a new record gets the default.

    Raises:
        BadInput: a cell cannot be read, or has no column.
    """
    if any(row[len(found.columns) :]):
        raise BadInput("the row has more cells than the first row has names")
    body: dict[str, object] = {}
    for column, cell in zip(found.columns, row, strict=False):
        if column.name is None:
            if cell and not column.header:
                raise BadInput("the row has a cell in a column without a name")
            continue
        value = _value(view, found, column, cell)
        if value is not None or found.is_restoring:
            body[column.name] = value
    return body


def _value(view: ModelView, found: ImportTable, column: Column, cell: str) -> object:
    name = str(column.name)
    try:
        if isinstance(column.field, Ref):
            record_names.refuse_ambiguous(column.field, _stripped(cell), found.ambiguous[name])
        return read_cell(column, cell, found.notation, found.ids.get(name, {}))
    except BadInput as refused:
        raise BadInput(f"{view.model.name}.{name} {refused.detail}") from refused


def _stripped(cell: str) -> str:
    return unguarded(cell).strip()
