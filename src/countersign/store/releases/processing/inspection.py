"""The jobs archive.extract, which lists the entries of an artifact, and artifact.verify, which checks that the stored
bytes match the digests and the signature."""

import asyncio
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import blake3
import msgspec

from countersign.archives.refusals import ArchiveRefused, ArchiveUnknown
from countersign.kernel.errors import NotFound
from countersign.store.context import Store
from countersign.store.jobs.job_types import JobContext, Outcome
from countersign.store.releases.processing import builds, sandboxed_process
from countersign.store.releases.processing.builds import Build, ChunkLocation, ReadyArtifact
from countersign.store.releases.processing.schemas import (
    Corruption,
    ExtractPayload,
    ListedEntry,
    Listing,
    VerifyPayload,
    VerifyResult,
)
from countersign.updates import chunks
from countersign.updates.chunks import ChunkDamaged
from countersign.updates.dsse import SignatureRefused
from countersign.updates.manifest import Manifest
from countersign.updates.worker_protocol import EndOfArtifact, EntryRecord, ReadPosition

DIGEST_BYTES = 32
_PIECE = 8 << 20


def changed_ranges(path: Path, artifact: ReadyArtifact, build: Build | None) -> list[tuple[int, int]]:
    """The ranges in which the file differs from the artifact: offset and length of each.

    The block digests of a build locate the differences. Without a build, the range is the whole file.
    """
    with path.open("rb") as stored_file:
        length = os.fstat(stored_file.fileno()).st_size
        if build is None:
            is_same = length == artifact.size and _sha256(stored_file.fileno(), length) == artifact.sha256
            return [] if is_same else [(0, artifact.size)]
        ranges = [
            (start, min(build.block_size, artifact.size - start))
            for number, start in enumerate(range(0, artifact.size, build.block_size))
            if _block_digest(stored_file.fileno(), start, build.block_size) != _recorded_digest(build, number)
        ]
    if length > artifact.size:
        ranges.append((artifact.size, length - artifact.size))
    return ranges


def damaged_chunks(path: Path, chunk_locations: Sequence[ChunkLocation]) -> list[ChunkLocation]:
    """The chunks of a pack whose frames are damaged."""
    damaged_locations: list[ChunkLocation] = []
    with path.open("rb") as pack:
        for location in chunk_locations:
            try:
                chunks.decompress(os.pread(pack.fileno(), location.length, location.start), location.size, location.id)
            except ChunkDamaged:
                damaged_locations.append(location)
    return damaged_locations


def _recorded_digest(build: Build, number: int) -> bytes:
    return bytes(build.blocks[number * DIGEST_BYTES : (number + 1) * DIGEST_BYTES])


def _block_digest(fd: int, start: int, size: int) -> bytes:
    hasher = blake3.blake3(max_threads=blake3.blake3.AUTO)
    for position in range(start, start + size, _PIECE):
        hasher.update(os.pread(fd, min(_PIECE, start + size - position), position))
    return hasher.digest()


def _sha256(fd: int, length: int) -> str:
    digest = hashlib.sha256()
    for position in range(0, length, _PIECE):
        digest.update(os.pread(fd, _PIECE, position))
    return digest.hexdigest()


LISTED_BYTES = 1 << 20
"""The maximum size of the entries in one result. Results must be small, because they are stored, and many results are
listed together."""


async def run_extract_job(store: Store, work: JobContext[ExtractPayload]) -> Outcome:
    """List the archive's entries.

    Raises:
        ArtifactGone: the artifact was removed.
        ArchiveRefused, ArchiveUnknown: the artifact violates a rule of safe reading, or is not an archive.
    """
    payload = work.payload
    artifact = await builds.ready_artifact(store.database, payload.artifact_id)
    path = await store.blobs.file(artifact.sha256, work.scratch)
    listing = Listing(artifact.id, 0, 0, 0, [], None)
    page = _Window(payload.offset, payload.offset + payload.limit)
    async with sandboxed_process.read_artifact(
        store.settings, path, artifact.filename, chunks=False, accepts_plain_files=False
    ) as artifact_reader:
        while not isinstance(record := await artifact_reader.next(), EndOfArtifact):
            if isinstance(record, EntryRecord):
                _count(listing, record, page)
            elif isinstance(record, ReadPosition):
                await work.progress(min(record.position / max(artifact.size, 1), 1.0))
    if listing.total > payload.offset + len(listing.entries):
        listing.next_offset = payload.offset + len(listing.entries)
    return Outcome(listing)


@dataclass
class _Window:
    """The range of entries to list. `room` is the number of bytes that the result has left for entries."""

    start: int
    stop: int
    room: int = LISTED_BYTES


def _count(listing: Listing, record: EntryRecord, page: _Window) -> None:
    if page.start <= listing.total < page.stop:
        entry = _listed_entry(record)
        page.room -= len(msgspec.json.encode(entry))
        if page.room >= 0:
            listing.entries.append(entry)
        else:
            page.stop = listing.total
    listing.total += 1
    if record.kind == "file":
        listing.files += 1
        listing.size += record.size


def _listed_entry(entry: EntryRecord) -> ListedEntry:
    mode = f"{entry.mode:04o}"
    if entry.kind == "file":
        return ListedEntry(entry.path, "file", mode, entry.size, entry.sha256.hex())
    return ListedEntry(entry.path, entry.kind, mode, target=entry.target or None)


