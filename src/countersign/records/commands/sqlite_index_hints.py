"""Finds index hints for pages on SQLite, because the planner of SQLite ignores the limit.

For a filter that matches very many records, SQLite uses the index of the filtered field and sorts all matches for one
page. Scanning the index that provides the order is faster, because it meets matching records often. The module
therefore counts the matches of a filter up to `MANY_ROWS`. If there are so many, the statement does not use the index
of the filtered field. PostgreSQL's planner decides this itself.
"""

import hashlib
from dataclasses import replace

from countersign.records.access.view import ModelView
from countersign.records.commands import filters
from countersign.records.commands.filters import Condition, Parameters, Query
from countersign.records.commands.run import Run

MANY_ROWS = 2_000
CACHED_CALLS = 200
"""The number of calls for which the result "many matches" is reused. The number of matches seldom becomes small
again."""

MAX_KNOWN = 10_000
_INDEXED_OPERATORS = frozenset({"eq", "in", "gt", "gte", "lt", "lte"})


async def with_index_hints(run: Run, view: ModelView, query: Query) -> Query:
    """Return the query with `scattered` set to the filtered fields whose index the statement should not use."""
    if run.engine.dialect != "sqlite" or view.model.table is not None or not _is_ordered_page(view, query):
        return query
    candidates = [
        condition
        for condition in query.filter
        if condition.field != query.order[0].field and _uses_index(view, condition)
    ]
    for candidate in candidates:
        if not await _matches_many(run, view, candidate):
            return query
    return replace(query, scattered=frozenset(candidate.field for candidate in candidates))


def _is_ordered_page(view: ModelView, query: Query) -> bool:
    """Return whether an index other than the index of the id provides the order of the page."""
    if query.limit is None or not query.order:
        return False
    first_field = view.model.fields.get(query.order[0].field)
    return first_field is not None and first_field.index


def _uses_index(view: ModelView, condition: Condition) -> bool:
    field = view.model.fields.get(condition.field)
    return field is not None and field.index and condition.operator in _INDEXED_OPERATORS


async def _matches_many(run: Run, view: ModelView, condition: Condition) -> bool:
    parameters = Parameters()
    scope = filters.Scope(run.engine.dialect, parameters, "t", run.caller.view)
    (condition_text,) = filters.filter_clauses(scope, view, [condition])
    limit = parameters.put(MANY_ROWS)
    text = f'SELECT count(*) FROM (SELECT 1 FROM "{view.model.name}" AS t WHERE {condition_text} LIMIT {limit})'
    # Use a digest as the key, because the cache may contain many filters, each megabytes long.
    frequent = run.engine.frequent_filters
    key = hashlib.blake2b(repr((text, parameters.values)).encode(), digest_size=16).digest()
    if frequent.get(key):
        frequent[key] -= 1
        return True
    row = await run.reader.fetch_one(text, *parameters.values)
    are_many = row is not None and bool(row[0] >= MANY_ROWS)
    if are_many:
        if len(frequent) >= MAX_KNOWN:
            frequent.clear()
        frequent[key] = CACHED_CALLS
    return are_many
