"""A patch: covers, the differences along them, and the bytes that are new, each as a stream of its own kind.

Bytes: MAGIC, then numbers: length of the reference, of the new bytes, how many covers and runs, and of each stream the
method, its length and its length packed; then the packed streams. `control` has the covers' steps in the reference,
then the gaps before them, then their lengths; `runs` the distances between runs of differences along the covers, then
their lengths; `values` the differences; `literals` what no cover has; `recipes` how archives are folded.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from countersign.updates.deltas import streams
from countersign.updates.deltas.bytewise import difference
from countersign.updates.deltas.covers import Cover
from countersign.updates.deltas.streams import Packed
from countersign.updates.numbers import Malformed, Reader, packed, signed

MAGIC = b"CSD1"
HEAD_BYTES = 128
MAX_SIZE = 1 << 40
LIST_BYTES = 32 << 20
"""Of a list of numbers; a patch with more is made with fewer and longer runs."""
_STREAMS = 5
_QUIET = (1, 255)
"""Equal bytes that may stand inside a run of differences: few make many short runs, many make few long ones."""
_PIECE = 4 << 20


class Patch(NamedTuple):
    """A patch taken apart; its streams are still packed."""

    old_size: int
    new_size: int
    covers: int
    runs: int
    control: Packed
    run_lengths: Packed
    values: Packed
    literals: Packed
    recipes: Packed


def encode(old: bytes, new: bytes, found: Sequence[Cover], recipes: bytes) -> bytes:
    """The patch that turns the reference into the new bytes."""
    run_count, run_lengths, values = min(
        (_runs(old, new, found, quiet) for quiet in _QUIET),
        key=lambda runs: (runs[1].size > LIST_BYTES, len(runs[1].body) + len(runs[2].body)),
    )
    parts = (streams.pack(_control(found)), run_lengths, values, streams.pack(_literals(new, found), old))
    every = (*parts, streams.pack(recipes))
    head = [len(old), len(new), len(found), run_count]
    for part in every:
        head += [part.method, part.size, len(part.body)]
    return MAGIC + packed(head) + b"".join(part.body for part in every)


def decode(blob: bytes) -> Patch:
    """The patch in the blob.

    Raises:
        Malformed: it is none.
    """
    if not blob.startswith(MAGIC):
        raise Malformed("this is no delta of a format that is known here")
    reader = Reader(blob[len(MAGIC) :])
    old_size, new_size, covers, runs = reader.numbers(4, MAX_SIZE)
    heads = [reader.numbers(3, MAX_SIZE) for _ in range(_STREAMS)]
    control, lengths, values, literals, recipes = (Packed(m, size, reader.take(length)) for m, size, length in heads)
    if not reader.is_at_end:
        raise Malformed("something follows after the delta")
    return Patch(old_size, new_size, covers, runs, control, lengths, values, literals, recipes)


def _control(found: Sequence[Cover]) -> bytes:
    old_ends = [0, *(cover.old + cover.length for cover in found)]
    new_ends = [0, *(cover.new + cover.length for cover in found)]
    steps = (signed(cover.old - end) for cover, end in zip(found, old_ends, strict=False))
    gaps = (cover.new - end for cover, end in zip(found, new_ends, strict=False))
    return packed(steps) + packed(gaps) + packed(cover.length for cover in found)


def _literals(new: bytes, found: Sequence[Cover]) -> bytes:
    ends = [0, *(cover.new + cover.length for cover in found)]
    starts = [*(cover.new for cover in found), len(new)]
    return b"".join(new[end:start] for end, start in zip(ends, starts, strict=True))


def _runs(old: bytes, new: bytes, found: Sequence[Cover], quiet: int) -> tuple[int, Packed, Packed]:
    """How many runs of differences there are, where they lie, and what they hold."""
    pattern = re.compile(rb"[^\0]+(?:\0{1,%d}[^\0]+)*" % quiet)
    gaps: list[int] = []
    lengths: list[int] = []
    values: list[bytes] = []
    last = 0
    for base, change in _changes(old, new, found):
        for run in pattern.finditer(change):
            gaps.append(base + run.start() - last)
            lengths.append(run.end() - run.start())
            values.append(run.group())
            last = base + run.end()
    return len(gaps), streams.pack(packed(gaps) + packed(lengths)), streams.pack(b"".join(values))


def _changes(old: bytes, new: bytes, found: Sequence[Cover]) -> Iterator[tuple[int, bytes]]:
    """The differences along the covers, with their places; where there are none for a whole piece, nothing."""
    olds, news = memoryview(old), memoryview(new)
    base = 0
    for cover in found:
        for at in range(0, cover.length, _PIECE):
            length = min(_PIECE, cover.length - at)
            one = news[cover.new + at : cover.new + at + length]
            other = olds[cover.old + at : cover.old + at + length]
            if one != other:
                yield base + at, difference(one, other)
        base += cover.length
