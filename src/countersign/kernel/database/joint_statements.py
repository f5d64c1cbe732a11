"""Joins statements into one on PostgreSQL, which saves round trips."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

from countersign.kernel.database.port import Dialect, Transaction, Value

Write: TypeAlias = tuple[str, Sequence[Value]]
"""A statement that inserts, updates or deletes rows, with its values. It has no WITH clause, and `$` only before the
numbers of its parameters."""

_PARAMETER = re.compile(r"\$(\d+)")


async def run_writes(transaction: Transaction, dialect: Dialect, writes: Sequence[Write]) -> None:
    """Run the writes: on PostgreSQL as one statement, and on SQLite, which has no round trips, one after the other."""
    if dialect == "postgres" and writes:
        (text, values), *others = writes
        writes = [with_writes(text, values, others)]
    for text, values in writes:
        await transaction.run(text, *values)


def with_writes(statement: str, values: Sequence[Value], writes: Sequence[Write]) -> tuple[str, list[Value]]:
    """Return the statement, which may begin with `WITH`, so that it also runs the writes, and the values of all. The
    statements do not see the rows that the others write."""
    if not writes:
        return statement, list(values)
    text = _joined(statement, len(values), tuple((text, len(write_values)) for text, write_values in writes))
    return text, [*values, *(value for _, write_values in writes for value in write_values)]


@lru_cache(maxsize=512)
def _joined(statement: str, count: int, writes: tuple[tuple[str, int], ...]) -> str:
    parts: list[str] = []
    for number, (text, value_count) in enumerate(writes):
        parts.append(f"write_{number} AS ({_renumbered(text, count)})")
        count += value_count
    own_clause = statement.strip()
    separator = ", " if own_clause.startswith("WITH ") else " "
    return f"WITH {', '.join(parts)}{separator}{own_clause.removeprefix('WITH ')}"


def _renumbered(text: str, start: int) -> str:
    return _PARAMETER.sub(lambda matched: f"${int(matched[1]) + start}", text)
