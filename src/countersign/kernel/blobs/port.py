"""The interface of blob stores.

Bytes are staged while they arrive. When an upload is complete, it is sealed: its bytes become a blob, which never
changes and is named by its SHA-256.
"""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from countersign.kernel.clock import Instant
from countersign.kernel.errors import Refused


class Part(NamedTuple):
    """A received range of an upload: `length` bytes from `offset`, with their SHA-256 in hexadecimal."""

    offset: int
    length: int
    sha256: str


class StagedUpload(NamedTuple):
    """An upload with staged bytes, and its last change; for garbage collection."""

    upload: str
    changed_at: Instant


class SealedBlob(NamedTuple):
    """A sealed blob: its digest, its last change, and its size; for garbage collection."""

    sha256: str
    changed_at: Instant
    size: int


class ChecksumMismatch(Refused):
    """The received bytes do not match the announced digest; they are not stored."""

    status = 422
    code = "checksum_mismatch"
    title = "Checksum mismatch"
    resolution = "Compute size and SHA-256 of the file again and start a new upload."


class BlobStore(Protocol):
    """Stored bytes, addressed by their SHA-256 in lower-case hexadecimal.

    Any method may raise StorageFull (no space, nothing stored) or Unavailable (the store cannot be reached).
    """

    async def stage(self, upload: str, offset: int, chunks: AsyncIterator[bytes]) -> Part:
        """Store the range of an upload that begins at `offset`, in constant memory. The range is durable on return.

        A range that is sent again replaces the previous one. If `chunks` raises, the bytes of this call are discarded
        and the exception propagates.
        """
        ...

    async def seal(self, upload: str, parts: Sequence[Part], size: int, sha256: str | None) -> str:
        """Combine the staged parts, which together cover 0…size exactly, into a blob; returns its SHA-256.

        Bytes already stored under that digest are not stored twice. The staged bytes stay until `discard`.

        Raises:
            ChecksumMismatch: the bytes do not have the announced digest (`sha256`, when given).
        """
        ...

    async def put(self, data: bytes) -> str:
        """Store `data` as a blob, which is durable on return; returns the SHA-256 of the blob.

        Raises:
            StorageFull, Unavailable: the store does not accept the bytes, and no blob was created.
        """
        ...

    async def discard(self, upload: str) -> None:
        """Remove the staged bytes of the upload, if any."""
        ...

    async def size(self, sha256: str) -> int | None:
        """Return the size in bytes of a sealed blob, or None if it does not exist."""
        ...

    def read(self, sha256: str, start: int, stop: int) -> AsyncIterator[bytes]:
        """Yield the bytes `start` (inclusive) to `stop` (exclusive) of a sealed blob, in pieces of at most 1 MiB.

        Raises:
            NotFound: the blob does not exist.
        """
        ...

    async def file(self, sha256: str, folder: Path) -> Path:
        """Return the path of a read-only file with the blob's bytes. A remote store downloads it into the folder.

        Raises:
            NotFound: the blob does not exist.
        """
        ...

    async def delete(self, sha256: str) -> None:
        """Remove a sealed blob, if it exists."""
        ...

    def staged_uploads(self) -> AsyncIterator[StagedUpload]:
        """Yield every upload with staged bytes; for garbage collection."""
        ...

    def sealed_blobs(self) -> AsyncIterator[SealedBlob]:
        """Yield every sealed blob, in the order of the digests; for garbage collection."""
        ...

    async def marker(self) -> bytes | None:
        """Return the content of the marker, at most `layout.MAX_MARKER_BYTES`, or None if there is no marker."""
        ...

    async def mark(self, content: bytes, *, is_new: bool) -> bool:
        """Write the marker, which names the owner of the store and is durable on return. With `is_new`, an existing
        marker stays unchanged, and the result is False."""
        ...

    async def clear(self) -> None:
        """Remove all blobs, all staged bytes, and finally the marker, but no other objects. After an interruption, the
        next call continues."""
        ...

    async def signed_url(self, sha256: str, filename: str, ttl_s: int) -> str | None:
        """Return a URL that serves the blob to anyone for `ttl_s` seconds, or None if the store does not support
        that."""
        ...

    async def check(self) -> None:
        """Write, read back and remove a few bytes.

        Raises:
            Unavailable, StorageFull: the store cannot be written or read.
        """
        ...
