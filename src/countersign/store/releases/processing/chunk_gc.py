"""Packs (blobs of many chunks) in the blob store, and the removal of chunks that no build uses."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from countersign.kernel import clock, ids, telemetry
from countersign.kernel.blobs.port import BlobStore, Part
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Database
from countersign.kernel.errors import NotFound, Refused
from countersign.store.context import Store
from countersign.store.releases import blobs
from countersign.store.releases.processing.builds import ChunkRow

PACK_BYTES = 32 << 20
WAITING_BATCHES = 2
TOUCH_EVERY_S = 600


class SealedPack(NamedTuple):
    """A sealed blob of chunks: its id, digest and size, and its chunks."""

    id: str
    sha256: str
    size: int
    rows: list[ChunkRow]


class PackWriter:
    """Writes frames to packs of about PACK_BYTES. The collector removes packs that are never referenced, so that a
    job that ends early needs no clean-up."""

    def __init__(self, store: BlobStore, database: Database) -> None:
        self._store = store
        self._database = database
        self._frames: asyncio.Queue[bytes] = asyncio.Queue(WAITING_BATCHES)
        self._staging: asyncio.Task[Part] | None = None
        self._touched_s = clock.monotonic_s()
        self._begin()
        self.sealed: list[SealedPack] = []

    def _begin(self) -> None:
        self._id = ids.new_uuid()
        self._size = 0
        self._rows: list[ChunkRow] = []

    async def add(self, chunks: Sequence[tuple[str, int, int]], frames: bytes) -> None:
        """Add chunks to the current pack: name, size and frame length of each, and the concatenated frames.

        Raises:
            StorageFull, Unavailable: the blob store cannot store the frames.
        """
        if not frames:
            return
        if self._staging is None:
            self._staging = asyncio.create_task(self._store.stage(self._id, 0, self._queued_frames()))
        for name, size, length in chunks:
            self._rows.append(ChunkRow(name, size, self._id, self._size, length))
            self._size += length
        await self._queue_frame(frames)
        if self._size >= PACK_BYTES:
            await self.seal()

    async def seal(self) -> None:
        """Complete the current pack and store it as a blob, unless the pack is empty."""
        if self._staging is None:
            return
        await self._queue_frame(b"")
        staged_part = await self._staging
        self._staging = None
        await blobs.note_new(self._database, self._store, staged_part.sha256)
        sha256 = await self._store.seal(self._id, [staged_part], staged_part.length, staged_part.sha256)
        self.sealed.append(SealedPack(self._id, sha256, staged_part.length, self._rows))
        await self._store.discard(self._id)
        await self._touch_sealed()
        self._begin()

    async def discard(self) -> None:
        """Discard the unsealed pack. Errors of the blob store are ignored, because the error that ended the job must be
        reported instead. If a thread is still writing parts, the collector removes them later."""
        if self._staging is not None:
            self._staging.cancel()
            with suppress(asyncio.CancelledError, Refused):
                await self._staging
            with suppress(Refused):
                await self._store.discard(self._id)

    async def _queue_frame(self, frame: bytes) -> None:
        """Queue a frame for the blob store. If the blob store has failed, raise its error."""
        staging = self._staging
        put_task = asyncio.ensure_future(self._frames.put(frame))
        if staging is not None and not put_task.done():
            await asyncio.wait((put_task, staging), return_when=asyncio.FIRST_COMPLETED)
            if staging.done() and not put_task.done():
                put_task.cancel()
                staging.result()
        await put_task

    async def _queued_frames(self) -> AsyncIterator[bytes]:
        while frame := await self._frames.get():
            yield frame

    async def _touch_sealed(self) -> None:
        """Mark the sealed packs of a long job as in use, so that the collector does not remove the packs."""
        if clock.monotonic_s() - self._touched_s < TOUCH_EVERY_S and len(self.sealed) > 1:
            return
        async with self._database.transaction() as transaction:
            for pack in self.sealed:
                await blobs.touch(transaction, pack.sha256, pack.size)
        self._touched_s = clock.monotonic_s()


MIN_IDLE_S = 3600
"""A chunk is removed only after it was idle for this time, because a running job may be about to use it."""
CHUNKS_PER_BATCH = 500
PACKS_PER_BATCH = 20

IDLE = """
    SELECT org_id, id
    FROM chunk
    WHERE idle_at < $1
    ORDER BY idle_at
    LIMIT $2
"""
DELETE_CHUNK = "DELETE FROM chunk WHERE org_id = $1 AND id = $2 AND refs = 0"
EMPTY_PACKS = """
    SELECT p.id
    FROM pack p
    WHERE p.created_at < $1 AND NOT EXISTS (SELECT 1 FROM chunk c WHERE c.pack_id = p.id)
    ORDER BY p.id
    LIMIT $2
