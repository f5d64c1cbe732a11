"""Changes stored bytes directly."""

from pathlib import Path

import pytest

from countersign.kernel.blobs.local import LocalBlobs
from countersign.store.context import Store


async def writable_file(store: Store, sha256: str) -> Path:
    """Return the file of the blob, and make it writable."""
    if not isinstance(store.blobs, LocalBlobs):
        pytest.skip("bytes are changed in a directory; a bucket keeps its own")
    path = await store.blobs.file(sha256, Path())
    path.chmod(0o600)
    return path


async def flip(store: Store, sha256: str, at: int) -> None:
    """Change one bit of a blob."""
    path = await writable_file(store, sha256)
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
