"""The old files of a delta as one stretch of bytes: each as it is, then what its archives hold."""

import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from countersign.updates.numbers import Malformed
from countersign.updates.unfold.folding import reference
from countersign.updates.unfold.spans import HEAD_BYTES, Budget, may_hold_streams

PIECE = 1 << 20


class Piece(Protocol):
    """A stretch of bytes."""

    @property
    def size(self) -> int:
        """How many there are."""
        ...

    def read(self, at: int, length: int) -> bytes:
        """The bytes from `at` on, `length` or fewer.

        Raises:
            OSError: they cannot be read.
        """
        ...


class Held:
    """Bytes in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)

    def read(self, at: int, length: int) -> bytes:
        """The bytes from `at` on."""
        return self._data[at : at + length]


class Stored:
    """A file, opened for each reading: there may be more files than may be open."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.size = path.stat().st_size

    def read(self, at: int, length: int) -> bytes:
        """The bytes from `at` on."""
        descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0))
        try:
            return os.pread(descriptor, length, at)
        finally:
            os.close(descriptor)


class Reference:
    """The files, one after another, and what their archives hold. `unfolded` is how many bytes of it are in memory."""

    def __init__(self, files: Sequence[Piece], budget: Budget) -> None:
        """Take the archives among the files apart, as far as the budget goes.

        Raises:
            OSError: a file cannot be read.
        """
        self._pieces: list[Piece] = []
        self.unfolded = 0
        for file in files:
            self._pieces.append(file)
            if may_hold_streams(file.read(0, HEAD_BYTES), file.size):
                inner = [Held(piece) for piece in reference(file.read(0, file.size), budget)][1:]
                self.unfolded += sum(piece.size for piece in inner)
                self._pieces += inner
        self._pieces = [piece for piece in self._pieces if piece.size]
        self._starts: list[int] = []
        self.size = 0
        for piece in self._pieces:
            self._starts.append(self.size)
            self.size += piece.size

    def slices(self, start: int, length: int) -> Iterator[bytes]:
        """The `length` bytes from `start` on, at most PIECE at a time.

        Raises:
            Malformed: they do not lie inside, or a file has become shorter.
            OSError: a file cannot be read.
        """
        if start < 0 or start + length > self.size:
            raise Malformed("a delta refers to bytes outside of the old files")
        place = bisect_right(self._starts, start) - 1
        while length:
            at = start - self._starts[place]
            wanted = min(length, PIECE, self._pieces[place].size - at)
            found = self._pieces[place].read(at, wanted)
            if len(found) != wanted:
                raise Malformed("an old file has changed while it was read")
            yield found
            start, length = start + wanted, length - wanted
            place += at + wanted == self._pieces[place].size

    def joined(self) -> bytes:
        """All of it as one piece."""
        if len(self._pieces) == 1:
            return self._pieces[0].read(0, self.size)
        return b"".join(self.slices(0, self.size))
