"""The commands `list` and `search`: the caller's records by condition, in order, whole or page by page."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import cast

import msgspec

from countersign.declare.where import Operator
from countersign.kernel.database import port
from countersign.kernel.database.port import Row
from countersign.records.commands import incoming, jumping, outgoing, planning, query, select
from countersign.records.commands.places import Listed
from countersign.records.commands.query import Query
from countersign.records.commands.reading import Reading, Record
from countersign.records.commands.refusals import BadInput
from countersign.records.commands.run import Body, Run

SHORT_PAGE = 100
"""So many records are read in one go; more are read piece by piece, and no further than they may be long."""
MAX_PAGE_BYTES = 16 << 20
"""Bytes of text in the records of a page; a list without limit is streamed, and may be of any length."""


class Found(msgspec.Struct):
    """A page of a search and how many records match before limit and offset."""

    rows: list[Record]
    total: int


def read(run: Run, model: str, command: str, body: Body) -> Query:
    """The query of an input, checked as far as it can be without the database.

    Raises:
        BadInput: it is malformed, or a placeholder token stands in it.
    """
    asked = query.read(body, f"{model}.{command}")
    for condition in asked.filter:
        refuse_tokens(run, model, condition.field, condition.operator, condition.value)
    return asked


def refuse_tokens(run: Run, model: str, field: str, operator: Operator, value: object) -> None:
    """Filters are on fields read in clear: a token there would be an oracle, or a mistake.

    Raises:
        BadInput: one stands there.
    """
    values: list[object] = cast("list[object]", value) if isinstance(value, list) else [value]
    for each in values:
        if isinstance(each, str):
            incoming.refuse_tokens(run, each, f"a filter on {model}.{field}")


def statement(run: Run, model: str, asked: Query, command: str = "list") -> select.Statement:
    """The statement of a query.

    Raises:
        BadInput: a condition or a key is refused.
    """
    view = run.view_of(model)
    return select.page(run.engine.reading(run.caller, view), view.reach(command), asked)


async def records(run: Run, model: str, body: Body, command: str = "list") -> list[Record]:
    """The records of a query with a limit.

    Raises:
        BadInput: the query is refused.
    """
    view = run.view_of(model)
    asked = await planning.planned(run, view, read(run, model, command, body))
    reading = run.engine.reading(run.caller, view)
    rows = None
    if asked.limit is not None and jumping.is_far(run, model, asked):
        listed = Listed(reading, view.reach(command), asked)
        rows = await jumping.page(run, listed, asked.offset, asked.limit)
    if rows is None:
        rows = await _rows(run, reading, asked, statement(run, model, asked, command))
    return await outgoing.records(run, reading, rows)


async def _rows(run: Run, reading: Reading, asked: Query, made: select.Statement) -> list[Row]:
    """The rows of a page, which are all in memory at once.

    Raises:
        BadInput: their texts are too long together.
    """
    database = run.engine.records.database
    if not reading.has_long_texts:
        return await database.scan(made.text, *made.values)
    if asked.limit is not None and asked.limit <= SHORT_PAGE:
        rows = await database.scan(made.text, *made.values)
        _require_short(sum(map(port.length, rows)))
        return rows
    found: list[Row] = []
    size = 0
    async with aclosing(database.stream(made.text, *made.values)) as pieces:
        async for rows in pieces:
            found += rows
            size += sum(map(port.length, rows))
            _require_short(size)
    return found


def _require_short(size: int) -> None:
    if size > MAX_PAGE_BYTES:
        raise BadInput(f"the records are longer than {MAX_PAGE_BYTES >> 20} MiB together: give a smaller limit")


async def stream(run: Run, model: str, asked: Query, command: str = "list") -> AsyncGenerator[list[Record]]:
    """All records of a query in batches, in constant memory; to be left early only inside `contextlib.aclosing`."""
    made = statement(run, model, asked, command)
    reading = run.engine.reading(run.caller, run.view_of(model))
    async with aclosing(run.engine.records.database.stream(made.text, *made.values)) as found:
        async for rows in found:
            yield await outgoing.records(run, reading, rows)


async def search(run: Run, model: str, body: Body) -> Found:
    """The records of a query, and their total.

    Raises:
        BadInput: the query is refused.
    """
    view = run.view_of(model)
    asked = await planning.planned(run, view, read(run, model, "search", body))
    reading = run.engine.reading(run.caller, view)
    made = select.page_with_total(reading, view.reach("search"), asked)
    rows = await _rows(run, reading, asked, made)
    total = int(rows[0][0])
    found = [row[1:] for row in rows if row[1] is not None]
    return Found(await outgoing.records(run, reading, found), total)
