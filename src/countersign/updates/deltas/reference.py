"""Several stretches of bytes as one: what a patch refers to."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from countersign.updates.numbers import Malformed


class Reference:
    """Pieces of bytes one after another."""

    def __init__(self, pieces: Iterable[bytes | memoryview]) -> None:
        self._pieces = [memoryview(piece) for piece in pieces if len(piece)]
        self._starts: list[int] = []
        self.size = 0
        for piece in self._pieces:
            self._starts.append(self.size)
            self.size += len(piece)

    def slices(self, start: int, length: int, most: int = 1 << 20) -> Iterator[bytes]:
        """The `length` bytes from `start` on, at most `most` at a time.

        Raises:
            Malformed: they do not lie inside.
        """
        if start < 0 or length < 0 or start + length > self.size:
            raise Malformed("a delta refers to bytes outside of the old files")
        place = bisect_right(self._starts, start) - 1
        at = start - self._starts[place] if length else 0
        while length:
            found = self._pieces[place][at : at + min(length, most)]
            yield bytes(found)
            at += len(found)
            length -= len(found)
            if at == len(self._pieces[place]):
                place, at = place + 1, 0

    def joined(self) -> bytes:
        """All of it as one piece."""
        return b"".join(self._pieces)
