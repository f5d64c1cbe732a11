"""The one SELECT: conditions, order, visibility, rules and totals become a single parameterised statement."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from countersign.declare import Declared, Field
from countersign.kernel import clock
from countersign.kernel.database.port import Dialect, Value
from countersign.records.access.view import Rows
from countersign.records.commands import conditions
from countersign.records.commands.query import Query
from countersign.records.commands.reading import Kept, Reading
from countersign.records.commands.sql import Parameters, all_of

MAX_INLINE = 200
"""Rows up to which a page that indexes answer is read on the event loop."""


class Term(NamedTuple):
    """One key of an order as SQL: the expression rows are ordered by, empty ones last either way."""

    expression: str
    is_descending: bool


class Statement:
    """A statement with its values."""

    __slots__ = ("text", "values")

    def __init__(self, text: str, values: list[Value]) -> None:
        self.text = text
        self.values = values


Columns = Callable[[conditions.Scope], Sequence[str]]
"""Expressions to select beside those of a reading."""


def page(reading: Reading, rows: Rows, query: Query, more: Columns | None = None) -> Statement:
    """The records of a query that the caller may see, in its order (API document, Filter semantics), with `more`
    columns after those of the reading.

    Raises:
        BadInput: a condition or a key names a field the caller does not read in clear, or does not fit its kind.
    """
    parameters = Parameters()
    return Statement(_page(reading, rows, query, parameters, more), parameters.values)


def _page(
    reading: Reading, rows: Rows, query: Query, parameters: Parameters, more: Columns | None = None
) -> str:
    scope = reading.scope(parameters)
    columns = ", ".join([*reading.columns(scope), *(more(scope) if more is not None else ())])
    where = matching(scope, reading, rows, query)
    order = in_order(terms(scope, reading, query))
    text = f'SELECT {columns} FROM "{reading.view.model.name}" AS t WHERE {where} ORDER BY {order}'
    if query.limit is not None:
        text += f" LIMIT {parameters.put(query.limit)}"
    elif scope.dialect == "sqlite":
        # It takes no OFFSET alone, and leaves out the order of a SELECT inside another one that has no limit.
        text += " LIMIT -1"
    return f"{text} OFFSET {parameters.put(query.offset)}" if query.offset else text


def page_with_total(reading: Reading, rows: Rows, query: Query) -> Statement:
    """The same page, each row beginning with how many records match before limit and offset.

    When the page is empty there is one row, whose other columns are empty.
    """
    parameters = Parameters()
    scope = reading.scope(parameters)
    counted = f'SELECT count(*) AS total FROM "{reading.view.model.name}" AS t WHERE ' + matching(
        scope, reading, rows, replace(query, scattered=frozenset())
    )
    # A single row on the left: whichever way the join is made, the page keeps its order.
    text = (
        f"SELECT n.total, p.* FROM ({counted}) AS n LEFT JOIN ({_page(reading, rows, query, parameters)}) AS p "
        "ON 1 = 1"
    )
    return Statement(text, parameters.values)


def one(reading: Reading, rows: Rows, record_id: str) -> Statement:
    """The record of that id, if the caller may see it."""
    is_kept, day = rows is reading.view.visible, clock.now() // clock.DAY
    if is_kept and reading.kept is not None and reading.kept.day == day:
        return Statement(reading.kept.text, [record_id, *reading.kept.values])
    parameters = Parameters(record_id)
    scope = reading.scope(parameters)
    columns = ", ".join(reading.columns(scope))
    seen = conditions.any_of(scope, reading.view.model, rows)
    text = f'SELECT {columns} FROM "{reading.view.model.name}" AS t WHERE t.id = $1 AND {seen}'
    if is_kept:
        # From call to call nothing changes in it but the id, and at midnight what TODAY means in a rule.
        reading.kept = Kept(day, text, parameters.values[1:])
    return Statement(text, parameters.values)


def existing(
    model: Declared, rows: Rows, record_id: str, dialect: Dialect, *, locks: bool = True
) -> Statement:
    """The stored columns of a record among the rows; with `locks`, locked until the transaction ends where the engine
    needs that.

    The columns are id, revision, changed, each field's, then the value id of each personal field.
    """
    parameters = Parameters(record_id)
    scope = conditions.Scope(dialect, parameters, "t")
    columns = ["t.id", "t.revision", "t.changed", *(f't."{name}"' for name in model.fields)]
    columns += [f't."{name}__value"' for name, field in model.fields.items() if field.personal]
    seen = conditions.any_of(scope, model, rows)
    # A hidden record is not locked: nobody waits for what they may not see.
    lock = " FOR UPDATE" if locks and dialect == "postgres" else ""
    text = f'SELECT {", ".join(columns)} FROM "{model.name}" AS t WHERE t.id = $1 AND {seen}{lock}'
    return Statement(text, parameters.values)


def matching(scope: conditions.Scope, reading: Reading, rows: Rows, query: Query) -> str:
    """The condition that a record is one of the query's, and of those the caller may see.

    Raises:
        BadInput: a condition is refused.
    """
    scope.scattered = query.scattered
    found = conditions.filtered(scope, reading.view, query.filter)
    if rows is not None:
        found.append(conditions.any_of(scope, reading.view.model, rows))
    return all_of(found)


def terms(scope: conditions.Scope, reading: Reading, query: Query) -> list[Term]:
    """The keys of the query's order; the last one is the id, after which nothing is left to order.

    Raises:
        BadInput: a key is refused.
    """
    found: list[Term] = []
    is_by_id = False
    # Where all rows have one value there is nothing to order by, and the index that finds them has them by id.
    fixed = {each.field for each in query.filter if each.operator == "eq"}
    for key in query.order:
        field: Field = conditions.clear_field(reading.view, key.field)
        if is_by_id or (key.field in fixed and key.field != "id"):
            continue
        is_by_id = key.field == "id"
        expression = f"{scope.alias}.id" if is_by_id else field.ordered(scope.value_of(field))
        found.append(Term(expression, key.is_descending))
    return found if is_by_id else [*found, Term(f"{scope.alias}.id", False)]


def in_order(found: Sequence[Term]) -> str:
    """The terms as ORDER BY has them; the last one, the id, is never empty."""
    keys = [f"{each.expression} {'DESC' if each.is_descending else 'ASC'} NULLS LAST" for each in found[:-1]]
    return ", ".join([*keys, f"{found[-1].expression} {'DESC' if found[-1].is_descending else 'ASC'}"])
