"""Hard links of a tar file: the bytes of an earlier entry, read once more."""

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from countersign.archives.stretch import PIECE_BYTES, Reader

_KEPT_BYTES = 8 << 20

Open: TypeAlias = Callable[[], Reader]
"""Begins the unpacked stream anew."""


class Place(NamedTuple):
    """Where the bytes of a regular file stand in the unpacked stream, and its mode."""

    start: int
    size: int
    mode: int


class Again:
    """Reads files of the stream again. A stream that cannot go back is begun anew, unless the next place lies
    ahead; the last file is kept where it is small, because names of one file mostly follow each other."""

    def __init__(self, begin: Open) -> None:
        self._begin = begin
        self._reader: Reader | None = None
        self._kept: tuple[int, bytes] = (-1, b"")

    def pieces(self, place: Place) -> Iterator[bytes]:
        """The bytes of a file that stands in the stream."""
        if self._kept[0] == place.start:
            yield from _cut(self._kept[1])
            return
        if self._reader is None or self._reader.position > place.start:
            self._reader = self._begin()
        reader = self._reader
        reader.skip(place.start - reader.position)
        if place.size <= _KEPT_BYTES:
            self._kept = (place.start, reader.exactly(place.size))
            yield from _cut(self._kept[1])
            return
        left = place.size
        while left:
            data = reader.exactly(min(left, PIECE_BYTES))
            left -= len(data)
            yield data


def _cut(data: bytes) -> Iterator[bytes]:
    return (data[at : at + PIECE_BYTES] for at in range(0, len(data), PIECE_BYTES))
