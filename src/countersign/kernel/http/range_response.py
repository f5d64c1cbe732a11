"""Responses with all stored bytes or a range of them, with validators and digests (RFC 9110 §13, §14; RFC 9530)."""

import base64
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import quote

from countersign.kernel.blobs.port import BlobStore
from countersign.kernel.errors import Refused, invalid_parameter
from countersign.kernel.http import response
from countersign.kernel.http.request import Headers
from countersign.kernel.http.response import Response

_NUMBER = r"([0-9]{1,18})"
_CONTENT_RANGE = re.compile(rf"bytes {_NUMBER}-{_NUMBER}/{_NUMBER}")
_RANGE = re.compile(r"bytes=[ \t]*([0-9]{0,18})-([0-9]{0,18})[ \t]*", re.IGNORECASE)


class ByteRange(NamedTuple):
    """The bytes from `start` (inclusive) to `stop` (exclusive)."""

    start: int
    stop: int

    @property
    def length(self) -> int:
        """Return the number of bytes in the range."""
        return self.stop - self.start


class RangeNotSatisfiable(Refused):
    """The range begins beyond the end of the content."""

    status = 416
    code = "range_not_satisfiable"
    title = "Range not satisfiable"
    resolution = "Request a range within the size that Content-Range names."


def content_range(header: str, size: int) -> ByteRange:
    """Return the range of a request's body, from its Content-Range: `bytes FIRST-LAST/SIZE`.

    Raises:
        InvalidRequest: the header has a wrong format or names a size other than `size`, or the range is empty or beyond
            the end.
    """
    range_match = _CONTENT_RANGE.fullmatch(header)
    if range_match is None:
        raise invalid_parameter("Content-Range", "must read bytes FIRST-LAST/SIZE, for example bytes 0-1023/4096")
    start, last, total_size = (int(number) for number in range_match.groups())
    if total_size != size:
        raise invalid_parameter("Content-Range", f"names the size {total_size}, but {size} was announced")
    if start > last or last >= size:
        raise invalid_parameter("Content-Range", f"must lie within 0-{size - 1} and not end before it begins")
    return ByteRange(start, last + 1)


def requested_range(header: str | None, size: int) -> ByteRange | None:
    """Return the range that the header Range requests, or None for all bytes.

    The header is ignored if it is malformed, has another unit, or names several ranges (RFC 9110 §14.2).

    Raises:
        RangeNotSatisfiable: the range begins beyond the end, or consists of the last 0 bytes. The error's header
            Content-Range names the size.
    """
    range_match = _RANGE.fullmatch(header) if header is not None else None
    if range_match is None:
        return None
    first_byte, last_byte = range_match.groups()
    if first_byte and last_byte and int(last_byte) < int(first_byte):
        return None
    if first_byte:
        start, stop = int(first_byte), min(int(last_byte) + 1, size) if last_byte else size
    elif last_byte:
        start, stop = max(0, size - int(last_byte)), size
    else:
        return None
    if start >= stop:
        raise RangeNotSatisfiable(
            f"the range is beyond the end of {size} bytes", headers={"Content-Range": f"bytes */{size}"}
        )
    return ByteRange(start, stop)


OCTETS = "application/octet-stream"

RANGE_REQUEST_HEADERS = ("Range", "If-Range", "If-None-Match")
"""The request headers that a route for stored bytes reads, for its option `reads`."""
_NOT_MODIFIED_HEADERS = ("ETag", "Cache-Control", "Accept-Ranges")
_RANGE_HEADERS = (*_NOT_MODIFIED_HEADERS, "Repr-Digest", "Content-Disposition")
RANGE_RESPONSE_HEADERS: Mapping[int, tuple[str, ...]] = {
    200: _RANGE_HEADERS,
    206: (*_RANGE_HEADERS, "Content-Range"),
    304: _NOT_MODIFIED_HEADERS,
}
"""The response headers of such a route for each status, for its option `sends`."""


@dataclass(frozen=True, slots=True)
class StoredContent:
    """A blob to serve. `caching` is the value of Cache-Control, and `headers` are additional headers."""

    sha256: str
    size: int
    caching: str
    media_type: str = OCTETS
    headers: tuple[tuple[str, str], ...] = field(default=())

    @property
    def etag(self) -> str:
        """Return the strong entity tag, which contains the SHA-256."""
        return f'"{self.sha256}"'


def attachment(filename: str) -> str:
    """Return the Content-Disposition for a download. It contains the file name in ASCII for old clients and in UTF-8
    for all others (RFC 6266, RFC 8187)."""
    plain = "".join(c if " " <= c <= "~" and c not in '"\\%' else "_" for c in filename)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(filename, safe='')}"


async def range_response(
    blobs: BlobStore,
    request: Headers,
    stored: StoredContent,
    before_first_byte: Callable[[], Awaitable[None]] | None = None,
) -> Response:
    """Return the response 304, 206 or 200, according to If-None-Match, If-Range and Range.
    `before_first_byte` is awaited before the first byte of the blob is sent. It is not called for HEAD, nor for a range
    that begins after the first byte.

    Raises:
        RangeNotSatisfiable: the range is beyond the end.
    """
    common = (*stored.headers, ("Cache-Control", stored.caching), ("Accept-Ranges", "bytes"))
    if response.if_none_match_matches(request.get("if-none-match"), stored.etag):
        return Response(304, headers=common, etag=stored.etag)
    is_unchanged = request.get("if-range") in (None, stored.etag)
    byte_range = requested_range(request.get("range"), stored.size) if is_unchanged else None
    span = byte_range or ByteRange(0, stored.size)
    digest = base64.b64encode(bytes.fromhex(stored.sha256)).decode()
    headers = (*common, ("Content-Length", str(span.length)), ("Repr-Digest", f"sha-256=:{digest}:"))
    if byte_range is not None:
        headers = (*headers, ("Content-Range", f"bytes {span.start}-{span.stop - 1}/{stored.size}"))
    body = _bytes(blobs, stored.sha256, span, before_first_byte if span.start == 0 else None)
    return Response(206 if byte_range is not None else 200, body, stored.media_type, headers, stored.etag)


async def _bytes(
    blobs: BlobStore, sha256: str, span: ByteRange, before_first_byte: Callable[[], Awaitable[None]] | None
) -> AsyncIterator[bytes]:
    if before_first_byte is not None:
        await before_first_byte()
    async for piece in blobs.read(sha256, span.start, span.stop):
        yield piece
