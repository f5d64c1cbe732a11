"""The job delta.make: it prepares deltas between builds, in advance, for the most likely updates. From a delta and the
installed files, a client makes the new files."""

from typing import NamedTuple

import msgspec

from countersign.kernel import clock, ids
from countersign.kernel.database import versions
from countersign.kernel.database.port import Reader, Transaction
from countersign.kernel.errors import NotFound, Unavailable
from countersign.store.context import Store
from countersign.store.jobs import queries as job_queries
from countersign.store.jobs.job_types import BACKGROUND, JobContext, Outcome
from countersign.store.releases import blobs
from countersign.store.releases.processing import builds, sandboxed_process
from countersign.store.releases.processing.builds import ChunkLocation, ReadyArtifact
from countersign.store.releases.processing.schemas import DeltaPayload, DeltaResult
from countersign.updates import chunks
from countersign.updates.api_types import PositionRanges
from countersign.updates.manifest import Manifest
from countersign.updates.worker_protocol import DeltaBlob, DeltaOrder, EndOfDeltas, decode_delta_record

DELTA_JOB = "delta.make"

INSERT_PAIR = """
    INSERT INTO delta_pair (from_artifact, to_artifact, state, created_at)
    VALUES ($1, $2, 'wanted', $3)
    ON CONFLICT DO NOTHING
"""
SET_PAIR_READY = """
    UPDATE delta_pair SET state = 'ready' WHERE from_artifact = $1 AND to_artifact = $2 AND state = 'wanted'
"""
INSERT_DELTA = """
    INSERT INTO delta (id, from_artifact, to_artifact, sha256, size, listing, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
"""
SELECT_PAIR_STATE = "SELECT state FROM delta_pair WHERE from_artifact = $1 AND to_artifact = $2"
SELECT_DELTAS_OF_PAIR = """
    SELECT sha256, size, listing
    FROM delta
    WHERE from_artifact = $1 AND to_artifact = $2
    ORDER BY id
"""


class DeltaListing(msgspec.Struct, frozen=True):
    """The listing of a delta. `old` contains the indexes, in the old manifest, of the files that the delta reads.
    `files` contains the indexes, in the new manifest, of the files that the delta makes. `memory` is the number of
    bytes of memory that is needed to apply the delta."""

    old: PositionRanges
    files: PositionRanges
    memory: int


async def request_deltas(store: Store, transaction: Transaction, artifact: ReadyArtifact, created_by: str) -> None:
    """Enqueue deltas to the new build from the earlier builds of its channel. If the build of an older release is made
    last, enqueue the deltas from it to the later builds."""
    platform, limit = artifact.platform or "", store.settings.delta_history
    earlier_builds = await builds.earlier_builds(transaction, artifact, platform, limit)
    later_builds = await builds.later_builds(transaction, artifact, platform, limit)
    for pair in [
        *((earlier_build, artifact.id) for earlier_build in earlier_builds),
        *((artifact.id, build) for build in later_builds),
    ]:
        await request_delta(store, transaction, *pair, org_id=artifact.org_id, created_by=created_by)


async def request_delta(
    store: Store, transaction: Transaction, from_artifact: str, to_artifact: str, *, org_id: str, created_by: str
) -> None:
    """Enqueue the deltas from one build to another, unless they were requested before."""
    if await transaction.run(INSERT_PAIR, from_artifact, to_artifact, clock.now()):
        payload = DeltaPayload(from_artifact, to_artifact)
        await job_queries.enqueue(
            transaction, store, DELTA_JOB, payload, org_id=org_id, created_by=created_by, priority=BACKGROUND
        )


async def pair_state(reader: Reader, from_artifact: str, to_artifact: str) -> str | None:
    """The state of the pair: 'wanted', 'ready', or None if it was never requested."""
    row = await reader.fetch_one(SELECT_PAIR_STATE, from_artifact, to_artifact)
    return None if row is None else row[0]


async def deltas(reader: Reader, from_artifact: str, to_artifact: str) -> list[tuple[str, int, str]]:
    """The prepared deltas of a pair: digest and size of the blob, and its listing as JSON."""
    rows = await reader.fetch(SELECT_DELTAS_OF_PAIR, from_artifact, to_artifact)
    return [(sha256, size, listing_json) for sha256, size, listing_json in rows]


async def mark_ready(transaction: Transaction, from_artifact: str, to_artifact: str) -> bool:
    """Mark the pair as prepared. Return False if the pair is already prepared, or one of its builds was removed."""
    return bool(await transaction.run(SET_PAIR_READY, from_artifact, to_artifact))


async def add_delta(
    transaction: Transaction, from_artifact: str, to_artifact: str, sha256: str, size: int, listing: DeltaListing
) -> None:
    """Insert a delta of the pair."""
    listing_json = msgspec.json.encode(listing).decode()
    row = ids.new_uuid(), from_artifact, to_artifact, sha256, size, listing_json, clock.now()
    await transaction.run(INSERT_DELTA, *row)


