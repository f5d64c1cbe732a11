"""Encoded answers kept in memory while the versions they were made from last."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import TypeAlias

Target: TypeAlias = tuple[bytes, bytes]
"""A raw path and a query string, as they were sent."""

MAX_ASKED = 10_000


@dataclass(slots=True)
class Page:
    """An encoded 200 answer to anonymous callers, and the versions it was read under; `headers` lack its entity tag."""

    versions: tuple[int, ...]
    body: bytes
    etag: str
    headers: tuple[tuple[bytes, bytes], ...]


class Pages:
    """The most recently used answers, bounded by their bytes. A page of older versions is never given out."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._used_bytes = 0
        self._asked: set[Target] = set()
        self._pages: OrderedDict[Target, Page] = OrderedDict()

    def is_repeat(self, target: Target) -> bool:
        """Whether a raw path and query was asked for before, as far as is remembered; only then keep its page.

        Most pages of a walk through a large catalog are asked for once: keeping those would only push out the ones
        that are asked for again.
        """
        if target in self._pages or target in self._asked:
            return True
        if len(self._asked) >= MAX_ASKED:
            self._asked.clear()
        self._asked.add(target)
        return False

    def get(self, target: Target, versions: tuple[int, ...]) -> Page | None:
        """The page of a raw path and query, when it is of exactly these versions."""
        page = self._pages.get(target)
        if page is None:
            return None
        if page.versions != versions:
            self._drop(target)
            return None
        self._pages.move_to_end(target)
        return page

    def put(self, target: Target, page: Page) -> None:
        """Keep the page; the least recently used ones make room. One over a sixteenth of the room is not kept."""
        if _bytes_of(target, page) > self._limit_bytes // 16:
            return
        self._drop(target)
        self._pages[target] = page
        self._used_bytes += _bytes_of(target, page)
        while self._used_bytes > self._limit_bytes:
            oldest, old = self._pages.popitem(last=False)
            self._used_bytes -= _bytes_of(oldest, old)

    def _drop(self, target: Target) -> None:
        page = self._pages.pop(target, None)
        if page is not None:
            self._used_bytes -= _bytes_of(target, page)


def _bytes_of(target: Target, page: Page) -> int:
    return len(target[0]) + len(target[1]) + len(page.body) + 512
