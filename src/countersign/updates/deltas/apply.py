"""Applies deltas: makes new files from old files and a patch, and checks each new file against its digest.

A patch consists of covers (ranges of the old bytes that are nearly equal to ranges of the new bytes), the differences
in these ranges, and the bytes that no cover contains.
"""

import hashlib
import os
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from countersign.kernel.errors import Refused
from countersign.updates.deltas import patch
from countersign.updates.deltas.byte_matches import Cover
from countersign.updates.deltas.patch import StreamReader, add_bytes
from countersign.updates.recompress import archives
from countersign.updates.recompress.archives import (
    HEAD_BYTES,
    MAX_DECOMPRESSED_BYTES,
    MAX_FILE_BYTES,
    InflateBudget,
    max_decompressed,
    may_hold_streams,
    reference,
)
from countersign.updates.varint import MAX_NUMBER_BYTES, Malformed, VarintReader, unzigzag

READ_BYTES = 1 << 20


class Piece(Protocol):
    """Bytes with random access."""

    @property
    def size(self) -> int:
        """Number of bytes."""
        ...

    def read(self, at: int, length: int) -> bytes:
        """Return at most `length` bytes, beginning at the offset `at`.

        Raises:
            OSError: the bytes cannot be read.
        """
        ...


class MemoryPiece:
    """Bytes in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)

    def read(self, at: int, length: int) -> bytes:
        """Return at most `length` bytes, beginning at the offset `at`."""
        return self._data[at : at + length]


class FilePiece:
    """A file. It is opened for each read, because deltas can have more files than a process can open."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.size = path.stat().st_size

    def read(self, at: int, length: int) -> bytes:
        """Return at most `length` bytes, beginning at the offset `at`."""
        descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0))
        try:
            return os.pread(descriptor, length, at)
        finally:
            os.close(descriptor)


class Reference:
    """The old files in order, with the decompressed contents of archives. `unfolded` is the size of these contents."""

    def __init__(self, files: Sequence[Piece], budget: InflateBudget) -> None:
        """Decompress the archives among the files within the budget.

        Raises:
            OSError: a file cannot be read.
        """
        self._pieces: list[Piece] = []
        self.unfolded = 0
        for file in files:
            self._pieces.append(file)
            if may_hold_streams(file.read(0, HEAD_BYTES), file.size):
                inner = [MemoryPiece(piece) for piece in reference(file.read(0, file.size), budget)][1:]
                self.unfolded += sum(piece.size for piece in inner)
                self._pieces += inner
        self._pieces = [piece for piece in self._pieces if piece.size]
        self._starts: list[int] = []
        self.size = 0
        for piece in self._pieces:
            self._starts.append(self.size)
            self.size += piece.size

    def slices(self, start: int, length: int) -> Iterator[bytes]:
        """Yield the `length` bytes that begin at `start`, at most PIECE at a time.

        Raises:
            Malformed: the range is outside of the old files, or a file has become shorter.
            OSError: a file cannot be read.
        """
        if start < 0 or start + length > self.size:
            raise Malformed("a delta refers to bytes outside of the old files")
        index = bisect_right(self._starts, start) - 1
        while length:
            position = start - self._starts[index]
            slice_bytes = min(length, READ_BYTES, self._pieces[index].size - position)
            data = self._pieces[index].read(position, slice_bytes)
            if len(data) != slice_bytes:
                raise Malformed("an old file has changed while it was read")
            yield data
            start, length = start + slice_bytes, length - slice_bytes
            index += position + slice_bytes == self._pieces[index].size

    def joined(self) -> bytes:
        """Return all bytes as one piece."""
        if len(self._pieces) == 1:
            return self._pieces[0].read(0, self.size)
        return b"".join(self.slices(0, self.size))


class DeltaRefused(Refused):
    """The delta is malformed or does not match the files."""

    status = 422
    code = "delta_refused"
    title = "Delta refused"
    resolution = "Fetch the files by their chunks."


class TargetFile(NamedTuple):
    """An output file: path, size in bytes and SHA-256."""

    path: Path
    size: int
    sha256: str


