"""The command `import`: creates records from all rows of CSV text or from none, and reports errors by row. It can also
restore exported records."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from countersign.declare import Declared, Field, Ref, Structure
from countersign.declare.fields.field import Notation, Stored
from countersign.declare.fields.kinds import is_record_id
from countersign.kernel.concurrency import CooperativeIterator
from countersign.kernel.database.port import ConstraintViolation
from countersign.records.access.view import ModelView
from countersign.records.base_models import RULING
from countersign.records.commands import (
    crud,
    csv_format,
    no_escalation,
    prepared_command,
    record_writer,
    select,
    unmask_input,
)
from countersign.records.commands.code_report import CodeReport
from countersign.records.commands.csv_format import (
    NOTATION_KEYS,
    Column,
    ColumnFinder,
    parse_rows,
    read_cell,
    read_head,
    read_notation,
    unescape_formula,
)
from countersign.records.commands.errors import BadInput, TryAgain, refuse_unknown_keys, unknown_field
from countersign.records.commands.prepared_command import FieldInput, PreparedCommand
from countersign.records.commands.run import Body, Run
from countersign.records.commands.select import StoredRecord, record_of

_NUMBER = re.compile("(.+)-([0-9]{1,15})", re.ASCII | re.DOTALL)
_ADVANCE_SEQUENCE = """
INSERT INTO sequence (name, next) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE
SET next = CASE WHEN sequence.next < excluded.next THEN excluded.next ELSE sequence.next END
"""


async def check_restored(run: Run, view: ModelView, body: Body) -> PreparedCommand | None:
    """Read the values of a row to restore, and add defaults for fields without a column. Return None if the record
    exists already.

    Raises:
        BadInput: a field is unknown, missing or invalid, or a record with this id has other values.
    """
    model = view.model
    record_id = _id(body.get("id"))
    values = {name: value for name, value in body.items() if name != "id"}
    field_inputs = await unmask_input.read_fields(run, view, values, inputs=frozenset(values))
    if await _exists(run, model, record_id, field_inputs):
        return None
    for name, field in model.fields.items():
        if _needs_default(model, name, field_inputs):
            field_inputs |= _default(run, model, field)
        if field.required and _is_empty(name, field_inputs):
            raise BadInput(f"{model.name}.{name} is required")
    return PreparedCommand(model.name, "import", record_id, given=field_inputs)


def _is_empty(name: str, field_inputs: Mapping[str, FieldInput]) -> bool:
    return name not in field_inputs or field_inputs[name].stored is None


def _needs_default(model: Declared, name: str, field_inputs: Mapping[str, FieldInput]) -> bool:
    """Return whether the field gets its default: it has no column, or it is the state field of the workflow and is
    empty."""
    if model.workflow is not None and model.workflow.field == name:
        return _is_empty(name, field_inputs)
    return name not in field_inputs


def _default(run: Run, model: Declared, field: Field) -> dict[str, FieldInput]:
    if model.workflow is not None and model.workflow.field == field.name:
        return {field.name: FieldInput(crud.first_option(field), is_default=True)}
    return {} if field.default is None else {field.name: FieldInput(crud.default(run, field), is_default=True)}


def _id(value: object) -> str | None:
    if value is None:
        return None
    text = str(value).strip()
    if not is_record_id(text) or prepared_command.step_index(text) is not None:
        raise BadInput("id must be 24 lower-case hexadecimal digits, as exports have it")
    return text


async def _exists(run: Run, model: Declared, record_id: str | None, field_inputs: Mapping[str, FieldInput]) -> bool:
    """Return whether the record exists already. It does if a record with this id or with one of the row's unique values
    has the same values, or if an equal grant or user role exists.

    Raises:
        BadInput: a record with this id has other values.
    """
    if record_id is not None:
        record = await _record(run, model, record_id)
        if record is not None and not _is_equal(record, field_inputs):
            raise BadInput(f"the {model.name} record with this id has other values")
        if record is not None:
            return True
    for name in field_inputs:
        if model.fields[name].unique and await _exists_with_unique(run, model, name, field_inputs):
            return True
    return model.name in RULING and await _is_granted(run, model, field_inputs)


async def _exists_with_unique(run: Run, model: Declared, name: str, field_inputs: Mapping[str, FieldInput]) -> bool:
    """Return whether the record that has the unique value also has all other given values."""
    row = await run.transaction.fetch_one(
        f'SELECT id FROM "{model.name}" WHERE "{name}" = $1', field_inputs[name].stored
    )
    record = None if row is None else await _record(run, model, str(row[0]))
    return record is not None and _is_equal(record, field_inputs)


async def _is_granted(run: Run, model: Declared, field_inputs: Mapping[str, FieldInput]) -> bool:
    """Return whether an equal record exists. This is checked for models that define rights, where a duplicate would
    have no effect."""
    names = sorted(name for name, field in model.fields.items() if name in field_inputs and field.personal is None)
    tests: list[str] = []
    values: list[Stored] = []
    for name in names:
        value = field_inputs[name].stored
        if value is not None:
            values.append(value)
        tests.append(f'"{name}" IS NULL' if value is None else f'"{name}" = ${len(values)}')
    where = " AND ".join(tests) or "1 = 0"
    return await run.transaction.fetch_one(f'SELECT 1 FROM "{model.name}" WHERE {where}', *values) is not None


async def _record(run: Run, model: Declared, record_id: str) -> StoredRecord | None:
    statement = select.lock_existing(model, None, record_id, run.engine.dialect)
    row = await run.transaction.fetch_one(statement.text, *statement.values)
    return None if row is None else record_of(model, row)


def _is_equal(record: StoredRecord, field_inputs: Mapping[str, FieldInput]) -> bool:
    return all(record.values[name] == field_input.stored for name, field_input in field_inputs.items())


async def apply_restored(run: Run, prepared_command: PreparedCommand) -> str:
    """Create the record and return its id.

    Raises:
        BadInput: a unique value is taken, or the record would give more rights than the caller has.
    """
    model = run.engine.registry.models[prepared_command.model]
    values = {name: field_input.stored for name, field_input in prepared_command.given.items()}
    await no_escalation.require_no_escalation(run, model, "", {}, values, prepared_command.id)
    record_id = await record_writer.insert(
        run, model, prepared_command.given, prepared_command.id, record_id=prepared_command.record_id, is_restored=True
    )
    await no_escalation.end_unsafe_links(run, model, record_id, values)
    return record_id


async def continue_numbers(run: Run, model: Declared, inserted_commands: Iterable[PreparedCommand]) -> None:
    """Advance the number sequences that the effects of a module use. New numbers then follow the restored numbers. For
    example, the number 2026-000012 in a unique read-only text of `invoice` advances the sequence invoice-2026 (see
    `Work.next_number`)."""
    last_by_series: dict[str, int] = {}
    for text in (text for inserted_command in inserted_commands for text in _numbers(model, inserted_command)):
        match = _NUMBER.fullmatch(text)
        if match is not None:
            series = f"{model.name}-{match[1]}"
            last_by_series[series] = max(last_by_series.get(series, 0), int(match[2]))
    for series, number in sorted(last_by_series.items()):
        await run.transaction.run(_ADVANCE_SEQUENCE, series, number + 1)


def _numbers(model: Declared, prepared_command: PreparedCommand) -> Iterator[str]:
    for name, field_input in prepared_command.given.items():
        if model.fields[name].unique and model.fields[name].readonly and isinstance(field_input.stored, str):
            yield field_input.stored


MAX_ROWS = 5_000
MAX_LINES = 20 * MAX_ROWS
MAX_COLUMNS = 1_000

_RESTORE_HINT = "an administrator imports exported records in other states, as posted invoices, with restore"
_MEMBERS = ("csv", "dry_run", "columns", "restore", *NOTATION_KEYS)


class RowError(msgspec.Struct):
    """The error of one row. Row 0 is the first row of the file, which contains the column names; row 1 is the first
    record."""

    row: int
    error: str


class ColumnUse(msgspec.Struct):
    """A column of the file: its name in the first row, and the field to which its values are written, or None if it is
    ignored."""

    header: str
    field: str | None


class ImportResult(msgspec.Struct):
    """The result of an import. If there are errors, nothing was written. `unchanged` is the number of records that
    existed already with the same values. Only a dry run sets `columns`."""

    rows: int
    created: int
    unchanged: int
    dry_run: bool
    errors: list[RowError]
    ids: list[str]
    columns: list[ColumnUse]


class _RolledBack(Exception):
    """Ends a dry run and rolls it back."""


@dataclass(frozen=True, slots=True)
class ImportTable:
    """The parsed text of an import: its columns and its rows of cells.

    `unknown` lists the names in the first row that match no field. `ids` maps each reference to a map from cells to the
    ids of the records that the cells name. `ambiguous` maps each reference to a map from ambiguous cells to the number
    of records that they name.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    unknown: Sequence[str]
    notation: Notation
    ids: Mapping[str, Mapping[str, str]]
    ambiguous: Mapping[str, Mapping[str, int]]
    is_trial: bool
    is_restoring: bool


