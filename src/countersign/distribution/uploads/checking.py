"""Whether the blobs are there and are what their names say."""

import hashlib
from collections.abc import AsyncIterator
from typing import Literal, NamedTuple, TypeAlias

from countersign.distribution.uploads import blobs
from countersign.kernel import clock
from countersign.kernel.blobs.port import BlobStore
from countersign.kernel.database.port import Reader
from countersign.kernel.errors import NotFound

AT_ONCE = 1000
SPARED_S = 3600

What: TypeAlias = Literal["missing", "changed", "surplus"]
"""The store does not have the blob; it has other bytes; or the database does not know it, and it is not new."""


class Blob(NamedTuple):
    """A blob that was looked at, its bytes, and what is wrong with it, if anything."""

    sha256: str
    size: int
    what: What | None


async def looked_at(reader: Reader, store: BlobStore) -> AsyncIterator[Blob]:
    """Every blob that is in use, read from its first byte to its last; then those that nothing knows.

    Raises:
        Unavailable: database or store cannot be read.
    """
    last = ""
    while rows := await reader.fetch(blobs.LIVE, last, AT_ONCE):
        for (sha256,) in rows:
            found = await _read(store, sha256)
            # One that is not used any more may go at any time.
            if found.what is None or await blobs.is_live(reader, sha256):
                yield found
        last = rows[-1][0]
    before = clock.later(clock.now(), seconds=-SPARED_S)
    async for sha256, changed_at, _ in store.sealed():
        if changed_at < before and not await blobs.is_known(reader, sha256):
            yield Blob(sha256, await store.size(sha256) or 0, "surplus")


async def _read(store: BlobStore, sha256: str) -> Blob:
    size = await store.size(sha256)
    if size is None:
        return Blob(sha256, 0, "missing")
    digest = hashlib.sha256()
    try:
        async for piece in store.read(sha256, 0, size):
            digest.update(piece)
    except NotFound:
        return Blob(sha256, 0, "missing")
    return Blob(sha256, size, None if digest.hexdigest() == sha256 else "changed")
