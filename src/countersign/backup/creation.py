"""Creates a backup of an installation in use: copies the blobs first, then a snapshot of the databases."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic

import msgspec

from countersign import __version__
from countersign.backup.archive import ABOUT, FORMAT, About, ArchiveWriter, Manifest, blob_name
from countersign.backup.databases import Databases, Progress, SnapshotT
from countersign.backup.snapshot import Snapshot
from countersign.kernel import clock
from countersign.kernel.blobs.port import BlobStore
from countersign.kernel.errors import NotFound

BLOBS_PER_PAGE = 1000
MAX_CONCURRENT = 16
SMALL_BLOB_BYTES = 1024 * 1024
MAX_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class BlobSource:
    """The blobs of an installation.

    `statement` reads the digests that the tables of `schema` refer to, in order: at most $2 digests after the digest
    $1."""

    store: BlobStore
    schema: str
    statement: str


class Backup(Generic[SnapshotT]):
    """A running backup.

    The order of the steps makes the backup consistent. Blobs never change, so `begin` copies all of them first, without
    a lock. Then the caller takes a snapshot of the databases, and `end` copies the few blobs that are new in the
    snapshot, and the databases last. If a blob of the snapshot was removed before it was copied, it is no longer in
    use. In that case the caller retries with a later snapshot.
    """

    def __init__(
        self, archive: ArchiveWriter, databases: Databases[SnapshotT], blobs: BlobSource | None, progress: Progress
    ) -> None:
        self._archive = archive
        self._databases = databases
        self._blobs = blobs
        self._progress = progress
        self._copied: set[bytes] = set()
        self._bytes = 0

    async def begin(self, files: Mapping[str, bytes]) -> None:
        """Write the first member, the files, and every blob that is in use now.

        Raises:
            Unavailable, StorageFull: a file or blob cannot be read, or the archive cannot be written.
        """
        databases = self._databases
        about = About(FORMAT, __version__, databases.engine, databases.schemas, clock.rfc3339(clock.now()))
        self._archive.add(ABOUT, msgspec.json.encode(about))
        for name, content in files.items():
            self._archive.add(name, content)
        if self._blobs is None:
            return
        last_sha256 = ""
        while True:
            async with databases.snapshot() as snapshot:
                rows = await snapshot.fetch(self._blobs.schema, self._blobs.statement, last_sha256, BLOBS_PER_PAGE)
            await self._copy_all(self._blobs.store, [row[0] for row in rows])
            if len(rows) < BLOBS_PER_PAGE:
                return
            last_sha256 = rows[-1][0]

    async def end(self, snapshot: SnapshotT, *, is_last_try: bool) -> Manifest | None:
        """Write the rest: the blobs of the snapshot that are not copied yet, the databases, and the manifest.

        Return None if a blob is missing or damaged, so that the caller retries with a later snapshot. On the last try,
        list the missing and damaged blobs in the manifest instead.

        Raises:
            Unavailable, StorageFull: see `begin`.
        """
        unreadable_blobs = await self._copy_rest(snapshot)
        if unreadable_blobs and not is_last_try:
            return None
        rows = await self._databases.write(snapshot, self._archive, self._progress)
        moment = snapshot.moment
        manifest = Manifest(
            moment,
            clock.rfc3339(moment),
            len(self._copied),
            self._bytes,
            dict(self._archive.digests),
            rows,
            tuple(unreadable_blobs),
        )
        self._archive.finish(manifest)
        return manifest

    async def _copy_rest(self, snapshot: Snapshot) -> list[str]:
        """Copy the blobs of the snapshot that are not copied yet, and return the missing and damaged ones."""
        unreadable_blobs: list[str] = []
        if self._blobs is None:
            return unreadable_blobs
        last_sha256 = ""
        while rows := await snapshot.fetch(self._blobs.schema, self._blobs.statement, last_sha256, BLOBS_PER_PAGE):
            missing_digests = [row[0] for row in rows if bytes.fromhex(row[0]) not in self._copied]
            unreadable_blobs += await self._copy_all(self._blobs.store, missing_digests)
            last_sha256 = rows[-1][0]
        return unreadable_blobs

    async def _copy_all(self, store: BlobStore, digests: Sequence[str]) -> list[str]:
        """Copy the blobs, and return the missing and damaged ones.

        Small blobs are fetched concurrently, because in a remote store the latency exceeds the time of the transfer."""
        failed_blobs: list[str] = []
        for start in range(0, len(digests), MAX_CONCURRENT):
            batch = digests[start : start + MAX_CONCURRENT]
            fetched_blobs = await asyncio.gather(*(_fetch_small(store, sha256) for sha256 in batch))
            for sha256, blob in zip(batch, fetched_blobs, strict=True):
                if blob is None or not await self._copy(store, sha256, blob):
                    failed_blobs.append(sha256)
            self._progress("copying files", self._bytes)
        return failed_blobs

    async def _copy(self, store: BlobStore, sha256: str, size_or_data: int | bytes) -> bool:
        """Copy a blob, and return whether its bytes match its digest. `size_or_data` is the size of the blob, or its
        bytes."""
        size = size_or_data if isinstance(size_or_data, int) else len(size_or_data)
        self._archive.begin(blob_name(sha256), size)
        if isinstance(size_or_data, bytes):
            self._archive.write(size_or_data)
        else:
            # Ignore a blob that is removed meanwhile: the archive fills it up with zeros, so its digest differs below.
            with suppress(NotFound):
                async for chunk in store.read(sha256, 0, size):
                    self._archive.write(chunk)
        if self._archive.end() != sha256:
            return False
        self._copied.add(bytes.fromhex(sha256))
        self._bytes += size
        return True


async def _fetch_small(store: BlobStore, sha256: str) -> int | bytes | None:
    """Return the bytes of a small blob, the size of a large blob, or None if the blob does not exist."""
    size = await store.size(sha256)
    if size is None or size > SMALL_BLOB_BYTES:
        return size
    try:
        return b"".join([chunk async for chunk in store.read(sha256, 0, size)])
    except NotFound:
        return None