async def import_csv(run: Run, model: str, body: Body) -> ImportResult:
    """Create a record from each row. With `dry_run`, only check the rows.

    Raises:
        BadInput: a key is unknown, the text is not CSV with known fields in its first row, or there are too many rows.
    """
    view = run.view_of(model)
    table = await read_table(run, view, body)
    result = _empty_result(table)
    try:
        async with run.writing() as write_run:
            result, _ = await check_rows(write_run, view, table, creates=True)
            if result.dry_run or result.errors:
                raise _RolledBack
    except _RolledBack:
        result.created, result.ids = 0, []
    return result


def _empty_result(table: ImportTable) -> ImportResult:
    columns = [ColumnUse(column.header, _field_name(column)) for column in table.columns] if table.is_trial else []
    errors = [RowError(0, f"no field is called {header}") for header in table.unknown]
    return ImportResult(len(table.rows), 0, 0, table.is_trial, errors, [], columns)


def _field_name(column: Column) -> str | None:
    return f"{column.name}:amount" if column.is_amount else column.name


async def check_rows(
    run: Run, view: ModelView, table: ImportTable, *, creates: bool = False
) -> tuple[ImportResult, list[PreparedCommand]]:
    """Check every row as an input of `create` or, for a restore, as an exported record. With `creates`, also create the
    records. Return the result with the errors by row, and the prepared commands.

    Raises:
        TryAgain: a row conflicts with a concurrent change.
    """
    result, prepared_commands, inserted_commands = (
        _empty_result(table),
        list[PreparedCommand](),
        list[PreparedCommand](),
    )
    async for number, row in CooperativeIterator(enumerate(table.rows, 1)):
        try:
            body = _body(view, table, row)
            if table.is_restoring:
                command = await check_restored(run, view, body)
                if command is None:
                    result.unchanged += 1
                    continue
            else:
                command = await crud.check_create(run, view, body)
            prepared_commands.append(command)
            if creates:
                result.ids.append(await _create(run, command, is_restoring=table.is_restoring))
                inserted_commands.append(command)
                result.created += 1
        except crud.WrongInitialState as refused:
            result.errors.append(RowError(number, f"{refused.detail}; {_RESTORE_HINT}"))
        except BadInput as refused:
            result.errors.append(RowError(number, refused.detail))
        except ConstraintViolation as error:
            raise TryAgain(f"row {number} conflicts with a concurrent change; try again") from error
    if table.is_restoring:
        await continue_numbers(run, view.model, inserted_commands)
    return result, prepared_commands


