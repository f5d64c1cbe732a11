"""Hard links of a tar file: the bytes of an earlier entry, read once more, within a bound."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from countersign.archives.refusals import ArchiveRefused
from countersign.archives.stretch import PIECE_BYTES, Reader

MAX_REREAD_FACTOR = 4
"""How many times the bytes that lie before a hard link may be passed over again for the links up to it."""
MIN_REREAD_BYTES = 64 << 20
"""So much may always be passed over again."""
_LARGEST_CACHED = 8 << 20
_CACHE_BYTES = 32 << 20

Open: TypeAlias = Callable[[], Reader]
"""Begins the unpacked stream anew."""


class Place(NamedTuple):
    """Where the bytes of a regular file stand in the unpacked stream, and its mode."""

    start: int
    size: int
    mode: int


class LinkedFiles:
    """Reads files of the stream again. A stream that cannot go back is begun anew, unless the next place lies ahead;
    small files are cached, because hard links mostly name a few of them. What is passed over on the way is bounded by
    what was read before, so that hard links cost no more than a multiple of the archive."""

    def __init__(self, begin: Open) -> None:
        self._begin = begin
        self._reader: Reader | None = None
        self._cache: OrderedDict[int, bytes] = OrderedDict()
        self._cached_bytes = 0
        self._passed = 0

    def pieces(self, place: Place, position: int, entry: str) -> Iterator[bytes]:
        """The bytes of a file that stands in the stream, for the entry whose header ends at `position`.

        Raises:
            ArchiveRefused: `hard-link`: too much would be passed over again.
        """
        cached = self._cache.get(place.start)
        if cached is not None:
            self._cache.move_to_end(place.start)
            yield from _cut(cached)
            return
        reader = self._at(place.start, position, entry)
        if place.size <= _LARGEST_CACHED:
            data = reader.exactly(place.size)
            self._keep(place.start, data)
            yield from _cut(data)
            return
        left = place.size
        while left:
            data = reader.exactly(min(left, PIECE_BYTES))
            left -= len(data)
            yield data

    def _at(self, start: int, position: int, entry: str) -> Reader:
        """A reader of the stream that stands at `start`."""
        if self._reader is None or self._reader.position > start:
            self._reader = self._begin()
        passing = start - self._reader.position
        if not self._reader.can_jump:
            self._passed += passing
            if self._passed > max(MIN_REREAD_BYTES, MAX_REREAD_FACTOR * position):
                detail = f"hard links go back so often that more than {self._passed} bytes would be read again"
                raise ArchiveRefused("hard-link", detail, entry=entry)
        self._reader.skip(passing)
        return self._reader

    def _keep(self, start: int, data: bytes) -> None:
        self._cache[start] = data
        self._cached_bytes += len(data)
        while self._cached_bytes > _CACHE_BYTES:
            _, dropped = self._cache.popitem(last=False)
            self._cached_bytes -= len(dropped)


def _cut(data: bytes) -> Iterator[bytes]:
    return (data[at : at + PIECE_BYTES] for at in range(0, len(data), PIECE_BYTES))
