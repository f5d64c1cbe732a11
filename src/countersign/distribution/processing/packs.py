"""Packs: chunks on their way into the blob store, many to a blob."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from countersign.distribution.processing.queries import Place
from countersign.distribution.uploads import blobs
from countersign.kernel import clock, ids
from countersign.kernel.blobs.port import BlobStore, Part
from countersign.kernel.database.port import Database
from countersign.kernel.errors import Refused

PACK_BYTES = 32 << 20
WAITING_BATCHES = 2
TOUCH_EVERY_S = 600


class Pack(NamedTuple):
    """A sealed blob of chunks: its id, digest and size, and where each chunk is in it."""

    id: str
    sha256: str
    size: int
    places: list[Place]


class Packing:
    """Takes frames and seals them in packs of about PACK_BYTES. What was packed and never referred to is removed by
    the collector after a while, so that a job that ends early leaves nothing to clean up."""

    def __init__(self, store: BlobStore, database: Database) -> None:
        self._store = store
        self._database = database
        self._frames: asyncio.Queue[bytes] = asyncio.Queue(WAITING_BATCHES)
        self._staging: asyncio.Task[Part] | None = None
        self._touched_s = clock.monotonic_s()
        self._begin()
        self.sealed: list[Pack] = []

    def _begin(self) -> None:
        self._id = ids.new_uuid()
        self._size = 0
        self._places: list[Place] = []

    async def add(self, chunks: Sequence[tuple[str, int, int]], frames: bytes) -> None:
        """Put chunks into the present pack: name, size and length of the frame of each, and the frames together.

        Raises:
            StorageFull, Unavailable: the store does not take it.
        """
        if not frames:
            return
        if self._staging is None:
            self._staging = asyncio.create_task(self._store.stage(self._id, 0, self._arriving()))
        for name, size, length in chunks:
            self._places.append(Place(name, size, self._id, self._size, length))
            self._size += length
        await self._put(frames)
        if self._size >= PACK_BYTES:
            await self.seal()

    async def seal(self) -> None:
        """End the present pack, if anything is in it."""
        if self._staging is None:
            return
        await self._put(b"")
        part = await self._staging
        self._staging = None
        await blobs.note_new(self._database, self._store, part.sha256)
        sha256 = await self._store.seal(self._id, [part], part.length, part.sha256)
        self.sealed.append(Pack(self._id, sha256, part.length, self._places))
        await self._store.discard(self._id)
        await self._hold_on()
        self._begin()

    async def drop(self) -> None:
        """Give up the pack that is not sealed yet. What a thread of the store is still writing of it is left to the
        collector: whatever ended the work is what counts."""
        if self._staging is not None:
            self._staging.cancel()
            with suppress(asyncio.CancelledError, Refused):
                await self._staging
            with suppress(Refused):
                await self._store.discard(self._id)

    async def _put(self, frame: bytes) -> None:
        """Hand a frame to the store, unless it has failed: then its failure is raised."""
        staging = self._staging
        putting = asyncio.ensure_future(self._frames.put(frame))
        if staging is not None and not putting.done():
            await asyncio.wait((putting, staging), return_when=asyncio.FIRST_COMPLETED)
            if staging.done() and not putting.done():
                putting.cancel()
                staging.result()
        await putting

    async def _arriving(self) -> AsyncIterator[bytes]:
        while frame := await self._frames.get():
            yield frame

    async def _hold_on(self) -> None:
        """Keep the collector away from what a long job has sealed and nothing refers to yet."""
        if clock.monotonic_s() - self._touched_s < TOUCH_EVERY_S and len(self.sealed) > 1:
            return
        async with self._database.transaction() as transaction:
            for pack in self.sealed:
                await blobs.keep(transaction, pack.sha256, pack.size)
        self._touched_s = clock.monotonic_s()
