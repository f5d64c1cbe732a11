"""The port to stored bytes: staged while they arrive, sealed under their SHA-256 when whole."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from countersign.kernel.clock import Instant
from countersign.kernel.errors import Refused


class Part(NamedTuple):
    """A received stretch of an upload: `length` bytes from `offset`, with their SHA-256 in hexadecimal."""

    offset: int
    length: int
    sha256: str


class Staged(NamedTuple):
    """An upload with staged bytes, and when it was last written; for the collector."""

    upload: str
    changed_at: Instant


class Sealed(NamedTuple):
    """A sealed blob: its digest, when it was last written, and its bytes; for the collector."""

    sha256: str
    changed_at: Instant
    size: int


class ChecksumMismatch(Refused):
    """The bytes that arrived are not the bytes that were announced; nothing of them is kept."""

    status = 422
    code = "checksum_mismatch"
    title = "Checksum mismatch"
    resolution = "Compute size and SHA-256 of the file again and start a new upload."


class BlobStore(Protocol):
    """Stored bytes, addressed by their SHA-256 in lower-case hexadecimal.

    Any method may raise StorageFull (no room, nothing kept) or Unavailable (the store cannot be reached).
    """

    async def stage(self, upload: str, offset: int, chunks: AsyncIterator[bytes]) -> Part:
        """Store a stretch of an upload from `offset` on; durable when it returns, in constant memory.

        The same stretch may be sent again and replaces what was there. If `chunks` raises, nothing that was
        staged by this call counts and the exception passes through.
        """
        ...

    async def seal(self, upload: str, parts: Sequence[Part], size: int, sha256: str | None) -> str:
        """Make the staged parts, which together cover 0…size exactly, a blob; returns its SHA-256.

        Bytes already stored under that digest are not stored twice. The staged bytes stay until `discard`.

        Raises:
            ChecksumMismatch: the bytes do not have the announced digest (`sha256`, when given).
        """
        ...

    async def put(self, data: bytes) -> str:
        """Store bytes that are in memory as a blob, durable when it returns; its SHA-256.

        Raises:
            StorageFull, Unavailable: the store does not take them; no blob is made.
        """
        ...

    async def discard(self, upload: str) -> None:
        """Remove whatever is staged for the upload; nothing to remove is fine."""
        ...

    async def size(self, sha256: str) -> int | None:
        """The size in bytes of a sealed blob, or None when there is none."""
        ...

    def read(self, sha256: str, start: int, stop: int) -> AsyncIterator[bytes]:
        """The bytes `start` (inclusive) to `stop` (exclusive) of a sealed blob, in pieces of at most 1 MiB.

        Raises:
            NotFound: no such blob.
        """
        ...

    async def file(self, sha256: str, folder: Path) -> Path:
        """A file on this machine with the blob's bytes, for reading alone; fetched into the folder where the store
        is elsewhere.

        Raises:
            NotFound: no such blob.
        """
        ...

    async def delete(self, sha256: str) -> None:
        """Remove a sealed blob; nothing to remove is fine."""
        ...

    def staged(self) -> AsyncIterator[Staged]:
        """Every upload that has staged bytes; for the collector."""
        ...

    def sealed(self) -> AsyncIterator[Sealed]:
        """Every sealed blob, in the order of the digests; for the collector."""
        ...

    async def marker(self) -> bytes | None:
        """What `mark` wrote last, at most `layout.MAX_MARKER_BYTES`; None when there is no marker."""
        ...

    async def mark(self, content: bytes, *, is_new: bool) -> bool:
        """Write the marker, which says whose store this is; durable when it returns. `is_new` leaves a marker that is
        there as it is, and returns False."""
        ...

    async def clear(self) -> None:
        """Remove all blobs, all that is staged, and then the marker; nothing else at the place is touched. Interrupted,
        the next call goes on."""
        ...

    async def signed_url(self, sha256: str, filename: str, ttl_s: int) -> str | None:
        """An address that gives the blob to anyone for `ttl_s` seconds, or None where the store has no such thing."""
        ...

    async def check(self) -> None:
        """Write, read back and remove a few bytes.

        Raises:
            Unavailable, StorageFull: the store cannot be written or read.
        """
        ...