def apply(blob: bytes, old_pieces: Sequence[Piece], new_files: Sequence[TargetFile]) -> list[int]:
    """Write and fsync the new files. Return the positions of files whose digest does not match; these are deleted.

    A mismatch occurs for archives if this machine's zlib compresses differently from the zlib that made the delta.
    `old_pieces` and `new_files` must be in the order of the delta.

    Raises:
        DeltaRefused: the delta is malformed, or does not match the number and sizes of the files.
        OSError: a file cannot be read or written.
    """
    failed_files: list[int] = []
    for index, pieces in enumerate(contents(blob, old_pieces, [target.size for target in new_files])):
        target = new_files[index]
        digest = hashlib.sha256()
        with target.path.open("wb") as file:
            for piece in pieces:
                file.write(piece)
                digest.update(piece)
            file.flush()
            os.fsync(file.fileno())
        if digest.hexdigest() != target.sha256:
            target.path.unlink()
            failed_files.append(index)
    return failed_files


def contents(blob: bytes, old_pieces: Sequence[Piece], sizes: Sequence[int]) -> Iterator[Iterator[bytes]]:
    """Yield the bytes of each new file in pieces. Exhaust each iterator before you request the next one.

    Raises:
        DeltaRefused, OSError: see `apply`.
    """
    try:
        delta_patch = patch.decode(blob)
        reference = Reference(old_pieces, InflateBudget())
        if reference.size != delta_patch.old_size:
            raise Malformed("the delta does not match the installed files")
        _check_size(delta_patch, sum(sizes))
        recipes = _recipes(delta_patch, len(sizes))
        rebuilt = _PatchedBytes(delta_patch, reference)
    except Malformed as error:
        raise DeltaRefused(str(error)) from error
    for index, size in enumerate(sizes):
        yield _file(rebuilt, size, recipes.get(index))
    if not rebuilt.is_at_end:
        raise DeltaRefused("the delta makes more bytes than the files have")


def _check_size(delta_patch: patch.Patch, size: int) -> None:
    """Refuse a delta whose size or number of pieces exceeds the bound for `size` bytes of files.

    Raises:
        Malformed: the delta exceeds a bound.
    """
    if delta_patch.new_size > max_decompressed(size):
        raise Malformed("the delta makes more bytes than the files have")
    if delta_patch.cover_count > delta_patch.new_size or delta_patch.run_count > delta_patch.new_size:
        raise Malformed("the delta has more pieces than bytes")


def _file(rebuilt: "_PatchedBytes", size: int, recipe: tuple[int, bytes] | None) -> Iterator[bytes]:
    try:
        if recipe is None:
            yield from rebuilt.take(size)
        else:
            length, how = recipe
            yield archives.recompress(b"".join(rebuilt.take(length)), how, size)
    except Malformed as error:
        raise DeltaRefused(str(error)) from error


def _recipes(delta_patch: patch.Patch, files: int) -> dict[int, tuple[int, bytes]]:
    """Return the decompressed length and the recipe of each file that is recompressed, by its position."""
    if delta_patch.recipes.size > MAX_FILE_BYTES:
        raise Malformed("recipes are longer than any archive needs")
    reader = VarintReader(StreamReader(delta_patch.recipes, bytes).take(delta_patch.recipes.size))
    recipe_by_file: dict[int, tuple[int, bytes]] = {}
    index = -1
    while not reader.is_at_end:
        index += reader.number(files) + 1
        if index >= files:
            raise Malformed("a recipe is for a file that is not made")
        length, size = reader.number(MAX_DECOMPRESSED_BYTES + MAX_FILE_BYTES), reader.number(MAX_FILE_BYTES)
        recipe_by_file[index] = (length, reader.take(size))
    return recipe_by_file


