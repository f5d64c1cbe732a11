"""The commands `list` and `search`: the caller's records by condition, in order, whole or page by page."""

from collections.abc import AsyncIterator

import msgspec

from countersign.declare.where import Operator
from countersign.records.commands import incoming, outgoing, query, select
from countersign.records.commands.query import Query
from countersign.records.commands.reading import Record
from countersign.records.commands.run import Body, Run


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
    for each in value if isinstance(value, list) else [value]:  # pyright: ignore
        if isinstance(each, str):
            incoming.refuse_tokens(run, each, f"a filter on {model}.{field}")


async def records(run: Run, model: str, body: Body, command: str = "list") -> list[Record]:
    """The records of a query with a limit.

    Raises:
        BadInput: the query is refused.
    """
    asked = read(run, model, command, body)
    view = run.view_of(model)
    reading = run.engine.reading(run.caller, view)
    statement = select.page(reading, view.rows[command], asked)
    rows = await run.engine.records.database.scan(statement.text, *statement.values)
    return await outgoing.records(run, reading, rows)


async def stream(run: Run, model: str, asked: Query, command: str = "list") -> AsyncIterator[list[Record]]:
    """All records of a query in batches, in constant memory."""
    view = run.view_of(model)
    reading = run.engine.reading(run.caller, view)
    statement = select.page(reading, view.rows[command], asked)
    async for rows in run.engine.records.database.stream(statement.text, *statement.values):
        yield await outgoing.records(run, reading, rows)


async def search(run: Run, model: str, body: Body) -> Found:
    """The records of a query, and their total.

    Raises:
        BadInput: the query is refused.
    """
    asked = read(run, model, "search", body)
    view = run.view_of(model)
    reading = run.engine.reading(run.caller, view)
    statement = select.page_with_total(reading, view.rows["search"], asked)
    rows = await run.engine.records.database.scan(statement.text, *statement.values)
    total = int(rows[0][0])
    found = [row[1:] for row in rows if row[1] is not None]
    return Found(await outgoing.records(run, reading, found), total)
