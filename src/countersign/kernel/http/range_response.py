"""An answer of stored bytes: whole or a range of them, with validators and digests (RFC 9110 §13, §14; 9530)."""

import base64
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from countersign.kernel.blobs.port import BlobStore
from countersign.kernel.http import conditional
from countersign.kernel.http.ranges import Span, wanted_range
from countersign.kernel.http.request import Headers
from countersign.kernel.http.response import Answer

OCTETS = "application/octet-stream"

READS = ("Range", "If-Range", "If-None-Match")
_KEPT = ("ETag", "Cache-Control", "Accept-Ranges")
_SENDS = (*_KEPT, "Repr-Digest", "Content-Disposition")
SENDS: Mapping[int, tuple[str, ...]] = {200: _SENDS, 206: (*_SENDS, "Content-Range"), 304: _KEPT}
"""What an answer of stored bytes looks at and says, for its route's `reads` and `sends`."""


@dataclass(frozen=True, slots=True)
class Stored:
    """Sealed bytes as they are offered. `caching` is the Cache-Control, `headers` come beside the usual ones."""

    sha256: str
    size: int
    caching: str
    media_type: str = OCTETS
    headers: tuple[tuple[str, str], ...] = field(default=())

    @property
    def etag(self) -> str:
        """The strong entity tag: the SHA-256 itself."""
        return f'"{self.sha256}"'


def attachment(filename: str) -> str:
    """A Content-Disposition that saves under the name: ASCII for old clients, UTF-8 for all others (RFC 6266, 8187)."""
    plain = "".join(c if " " <= c <= "~" and c not in '"\\%' else "_" for c in filename)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(filename, safe='')}"


async def answer(
    blobs: BlobStore,
    request: Headers,
    stored: Stored,
    begin: Callable[[], Awaitable[None]] | None = None,
) -> Answer:
    """304, 206 or 200, as If-None-Match, If-Range and Range ask. `begin` is awaited when bytes from the first one
    on are about to be sent, and neither for HEAD nor for a range that begins later.

    Raises:
        RangeNotSatisfiable: the range lies beyond the end.
    """
    common = (*stored.headers, ("Cache-Control", stored.caching), ("Accept-Ranges", "bytes"))
    if conditional.none_match(request.get("if-none-match"), stored.etag):
        return Answer(304, headers=common, etag=stored.etag)
    unchanged = request.get("if-range") in (None, stored.etag)
    wanted = wanted_range(request.get("range"), stored.size) if unchanged else None
    span = wanted or Span(0, stored.size)
    digest = base64.b64encode(bytes.fromhex(stored.sha256)).decode()
    headers = (*common, ("Content-Length", str(span.length)), ("Repr-Digest", f"sha-256=:{digest}:"))
    if wanted is not None:
        headers = (*headers, ("Content-Range", f"bytes {span.start}-{span.stop - 1}/{stored.size}"))
    body = _bytes(blobs, stored.sha256, span, begin if span.start == 0 else None)
    return Answer(206 if wanted is not None else 200, body, stored.media_type, headers, stored.etag)


async def _bytes(
    blobs: BlobStore, sha256: str, span: Span, begin: Callable[[], Awaitable[None]] | None
) -> AsyncIterator[bytes]:
    if begin is not None:
        await begin()
    async for piece in blobs.read(sha256, span.start, span.stop):
        yield piece
