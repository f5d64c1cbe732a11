"""The commands `list`, `search` and `count_by`, and fast access to pages far down a list."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import cast

import msgspec

from countersign.declare import Field, Number
from countersign.declare.condition import Operator
from countersign.declare.fields.kinds import LARGEST
from countersign.declare.rules.declarations import BASE
from countersign.kernel import clock
from countersign.kernel.database.port import Row
from countersign.records.access.view import ModelView, Rows
from countersign.records.commands import (
    filters,
    limits,
    mask_output,
    record_names,
    select,
    sqlite_index_hints,
    unmask_input,
)
from countersign.records.commands.errors import BadInput, refuse_unknown_keys
from countersign.records.commands.filters import Parameters, Query, all_of
from countersign.records.commands.run import Body, Run
from countersign.records.commands.seek_pagination import KnownPositions, ListQuery, SeekPosition, ranges
from countersign.records.commands.select import Record, RecordReader, SelectStatement
from countersign.records.schema.checks import total_of

MIN_CACHED_OFFSET = 1_000
"""The lowest offset for which positions are cached. Below it, skipping the rows is as fast as looking up a
position."""

MAX_LISTS = 32
_AUDIT = "audit_entry"


def is_deep(run: Run, model: str, query: Query) -> bool:
    """Return whether the page is so far down the list that it is worth caching positions.

    Built-in models except the audit, and models with a table of an existing database, are excluded: they change without
    an audit entry, and only an audit entry invalidates the cached positions.
    """
    is_built_in = run.engine.registry.module_of[model].name == BASE and model != _AUDIT
    is_adopted = run.engine.registry.models[model].table is not None
    return query.offset >= MIN_CACHED_OFFSET and not is_built_in and not is_adopted


class DataChanged(Exception):
    """The data have changed since the cached positions were read."""


async def seek_page(run: Run, list_query: ListQuery, offset: int, limit: int) -> list[Row] | None:
    """Return the rows of a page. Return None if the data change meanwhile: the page must then be read in one statement.

    Raises:
        Unavailable: a read took too long. The positions found so far stay cached for the next try.
    """
    lists = run.engine.positions
    key = hashlib.blake2b(list_query.identity().encode(), digest_size=16).digest()
    known_positions = lists.pop(key, None) or KnownPositions()
    # Evict the least recently used list.
    if len(lists) >= MAX_LISTS:
        del lists[next(iter(lists))]
    lists[key] = known_positions
    try:
        return await PageSeeker(run, list_query, known_positions).page(offset, limit)
    except DataChanged:
        if lists.get(key) is known_positions:
            del lists[key]
        return None


class PageSeeker:
    """Finds pages of one list, starting at cached positions. Each method may raise `DataChanged`."""

    def __init__(self, run: Run, list_query: ListQuery, known_positions: KnownPositions) -> None:
        self._database = run.engine.records.database
        self._until_s = clock.monotonic_s() + run.engine.records.settings.read_deadline_s / 2
        self._listed = list_query
        self._known = known_positions

    async def page(self, offset: int, limit: int) -> list[Row]:
        """Return at most `limit` rows, starting at the offset."""
        position = self._known.before(offset)
        while position.offset < offset:
            rows_left = offset - position.offset
            # When time is short, skip all remaining rows in one read: half of the deadline is left for it.
            # If that is too little, the positions found so far stay cached.
            is_late = clock.monotonic_s() >= self._until_s
            next_position = await self._after(position, rows_left if is_late else min(self._known.step, rows_left))
            if next_position is None:
                return []
            if next_position.offset - position.offset == self._known.step:
                self._known.add(next_position)
            position = next_position
            # A quick read on SQLite never waits, so let other requests run between two reads.
            await asyncio.sleep(0)
        return await self._rows(position, limit)

    async def _after(self, seek_position: SeekPosition, skip: int) -> SeekPosition | None:
        """Return the position that is `skip` rows further, or None if the list ends before it."""
        rows_left = skip
        for piece in ranges(seek_position):
            ((*keys,),) = await self._read(self._listed.keys(seek_position, piece, rows_left))
            if keys[-1] is not None:
                return SeekPosition(seek_position.offset + skip, tuple(keys))
            ((count,),) = await self._read(self._listed.size(seek_position, piece, rows_left))
            rows_left -= count
        return None

    async def _rows(self, seek_position: SeekPosition, limit: int) -> list[Row]:
        found_rows: list[Row] = []
        for piece in ranges(seek_position):
            rows = await self._read(self._listed.page(seek_position, piece, limit - len(found_rows)))
            found_rows += [row for row in rows if row[0] is not None]
            if len(found_rows) >= limit:
                break
        return found_rows

    async def _read(self, select_statement: SelectStatement) -> list[Row]:
        rows = await self._database.scan(select_statement.text, *select_statement.values)
        if not self._known.holds(int(rows[0][0])):
            raise DataChanged
        return [row[1:] for row in rows]


class Sum(msgspec.Struct):
    """The sum of the values of a field over all matching records, and the number of records with a value. The sum is
    None if it lies outside ±(2^53 - 1)."""

    sum: int | None
    count: int


class SearchResult(msgspec.Struct):
    """A page of a search and how many records match before limit and offset. `sums` and `names` are there if the input
    asked for them."""

    rows: list[Record]
    total: int
    sums: dict[str, Sum] | msgspec.UnsetType = msgspec.UNSET
    names: record_names.Names | msgspec.UnsetType = msgspec.UNSET


def read_query(run: Run, model: str, command: str, body: Body) -> Query:
    """Return the query of an input. All checks that do not need the database are done.

    Raises:
        BadInput: the query is malformed or contains a placeholder token.
    """
    query = filters.read(body, f"{model}.{command}")
    for condition in query.filter:
        refuse_tokens(run, model, condition.field, condition.operator, condition.value)
    return query


def refuse_tokens(run: Run, model: str, field: str, operator: Operator, value: object) -> None:
    """Refuse placeholder tokens in filters. Filters apply to fields that the caller reads in clear, so a token in a
    filter is either a mistake or an attempt to test a guess.

    Raises:
        BadInput: the value contains a placeholder token.
    """
    values: list[object] = cast("list[object]", value) if isinstance(value, list) else [value]
    for member in values:
        if isinstance(member, str):
            unmask_input.refuse_tokens(run, member, f"a filter on {model}.{field}")


def statement(run: Run, model: str, query: Query, command: str = "list") -> select.SelectStatement:
    """Return the SQL statement of a query.

    Raises:
        BadInput: a condition or an order key is refused.
    """
    view = run.view_of(model)
    return select.page(run.engine.reading(run.caller, view), view.reach(command), query)


async def records(run: Run, model: str, body: Body, command: str = "list") -> list[Record]:
    """Return the records of one page, all in memory; `stream` yields them in batches.

    Raises:
        BadInput: the query is refused.
    """
    view = run.view_of(model)
    query = await sqlite_index_hints.with_index_hints(run, view, read_query(run, model, command, body))
    record_reader = run.engine.reading(run.caller, view)
    rows, length = None, None
    if query.limit is not None and is_deep(run, model, query):
        list_query = ListQuery(record_reader, view.reach(command), query)
        rows = await seek_page(run, list_query, query.offset, query.limit)
    if rows is None:
        rows, length = await _rows(run, record_reader, query, statement(run, model, query, command))
    return await mask_output.masked_records(run, record_reader, rows, length)


async def _rows(
    run: Run, record_reader: RecordReader, query: Query, select_statement: select.SelectStatement, start: int = 0
) -> tuple[list[Row], int | None]:
    """Return the rows of a page, all in memory, and the number of characters of their texts, or None if no field is
    long. In each row the record's columns begin at `start`.

    Raises:
        BadInput: the rows contain too much text.
    """
    if not record_reader.has_long_texts:
        return await run.scan(record_reader, select_statement, start), None
    if query.limit is not None and query.limit <= record_reader.short_page:
        rows = await run.scan(record_reader, select_statement, start)
        length = record_reader.length(rows, start)
        limits.require_page_size(length)
        return rows, length
    found_rows: list[Row] = []
    length = 0
    async with aclosing(run.stream(record_reader, select_statement, start)) as pieces:
        async for rows in pieces:
            found_rows += rows
            length += record_reader.length(rows, start)
            limits.require_page_size(length)
    return found_rows, length


async def stream(run: Run, model: str, query: Query, command: str = "list") -> AsyncGenerator[list[Record]]:
    """Yield all records of a query in batches, in constant memory. A caller that may stop early must use
    `contextlib.aclosing`."""
    select_statement = statement(run, model, query, command)
    record_reader = run.engine.reading(run.caller, run.view_of(model))
    async with aclosing(run.stream(record_reader, select_statement)) as row_batches:
        async for rows in row_batches:
            yield await mask_output.masked_records(run, record_reader, rows)


async def search(run: Run, model: str, body: Body, command: str = "search") -> SearchResult:
    """Return the records of a query and the total number of matching records; with `sums`, the sums of numbers over all
    of them; with `expand`, the names of the records that the page refers to.

    Raises:
        BadInput: the query is refused, or a field cannot be summed or expanded.
    """
    view = run.view_of(model)
    refuse_unknown_keys(body, (*filters.MEMBERS, "sums", "expand"), f"{model}.search")
    summed = tuple(_summed_field(view, name) for name in record_names.read_fields(body, "sums", limits.MAX_SUMS))
    refs = record_names.read_refs(view, body)
    search_query = read_query(run, model, "search", {name: body[name] for name in filters.MEMBERS if name in body})
    query = await sqlite_index_hints.with_index_hints(run, view, search_query)
    record_reader = run.engine.reading(run.caller, view)
    select_statement = select.page_with_total(record_reader, view.reach(command), query, summed)
    first_column = 1 + 3 * len(summed)
    rows, length = await _rows(run, record_reader, query, select_statement, first_column)
    records = await mask_output.masked_records(
        run, record_reader, [row[first_column:] for row in rows if row[first_column] is not None], length
    )
    result = SearchResult(records, int(rows[0][0]))
    if "sums" in body:
        result.sums = {
            summed_field.name: _sum(*rows[0][1 + 3 * n : 4 + 3 * n]) for n, summed_field in enumerate(summed)
        }
    if "expand" in body:
        result.names = await record_names.names_of_refs(
            run, refs, record_reader.members(records, [ref.name for ref in refs])
        )
    return result


def _sum(high_half: int, low_half: int, count: int) -> Sum:
    total = total_of(high_half, low_half)
    return Sum(total if abs(total) <= LARGEST else None, count)


def _summed_field(view: ModelView, name: str) -> Field:
    field = filters.clear_field(view, name)
    if not isinstance(field, Number):
        raise BadInput(f"{view.model.name}.{name} cannot be summed: its kind must be number or money")
    return field


class Group(msgspec.Struct):
    """One value (null for empty) and how many records have it."""

    value: object
    count: int


async def count_by(run: Run, model: str, body: Body) -> list[Group]:
    """Return the groups in the order of the field, with the empty value last.

    Raises:
        BadInput: the caller cannot read the field in clear, records cannot be grouped by a field of its kind, or the
            filter is refused.
    """
    view = run.view_of(model)
    query_members: Mapping[str, object] = {name: value for name, value in body.items() if name != "field"}
    refuse_unknown_keys(body, ("field", "filter"), f"{model}.count_by")
    name = body.get("field")
    if not isinstance(name, str):
        raise BadInput(f"{model}.count_by needs field, a string")
    field = filters.clear_field(view, name)
    if not field.is_countable:
        known_kinds = ", ".join(name for name, kind in run.engine.registry.kinds.items() if kind.is_countable)
        raise BadInput(f"{model}.{name} cannot be grouped by: its kind must be one of {known_kinds}")
    query = read_query(run, model, "count_by", query_members)
    record_reader = run.engine.reading(run.caller, view)
    statement = _count_statement(record_reader, view.reach("count_by"), name, query)
    rows = await run.groups(record_reader, statement)
    if len(rows) > limits.MAX_GROUPS:
        raise BadInput(f"{model}.{name} has more than {limits.MAX_GROUPS} different values")
    return [Group(value, count) for value, count in record_reader.groups(field, rows)]


def _count_statement(
    record_reader: RecordReader, rows: Rows, name: str, query: filters.Query
) -> select.SelectStatement:
    parameters = Parameters()
    scope = record_reader.scope(parameters)
    field = record_reader.view.model.fields[name]
    value = scope.group_of(field)
    clauses = [*filters.filter_clauses(scope, record_reader.view, query.filter)]
    clauses.append(filters.any_of(scope, record_reader.view.model, rows))
    text = (
        f"SELECT g.value, g.count FROM (SELECT {value} AS value, count(*) AS count "
        f"FROM {record_reader.relation} AS t "
        f"WHERE {all_of(clauses)} GROUP BY 1) AS g ORDER BY {field.ordered('g.value')} NULLS LAST "
        f"LIMIT {limits.MAX_GROUPS + 1}"
    )
    return select.SelectStatement(text, parameters.values)
