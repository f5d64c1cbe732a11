"""Rows of an import that keep what records had elsewhere: their ids, states and read-only values. For administrators.

A row of a record that is there already with the same values changes nothing, so that a restore can be run again. So
does one that has another id, where a unique field has the same value: every installation makes its first user, roles
and settings itself. What refers to the id in the file is refused then, since there is no such record.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from countersign.declare import Declared, Field
from countersign.declare.fields.field import Stored
from countersign.declare.fields.ref import is_record_id
from countersign.records.access.view import ModelView
from countersign.records.base_models import RULING
from countersign.records.commands import create, granting, incoming, promise, select, writing
from countersign.records.commands.given import Given
from countersign.records.commands.prepared import Prepared
from countersign.records.commands.refusals import BadInput
from countersign.records.commands.run import Body, Run
from countersign.records.commands.stored import StoredRecord, record_of

_NUMBER = re.compile("(.+)-([0-9]{1,15})", re.ASCII | re.DOTALL)
_CONTINUE = """
INSERT INTO sequence (name, next) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE
SET next = CASE WHEN sequence.next < excluded.next THEN excluded.next ELSE sequence.next END
"""


async def check(run: Run, view: ModelView, body: Body) -> Prepared | None:
    """The row read: values as they are in it, and defaults for fields without a column; None for a record that is there
    already.

    Raises:
        BadInput: a field is unknown, misses its value or does not fit; or a record has the id, and other values.
    """
    model = view.model
    record_id = _id(body.get("id"))
    values = {name: value for name, value in body.items() if name != "id"}
    given = await incoming.values(run, view, values, inputs=frozenset(values))
    if await _is_there(run, model, record_id, given):
        return None
    for name, field in model.fields.items():
        if _lacks(model, name, given):
            given |= _default(run, model, field)
        if field.required and _is_empty(name, given):
            raise BadInput(f"{model.name}.{name} is required")
    return Prepared(model.name, "import", record_id, given=given)


def _is_empty(name: str, given: Mapping[str, Given]) -> bool:
    return name not in given or given[name].stored is None


def _lacks(model: Declared, name: str, given: Mapping[str, Given]) -> bool:
    """Whether the field gets its default: it has no column, or governs the workflow and is empty."""
    if model.workflow is not None and model.workflow.field == name:
        return _is_empty(name, given)
    return name not in given


def _default(run: Run, model: Declared, field: Field) -> dict[str, Given]:
    if model.workflow is not None and model.workflow.field == field.name:
        return {field.name: Given(create.first_option(field), is_default=True)}
    return {} if field.default is None else {field.name: Given(create.default(run, field), is_default=True)}


def _id(value: object) -> str | None:
    if value is None:
        return None
    text = str(value).strip()
    if not is_record_id(text) or promise.step_of(text) is not None:
        raise BadInput("id must be 24 lower-case hexadecimal digits, as exports have it")
    return text


async def _is_there(run: Run, model: Declared, record_id: str | None, given: Mapping[str, Given]) -> bool:
    """Whether the record is there with these values.

    Raises:
        BadInput: a record has the id, and other values.
    """
    if record_id is not None:
        found = await _record(run, model, record_id)
        if found is not None and not _is_equal(found, given):
            raise BadInput(f"the {model.name} record with this id has other values")
        if found is not None:
            return True
    for name in given:
        if model.fields[name].unique and await _is_known(run, model, name, given):
            return True
    return model.name in RULING and await _is_granted(run, model, given)


async def _is_known(run: Run, model: Declared, name: str, given: Mapping[str, Given]) -> bool:
    """Whether the record that has the unique value is there with the other values too."""
    row = await run.transaction.fetch_one(f'SELECT id FROM "{model.name}" WHERE "{name}" = $1', given[name].stored)
    found = None if row is None else await _record(run, model, str(row[0]))
    return found is not None and _is_equal(found, given)


async def _is_granted(run: Run, model: Declared, given: Mapping[str, Given]) -> bool:
    """Whether there is such a grant or role of a user: a second one with the same values would say nothing more."""
    names = sorted(name for name, field in model.fields.items() if name in given and field.personal is None)
    tests: list[str] = []
    values: list[Stored] = []
    for name in names:
        value = given[name].stored
        if value is not None:
            values.append(value)
        tests.append(f'"{name}" IS NULL' if value is None else f'"{name}" = ${len(values)}')
    where = " AND ".join(tests) or "1 = 0"
    return await run.transaction.fetch_one(f'SELECT 1 FROM "{model.name}" WHERE {where}', *values) is not None


async def _record(run: Run, model: Declared, record_id: str) -> StoredRecord | None:
    statement = select.existing(model, None, record_id, run.engine.dialect)
    row = await run.transaction.fetch_one(statement.text, *statement.values)
    return None if row is None else record_of(model, row)


def _is_equal(found: StoredRecord, given: Mapping[str, Given]) -> bool:
    return all(found.values[name] == each.stored for name, each in given.items())


async def apply(run: Run, prepared: Prepared) -> str:
    """Make the record; its id.

    Raises:
        BadInput: a value that must be unique is taken, or it would give more rights than its writer has.
    """
    model = run.engine.registry.models[prepared.model]
    values = {name: each.stored for name, each in prepared.given.items()}
    await granting.require_own(run, model, "", {}, values, prepared.id)
    record_id = await writing.insert(
        run, model, prepared.given, prepared.id, record_id=prepared.record_id, is_restored=True
    )
    await granting.settle(run, model, record_id, values)
    return record_id


async def continue_numbers(run: Run, model: Declared, inserted: Iterable[Prepared]) -> None:
    """Have the series of numbers that a module's effects give go on after those that were restored: of a number
    2026-000012 in a unique read-only text of `invoice`, the series invoice-2026 (see `Work.next_number`)."""
    last: dict[str, int] = {}
    for text in (text for each in inserted for text in _numbers(model, each)):
        found = _NUMBER.fullmatch(text)
        if found is not None:
            series = f"{model.name}-{found[1]}"
            last[series] = max(last.get(series, 0), int(found[2]))
    for series, number in sorted(last.items()):
        await run.transaction.run(_CONTINUE, series, number + 1)


def _numbers(model: Declared, prepared: Prepared) -> Iterator[str]:
    for name, each in prepared.given.items():
        if model.fields[name].unique and model.fields[name].readonly and isinstance(each.stored, str):
            yield each.stored
