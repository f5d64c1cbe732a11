"""Byte ranges (RFC 9110 §14): what a Range asks for, and what a Content-Range says a body is."""

import re
from typing import NamedTuple

from countersign.kernel.errors import Refused, invalid_parameter

_NUMBER = r"([0-9]{1,18})"
_CONTENT_RANGE = re.compile(rf"bytes {_NUMBER}-{_NUMBER}/{_NUMBER}")
_RANGE = re.compile(r"bytes=[ \t]*([0-9]{0,18})-([0-9]{0,18})[ \t]*", re.IGNORECASE)


class Span(NamedTuple):
    """The bytes from `start` (inclusive) to `stop` (exclusive)."""

    start: int
    stop: int

    @property
    def length(self) -> int:
        """How many bytes these are."""
        return self.stop - self.start


class RangeNotSatisfiable(Refused):
    """The range lies beyond the end."""

    status = 416
    code = "range_not_satisfiable"
    title = "Range not satisfiable"
    resolution = "Ask for a range within the size that Content-Range names."


def content_range(header: str, size: int) -> Span:
    """The stretch that the body of a request is, from its Content-Range: `bytes FIRST-LAST/SIZE`.

    Raises:
        InvalidRequest: another form, another size than `size`, or a stretch that is empty or reaches beyond it.
    """
    matched = _CONTENT_RANGE.fullmatch(header)
    if matched is None:
        raise invalid_parameter("Content-Range", "must read bytes FIRST-LAST/SIZE, for example bytes 0-1023/4096")
    first, last, whole = (int(number) for number in matched.groups())
    if whole != size:
        raise invalid_parameter("Content-Range", f"names the size {whole}, and {size} was announced")
    if first > last or last >= size:
        raise invalid_parameter("Content-Range", f"must lie within 0-{size - 1} and not end before it begins")
    return Span(first, last + 1)


def wanted_range(header: str | None, size: int) -> Span | None:
    """The stretch that Range asks for, or None for the whole: without the header, in another unit, malformed, or
    several ranges at once (a server may ignore Range, RFC 9110 §14.2).

    Raises:
        RangeNotSatisfiable: it begins beyond the end, or asks for the last 0 bytes; Content-Range names the size.
    """
    matched = _RANGE.fullmatch(header) if header is not None else None
    if matched is None:
        return None
    first, last = matched.groups()
    if first and last and int(last) < int(first):
        return None
    if first:
        start, stop = int(first), min(int(last) + 1, size) if last else size
    elif last:
        start, stop = max(0, size - int(last)), size
    else:
        return None
    if start >= stop:
        raise RangeNotSatisfiable(
            f"the range lies beyond the {size} bytes there are", headers={"Content-Range": f"bytes */{size}"}
        )
    return Span(start, stop)
