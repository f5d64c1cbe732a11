"""Applies deltas: new files out of old ones and a blob, each held against its digest before anybody sees it.

A blob is a stranger's: every number in it is checked before it is used, nothing is unpacked beyond what the manifest
announced, and what comes out counts only when its digest is the signed one.
"""

import hashlib
import os
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from countersign.kernel.errors import Refused
from countersign.updates.deltas import patch, streams
from countersign.updates.deltas.bytewise import total
from countersign.updates.deltas.covers import Cover
from countersign.updates.deltas.reference import Piece, Reference
from countersign.updates.deltas.streams import Stream
from countersign.updates.numbers import MAX_NUMBER_BYTES, Malformed, Reader, unsigned
from countersign.updates.unfold import folding
from countersign.updates.unfold.spans import BIGGEST_FILE, TOTAL_BYTES, Budget, most_unfolded


class DeltaRefused(Refused):
    """The bytes are no delta between these files."""

    status = 422
    code = "delta_refused"
    title = "Delta refused"
    resolution = "Fetch the files by their chunks."


class Target(NamedTuple):
    """A file to be made: where, of how many bytes, with which SHA-256."""

    path: Path
    size: int
    sha256: str


def apply(blob: bytes, old: Sequence[Piece], new: Sequence[Target]) -> list[int]:
    """Write the new files; the positions of those that did not come out as announced, which are not left behind.

    That happens to archives where this machine's zlib writes other bytes than the maker's. The order of old and new
    files is that of the delta. Files are fsynced.

    Raises:
        DeltaRefused: the blob is no delta between files of this number and these sizes.
        OSError: a file cannot be read or written.
    """
    failed: list[int] = []
    for place, pieces in enumerate(contents(blob, old, [target.size for target in new])):
        target = new[place]
        digest = hashlib.sha256()
        with target.path.open("wb") as file:
            for piece in pieces:
                file.write(piece)
                digest.update(piece)
            file.flush()
            os.fsync(file.fileno())
        if digest.hexdigest() != target.sha256:
            target.path.unlink()
            failed.append(place)
    return failed


def contents(blob: bytes, old: Sequence[Piece], sizes: Sequence[int]) -> Iterator[Iterator[bytes]]:
    """The bytes of each new file, in pieces, which have to be exhausted one file after another.

    Raises:
        DeltaRefused, OSError: as `apply`.
    """
    try:
        taken = patch.decode(blob)
        reference = Reference(old, Budget())
        if reference.size != taken.old_size:
            raise Malformed("the delta is for other old files")
        _check_size(taken, sum(sizes))
        recipes = _recipes(taken, len(sizes))
        rebuilt = _Rebuilt(taken, reference)
    except Malformed as error:
        raise DeltaRefused(str(error)) from error
    for place, size in enumerate(sizes):
        yield _file(rebuilt, size, recipes.get(place))
    if not rebuilt.is_at_end:
        raise DeltaRefused("the delta makes more than the files hold")


def _check_size(taken: patch.Patch, size: int) -> None:
    """Refuse a delta that takes more work than files of so many bytes altogether can give.

    Raises:
        Malformed: it makes more bytes, or says more pieces of them than there are.
    """
    if taken.new_size > most_unfolded(size):
        raise Malformed("the delta makes more than the files hold")
    if taken.covers > taken.new_size or taken.runs > taken.new_size:
        raise Malformed("the delta has more pieces than bytes")


def _file(rebuilt: "_Rebuilt", size: int, recipe: tuple[int, bytes] | None) -> Iterator[bytes]:
    try:
        if recipe is None:
            yield from rebuilt.take(size)
        else:
            length, how = recipe
            yield folding.fold(b"".join(rebuilt.take(length)), how, size)
    except Malformed as error:
        raise DeltaRefused(str(error)) from error


def _recipes(taken: patch.Patch, files: int) -> dict[int, tuple[int, bytes]]:
    """By the file's position how long it is unfolded, and how it is folded."""
    if taken.recipes.size > BIGGEST_FILE:
        raise Malformed("recipes are longer than any archive needs")
    reader = Reader(Stream(taken.recipes, bytes).take(taken.recipes.size))
    found: dict[int, tuple[int, bytes]] = {}
    place = -1
    while not reader.is_at_end:
        place += reader.number(files) + 1
        if place >= files:
            raise Malformed("a recipe is for a file that is not made")
        length, size = reader.number(TOTAL_BYTES + BIGGEST_FILE), reader.number(BIGGEST_FILE)
        found[place] = (length, reader.take(size))
    return found


