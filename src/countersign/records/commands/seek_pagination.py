"""Seek pagination: for any order, indexes find the rows after a known position.

The rows after a position are read in ranges, each from one index: rows that are equal in all keys and follow by id,
then rows that are equal in all keys but the last and follow by that one, and so on.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from countersign.declare.fields.field import Stored
from countersign.kernel.database.port import Dialect
from countersign.records.access.view import Rows
from countersign.records.commands.queries import Parameters, Query, all_of
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
"""The maximum number of cached positions of a list; beyond it, every second one is dropped and the step is doubled."""

_VERSION = "SELECT sum(count) AS version FROM audit_lane"


class SeekPosition(NamedTuple):
    """A row of a list: the number of rows before it, and its values of the order keys, the id last.

    Without keys it is the start of the list.
    """

    offset: int
    keys: tuple[Stored, ...] = ()


class KnownPositions:
    """The cached positions of one list at one version of the data, in order."""

    def __init__(self, step: int = STEP) -> None:
        self.version: int | None = None
        self.step = step
        self._offsets = [0]
        self._places = [SeekPosition(0)]

    def before(self, offset: int) -> SeekPosition:
        """The last position at or before the offset."""
        return self._places[bisect_right(self._offsets, offset) - 1]

    def holds(self, version: int) -> bool:
        """Whether the positions are valid at this version; the first call sets their version."""
        if self.version is None:
            self.version = version
        return self.version == version

    def add(self, place: SeekPosition) -> None:
        """Add a position to the cache."""
        at = bisect_right(self._offsets, place.offset)
        if self._offsets[at - 1] == place.offset:
            return
        self._offsets.insert(at, place.offset)
        self._places.insert(at, place)
        if len(self._places) > MAX_POSITIONS:
            self.step *= 2
            self._offsets, self._places = self._offsets[::2], self._places[::2]


class Range(NamedTuple):
    """A range of rows after a position.

    The rows are equal to the position in the first `depth` keys, and follow it by the next key, which is greater or,
    with `is_empty`, NULL.
    """

    depth: int
    is_empty: bool = False


def ranges(place: SeekPosition) -> list[Range]:
    """Return all ranges of rows after a position, in order."""
    found = [Range(max(0, len(place.keys) - 1))]
    for depth in range(len(place.keys) - 2, -1, -1):
        if place.keys[depth] is not None:
            found += [Range(depth), Range(depth, is_empty=True)]
    return found


class ListQuery:
    """A list of one caller: its model, rows and query."""

    def __init__(self, reading: RecordReader, rows: Rows, query: Query) -> None:
        self._reading = reading
        self._rows = rows
        self._query = query

    def identity(self) -> str:
        """Return a text that is equal for lists with the same rows in the same order; the columns do not matter."""
        parameters = Parameters()
        scope = self._reading.scope(parameters)
        where = where_clause(scope, self._reading, self._rows, self._query)
        order = order_clause(order_terms(scope, self._reading, self._query))
        return repr((self._reading.view.model.name, where, order, parameters.values))

    def keys(self, place: SeekPosition, piece: Range, skip: int) -> SelectStatement:
        """Return the statement for the data version and the keys of the row after the first `skip` rows of the range.

        If the range has no such row, the keys are NULL.
        """
        parameters = Parameters()
        scope = self._reading.scope(parameters)
        order = order_terms(scope, self._reading, self._query)
        columns = [each.expression for each in order]
        text = f"{self._rest(columns, place, piece, parameters)} LIMIT 1 OFFSET {parameters.put(skip)}"
        return _with_version(text, columns, parameters)

    def page(self, place: SeekPosition, piece: Range, limit: int) -> SelectStatement:
        """Return the statement for the data version and the first rows of the range, or NULLs if it is empty."""
        parameters = Parameters()
        columns = self._reading.columns(self._reading.scope(parameters))
        text = f"{self._rest(columns, place, piece, parameters)} LIMIT {parameters.put(limit)}"
        return _with_version(text, columns, parameters)

    def size(self, place: SeekPosition, piece: Range, most: int) -> SelectStatement:
        """Return the statement for the data version and the number of rows in the range, counted up to `most`."""
        parameters = Parameters()
        text = f"{self._rest(['t.id'], place, piece, parameters)} LIMIT {parameters.put(most)}"
        return SelectStatement(f"SELECT ({_VERSION}), count(*) FROM ({text}) AS p", parameters.values)

    def _rest(self, columns: Sequence[str], place: SeekPosition, piece: Range, parameters: Parameters) -> str:
        scope = self._reading.scope(parameters)
        where = where_clause(scope, self._reading, self._rows, self._query)
        order = order_terms(scope, self._reading, self._query)
        conditions, rest = _after(order, place.keys, piece, parameters, scope.dialect)
        names = ", ".join(f"{each} AS column__{number}" for number, each in enumerate(columns))
        return (
            f'SELECT {names} FROM "{self._reading.view.model.name}" AS t WHERE {all_of([where, *conditions])} '
            f"ORDER BY {order_clause(rest)}"
        )


def _with_version(text: str, columns: Sequence[str], parameters: Parameters) -> SelectStatement:
    names = ", ".join(f"p.column__{number}" for number in range(len(columns)))
    # The left side has a single row, so every join method preserves the order of the page.
    joined = f"SELECT v.version, {names} FROM ({_VERSION}) AS v LEFT JOIN ({text}) AS p ON 1 = 1"
    return SelectStatement(joined, parameters.values)


def _after(
    order: Sequence[Term], keys: tuple[Stored, ...], piece: Range, parameters: Parameters, dialect: Dialect
) -> tuple[list[str], list[Term]]:
    """Return the conditions of a range and the order within it."""
    if not keys:
        return [], list(order)
    # What is equal everywhere is nothing to order by; but PostgreSQL does not see that of empty ones.
    is_told = dialect == "postgres"
    conditions: list[str] = []
    rest: list[Term] = []
    for term, value in zip(order[: piece.depth], keys, strict=False):
        conditions.append(_is(term, value, parameters))
        rest += [term] if value is None and is_told else []
    term, value = order[piece.depth], keys[piece.depth]
    if piece.is_empty:
        conditions.append(_is(term, None, parameters))
        rest += [term] if is_told else []
    else:
        comparison = "<" if term.is_descending else ">"
        is_last = piece.depth == len(order) - 1
        conditions.append(f"{term.expression} {comparison}{'=' if is_last else ''} {parameters.put(value)}")
        rest.append(term)
    return conditions, [*rest, *order[piece.depth + 1 :]]


def _is(term: Term, value: Stored, parameters: Parameters) -> str:
    return f"{term.expression} IS NULL" if value is None else f"{term.expression} = {parameters.put(value)}"