class _PatchedBytes:
    """Reads the patched bytes sequentially."""

    def __init__(self, delta_patch: patch.Patch, reference: Reference) -> None:
        self._reference = reference
        self._left = delta_patch.new_size
        self._differences = StreamReader(delta_patch.differences, bytes)
        self._literals = StreamReader(delta_patch.literals, lambda: _prefix(reference))
        self._runs = _runs(delta_patch)
        self._run: tuple[int, int] | None = next(self._runs, None)
        self._along = 0
        """The number of bytes of covers that were read."""
        self._pieces = self._all(_covers(delta_patch))
        self._held = b""

    @property
    def is_at_end(self) -> bool:
        """Whether all bytes have been read."""
        return self._left == 0

    def take(self, count: int) -> Iterator[bytes]:
        """Yield the next `count` bytes.

        Raises:
            Malformed: fewer than `count` bytes are left.
        """
        if count > self._left:
            raise Malformed("the delta makes fewer bytes than the files have")
        self._left -= count
        while count:
            piece = self._held or next(self._pieces)
            yield piece[:count]
            self._held = piece[count:]
            count -= min(count, len(piece))

    def _all(self, covers: Iterator[Cover]) -> Iterator[bytes]:
        position = 0
        for cover in covers:
            yield from self._literals.pieces(cover.new - position)
            for piece in self._reference.slices(cover.old, cover.length):
                yield self._changed(piece)
            position = cover.new + cover.length
        yield from self._literals.pieces(self._literals.left)
        raise Malformed("the delta's streams are shorter than declared")

    def _changed(self, piece: bytes) -> bytes:
        """Apply the differences to a piece of the old bytes."""
        start, end = self._along, self._along + len(piece)
        self._along = end
        if self._run is None or self._run[0] >= end:
            return piece
        changed_piece = bytearray(piece)
        while self._run is not None and self._run[0] < end:
            begin, stop = self._run
            change_end = min(stop, end)
            changed_piece[begin - start : change_end - start] = add_bytes(
                piece[begin - start : change_end - start], self._differences.take(change_end - begin)
            )
            self._run = (change_end, stop) if change_end < stop else next(self._runs, None)
        return bytes(changed_piece)


def _prefix(reference: Reference) -> bytes:
    """Return the bytes of the old files as a compression dictionary.

    Raises:
        Malformed: the reference is too short or too long for a dictionary.
    """
    if reference.size < patch.MIN_PREFIX_BYTES:
        raise Malformed("the old files are too short for a dictionary")
    if reference.size > patch.MAX_PREFIX_BYTES:
        raise Malformed("the old files are too long for a dictionary")
    return reference.joined()


def _covers(delta_patch: patch.Patch) -> Iterator[Cover]:
    """Yield the covers in order.

    Raises:
        Malformed: a cover is empty or outside the new bytes.
    """
    steps, gaps, lengths = _columns(
        delta_patch.control, delta_patch.cover_count, 3, 2 * max(delta_patch.old_size, delta_patch.new_size)
    )
    old_end = new_end = 0
    for step, gap, length in zip(steps, gaps, lengths, strict=True):
        cover = Cover(old_end + unzigzag(step), new_end + gap, length)
        old_end, new_end = cover.old + length, cover.new + length
        if new_end > delta_patch.new_size or not length:
            raise Malformed("a cover is outside of the new files, or has no bytes")
        yield cover


def _runs(delta_patch: patch.Patch) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each run of differences, as offsets in the concatenated covers."""
    gaps, lengths = _columns(delta_patch.run_positions, delta_patch.run_count, 2, delta_patch.new_size)
    position = 0
    for gap, length in zip(gaps, lengths, strict=True):
        if not length:
            raise Malformed("a run of differences has no bytes")
        yield position + gap, position + gap + length
        position += gap + length


def _columns(stream: patch.CompressedStream, rows: int, columns: int, limit: int) -> "list[array[int]]":
    """Read a table of numbers stored by column.

    Raises:
        Malformed: the stream has a wrong number of values.
    """
    if rows * columns > stream.size:
        raise Malformed("a table has fewer numbers than announced")
    if stream.size > min(rows * columns * MAX_NUMBER_BYTES, patch.MAX_LIST_BYTES):
        raise Malformed("there are more numbers than announced, or than any delta needs")
    reader = VarintReader(StreamReader(stream, bytes).take(stream.size))
    number_columns = [array("Q", (reader.number(limit) for _ in range(rows))) for _ in range(columns)]
    if not reader.is_at_end:
        raise Malformed("there are more numbers than announced")
    return number_columns
