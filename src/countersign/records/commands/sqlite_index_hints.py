"""Index hints for pages on SQLite, whose planner ignores the limit.

For a filter that matches very many records, SQLite uses the filter's index and sorts all matches for one page. Scanning
the index of the order is faster, since matches are frequent. So the matches of a filter are counted, up to a few
thousand, and its index is not used if there are that many. PostgreSQL's planner does this itself.
"""

import hashlib
from dataclasses import replace

from countersign.records.access.view import ModelView
from countersign.records.commands import queries
from countersign.records.commands.queries import Condition, Parameters, Query
from countersign.records.commands.run import Run

MANY_ROWS = 2_000
CACHED_CALLS = 200
"""The number of calls for which a count of many matches is reused: such counts seldom drop."""

MAX_KNOWN = 10_000
_BY_INDEX = frozenset({"eq", "in", "gt", "gte", "lt", "lte"})


async def with_index_hints(run: Run, view: ModelView, query: Query) -> Query:
    """The query, with `scattered` set to the filters that should not use their index."""
    if run.engine.dialect != "sqlite" or not _is_ordered_page(view, query):
        return query
    candidates = [each for each in query.filter if each.field != query.order[0].field and _is_by_index(view, each)]
    for each in candidates:
        if not await _matches_many(run, view, each):
            return query
    return replace(query, scattered=frozenset(each.field for each in candidates))


def _is_ordered_page(view: ModelView, query: Query) -> bool:
    """Whether an index other than that of the id provides the order of the page."""
    if query.limit is None or not query.order:
        return False
    first = view.model.fields.get(query.order[0].field)
    return first is not None and first.index


def _is_by_index(view: ModelView, condition: Condition) -> bool:
    field = view.model.fields.get(condition.field)
    return field is not None and field.index and condition.operator in _BY_INDEX


async def _matches_many(run: Run, view: ModelView, condition: Condition) -> bool:
    parameters = Parameters()
    scope = queries.Scope(run.engine.dialect, parameters, "t", run.caller.view)
    (where,) = queries.filter_clauses(scope, view, [condition])
    limit = parameters.put(MANY_ROWS)
    text = f'SELECT count(*) FROM (SELECT 1 FROM "{view.model.name}" AS t WHERE {where} LIMIT {limit})'
    # A filter may be megabytes long, and there may be many of them.
    known = run.engine.frequent_filters
    key = hashlib.blake2b(repr((text, parameters.values)).encode(), digest_size=16).digest()
    if known.get(key):
        known[key] -= 1
        return True
    row = await run.reader.fetch_one(text, *parameters.values)
    are_many = row is not None and bool(row[0] >= MANY_ROWS)
    if are_many:
        if len(known) >= MAX_KNOWN:
            known.clear()
        known[key] = CACHED_CALLS
    return are_many
