"""Making a backup while the installation is served: blobs first, then one moment of the databases."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic

import msgspec

from countersign import __version__
from countersign.backup.archive import ABOUT, BLOBS, FORMAT, About, Manifest, Writing
from countersign.backup.databases import Databases, SnapshotT, Told
from countersign.backup.snapshot import Snapshot
from countersign.kernel import clock
from countersign.kernel.blobs import layout
from countersign.kernel.blobs.port import BlobStore
from countersign.kernel.errors import NotFound

BLOBS_AT_ONCE = 1000
AT_ONCE = 16
SMALL_BYTES = 1024 * 1024
TRIES = 5


@dataclass(frozen=True, slots=True)
class Blobs:
    """Where blobs are, and which the databases refer to: `statement` reads, of the tables of `schema`, the digests
    after $1, in order, $2 at most."""

    store: BlobStore
    schema: str
    statement: str


class Backup(Generic[SnapshotT]):
    """One backup under way.

    The order is what makes it whole. Blobs never change, so all there are can be copied first, for as long as it
    takes, without holding anything. Then the databases are held at one moment, the few blobs that have come since are
    copied, and the databases last. A blob that is removed between the moment and its copy is one that nothing refers
    to any more: a moment after that is taken instead.
    """

    def __init__(
        self, archive: Writing, databases: Databases[SnapshotT], blobs: Blobs | None, told: Told
    ) -> None:
        self._archive = archive
        self._databases = databases
        self._blobs = blobs
        self._told = told
        self._copied: set[bytes] = set()
        self._bytes = 0

    async def begin(self, files: Mapping[str, bytes]) -> None:
        """Write what the archive begins with, the files, and every blob that is referred to now.

        Raises:
            Unavailable, StorageFull: something cannot be read, or the archive not be written.
        """
        databases = self._databases
        began = clock.rfc3339(clock.now())
        about = About(FORMAT, __version__, databases.engine, databases.schemas, began)
        self._archive.add(ABOUT, msgspec.json.encode(about))
        for name, content in files.items():
            self._archive.add(name, content)
        if self._blobs is None:
            return
        last = ""
        while True:
            async with databases.taken() as snapshot:
                rows = await snapshot.fetch(self._blobs.schema, self._blobs.statement, last, BLOBS_AT_ONCE)
            await self._copy_all(self._blobs.store, [row[0] for row in rows])
            if len(rows) < BLOBS_AT_ONCE:
                return
            last = rows[-1][0]

    async def end(self, snapshot: SnapshotT, *, is_last_try: bool) -> Manifest | None:
        """Write the rest: the blobs that this moment refers to and are not copied yet, the databases, the manifest.
        None when a blob is gone and another moment is to be tried first.

        Raises:
            Unavailable, StorageFull: as `begin`.
        """
        unreadable = await self._copy_rest(snapshot)
        if unreadable and not is_last_try:
            return None
        rows = await self._databases.write(snapshot, self._archive, self._told)
        moment = snapshot.moment
        manifest = Manifest(
            moment,
            clock.rfc3339(moment),
            len(self._copied),
            self._bytes,
            dict(self._archive.digests),
            rows,
            tuple(unreadable),
        )
        self._archive.finish(manifest)
        return manifest

    async def _copy_rest(self, snapshot: Snapshot) -> list[str]:
        """Copy what is missing of this moment; the blobs that cannot be had."""
        unreadable: list[str] = []
        if self._blobs is None:
            return unreadable
        last = ""
        while rows := await snapshot.fetch(self._blobs.schema, self._blobs.statement, last, BLOBS_AT_ONCE):
            missing = [row[0] for row in rows if bytes.fromhex(row[0]) not in self._copied]
            unreadable += await self._copy_all(self._blobs.store, missing)
            last = rows[-1][0]
        return unreadable

    async def _copy_all(self, store: BlobStore, digests: Sequence[str]) -> list[str]:
        """Copy the blobs; those that were not there, or are not what their names say. Small ones are fetched several
        at a time, since a store elsewhere takes longer to answer than to send them."""
        failed: list[str] = []
        for start in range(0, len(digests), AT_ONCE):
            some = digests[start : start + AT_ONCE]
            fetched = await asyncio.gather(*(_fetched(store, sha256) for sha256 in some))
            for sha256, found in zip(some, fetched, strict=True):
                if found is None or not await self._copy(store, sha256, found):
                    failed.append(sha256)
            self._told("copying files", self._bytes)
        return failed

    async def _copy(self, store: BlobStore, sha256: str, found: int | bytes) -> bool:
        """Copy a blob of this size, or with these bytes; whether it is what its name says."""
        size = found if isinstance(found, int) else len(found)
        self._archive.begin(name_of(sha256), size)
        if isinstance(found, bytes):
            self._archive.write(found)
        else:
            # What does not come is made up for by zeros, and the digest is another one then.
            with suppress(NotFound):
                async for piece in store.read(sha256, 0, size):
                    self._archive.write(piece)
        if self._archive.end() != sha256:
            return False
        self._copied.add(bytes.fromhex(sha256))
        self._bytes += size
        return True


async def _fetched(store: BlobStore, sha256: str) -> int | bytes | None:
    """The bytes of a small blob, the size of a large one; None when there is none."""
    size = await store.size(sha256)
    if size is None or size > SMALL_BYTES:
        return size
    try:
        return b"".join([piece async for piece in store.read(sha256, 0, size)])
    except NotFound:
        return None


def name_of(sha256: str) -> str:
    """A blob's name in the archive; its place in a data directory."""
    return BLOBS + layout.sealed_name(sha256)
