"""Encoded answers kept in memory while the versions they were made from last."""

from collections import OrderedDict
from dataclasses import dataclass

MAX_OFFERED = 10_000


@dataclass(slots=True)
class Page:
    """An encoded 200 answer to anonymous callers, and the versions it was read under."""

    versions: tuple[int, ...]
    body: bytes
    etag: str
    headers: tuple[tuple[bytes, bytes], ...]


class Pages:
    """The most recently used answers, bounded by their bytes. A page of older versions is never given out."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._used_bytes = 0
        self._offered: set[tuple[bytes, bytes]] = set()
        self._pages: OrderedDict[tuple[bytes, bytes], Page] = OrderedDict()

    def get(self, target: tuple[bytes, bytes], versions: tuple[int, ...]) -> Page | None:
        """The page of a raw path and query, when it is of exactly these versions."""
        page = self._pages.get(target)
        if page is None:
            return None
        if page.versions != versions:
            self._drop(target)
            return None
        self._pages.move_to_end(target)
        return page

    def put(self, target: tuple[bytes, bytes], page: Page) -> None:
        """Keep the page, from the second time it is offered on; the least recently used ones make room.

        Most pages of a walk through a large catalog are asked for once: keeping those would only push out the ones
        that are asked for again. One over a sixteenth of the room is not kept.
        """
        if target not in self._offered:
            if len(self._offered) >= MAX_OFFERED:
                self._offered.clear()
            self._offered.add(target)
            return
        if _bytes_of(target, page) > self._limit_bytes // 16:
            return
        self._drop(target)
        self._pages[target] = page
        self._used_bytes += _bytes_of(target, page)
        while self._used_bytes > self._limit_bytes:
            oldest, old = self._pages.popitem(last=False)
            self._used_bytes -= _bytes_of(oldest, old)

    def _drop(self, target: tuple[bytes, bytes]) -> None:
        page = self._pages.pop(target, None)
        if page is not None:
            self._used_bytes -= _bytes_of(target, page)


def _bytes_of(target: tuple[bytes, bytes], page: Page) -> int:
    return len(target[0]) + len(target[1]) + len(page.body) + 512