class _Rebuilt:
    """The new bytes of a patch, taken from the front."""

    def __init__(self, taken: patch.Patch, reference: Reference) -> None:
        self._reference = reference
        self._left = taken.new_size
        self._values = Stream(taken.values, bytes)
        self._literals = Stream(taken.literals, lambda: _prefix(reference))
        self._runs = _runs(taken)
        self._run: tuple[int, int] | None = next(self._runs, None)
        self._along = 0
        """Bytes of covers that were taken."""
        self._pieces = self._all(_covers(taken))
        self._held = b""

    @property
    def is_at_end(self) -> bool:
        """Whether everything has been taken."""
        return self._left == 0

    def take(self, count: int) -> Iterator[bytes]:
        """The next `count` bytes.

        Raises:
            Malformed: there are fewer.
        """
        if count > self._left:
            raise Malformed("the delta makes less than the files hold")
        self._left -= count
        while count:
            piece = self._held or next(self._pieces)
            yield piece[:count]
            self._held = piece[count:]
            count -= min(count, len(piece))

    def _all(self, covers: Iterator[Cover]) -> Iterator[bytes]:
        at = 0
        for cover in covers:
            yield from self._literals.pieces(cover.new - at)
            for piece in self._reference.slices(cover.old, cover.length):
                yield self._changed(piece)
            at = cover.new + cover.length
        yield from self._literals.pieces(self._literals.left)
        raise Malformed("the delta's parts are shorter than it says")

    def _changed(self, piece: bytes) -> bytes:
        """A piece of the old bytes with the differences that lie in it."""
        start, end = self._along, self._along + len(piece)
        self._along = end
        if self._run is None or self._run[0] >= end:
            return piece
        out = bytearray(piece)
        while self._run is not None and self._run[0] < end:
            begin, stop = self._run
            here = min(stop, end)
            out[begin - start : here - start] = total(
                piece[begin - start : here - start], self._values.take(here - begin)
            )
            self._run = (here, stop) if here < stop else next(self._runs, None)
        return bytes(out)


def _prefix(reference: Reference) -> bytes:
    """The reference as a dictionary.

    Raises:
        Malformed: no dictionary can be of this length.
    """
    if reference.size < streams.SHORTEST_PREFIX_BYTES:
        raise Malformed("the old files are too short for a dictionary")
    if reference.size > streams.PREFIX_BYTES:
        raise Malformed("the old files are too long for a dictionary")
    return reference.joined()


def _covers(taken: patch.Patch) -> Iterator[Cover]:
    """The covers, in order.

    Raises:
        Malformed: they do not lie one after another inside of the new bytes.
    """
    steps, gaps, lengths = _columns(taken.control, taken.covers, 3, 2 * max(taken.old_size, taken.new_size))
    old_end = new_end = 0
    for step, gap, length in zip(steps, gaps, lengths, strict=True):
        cover = Cover(old_end + unsigned(step), new_end + gap, length)
        old_end, new_end = cover.old + length, cover.new + length
        if new_end > taken.new_size or not length:
            raise Malformed("a cover lies outside of the new files, or has no bytes")
        yield cover


def _runs(taken: patch.Patch) -> Iterator[tuple[int, int]]:
    """Where the runs of differences begin and end along the covers."""
    gaps, lengths = _columns(taken.run_lengths, taken.runs, 2, taken.new_size)
    at = 0
    for gap, length in zip(gaps, lengths, strict=True):
        if not length:
            raise Malformed("a run of differences has no bytes")
        yield at + gap, at + gap + length
        at += gap + length


def _columns(packed: streams.Packed, rows: int, columns: int, most: int) -> "list[array[int]]":
    """Numbers that stand column after column.

    Raises:
        Malformed: they are not so many.
    """
    if rows * columns > packed.size:
        raise Malformed("there are fewer numbers than announced")
    if packed.size > min(rows * columns * MAX_NUMBER_BYTES, patch.LIST_BYTES):
        raise Malformed("there are more numbers than announced, or than any delta needs")
    reader = Reader(Stream(packed, bytes).take(packed.size))
    found = [array("Q", (reader.number(most) for _ in range(rows))) for _ in range(columns)]
    if not reader.is_at_end:
        raise Malformed("there are more numbers than announced")
    return found
