"""The names of stored objects, the size of pieces, and the assembly of a blob from parts."""

import heapq
import itertools
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from typing import NamedTuple

from countersign.kernel.blobs.port import ChecksumMismatch, Part
from countersign.kernel.errors import NotFound

PIECE_BYTES = 1024 * 1024
"""The size of one read, hash update or write."""

MARKER = "installation.json"
"""The name of the object that says which installation owns the blob store."""
MAX_MARKER_BYTES = 4096
FOLDERS = ("staging", "sealed")
"""The folders of a local store."""

_UPLOAD = re.compile(r"[0-9a-zA-Z-]{1,64}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


class PartRange(NamedTuple):
    """The bytes `start` (inclusive) to `stop` (exclusive) of the blob, which come from one part."""

    part: Part
    start: int
    stop: int

    @property
    def is_whole_part(self) -> bool:
        """Whether the range is the complete part."""
        return (self.start, self.stop) == (self.part.offset, self.part.offset + self.part.length)


def is_digest(text: str) -> bool:
    """Return whether the text is a SHA-256 in lower-case hexadecimal."""
    return _DIGEST.fullmatch(text) is not None


def upload_name(upload: str) -> str:
    """Return the upload's id after validating it as a path segment.

    Raises:
        NotFound: the id is not 1 to 64 letters, digits and hyphens, so that no upload can have it.
    """
    if _UPLOAD.fullmatch(upload) is None:
        raise NotFound("There is no such upload.")
    return upload


def sealed_name(sha256: str) -> str:
    """Return the path of a sealed blob in the store; two levels keep folders small.

    Raises:
        NotFound: the text is not a SHA-256 in lower-case hexadecimal, so that no blob can have it.
    """
    if not is_digest(sha256):
        raise NotFound("There is no such blob.")
    return f"sealed/{sha256[:2]}/{sha256[2:4]}/{sha256}"


def part_name(part: Part) -> str:
    """Return a part's name in its upload.

    The name contains the digest of the bytes, so that different bytes for the same range, sent concurrently or later,
    cannot replace this part.

    Raises:
        NotFound: the part's SHA-256 is malformed.
    """
    if not is_digest(part.sha256):
        raise NotFound("There is no such part.")
    return f"{part.offset:016x}-{part.length:x}-{part.sha256}"


def part_ranges(parts: Sequence[Part], size: int) -> list[PartRange]:
    """Return the ranges of the blob in order. Where parts overlap, the part that comes later in `parts` is used.

    Raises:
        ValueError: the parts have a gap in 0…size, or extend beyond it.
    """
    edges = sorted({0, size} | {edge for part in parts for edge in (part.offset, part.offset + part.length)})
    if edges[0] < 0 or edges[-1] > size:
        raise ValueError(f"parts reach beyond 0…{size}: {edges[0]}…{edges[-1]}")
    laid: list[PartRange] = []
    for start, stop, part in _latest(parts, edges):
        if laid and laid[-1].part is part:
            laid[-1] = laid[-1]._replace(stop=stop)
        else:
            laid.append(PartRange(part, start, stop))
    return laid


def _latest(parts: Sequence[Part], edges: Sequence[int]) -> Iterator[tuple[int, int, Part]]:
    """Yield each range between two edges with the latest of the parts that cover it."""
    pending_parts = sorted(enumerate(parts), key=lambda numbered_part: numbered_part[1].offset, reverse=True)
    covering_parts: list[tuple[int, Part]] = []
    for start, stop in itertools.pairwise(edges):
        while pending_parts and pending_parts[-1][1].offset <= start:
            order, part = pending_parts.pop()
            heapq.heappush(covering_parts, (-order, part))
        while covering_parts and covering_parts[0][1].offset + covering_parts[0][1].length <= start:
            heapq.heappop(covering_parts)
        if not covering_parts:
            raise ValueError(f"no part covers {start}…{stop}")
        yield start, stop, covering_parts[0][1]


def check_digest(digest: str, announced: str | None) -> None:
    """Compare the digest of the received bytes with the announced one, if any.

    Raises:
        ChecksumMismatch: the digests differ.
    """
    if announced is not None and announced != digest:
        raise ChecksumMismatch(f"The bytes have the SHA-256 {digest}, but {announced} was announced.")


def missing_part_refusal() -> ChecksumMismatch:
    """Return the refusal for a received part that is missing or has a different size."""
    return ChecksumMismatch("A received part is missing.")


async def rechunk(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes | bytearray, None]:
    """Yield the same bytes in pieces of at least PIECE_BYTES; the last piece may be shorter."""
    piece = bytearray()
    async for chunk in chunks:
        if not piece and len(chunk) >= PIECE_BYTES:
            yield chunk
            continue
        piece += chunk
        if len(piece) >= PIECE_BYTES:
            yield piece
            piece = bytearray()
    if piece:
        yield piece