async def _create(run: Run, prepared_command: PreparedCommand, *, is_restoring: bool) -> str:
    # A row must not see what the hooks of earlier rows have read.
    run = replace(run, code_report=CodeReport())
    async with run.transaction.savepoint():
        return await (
            apply_restored(run, prepared_command) if is_restoring else crud.apply_create(run, prepared_command)
        )


async def read_table(run: Run, view: ModelView, body: Body) -> ImportTable:
    """Parse the text of the input and look up the records that its cells name.

    Raises:
        BadInput: a key is unknown, the text is not CSV with known fields in its first row, there are too many rows or
            columns, or the caller is an agent that may not create the records.
    """
    text, is_trial, is_restoring = _members(view.model.name, body)
    _require_rights(run, view, is_trial=is_trial, is_restoring=is_restoring)
    notation = read_notation(body)
    lines = parse_rows(text, notation.separator, max_rows=MAX_ROWS, max_lines=MAX_LINES)
    if lines and len(lines[0]) > MAX_COLUMNS:
        raise BadInput(f"csv may have {MAX_COLUMNS} columns at most")
    columns, unknown = read_head(ColumnFinder(view), lines[0] if lines else [], body.get("columns"))
    if unknown and not is_trial:
        raise unknown_field(view.model.name, unknown[0])
    columns = _columns_to_write(columns, is_restoring=is_restoring)
    if not unknown and not any(column.name for column in columns):
        raise BadInput("csv needs a first row with the names of fields")
    if len(lines) > MAX_ROWS + 1:
        raise BadInput(f"csv may have {MAX_ROWS} rows at most")
    ids, ambiguous = await _records_named_in_cells(run, columns, lines[1:])
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
        restored = "ids, states and read-only values, as of posted invoices"
        raise BadInput(f"restore keeps {restored}: only an administrator may ask for it")


