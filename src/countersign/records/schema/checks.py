"""Checks of stored rows before an upgrade of the schema, and SQL sums that do not overflow on either database."""

from dataclasses import replace
from decimal import Decimal

from countersign.declare import CALLER, TODAY, BadValue, Field, Ref, Select
from countersign.declare.fields.field import Stored
from countersign.declare.registry import Registry
from countersign.kernel import clock
from countersign.kernel.database.port import Reader
from countersign.records.schema.snapshot import RowTask, Step, Unique

_LOW_HALF = 1 << 32


def sum_columns(expression: str) -> tuple[str, str]:
    """Return the two SQL columns from which `total_of` computes the total."""
    return f"coalesce(sum({expression} / {_LOW_HALF}), 0)", f"coalesce(sum({expression} % {_LOW_HALF}), 0)"


def total_of(high_half: int | Decimal, low_half: int | Decimal) -> int:
    """Return the total of the two sums. PostgreSQL returns sums as decimals."""
    return int(high_half) * _LOW_HALF + int(low_half)


_MAX_EXAMPLES = 3


def substitute(registry: Registry, table: str, name: str) -> Stored:
    """Return the value that existing records get in an empty required field: the initial state of the workflow, or else
    the default of the field. Return None if the declaration has no suitable value."""
    model = registry.models[table]
    field = model.fields[name]
    if model.workflow is not None and model.workflow.field == name and isinstance(field, Select):
        return field.options[0]
    return _default(field)


def _default(field: Field) -> Stored:
    if field.default is None or field.default is CALLER:
        return None
    try:
        return field.read(clock.rfc3339(clock.now())[:10] if field.default is TODAY else field.default)
    except BadValue as error:
        raise LookupError(f"the default of {field.name} does not fit; a check should have refused it before") from error


async def examine(reader: Reader, step: Step) -> Step:
    """Return the step, marked as not destructive if it removes options that no row has."""
    work = step.work
    if work is None or work.kind != "options" or await _records_with_removed_option(reader, work):
        return step
    return replace(step, is_destructive=False)


async def obstacle(reader: Reader, registry: Registry, step: Step, *, is_planned: bool) -> str | None:
    """Return the reason why the step cannot be taken, with the remedy. Return None if the step can be taken.

    `is_planned` is true if the previous steps are not done yet. Columns that they add cannot be queried then.
    """
    if step.unique is not None and (step.unique.is_there or not is_planned):
        return await _duplicate_obstacle(reader, step.unique)
    work = step.work
    if work is None or work.kind not in ("default", "options"):
        return None
    if substitute(registry, work.table, work.field) is not None:
        return None
    if work.kind == "default":
        return await _empty_obstacle(reader, registry, work, has_column=work.is_there or not is_planned)
    return await _options_obstacle(reader, registry, work)


async def _options_obstacle(reader: Reader, registry: Registry, work: RowTask) -> str | None:
    if not registry.models[work.table].fields[work.field].required:
        return None
    holders = await _records_with_removed_option(reader, work)
    if not holders:
        return None
    return (
        f"{work.table}.{work.field} is required and loses the options {', '.join(work.options)}, still used in "
        f"{holders}: give these records another option first, or give the field a default"
    )


async def _records_with_removed_option(reader: Reader, work: RowTask) -> str:
    """Return the number of records with a removed option, such as "3 records", or an empty text if there are none."""
    places = ", ".join(f"${number}" for number in range(1, len(work.options) + 1))
    text = f'SELECT count(*) FROM "{work.table}" WHERE "{work.field}" IN ({places})'
    row = await reader.fetch_one(text, *work.options)
    return _records(0 if row is None else row[0])


async def _empty_obstacle(reader: Reader, registry: Registry, work: RowTask, *, has_column: bool) -> str | None:
    empty = f' WHERE "{work.field}" IS NULL' if has_column else ""
    row = await reader.fetch_one(f'SELECT count(*) FROM "{work.table}"{empty}')
    lacking = _records(0 if row is None else row[0])
    if not lacking:
        return None
    field = registry.models[work.table].fields[work.field]
    remedy = "make it optional" if isinstance(field, Ref) else "give it a default, or make it optional"
    return f"{work.table}.{work.field} is required and {lacking} would be without it: {remedy}"


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
        "value: change all but one of them, or remove unique"
    )


def _records(count: int) -> str:
    return "" if not count else "1 record" if count == 1 else f"{count} records"
