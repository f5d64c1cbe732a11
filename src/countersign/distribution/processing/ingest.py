"""An artifact's contents on their way in: entries for the manifest, new chunks into packs, known ones left alone."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from countersign.distribution.context import Store
from countersign.distribution.processing import queries, reader
from countersign.distribution.processing.packs import Pack, Packing
from countersign.distribution.processing.queries import Artifact, Place
from countersign.distribution.processing.reader import Reading
from countersign.kernel.errors import Refused
from countersign.updates.ingest.records import Asked, At, Ended, Found, Frames, Noted, Record

READING_SHARE = 0.95
"""How much of the work reading is; the rest is signing and keeping what was read."""

Told: TypeAlias = Callable[[float], Awaitable[None]]
"""Told how much of the whole is done, 0 to 1."""


class ArtifactDamaged(Refused):
    """What is stored of an artifact is not what was uploaded."""

    status = 422
    code = "artifact_damaged"
    title = "Artifact damaged"
    resolution = "Upload the same file again, to any draft release: whole, it takes the place of the stored bytes."


@dataclass
class Contents:
    """What an artifact holds: its entries and the small files that say what it consists of, the places of its chunks
    by name, the packs that were made for it."""

    entries: list[Found] = field(default_factory=list[Found])
    notes: list[Noted] = field(default_factory=list[Noted])
    places: dict[str, Place] = field(default_factory=dict[str, Place])
    packs: list[Pack] = field(default_factory=list[Pack])
    blocks: Ended = field(default_factory=lambda: Ended(b"", 1, []))


class Ingest:
    """One artifact being taken in. `again` stores every chunk anew, for when what is stored was damaged."""

    def __init__(
        self, store: Store, artifact: Artifact, told: Callable[[float], Awaitable[None]], *, again: bool
    ) -> None:
        self._store = store
        self._artifact = artifact
        self._told = told
        self._again = again
        self._packing = Packing(store.blobs, store.database)
        self._contents = Contents()

    async def run(self, path: Path) -> Contents:
        """Read the file to its end.

        Raises:
            ArchiveRefused: it breaks a rule of safe reading.
            ArchiveUnknown: it is no archive.
            ArtifactDamaged: its stored bytes were changed.
            WorkerDied, Unavailable, StorageFull: it could not be read, or nothing be stored.
        """
        try:
            async with reader.reading(
                self._store.settings, path, self._artifact.filename, chunks=True, plain=True
            ) as reading:
                while not isinstance(record := await reading.next(), Ended):
                    await self._take(reading, record)
            if record.sha256.hex() != self._artifact.sha256:
                raise ArtifactDamaged("the stored bytes are not those that were uploaded")
            self._contents.blocks = record
            await self._packing.seal()
        finally:
            await self._packing.drop()
        self._contents.packs = self._packing.sealed
        for pack in self._packing.sealed:
            self._contents.places.update({place.id: place for place in pack.places})
        return self._contents

    async def _take(self, reading: Reading, record: Record) -> None:
        match record:
            case Found():
                self._contents.entries.append(record)
            case Asked():
                await reading.answer(await self._wanted([name.hex() for name in record.ids]))
            case Frames():
                told = [(name.hex(), size, length) for name, size, length in record.chunks]
                await self._packing.add(told, record.frames)
            case Noted():
                self._contents.notes.append(record)
            case At():
                await self._told(min(record.position / max(self._artifact.size, 1), 1.0) * READING_SHARE)
            case _:
                raise LookupError(f"an unexpected record: {type(record).__name__}")

    async def _wanted(self, names: list[str]) -> bytes:
        known: list[Place] = []
        if not self._again:
            known = await queries.known_chunks(self._store.database, self._artifact.org_id, names)
        self._contents.places.update({place.id: place for place in known})
        return bytes(name not in self._contents.places for name in names)