def _columns_to_write(columns: Sequence[Column], *, is_restoring: bool) -> list[Column]:
    return [
        column if _is_written(column, is_restoring=is_restoring) else Column(column.header, None) for column in columns
    ]


def _is_written(column: Column, *, is_restoring: bool) -> bool:
    """Return whether the column's values are written. Values that the service computes are never written. Ids and
    read-only values are written only by a restore."""
    field = column.field
    if field is None:
        return column.name == "id" and is_restoring
    if field.computed is not None or field.sum_of is not None or isinstance(field, Structure):
        return False
    return is_restoring or not field.readonly


async def _records_named_in_cells(
    run: Run, columns: Sequence[Column], rows: Sequence[Sequence[str]]
) -> tuple[dict[str, Mapping[str, str]], dict[str, Mapping[str, int]]]:
    """Return `ids` and `ambiguous` of the table (see `ImportTable`)."""
    ids, ambiguous = dict[str, Mapping[str, str]](), dict[str, Mapping[str, int]]()
    for index, column in enumerate(columns):
        if isinstance(column.field, Ref):
            cells = {_stripped(row[index]) for row in rows if index < len(row)}
            name = column.field.name
            ids[name], ambiguous[name] = await csv_format.match_names(run, column.field, cells)
    return ids, ambiguous


def _body(view: ModelView, table: ImportTable, row: Sequence[str]) -> dict[str, object]:
    """Return the input of a row. An empty cell means no value, so a new record gets the default.

    Raises:
        BadInput: a cell cannot be read or belongs to no column.
    """
    if any(row[len(table.columns) :]):
        raise BadInput("the row has more cells than the first row has names")
    body: dict[str, object] = {}
    for column, cell in zip(table.columns, row, strict=False):
        if column.name is None:
            if cell and not column.header:
                raise BadInput("the row has a cell in a column without a name")
            continue
        value = _value(view, table, column, cell)
        if value is not None or table.is_restoring:
            body[column.name] = value
    return body


def _value(view: ModelView, table: ImportTable, column: Column, cell: str) -> object:
    name = str(column.name)
    try:
        if isinstance(column.field, Ref):
            csv_format.refuse_ambiguous(column.field, _stripped(cell), table.ambiguous[name])
        return read_cell(column, cell, table.notation, table.ids.get(name, {}))
    except BadInput as refused:
        raise BadInput(f"{view.model.name}.{name} {refused.detail}") from refused


def _stripped(cell: str) -> str:
    return unescape_formula(cell).strip()
