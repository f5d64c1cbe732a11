"""The command `import`: many new records from CSV text, all of them or none, with an error for each bad row."""

import csv
import io
import re
from collections.abc import Mapping

import msgspec

from countersign.declare import Field
from countersign.declare.fields.text import LONGEST_LONGTEXT
from countersign.kernel.database.errors import ConstraintViolation
from countersign.kernel.turns import Turns
from countersign.records.access.view import ModelView
from countersign.records.commands import create
from countersign.records.commands.prepared import Prepared
from countersign.records.commands.refusals import BadInput, TryAgain, unknown_field
from countersign.records.commands.run import Body, Run

MOST_ROWS = 5_000
MOST_LINES = 20 * MOST_ROWS

MAX_FIELD_LENGTH = LONGEST_LONGTEXT
# Of the whole process; the fields of the models have limits of their own.
csv.field_size_limit(MAX_FIELD_LENGTH)

_WHOLE = re.compile("-?[0-9]{1,18}")


class RowError(msgspec.Struct):
    """What is wrong with one row (the first after the head is 1)."""

    row: int
    error: str


class Imported(msgspec.Struct):
    """What an import did; with errors, nothing."""

    rows: int
    created: int
    dry_run: bool
    errors: list[RowError]
    ids: list[str]


class _Undone(Exception):
    """Ends a trial: what was written is taken back."""


async def import_(run: Run, model: str, body: Body) -> Imported:
    """Make a record of each row, or with `dry_run` find out whether that could be done.

    Raises:
        BadInput: an unknown key; the text is no CSV with a head of known fields; there are too many rows.
    """
    view = run.view_of(model)
    done = Imported(0, 0, False, [], [])
    try:
        async with run.writing() as inside:
            done, _ = await check(inside, view, body, makes=True)
            if done.dry_run or done.errors:
                raise _Undone
    except _Undone:
        done.created, done.ids = 0, []
    return done


async def check(run: Run, view: ModelView, body: Body, *, makes: bool = False) -> tuple[Imported, list[Prepared]]:
    """Every row read as an input of create, and with `makes` the record made; errors by row.

    Raises:
        BadInput: as `import_`; or an agent may not create what the plan would.
        TryAgain: a row conflicts with a concurrent change.
    """
    text, is_trial = _read(view, body)
    if run.caller.is_agent and not is_trial and "create" not in view.commands:
        model = view.model.name
        raise BadInput(f"{model}.import needs the scope {model}.create too: that is what each row is in the plan")
    rows = _rows(view, text)
    done = Imported(len(rows), 0, is_trial, [], [])
    prepared: list[Prepared] = []
    async for number, row in Turns(enumerate(rows, 1)):
        try:
            prepared.append(await create.check(run, view, row))
            if makes:
                done.ids.append(await _made(run, prepared[-1]))
                done.created += 1
        except BadInput as refused:
            done.errors.append(RowError(number, refused.detail))
        except ConstraintViolation as error:
            raise TryAgain(f"row {number} conflicts with a concurrent change; try again") from error
    return done, prepared


def _read(view: ModelView, body: Body) -> tuple[str, bool]:
    for name in body:
        if name not in ("csv", "dry_run"):
            raise BadInput(f"unknown key {name} in {view.model.name}.import")
    text, is_trial = body.get("csv"), body.get("dry_run", False)
    if not isinstance(text, str) or not isinstance(is_trial, bool):
        raise BadInput(f"{view.model.name}.import needs csv, a string, and takes dry_run, true or false")
    return text, is_trial


async def _made(run: Run, prepared: Prepared) -> str:
    async with run.transaction.savepoint():
        return await create.apply(run, prepared)


def _rows(view: ModelView, text: str) -> list[dict[str, object]]:
    table = _table(text)
    if not table:
        raise BadInput("csv needs a first row with the names of fields")
    head, *rows = table
    fields: list[Field] = []
    for name in head:
        if name not in view.fields:
            raise unknown_field(view.model.name, name)
        fields.append(view.model.fields[name])
    if len(set(head)) != len(head):
        raise BadInput("csv names a field twice in its first row")
    if len(rows) > MOST_ROWS:
        raise BadInput(f"csv may have {MOST_ROWS} rows at most")
    return [dict(_cells(fields, row)) for row in rows]


def _table(text: str) -> list[list[str]]:
    """The rows that are not empty, the first with the names; no more are read than it takes to see that there are too
    many."""
    table: list[list[str]] = []
    lines = 0
    try:
        for lines, row in enumerate(csv.reader(io.StringIO(text), strict=True)):
            if row:
                table.append(row)
            if len(table) > MOST_ROWS + 1 or lines > MOST_LINES:
                break
    except csv.Error as error:
        reason = (
            f"csv cannot be read after row {len(table)}: it must be RFC 4180, with every quoted field closed, a comma "
            f"or a line break after it, and at most {MAX_FIELD_LENGTH:,} characters in a field"
        )
        raise BadInput(reason) from error
    if len(table) <= MOST_ROWS and lines > MOST_LINES:
        raise BadInput(f"csv may have {MOST_LINES} lines at most, empty ones included")
    return table


def _cells(fields: list[Field], row: list[str]) -> Mapping[str, object]:
    return {
        field.name: _value(field, cell) for field, cell in zip(fields, row, strict=False) if cell != ""
    } | ({"": row[len(fields)]} if len(row) > len(fields) else {})


def _value(field: Field, cell: str) -> object:
    """The JSON value a cell stands for; what does not fit is left as text for the field to refuse."""
    if field.column == "BIGINT" and _WHOLE.fullmatch(cell):
        return int(cell)
    return {"true": True, "false": False}.get(cell, cell) if field.kind == "bool" else cell
