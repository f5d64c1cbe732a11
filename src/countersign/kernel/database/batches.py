"""Batches of rows, bounded in bytes as in number: a few hundred long texts at once would take seconds."""

from collections.abc import Iterable, Iterator

from countersign.kernel.database.port import Row

MAX_ROWS = 500
MAX_BYTES = 1 << 18
"""A single row may be longer."""


def length(row: Row) -> int:
    """About how many bytes the row's texts take."""
    return sum(len(value) for value in row if isinstance(value, str | bytes))


def first(rows: Iterator[Row]) -> list[Row]:
    """The next batch; empty at the end."""
    batch: list[Row] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += length(row)
        if len(batch) == MAX_ROWS or size >= MAX_BYTES:
            break
    return batch


def split(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """All of the rows in batches."""
    left = iter(rows)
    while batch := first(left):
        yield batch
