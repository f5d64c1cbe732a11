"""The command `count_by`: how many of the caller's records have each value of a select, ref, bool or date field."""

from collections.abc import Mapping

import msgspec

from countersign.records.access.view import Rows
from countersign.records.commands import conditions, listing, query, select
from countersign.records.commands.reading import Reading
from countersign.records.commands.refusals import BadInput, refuse_unknown_keys
from countersign.records.commands.run import Body, Run
from countersign.records.commands.sql import Parameters, all_of

KINDS = ("select", "ref", "bool", "date")
MAX_GROUPS = 10_000


class Group(msgspec.Struct):
    """One value (null for empty) and how many records have it."""

    value: object
    count: int


async def count_by(run: Run, model: str, body: Body) -> list[Group]:
    """The groups in the field's order, the empty value last.

    Raises:
        BadInput: the field is none the caller reads in clear, or of another kind; or the filter is refused.
    """
    view = run.view_of(model)
    rest: Mapping[str, object] = {name: value for name, value in body.items() if name != "field"}
    refuse_unknown_keys(body, ("field", "filter"), f"{model}.count_by")
    name = body.get("field")
    if not isinstance(name, str):
        raise BadInput(f"{model}.count_by needs field, a string")
    field = conditions.clear_field(view, name)
    if field.kind not in KINDS:
        raise BadInput(f"{model}.{name} cannot be counted by: its kind must be one of {', '.join(KINDS)}")
    asked = listing.read(run, model, "count_by", rest)
    reading = run.engine.reading(run.caller, view)
    statement = _statement(reading, view.reach("count_by"), name, asked)
    rows = await run.engine.records.database.scan(statement.text, *statement.values)
    if len(rows) > MAX_GROUPS:
        raise BadInput(f"{model}.{name} has more than {MAX_GROUPS} different values")
    return [Group(None if value is None else field.show(value), count) for value, count in rows]


def _statement(reading: Reading, rows: Rows, name: str, asked: query.Query) -> select.Statement:
    parameters = Parameters()
    scope = reading.scope(parameters)
    field = reading.view.model.fields[name]
    value = scope.value_of(field)
    found = [*conditions.filtered(scope, reading.view, asked.filter)]
    found.append(conditions.any_of(scope, reading.view.model, rows))
    text = (
        f'SELECT g.value, g.count FROM (SELECT {value} AS value, count(*) AS count FROM "{reading.view.model.name}" '
        f"AS t WHERE {all_of(found)} GROUP BY 1) AS g ORDER BY {field.ordered('g.value')} NULLS LAST "
        f"LIMIT {MAX_GROUPS + 1}"
    )
    return select.Statement(text, parameters.values)
