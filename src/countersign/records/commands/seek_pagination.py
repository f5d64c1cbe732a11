"""Seek pagination: finds the rows after a known position by indexes, for any order.

The rows after a position are read in ranges, each with one index. The first range contains the rows that equal the
position in all keys and have a greater id. The second contains the rows that equal the position in all keys except the
last one and have a greater last key, and so on.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from countersign.declare.fields.field import Stored
from countersign.kernel.database.port import Dialect
from countersign.records.access.view import Rows
from countersign.records.commands.filters import Parameters, Query, all_of
from countersign.records.commands.select import (
    RecordReader,
    SelectStatement,
    Term,
    order_clause,
    order_terms,
    where_clause,
)

STEP = 1_000
"""The initial number of rows between two cached positions."""

MAX_POSITIONS = 2_000
"""The maximum number of cached positions of a list. When there are more, every second position is removed and the step
is doubled."""

_VERSION = "SELECT sum(count) AS version FROM audit_lane"


class SeekPosition(NamedTuple):
    """The position of a row in a list: the number of rows before it, and the values of its order keys. The last key is
    the id.

    A position without keys is the start of the list.
    """

    offset: int
    keys: tuple[Stored, ...] = ()


class KnownPositions:
    """The cached positions of one list at one version of the data, in order."""

    def __init__(self, step: int = STEP) -> None:
        self.version: int | None = None
        self.step = step
        self._offsets = [0]
        self._positions = [SeekPosition(0)]

    def before(self, offset: int) -> SeekPosition:
        """Return the last cached position at or before the offset."""
        return self._positions[bisect_right(self._offsets, offset) - 1]

    def holds(self, version: int) -> bool:
        """Return whether the positions are valid for this version of the data. The first call sets the version."""
        if self.version is None:
            self.version = version
        return self.version == version

    def add(self, position: SeekPosition) -> None:
        """Add a position to the cache."""
        index = bisect_right(self._offsets, position.offset)
        if self._offsets[index - 1] == position.offset:
            return
        self._offsets.insert(index, position.offset)
        self._positions.insert(index, position)
        if len(self._positions) > MAX_POSITIONS:
            self.step *= 2
            self._offsets, self._positions = self._offsets[::2], self._positions[::2]


class Range(NamedTuple):
    """A range of rows after a position.

    The rows equal the position in the first `depth` keys. Their next key is greater than that of the position or, with
    `is_empty`, NULL.
    """

    depth: int
    is_empty: bool = False


def ranges(position: SeekPosition) -> list[Range]:
    """Return all ranges of rows after a position, in the order of the list."""
    ranges_found = [Range(max(0, len(position.keys) - 1))]
    for depth in range(len(position.keys) - 2, -1, -1):
        if position.keys[depth] is not None:
            ranges_found += [Range(depth), Range(depth, is_empty=True)]
    return ranges_found


class ListQuery:
    """A list of one caller: its model, rows and query."""

    def __init__(self, record_reader: RecordReader, rows: Rows, query: Query) -> None:
        self._reading = record_reader
        self._rows = rows
        self._query = query

    def identity(self) -> str:
        """Return a text that is equal for lists with the same rows in the same order, regardless of their columns."""
        parameters = Parameters()
        scope = self._reading.scope(parameters)
        condition = where_clause(scope, self._reading, self._rows, self._query)
        order = order_clause(order_terms(scope, self._reading, self._query))
        return repr((self._reading.view.model.name, condition, order, parameters.values))

    def keys(self, position: SeekPosition, rows: Range, skip: int) -> SelectStatement:
        """Return the statement that selects the version of the data and the keys of the row after the first `skip` rows
        of the range.

        If the range has no such row, the keys are NULL.
        """
        parameters = Parameters()
        scope = self._reading.scope(parameters)
        order = order_terms(scope, self._reading, self._query)
        columns = [term.expression for term in order]
        text = f"{self._rows_of_range(columns, position, rows, parameters)} LIMIT 1 OFFSET {parameters.put(skip)}"
        return _with_version(text, columns, parameters)

    def page(self, position: SeekPosition, rows: Range, limit: int) -> SelectStatement:
        """Return the statement that selects the version of the data and the first rows of the range. If the range is
        empty, the other columns are NULL."""
        parameters = Parameters()
        columns = self._reading.columns(self._reading.scope(parameters))
        text = f"{self._rows_of_range(columns, position, rows, parameters)} LIMIT {parameters.put(limit)}"
        return _with_version(text, columns, parameters)

    def size(self, position: SeekPosition, rows: Range, max_rows: int) -> SelectStatement:
        """Return the statement that selects the version of the data and the number of rows in the range. Counting stops
        at `max_rows`."""
        parameters = Parameters()
        text = f"{self._rows_of_range(['t.id'], position, rows, parameters)} LIMIT {parameters.put(max_rows)}"
        return SelectStatement(f"SELECT ({_VERSION}), count(*) FROM ({text}) AS p", parameters.values)

    def _rows_of_range(
        self, columns: Sequence[str], position: SeekPosition, rows: Range, parameters: Parameters
    ) -> str:
        scope = self._reading.scope(parameters)
        condition = where_clause(scope, self._reading, self._rows, self._query)
        order = order_terms(scope, self._reading, self._query)
        conditions, order_within = _after(order, position.keys, rows, parameters, scope.dialect)
        names = ", ".join(f"{column} AS column__{number}" for number, column in enumerate(columns))
        return (
            f'SELECT {names} FROM "{self._reading.view.model.name}" AS t WHERE {all_of([condition, *conditions])} '
            f"ORDER BY {order_clause(order_within)}"
        )


def _with_version(text: str, columns: Sequence[str], parameters: Parameters) -> SelectStatement:
    names = ", ".join(f"p.column__{number}" for number in range(len(columns)))
    # The left side has a single row, so every join method preserves the order of the page.
    joined_rows = f"SELECT v.version, {names} FROM ({_VERSION}) AS v LEFT JOIN ({text}) AS p ON 1 = 1"
    return SelectStatement(joined_rows, parameters.values)


def _after(
    order: Sequence[Term], keys: tuple[Stored, ...], rows: Range, parameters: Parameters, dialect: Dialect
) -> tuple[list[str], list[Term]]:
    """Return the conditions of a range and the order within it."""
    if not keys:
        return [], list(order)
    # Keys that are equal in all rows of the range need no ORDER BY term. PostgreSQL recognizes this for = but not for
    # IS NULL, so its statements contain the terms of keys that are NULL. An index can then provide the order.
    needs_null_keys = dialect == "postgres"
    conditions: list[str] = []
    order_within: list[Term] = []
    for term, value in zip(order[: rows.depth], keys, strict=False):
        conditions.append(_is(term, value, parameters))
        order_within += [term] if value is None and needs_null_keys else []
    term, value = order[rows.depth], keys[rows.depth]
    if rows.is_empty:
        conditions.append(_is(term, None, parameters))
        order_within += [term] if needs_null_keys else []
    else:
        comparison = "<" if term.is_descending else ">"
        is_last = rows.depth == len(order) - 1
        conditions.append(f"{term.expression} {comparison}{'=' if is_last else ''} {parameters.put(value)}")
        order_within.append(term)
    return conditions, [*order_within, *order[rows.depth + 1 :]]


def _is(term: Term, value: Stored, parameters: Parameters) -> str:
    return f"{term.expression} IS NULL" if value is None else f"{term.expression} = {parameters.put(value)}"
