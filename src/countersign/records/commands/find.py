"""The command `find`: finds records by their names in all models that a caller reads."""

import asyncio

from countersign.declare import Field, Text
from countersign.declare.rules.declarations import BASE
from countersign.kernel.database.port import Row
from countersign.kernel.database.read_only import Busy
from countersign.kernel.errors import Unavailable
from countersign.records.access.people import folded
from countersign.records.access.view import ModelView
from countersign.records.commands import filters, limits, record_names, select, unmask_input
from countersign.records.commands.errors import BadInput, refuse_unknown_keys
from countersign.records.commands.filters import Condition, Parameters, Query, all_of
from countersign.records.commands.presentation import title_field
from countersign.records.commands.record_names import RecordLine
from countersign.records.commands.run import Body, Run

MAX_LENGTH = 100
MAX_SCANNED_ROWS = 50_000
"""The approximate number of rows of the largest table of an existing database that is searched."""


async def find(run: Run, model: str, body: Body) -> list[RecordLine]:
    """Return the records whose title or subtitle contains the text. Only fields that the caller reads in clear are
    searched.

    Raises:
        BadInput: the text or the limit is malformed, or the text contains a placeholder token.
    """
    text, limit = _read(body)
    unmask_input.refuse_tokens(run, text, "q")
    views = [view for view in run.caller.view.models.values() if _is_searched(run, view)]
    max_hits = min(limit, limits.MAX_HITS_OF_MODEL)
    hits_by_view = await asyncio.gather(*(_hits(run, view, text, max_hits) for view in views))
    needle = folded(text)
    lines = [line for hit in hits_by_view for line in hit]
    # Titles that begin with the text come first. The sort is stable, so the order within a model does not change
    # otherwise.
    lines.sort(key=lambda line: not folded(str(line.title or "")).startswith(needle))
    run.mentioned_models.update(line.model for line in lines[:limit])
    return lines[:limit]


def _read(body: Body) -> tuple[str, int]:
    refuse_unknown_keys(body, ("q", "limit"), "user.find")
    text, limit = body.get("q"), body.get("limit", limits.DEFAULT_HITS)
    if not isinstance(text, str) or not text.strip() or len(text) > MAX_LENGTH or "\0" in text:
        raise BadInput(f"q must be a text of 1 to {MAX_LENGTH} characters")
    if type(limit) is not int or not 1 <= limit <= limits.MAX_HITS:
        raise BadInput(f"limit must be an integer from 1 to {limits.MAX_HITS}")
    return text.strip(), limit


def _is_searched(run: Run, view: ModelView) -> bool:
    is_own = run.engine.registry.module_of[view.model.name].name == BASE and view.model.name != "user"
    is_listed = "search" in view.commands or "list" in view.commands
    return not is_own and is_listed and bool(_searched_fields(view))


def _searched_fields(view: ModelView) -> list[Field]:
    names = dict.fromkeys((title_field(view), view.model.shown_as, *view.model.subtitle_fields))
    fields = [view.model.fields[name] for name in names if name in view.fields and view.sees_in_clear(name)]
    return [field for field in fields if isinstance(field, Text) and field.is_folded]


async def _hits(run: Run, view: ModelView, text: str, limit: int) -> list[RecordLine]:
    if view.model.table is not None:
        return await _adopted_hits(run, view, text, limit)
    parameters = Parameters()
    scope = run.engine.reading(run.caller, view).scope(parameters)
    contained = [filters.compared(scope, view.model.name, field, "contains", text) for field in _searched_fields(view)]
    reach_condition = filters.any_of(scope, view.model, view.reach("search" if "search" in view.commands else "list"))
    condition = all_of([f"({' OR '.join(contained)})", reach_condition])
    statement = (
        f'SELECT t.id FROM "{view.model.name}" AS t WHERE {condition} '
        f"LIMIT {parameters.put(limit)}"
    )
    rows: list[Row] = await run.engine.records.database.scan(statement, *parameters.values)
    return await lines(run, view, [row[0] for row in rows])


async def _adopted_hits(run: Run, view: ModelView, text: str, limit: int) -> list[RecordLine]:
    """Return the hits in a table of an existing database. No index answers the search, so large tables are left out,
    and so is a table that cannot be read in time."""
    table = view.model.table
    if table is None or table.rows_about > MAX_SCANNED_ROWS:
        return []
    command = "search" if "search" in view.commands else "list"
    record_reader = record_names.narrow_reader(run, view, record_names.line_fields(view))
    ids_in_order: dict[str, None] = {}
    try:
        for field in _searched_fields(view):
            query = Query(filter=(Condition(field.name, "contains", text),), limit=limit)
            rows = await run.read_all(record_reader, select.page(record_reader, view.reach(command), query))
            ids_in_order |= dict.fromkeys(row[0] for row in rows)
        return await lines(run, view, list(ids_in_order)[:limit])
    except (Unavailable, Busy):
        return []


async def lines(run: Run, view: ModelView, record_ids: list[str]) -> list[RecordLine]:
    """Return the lines of those records that exist for the caller, in this order."""
    values = await record_names.values_of(run, view, record_ids, record_names.line_fields(view))
    return [record_names.line_of(view, values[record_id]) for record_id in record_ids if record_id in values]