MAX_FINDINGS = 1000
UPLOAD_AGAIN = "Upload the same file again, to any draft release: the upload replaces the stored bytes."
PROCESS_AGAIN = 'Start build.process with {"again": true}: manifest and chunks are made again from the artifact.'
PACK_AGAIN = "Correct the archive, and upload it as a new artifact."
BYTES_SHARE, CHUNKS_SHARE = 0.3, 0.6


async def run_verify_job(store: Store, work: JobContext[VerifyPayload]) -> Outcome:
    """Check bytes, signature, chunks and archive. If something is corrupt, the job still completes, and the result
    lists what is corrupt.

    Raises:
        ArtifactGone: the artifact was removed.
    """
    artifact = await builds.ready_artifact(store.database, work.payload.artifact_id)
    build = await builds.build(store.database, artifact.id)
    verification = Verification(store, work, artifact)
    path = await verification.check_bytes(build)
    manifest = None
    if build is not None:
        manifest = await verification.check_signature(build)
        if manifest is not None:
            await verification.check_chunks(build, manifest)
    if path is not None:
        await verification.check_archive(path, manifest)
    return Outcome(verification.result)


class Verification:
    """One verification, with its checks and findings so far."""

    def __init__(self, store: Store, work: JobContext[VerifyPayload], artifact: ReadyArtifact) -> None:
        self._store = store
        self._work = work
        self._artifact = artifact
        self.result = VerifyResult(artifact.id, True, [], [], 0)

    async def check_bytes(self, build: Build | None) -> Path | None:
        """Check the artifact's bytes against their digests. Return None if the bytes are missing."""
        self.result.checked.append("bytes")
        artifact = self._artifact
        try:
            path = await self._store.blobs.file(artifact.sha256, self._work.scratch)
        except NotFound:
            self._report(
                Corruption("artifact", "the stored bytes are missing", UPLOAD_AGAIN, offset=0, length=artifact.size)
            )
            return None
        for offset, length in await asyncio.to_thread(changed_ranges, path, artifact, build):
            self._report(
                Corruption("artifact", "the stored bytes were changed", UPLOAD_AGAIN, offset=offset, length=length)
            )
        await self._work.progress(BYTES_SHARE)
        return path

    async def check_signature(self, build: Build) -> Manifest | None:
        """Check the signed manifest, and return it. Return None if the manifest cannot be trusted."""
        self.result.checked.append("signature")
        try:
            return await builds.read_manifest(self._store, build)
        except (NotFound, SignatureRefused) as refused:
            self._report(Corruption("manifest", refused.detail, PROCESS_AGAIN))
            return None

    async def check_chunks(self, build: Build, manifest: Manifest) -> None:
        """Check every stored chunk of the build, pack by pack."""
        self.result.checked.append("chunks")
        names = [chunk.id for chunk in manifest.chunks]
        locations = await builds.chunk_locations(self._store.database, build.org_id, names)
        for missing_name in sorted(set(names) - {location.id for location in locations}):
            self._report(Corruption("chunk", f"the chunk {missing_name} is not stored", PROCESS_AGAIN))
        packs = [list(pack) for _, pack in groupby(locations, key=lambda location: location.pack_sha256)]
        for number, pack in enumerate(packs, 1):
            await self._check_pack(pack)
            await self._work.progress(BYTES_SHARE + CHUNKS_SHARE * number / len(packs))

    async def _check_pack(self, chunk_locations: list[ChunkLocation]) -> None:
        digest = chunk_locations[0].pack_sha256
        try:
            path = await self._store.blobs.file(digest, self._work.scratch)
        except NotFound:
            damaged_locations = chunk_locations
        else:
            damaged_locations = await asyncio.to_thread(damaged_chunks, path, chunk_locations)
            if path.parent == self._work.scratch:
                path.unlink()
        for location in damaged_locations:
            detail = f"the chunk {location.id} is damaged in the pack {digest}"
            self._report(Corruption("chunk", detail, PROCESS_AGAIN, offset=location.start, length=location.length))

    async def check_archive(self, path: Path, manifest: Manifest | None) -> None:
        """Check the archive against the rules of safe reading and against the manifest."""
        self.result.checked.append("archive")
        recorded_digests = {} if manifest is None else {file.path: file.sha256 for file in manifest.files}
        try:
            async with sandboxed_process.read_artifact(
                self._store.settings, path, self._artifact.filename, chunks=False, accepts_plain_files=True
            ) as artifact_reader:
                while not isinstance(record := await artifact_reader.next(), EndOfArtifact):
                    if isinstance(record, EntryRecord) and record.kind == "file" and manifest is not None:
                        self._compare(record, recorded_digests.get(record.path))
        except (ArchiveRefused, ArchiveUnknown) as refused:
            self._report(Corruption("archive", refused.detail, PACK_AGAIN))

    def _compare(self, entry: EntryRecord, recorded_digest: str | None) -> None:
        if recorded_digest != entry.sha256.hex():
            detail = "the file in the archive does not match the manifest"
            self._report(Corruption("file", detail, PROCESS_AGAIN, path=entry.path, offset=0, length=entry.size))

    def _report(self, corruption: Corruption) -> None:
        self.result.ok = False
        self.result.wounds += 1
        if len(self.result.findings) < MAX_FINDINGS:
            self.result.findings.append(corruption)