PROGRAM = "countersign.updates.deltas.make"
MEBIBYTE = 1 << 20


class StoredDelta(NamedTuple):
    """A delta whose blob is stored under `sha256`."""

    sha256: str
    size: int
    listing: DeltaListing


class BuildRemoved(NotFound):
    """A build of the requested delta was removed."""

    resolution = "No action needed: the delta is obsolete."


async def run_delta_job(store: Store, work: JobContext[DeltaPayload]) -> Outcome:
    """Make and store the deltas of a pair. If the pair is already prepared, nothing changes.

    Raises:
        BuildRemoved: one of the builds was removed.
        WorkerDied: the process exceeded its memory or time limit.
    """
    pair = work.payload.from_artifact, work.payload.to_artifact
    old_files, new_files = await _build_files(store, pair[0]), await _build_files(store, pair[1])
    stored_deltas = await _make_deltas(store, work, old_files, new_files)
    result = DeltaResult(*pair, len(stored_deltas), sum(delta.size for delta in stored_deltas))
    reservations = await blobs.reserve(
        store.database, store.blobs, [(delta.sha256, delta.size) for delta in stored_deltas]
    )

    async def commit(transaction: Transaction) -> None:
        if await mark_ready(transaction, *pair):
            await blobs.keep(transaction, reservations)
            for delta in stored_deltas:
                await add_delta(transaction, *pair, delta.sha256, delta.size, delta.listing)
            # The lists of releases contain the sizes of updates.
            await versions.bump(transaction, "catalog")

    return Outcome(result, commit)


class _BuildFiles(NamedTuple):
    """One of the two builds: its manifest and the locations of its chunks."""

    manifest: Manifest
    chunk_locations: dict[str, ChunkLocation]


async def _build_files(store: Store, artifact_id: str) -> _BuildFiles:
    build = await builds.build(store.database, artifact_id)
    if build is None:
        raise BuildRemoved("a build of the update was removed")
    manifest = await builds.read_manifest(store, build)
    locations = await builds.chunk_locations(store.database, build.org_id, [chunk.id for chunk in manifest.chunks])
    return _BuildFiles(manifest, {location.id: location for location in locations})


async def _make_deltas(
    store: Store, work: JobContext[DeltaPayload], old_files: _BuildFiles, new_files: _BuildFiles
) -> list[StoredDelta]:
    """Make the deltas of the pair. Store and return only deltas that are at least 10 % smaller than the chunks that
    they replace."""
    settings = store.settings
    order = DeltaOrder(
        old_files.manifest.files,
        new_files.manifest.files,
        settings.delta_group_mib * MEBIBYTE,
        settings.job_memory_mib * MEBIBYTE,
        settings.job_seconds,
    )
    stored_deltas: list[StoredDelta] = []
    progress = 0.0
    async with sandboxed_process.run_process(PROGRAM) as process:
        await process.send(msgspec.msgpack.encode(order))
        while not isinstance(record := decode_delta_record(await process.receive()), EndOfDeltas):
            if isinstance(record, DeltaBlob):
                if len(record.blob) * 10 < _size_of_replaced_chunks(record, old_files, new_files) * 9:
                    listing = DeltaListing(record.old, record.files, record.memory)
                    digest = await blobs.put(store.database, store.blobs, record.blob)
                    stored_deltas.append(StoredDelta(digest, len(record.blob), listing))
                continue
            build_files = new_files if record.is_new else old_files
            await process.send(await _file_bytes(store, build_files, record.place))
            progress += (1 - progress) / 100
            await work.progress(progress)
    return stored_deltas


async def _file_bytes(store: Store, build_files: _BuildFiles, file_index: int) -> bytes:
    """The content of a file of the build, from its chunks.

    Raises:
        Unavailable: a chunk is not stored.
        ChunkDamaged: a pack was changed.
    """
    file_content = bytearray()
    for position in build_files.manifest.files[file_index].chunks:
        chunk = build_files.manifest.chunks[position]
        location = build_files.chunk_locations.get(chunk.id)
        if location is None:
            raise Unavailable(f"the chunk {chunk.id} is not stored: process its artifact again")
        stop = location.start + location.length
        frame = b"".join([piece async for piece in store.blobs.read(location.pack_sha256, location.start, stop)])
        file_content += chunks.decompress(frame, location.size, location.id)
    return bytes(file_content)


def _size_of_replaced_chunks(delta: DeltaBlob, old_files: _BuildFiles, new_files: _BuildFiles) -> int:
    """Return the total size of the chunks that a client without the delta would download for the delta's files."""
    needed_chunks: set[str] = set()
    for start, stop in delta.files:
        for file in new_files.manifest.files[start:stop]:
            needed_chunks.update(new_files.manifest.chunks[position].id for position in file.chunks)
    missing_chunks = needed_chunks - old_files.chunk_locations.keys()
    return sum(
        new_files.chunk_locations[chunk_id].length
        for chunk_id in missing_chunks
        if chunk_id in new_files.chunk_locations
    )
