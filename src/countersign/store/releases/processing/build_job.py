"""The job build.process, which makes a build of an artifact (file tree, chunks, signed manifest). The module also
declares the types of all jobs on artifacts."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import msgspec

from countersign.archives.limits import Limits, limits_of
from countersign.kernel import clock
from countersign.kernel.database.port import Transaction
from countersign.kernel.errors import NotFound, Refused, Unavailable
from countersign.store import signing_keys
from countersign.store.context import Store
from countersign.store.jobs.job_types import BACKGROUND, BUILD, AnyJobType, JobContext, JobType, Outcome
from countersign.store.releases import blobs
from countersign.store.releases.processing import builds, deltas, sandboxed_process, sbom
from countersign.store.releases.processing.builds import Build, ChunkRow, ReadyArtifact
from countersign.store.releases.processing.chunk_gc import PackWriter, SealedPack
from countersign.store.releases.processing.inspection import run_extract_job, run_verify_job
from countersign.store.releases.processing.sandboxed_process import ArtifactReader
from countersign.store.releases.processing.schemas import (
    BuildResult,
    DeltaPayload,
    ExtractPayload,
    ProcessPayload,
    VerifyPayload,
)
from countersign.updates import dsse, manifest
from countersign.updates.dsse import SignatureRefused, SigningKey
from countersign.updates.install.validate_manifest import ManifestRefused, validate
from countersign.updates.manifest import Chunk, File, Manifest, Symlink
from countersign.updates.worker_protocol import (
    ChunkFrames,
    ChunkQuery,
    EndOfArtifact,
    EntryRecord,
    IngestRecord,
    MetadataFile,
    ReadPosition,
)

READING_SHARE = 0.95
"""The progress of a job when the artifact is read completely. The rest of the progress is for signing and storing."""

ReportProgress: TypeAlias = Callable[[float], Awaitable[None]]
"""A function that reports the progress, 0 to 1."""


class ArtifactDamaged(Refused):
    """The stored bytes of the artifact do not match its digest."""

    status = 422
    code = "artifact_damaged"
    title = "Artifact damaged"
    resolution = "Upload the same file again, to any draft release: the upload replaces the stored bytes."


@dataclass
class ArtifactContents:
    """The contents of an artifact: its entries, the files that list its components, its chunks by name, the packs that
    were written for it, and the record that ended the reading, with the digests of its blocks."""

    entries: list[EntryRecord] = field(default_factory=list[EntryRecord])
    metadata_files: list[MetadataFile] = field(default_factory=list[MetadataFile])
    rows: dict[str, ChunkRow] = field(default_factory=dict[str, ChunkRow])
    packs: list[SealedPack] = field(default_factory=list[SealedPack])
    end_record: EndOfArtifact = field(default_factory=lambda: EndOfArtifact(b"", 1, []))


class Ingest:
    """Reads one artifact and stores its chunks. If `is_repeated` is true, every chunk is stored again, to repair
    damaged chunks."""

    def __init__(
        self,
        store: Store,
        artifact: ReadyArtifact,
        report_progress: ReportProgress,
        *,
        is_repeated: bool,
    ) -> None:
        self._store = store
        self._artifact = artifact
        self._report_progress = report_progress
        self._is_repeated = is_repeated
        self._packing = PackWriter(store.blobs, store.database)
        self._contents = ArtifactContents()

    async def run(self, path: Path) -> ArtifactContents:
        """Read the file completely.

        Raises:
            ArchiveRefused: the artifact violates a rule of safe reading.
            ArchiveUnknown: the artifact is not an archive.
            ArtifactDamaged: the stored bytes do not match the artifact's digest.
            WorkerDied, Unavailable, StorageFull: the artifact could not be read or stored.
        """
        try:
            async with sandboxed_process.read_artifact(
                self._store.settings, path, self._artifact.filename, chunks=True, accepts_plain_files=True
            ) as artifact_reader:
                while not isinstance(record := await artifact_reader.next(), EndOfArtifact):
                    await self._handle_record(artifact_reader, record)
            if record.sha256.hex() != self._artifact.sha256:
                raise ArtifactDamaged("the stored bytes are not those that were uploaded")
            self._contents.end_record = record
            await self._packing.seal()
        finally:
            await self._packing.discard()
        self._contents.packs = self._packing.sealed
        for pack in self._packing.sealed:
            self._contents.rows.update({row.id: row for row in pack.rows})
        return self._contents

    async def _handle_record(self, artifact_reader: ArtifactReader, record: IngestRecord) -> None:
        match record:
            case EntryRecord():
                self._contents.entries.append(record)
            case ChunkQuery():
                await artifact_reader.answer(await self._newness_flags([name.hex() for name in record.ids]))
            case ChunkFrames():
                chunks = [(name.hex(), size, length) for name, size, length in record.chunks]
                await self._packing.add(chunks, record.frames)
            case MetadataFile():
                self._contents.metadata_files.append(record)
            case ReadPosition():
                await self._report_progress(min(record.position / max(self._artifact.size, 1), 1.0) * READING_SHARE)
            case _:
                raise LookupError(f"an unexpected record: {type(record).__name__}")

    async def _newness_flags(self, names: list[str]) -> bytes:
        """Return one byte for each chunk: 1 if the chunk must be stored, 0 if it is stored already."""
        chunk_rows: list[ChunkRow] = []
        if not self._is_repeated:
            chunk_rows = await builds.known_chunks(self._store.database, self._artifact.org_id, names)
        self._contents.rows.update({row.id: row for row in chunk_rows})
        return bytes(name not in self._contents.rows for name in names)


MAX_SHOWN_LAUNCHES = 50
MAX_MANIFEST_BYTES = 160 << 20
"""The maximum size of a manifest. With its envelope, a manifest of this size is as large as the largest response that a
client accepts."""


async def run_build_job(store: Store, work: JobContext[ProcessPayload]) -> Outcome:
    """Make the build, or return the existing one.

    Raises:
        ArtifactGone: the artifact was removed.
        ArchiveRefused: the artifact violates a rule of safe reading.
        ManifestRefused: clients would reject the manifest.
    """
    artifact = await builds.ready_artifact(store.database, work.payload.artifact_id)
    previous_build = await builds.build(store.database, artifact.id)
    if previous_build is not None and not work.payload.again:
        return Outcome(msgspec.json.decode(previous_build.summary, type=BuildResult))
    path = await store.blobs.file(artifact.sha256, work.scratch)
    contents = await Ingest(store, artifact, work.progress, is_repeated=work.payload.again).run(path)
    return await _store_build(store, work, artifact, contents, previous_build)


async def _store_build(
    store: Store,
    work: JobContext[ProcessPayload],
    artifact: ReadyArtifact,
    contents: ArtifactContents,
    previous_build: Build | None,
) -> Outcome:
    # Use threads, because a large manifest takes seconds, and the event loop must renew leases of jobs meanwhile.
    new_manifest, payload = await asyncio.to_thread(_make_manifest, artifact, contents, limits_of(store.settings))
    signed_manifest = await asyncio.to_thread(_sign, payload, await signing_keys.ensure_key(store, artifact.org_id))
    envelope_sha256 = await blobs.put(store.database, store.blobs, signed_manifest)
    component_list = await asyncio.to_thread(
        sbom.bill_of_materials, artifact.product, artifact.version, contents.metadata_files
    )
    sbom_text, component_count = (None, 0) if component_list is None else component_list
    summary = _summary(artifact, new_manifest, payload, contents, component_count)
    new_build = Build(
        artifact.id,
        artifact.org_id,
        artifact.product_id,
        artifact.release_id,
        artifact.platform or "",
        summary.manifest_sha256,
        envelope_sha256,
        summary.files,
        summary.size,
        msgspec.json.encode(summary).decode(),
        sbom_text,
        contents.end_record.block_size,
        b"".join(contents.end_record.blocks),
    )
    replaced_build = None
    if previous_build is not None:
        replaced_build = (previous_build, await _previous_chunks(store, previous_build, contents))
    stored_blobs = [(envelope_sha256, len(signed_manifest)), *((pack.sha256, pack.size) for pack in contents.packs)]
    reservations = await blobs.reserve(store.database, store.blobs, stored_blobs)

    async def commit(transaction: Transaction) -> None:
        if replaced_build is not None:
            await builds.delete_build(transaction, *replaced_build)
        if not await builds.add_build(transaction, new_build):
            raise Unavailable("the artifact was processed concurrently")
        await blobs.keep(transaction, reservations)
        await _store_chunks(transaction, artifact.org_id, contents, replaces_build=replaced_build is not None)
        await deltas.request_deltas(store, transaction, artifact, work.created_by)

    return Outcome(summary, commit)


async def _previous_chunks(store: Store, previous_build: Build, contents: ArtifactContents) -> list[str]:
    """Return the chunks that the previous build uses. If its manifest is lost, return the chunks that were just read
    from the same artifact."""
    try:
        return await builds.chunk_names(store, previous_build)
    except (NotFound, SignatureRefused):
        return list(contents.rows)


async def _store_chunks(
    transaction: Transaction, org_id: str, contents: ArtifactContents, *, replaces_build: bool
) -> None:
    """Store the packs and increment the use count of every chunk. If the build replaces another build, also update the
    location of every chunk in the new packs, because it may have been stored in another pack before."""
    for pack in contents.packs:
        await builds.add_pack(transaction, pack.id, org_id, pack.sha256, pack.size)
    await builds.use_chunks(transaction, org_id, contents.rows.values())
    if replaces_build:
        await builds.move_chunks(transaction, org_id, [row for pack in contents.packs for row in pack.rows])


def _make_manifest(artifact: ReadyArtifact, contents: ArtifactContents, limits: Limits) -> tuple[Manifest, bytes]:
    """The manifest, and its payload.

    Raises:
        ManifestRefused: clients would reject the manifest.
    """
    new_manifest = _manifest(artifact, contents)
    # Validate the manifest, because its entries come from a process that reads untrusted input.
    validate(new_manifest, limits)
    payload = manifest.encode(new_manifest)
    if len(payload) > MAX_MANIFEST_BYTES:
        raise ManifestRefused(f"the manifest would have {len(payload)} bytes, at most {MAX_MANIFEST_BYTES} are allowed")
    return new_manifest, payload


def _sign(payload: bytes, key: SigningKey) -> bytes:
    """The signed envelope of the payload, as JSON."""
    return msgspec.json.encode(dsse.sign(manifest.PAYLOAD_TYPE, payload, key))


def _manifest(artifact: ReadyArtifact, contents: ArtifactContents) -> Manifest:
    entries = sorted(contents.entries, key=lambda entry: entry.path.encode())
    position_by_name: dict[bytes, int] = {}
    manifest_chunks: list[Chunk] = []
    files: list[File] = []
    for entry in entries:
        if entry.kind == "file":
            for name, size in entry.chunks:
                if name not in position_by_name:
                    position_by_name[name] = len(manifest_chunks)
                    manifest_chunks.append(Chunk(name.hex(), size))
            positions = [position_by_name[name] for name, _ in entry.chunks]
            files.append(File(entry.path, entry.mode, entry.size, entry.sha256.hex(), entry.blake3.hex(), positions))
    return Manifest(
        org=artifact.org,
        product_id=artifact.product_id,
        product=artifact.product,
        version=artifact.version,
        artifact=artifact.filename,
        artifact_sha256=artifact.sha256,
        artifact_size=artifact.size,
        platform=artifact.platform,
        created_at=clock.rfc3339(clock.now()),
        files=files,
        links=[Symlink(entry.path, entry.target) for entry in entries if entry.kind == "link"],
        folders=_empty_folders(entries),
        chunks=manifest_chunks,
        launch=[entry.launch for entry in entries if entry.launch is not None][:1000],
    )


def _empty_folders(entries: Sequence[EntryRecord]) -> list[str]:
    """Return the empty folders of the archive. Other folders are not listed, because the paths of files imply them."""
    folders_with_entries = {entry.path.rpartition("/")[0] for entry in entries}
    return [entry.path for entry in entries if entry.kind == "folder" and entry.path not in folders_with_entries]


def _summary(
    artifact: ReadyArtifact, build_manifest: Manifest, payload: bytes, contents: ArtifactContents, components: int
) -> BuildResult:
    return BuildResult(
        artifact_id=artifact.id,
        manifest_sha256=manifest.digest(payload),
        platform=artifact.platform,
        platforms=sorted({start.platform for start in build_manifest.launch if start.platform is not None}),
        files=len(build_manifest.files),
        size=build_manifest.size,
        chunks=len(build_manifest.chunks),
        new_chunks=sum(len(pack.rows) for pack in contents.packs),
        stored=sum(pack.size for pack in contents.packs),
        launch=build_manifest.launch[:MAX_SHOWN_LAUNCHES],
        components=components,
    )


TYPES: tuple[AnyJobType, ...] = (
    JobType("build.process", ProcessPayload, run_build_job, builds.admit, BUILD),
    JobType("archive.extract", ExtractPayload, run_extract_job, builds.admit),
    JobType("artifact.verify", VerifyPayload, run_verify_job, builds.admit),
    JobType(deltas.DELTA_JOB, DeltaPayload, deltas.run_delta_job, priority=BACKGROUND),
)