"""
DELETE_PACK = """
    DELETE FROM pack
    WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM chunk c WHERE c.pack_id = pack.id)
"""
# Selects packs of which less than half is used.
SPARSE_PACKS = """
    SELECT p.id, p.org_id, p.sha256
    FROM pack p
    JOIN chunk c ON c.pack_id = p.id
    WHERE p.unused > 0 AND p.created_at < $1
    GROUP BY p.id, p.org_id, p.sha256, p.size
    HAVING sum(c.length) * 2 < p.size
    ORDER BY p.id
    LIMIT $2
"""
NOTE_WASTE = """
    UPDATE pack SET unused = unused + 1
    WHERE id IN (SELECT c.pack_id FROM chunk c WHERE c.org_id = $1 AND c.id = $2)
"""
CHUNKS_IN_USE = "SELECT id, size, start_at, length FROM chunk WHERE pack_id = $1 ORDER BY start_at"
ADD_PACK = "INSERT INTO pack (id, org_id, sha256, size, unused, created_at) VALUES ($1, $2, $3, $4, 0, $5)"
MOVE = """
    UPDATE chunk SET pack_id = $4, start_at = $5, length = $6
    WHERE org_id = $1 AND id = $2 AND pack_id = $3
"""


class SweepResult(NamedTuple):
    """The numbers of deleted chunks, deleted packs and rewritten packs."""

    chunks: int
    packs: int
    repacked: int


async def sweep(store: Store, *, min_idle_s: float = MIN_IDLE_S) -> SweepResult:
    """Delete unused chunks and packs, and rewrite sparse packs.

    Raises:
        Unavailable, StorageFull: database or blob store are unavailable; earlier deletions persist.
    """
    idle_before = clock.later(clock.now(), seconds=-min_idle_s)
    chunks = await _delete_chunks(store, idle_before)
    packs = await _delete_packs(store, idle_before)
    return SweepResult(chunks, packs, await _repack(store, idle_before))


async def _delete_chunks(store: Store, idle_before: Instant) -> int:
    removed_chunks = 0
    while idle := await store.database.fetch(IDLE, idle_before, CHUNKS_PER_BATCH):
        async with store.database.transaction() as transaction:
            await transaction.run_many(NOTE_WASTE, [(org_id, name) for org_id, name in idle])
            await transaction.run_many(DELETE_CHUNK, [(org_id, name) for org_id, name in idle])
        removed_chunks += len(idle)
    return removed_chunks


async def _delete_packs(store: Store, idle_before: Instant) -> int:
    removed_packs = 0
    while packs := await store.database.scan(EMPTY_PACKS, idle_before, PACKS_PER_BATCH):
        deleted_rows = 0
        for (pack_id,) in packs:
            async with store.database.transaction() as transaction:
                deleted_rows += await transaction.run(DELETE_PACK, pack_id)
        removed_packs += deleted_rows
        if not deleted_rows:
            break
    return removed_packs


async def _repack(store: Store, idle_before: Instant) -> int:
    repacked_packs = 0
    for pack_id, org_id, sha256 in await store.database.scan(SPARSE_PACKS, idle_before, PACKS_PER_BATCH):
        try:
            await _rewrite_pack(store, pack_id, org_id, sha256)
        except NotFound:
            telemetry.logger("processing").error("a pack is missing: verify the artifacts of its builds", pack=sha256)
        else:
            repacked_packs += 1
    return repacked_packs


async def _rewrite_pack(store: Store, pack_id: str, org_id: str, sha256: str) -> None:
    """Move the chunks in use to a new pack. Only the locations of chunks that are still in this pack are updated, so
    that concurrent changes of the use counts are preserved.

    Raises:
        NotFound: the pack's blob is missing.
    """
    pack_writer = PackWriter(store.blobs, store.database)
    try:
        for name, size, start, length in await store.database.fetch(CHUNKS_IN_USE, pack_id):
            pieces = [piece async for piece in store.blobs.read(sha256, start, start + length)]
            await pack_writer.add([(name, size, length)], b"".join(pieces))
        await pack_writer.seal()
    finally:
        await pack_writer.discard()
    stored_packs = [(pack.sha256, pack.size) for pack in pack_writer.sealed]
    reservations = await blobs.reserve(store.database, store.blobs, stored_packs)
    async with store.database.transaction() as transaction:
        await blobs.keep(transaction, reservations)
        for pack in pack_writer.sealed:
            await transaction.run(ADD_PACK, pack.id, org_id, pack.sha256, pack.size, clock.now())
            rows = [(org_id, pack_row.id, pack_id, pack.id, pack_row.start, pack_row.length) for pack_row in pack.rows]
            await transaction.run_many(MOVE, rows)
