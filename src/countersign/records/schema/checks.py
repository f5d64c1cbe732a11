"""Checks of stored rows before an upgrade of the schema, and SQL sums that do not overflow on either database."""

from dataclasses import replace
from decimal import Decimal

from countersign.declare import CALLER, TODAY, BadValue, Field, Ref, Select
from countersign.declare.condition import AGENT
from countersign.declare.fields.field import Stored
from countersign.declare.registry import Registry
from countersign.kernel import clock
from countersign.kernel.database.port import Reader
from countersign.records.schema.snapshot import RowTask, Step, Unique

_HALF_DIVISOR = 1 << 32


def sum_columns(expression: str) -> tuple[str, str]:
    """Return two SQL columns: the sum of the high halves of the values and the sum of their low halves. `total_of`
    computes the total from them, so that no sum overflows in the database."""
    return f"coalesce(sum({expression} / {_HALF_DIVISOR}), 0)", f"coalesce(sum({expression} % {_HALF_DIVISOR}), 0)"


def total_of(high_half: int | Decimal, low_half: int | Decimal) -> int:
    """Return the total from the two sums of `sum_columns`. PostgreSQL returns sums as decimals."""
    return int(high_half) * _HALF_DIVISOR + int(low_half)


_MAX_EXAMPLES = 3


def value_for_existing(registry: Registry, table: str, name: str) -> Stored:
    """Return the value that existing records get in an empty required field: the initial state of the workflow, or else
    the default of the field. Return None if the declaration has no suitable value."""
    model = registry.models[table]
    field = model.fields[name]
    if model.workflow is not None and model.workflow.field == name and isinstance(field, Select):
        return field.options[0]
    return _default(field)


def _default(field: Field) -> Stored:
    if field.default in (None, AGENT, CALLER):
        return None
    try:
        return field.read(clock.rfc3339(clock.now())[:10] if field.default is TODAY else field.default)
    except BadValue as error:
        raise LookupError(f"the default of {field.name} does not fit; a check should have refused it before") from error


async def without_mark_if_harmless(reader: Reader, step: Step) -> Step:
    """Return the step. If it deletes values of a table without rows, or removes options that no row has, mark it as not
    destructive."""
    return step if await _loses_data(reader, step) else replace(step, is_destructive=False)


async def _loses_data(reader: Reader, step: Step) -> bool:
    row_task = step.row_task
    if not step.is_destructive or await reader.fetch_one(f'SELECT 1 FROM "{step.loses_from}" LIMIT 1') is None:
        return False
    return row_task is None or row_task.kind != "options" or bool(await _removed_option_count_text(reader, row_task))


async def obstacle(reader: Reader, registry: Registry, step: Step, *, earlier_steps_pending: bool) -> str | None:
    """Return the reason why the step cannot be taken, with the remedy. Return None if the step can be taken.

    If `earlier_steps_pending` is true, the earlier steps of the upgrade have not run, so the columns that they add do
    not exist yet.
    """
    if step.unique is not None and (step.unique.column_exists or not earlier_steps_pending):
        return await _duplicate_obstacle(reader, step.unique)
    row_task = step.row_task
    if row_task is None or row_task.kind not in ("default", "options"):
        return None
    if value_for_existing(registry, row_task.table, row_task.field) is not None:
        return None
    if row_task.kind == "default":
        has_column = row_task.column_exists or not earlier_steps_pending
        return await _empty_obstacle(reader, registry, row_task, has_column=has_column)
    return await _options_obstacle(reader, registry, row_task)


async def _options_obstacle(reader: Reader, registry: Registry, row_task: RowTask) -> str | None:
    if not registry.models[row_task.table].fields[row_task.field].required:
        return None
    count_text = await _removed_option_count_text(reader, row_task)
    if not count_text:
        return None
    return (
        f"{row_task.table}.{row_task.field} is required, and options that the upgrade removes "
        f"({', '.join(row_task.options)}) are still used in {count_text}: give these records another option first, or "
        "give the field a default"
    )


async def _removed_option_count_text(reader: Reader, row_task: RowTask) -> str:
    """Return how many records have a removed option, as a text such as "3 records". Return "" if there are none."""
    placeholders = ", ".join(f"${number}" for number in range(1, len(row_task.options) + 1))
    text = f'SELECT count(*) FROM "{row_task.table}" WHERE "{row_task.field}" IN ({placeholders})'
    row = await reader.fetch_one(text, *row_task.options)
    return _records_text(0 if row is None else row[0])


async def _empty_obstacle(reader: Reader, registry: Registry, row_task: RowTask, *, has_column: bool) -> str | None:
    where_empty = f' WHERE "{row_task.field}" IS NULL' if has_column else ""
    row = await reader.fetch_one(f'SELECT count(*) FROM "{row_task.table}"{where_empty}')
    count_text = _records_text(0 if row is None else row[0])
    if not count_text:
        return None
    field = registry.models[row_task.table].fields[row_task.field]
    remedy = "make it optional" if isinstance(field, Ref) else "give it a default, or make it optional"
    return f"{row_task.table}.{row_task.field} is required and {count_text} would be without it: {remedy}"


async def _duplicate_obstacle(reader: Reader, unique: Unique) -> str | None:
    """Return an error that names records with equal values. It does not contain the value, which may be personal."""
    table, column = f'"{unique.table}"', f'"{unique.column}"'
    text = f"SELECT {column} FROM {table} WHERE {column} IS NOT NULL GROUP BY {column} HAVING count(*) > 1 LIMIT 1"
    row = await reader.fetch_one(text)
    if row is None:
        return None
    text = f"SELECT id FROM {table} WHERE {column} = $1 ORDER BY id LIMIT {_MAX_EXAMPLES}"
    examples = ", ".join(example_row[0] for example_row in await reader.fetch(text, row[0]))
    return (
        f"{unique.table}.{unique.column} is to be unique, and several records, for example {examples}, have the same "
        "value: change all but one of them, or remove the option `unique`"
    )


def _records_text(count: int) -> str:
    return "" if not count else "1 record" if count == 1 else f"{count} records"
