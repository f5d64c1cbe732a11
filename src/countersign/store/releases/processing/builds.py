"""Builds, packs and chunks in the database, manifests of builds, and the permission to process an artifact.

A build is what the store makes of an artifact: a file tree, and its signed manifest. The content of the files is stored
as chunks, and a pack is a blob of many chunks. Builds of an organisation share chunks.
"""

import asyncio
import base64
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import msgspec

from countersign.kernel import clock, ids
from countersign.kernel.database.port import Database, Dialect, Reader, Transaction
from countersign.kernel.errors import NotFound
from countersign.store import signing_keys as signing
from countersign.store.auth.authentication import InsufficientScope
from countersign.store.auth.callers import Caller
from countersign.store.context import Store
from countersign.store.jobs.job_types import AdmittedJob
from countersign.store.releases.processing.schemas import ExtractPayload, ProcessPayload, VerifyPayload
from countersign.store.scopes import WRITE_RELEASES
from countersign.updates import dsse, manifest
from countersign.updates.api_types import Envelope
from countersign.updates.manifest import Chunk, Manifest

ARTIFACT = """
    SELECT a.id, a.filename, a.size, a.sha256, a.platform, r.id, r.version, r.channel, r.status,
           p.id, p.slug, o.id, o.slug
    FROM artifact a
    JOIN release r ON r.id = a.release_id
    JOIN product p ON p.id = r.product_id
    JOIN organisation o ON o.id = p.org_id
    WHERE a.id = $1 AND a.status = 'ready'
"""
_BUILD = """
    SELECT artifact_id, org_id, product_id, release_id, platform, manifest_sha256, envelope_sha256, files, size,
           summary, sbom, block_size, blocks
    FROM build
"""
BUILD = _BUILD + " WHERE artifact_id = $1"
BUILD_OF_RELEASE = _BUILD + " WHERE release_id = $1 AND platform = $2 ORDER BY created_at DESC, artifact_id LIMIT 1"
BUILDS_OF_RELEASE = "SELECT platform, manifest_sha256 FROM build WHERE release_id = $1 ORDER BY created_at, artifact_id"
EARLIER_BUILDS = """
    SELECT b.artifact_id
    FROM build b
    JOIN release r ON r.id = b.release_id
    JOIN release own ON own.id = $3
    WHERE b.product_id = $1 AND b.platform = $2 AND b.release_id <> $3 AND r.status = 'published' AND r.channel = $4
      AND (own.status <> 'published'
           OR (r.published_at, r.sort_key, r.id) < (own.published_at, own.sort_key, own.id))
    ORDER BY r.published_at DESC, b.created_at DESC
    LIMIT $5
"""
LATER_BUILDS = """
    SELECT b.artifact_id
    FROM build b
    JOIN release r ON r.id = b.release_id
    JOIN release own ON own.id = $3
    WHERE b.product_id = $1 AND b.platform = $2 AND r.status = 'published' AND r.channel = $4
      AND own.status = 'published'
      AND (r.published_at, r.sort_key, r.id) > (own.published_at, own.sort_key, own.id)
    ORDER BY r.published_at, b.created_at
    LIMIT $5
"""
ADD_BUILD = """
    INSERT INTO build (artifact_id, org_id, product_id, release_id, platform, manifest_sha256, envelope_sha256, files,
                       size, summary, sbom, block_size, blocks, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
    ON CONFLICT (artifact_id) DO NOTHING
"""
TAKE_BUILD = "UPDATE build SET created_at = created_at WHERE artifact_id = $1 AND envelope_sha256 = $2"
DROP_BUILD = "DELETE FROM build WHERE artifact_id = $1 AND envelope_sha256 = $2"
DROP_DELTAS = "DELETE FROM delta WHERE from_artifact = $1 OR to_artifact = $1"
DROP_PAIRS = "DELETE FROM delta_pair WHERE from_artifact = $1 OR to_artifact = $1"
ADD_PACK = """
    INSERT INTO pack (id, org_id, sha256, size, unused, created_at)
    VALUES ($1, $2, $3, $4, 0, $5)
"""
KNOWN_CHUNKS: dict[Dialect, str] = {
    "sqlite": """
        SELECT id, size, pack_id, start_at, length
        FROM chunk
        WHERE org_id = $1 AND id IN (SELECT value FROM json_each($2))
    """,
    "postgres": """
        SELECT id, size, pack_id, start_at, length
        FROM chunk
        WHERE org_id = $1 AND id IN (SELECT jsonb_array_elements_text($2::text::jsonb))
    """,
}
# If the collector deleted the chunk concurrently, this statement inserts the chunk again. If the collector also deleted
# the pack, the statement violates the foreign key, and the job is retried.
USE_CHUNK = """
    INSERT INTO chunk (org_id, id, size, pack_id, start_at, length, refs, idle_at)
    VALUES ($1, $2, $3, $4, $5, $6, 1, NULL)
    ON CONFLICT (org_id, id) DO UPDATE SET refs = chunk.refs + 1, idle_at = NULL
"""
MOVE_CHUNK = """
    UPDATE chunk SET pack_id = $3, start_at = $4, length = $5
    WHERE org_id = $1 AND id = $2
"""
RELEASE_CHUNK = """
    UPDATE chunk SET refs = refs - 1, idle_at = CASE WHEN refs = 1 THEN CAST($3 AS BIGINT) END
    WHERE org_id = $1 AND id = $2
"""
CHUNK_LOCATIONS: dict[Dialect, str] = {
    "sqlite": """
        SELECT p.sha256, p.size, c.id, c.start_at, c.length, c.size
        FROM chunk c
        JOIN pack p ON p.id = c.pack_id
        WHERE c.org_id = $1 AND c.id IN (SELECT value FROM json_each($2))
        ORDER BY p.id, c.start_at
    """,
    "postgres": """
        SELECT p.sha256, p.size, c.id, c.start_at, c.length, c.size
        FROM chunk c
        JOIN pack p ON p.id = c.pack_id
        WHERE c.org_id = $1 AND c.id IN (SELECT jsonb_array_elements_text($2::text::jsonb))
        ORDER BY p.id, c.start_at
    """,
}
CHUNKS_PER_QUERY = 20_000


class ReadyArtifact(NamedTuple):
    """A ready artifact with its release, product and organisation."""

    id: str
    filename: str
    size: int
    sha256: str
    platform: str | None
    release_id: str
    version: str
    channel: str
    release_status: str
    product_id: str
    product: str
    org_id: str
    org: str


class Build(NamedTuple):
    """A processed artifact. `summary` and `sbom` are JSON texts. `blocks` contains 32-byte digests, concatenated."""

    artifact_id: str
    org_id: str
    product_id: str
    release_id: str
    platform: str
    manifest_sha256: str
    envelope_sha256: str
    files: int
    size: int
    summary: str
    sbom: str | None
    block_size: int
    blocks: bytes


class ChunkRow(NamedTuple):
    """A chunk: its size in bytes, its pack, and the offset and length of its frame (its compressed bytes) in the
    pack."""

    id: str
    size: int
    pack_id: str
    start: int
    length: int


class ChunkLocation(NamedTuple):
    """A chunk with the blob of its pack."""

    pack_sha256: str
    pack_size: int
    id: str
    start: int
    length: int
    size: int


async def artifact(reader: Reader, artifact_id: str) -> ReadyArtifact | None:
    """The ready artifact of that id."""
    row = await reader.fetch_one(ARTIFACT, artifact_id)
    return None if row is None else ReadyArtifact(*row)


async def build(reader: Reader, artifact_id: str) -> Build | None:
    """The build of the artifact."""
    row = await reader.fetch_one(BUILD, artifact_id)
    return None if row is None else Build(*row)


async def build_of_release(reader: Reader, release_id: str, platform: str) -> Build | None:
    """Return the release's newest build for a platform. An empty `platform` selects the build without a platform."""
    row = await reader.fetch_one(BUILD_OF_RELEASE, release_id, platform)
    return None if row is None else Build(*row)


async def builds_of_release(reader: Reader, release_id: str) -> dict[str, str]:
    """Map each platform to the digest of its newest manifest."""
    return dict([(platform, digest) for platform, digest in await reader.fetch(BUILDS_OF_RELEASE, release_id)])


async def earlier_builds(reader: Reader, new_ready_artifact: ReadyArtifact, platform: str, limit: int) -> list[str]:
    """Return the artifacts from which clients most likely update to the new artifact, newest first."""
    rows = await reader.fetch(
        EARLIER_BUILDS,
        new_ready_artifact.product_id,
        platform,
        new_ready_artifact.release_id,
        new_ready_artifact.channel,
        limit,
    )
    return [artifact_id for (artifact_id,) in rows]


async def later_builds(reader: Reader, old_artifact: ReadyArtifact, platform: str, limit: int) -> list[str]:
    """Return the artifacts to which clients most likely update from the old artifact, oldest first."""
    rows = await reader.fetch(
        LATER_BUILDS, old_artifact.product_id, platform, old_artifact.release_id, old_artifact.channel, limit
    )
    return [artifact_id for (artifact_id,) in rows]


async def known_chunks(database: Database, org_id: str, names: Sequence[str]) -> list[ChunkRow]:
    """The given chunks that the organisation has stored."""
    rows = await database.fetch(KNOWN_CHUNKS[database.dialect], org_id, msgspec.json.encode(names).decode())
    return [ChunkRow(*row) for row in rows]


async def chunk_locations(database: Database, org_id: str, names: Sequence[str]) -> list[ChunkLocation]:
    """The locations of the chunks, ordered by pack."""
    locations: list[ChunkLocation] = []
    for start in range(0, len(names), CHUNKS_PER_QUERY):
        encoded_names = msgspec.json.encode(names[start : start + CHUNKS_PER_QUERY]).decode()
        locations += [
            ChunkLocation(*row) for row in await database.scan(CHUNK_LOCATIONS[database.dialect], org_id, encoded_names)
        ]
    return locations


async def add_build(transaction: Transaction, new_build: Build) -> bool:
    """Insert the build. Return False if the artifact already has a build."""
    return bool(await transaction.run(ADD_BUILD, *new_build, clock.now()))


async def delete_build(transaction: Transaction, build: Build, chunk_ids: Iterable[str]) -> bool:
    """Delete a build, and decrement the use count of its chunks. Return False if the build was already removed or
    replaced."""
    if not await transaction.run(TAKE_BUILD, build.artifact_id, build.envelope_sha256):
        return False
    await transaction.run(DROP_DELTAS, build.artifact_id)
    await transaction.run(DROP_PAIRS, build.artifact_id)
    await transaction.run(DROP_BUILD, build.artifact_id, build.envelope_sha256)
    now = clock.now()
    await transaction.run_many(RELEASE_CHUNK, [(build.org_id, name, now) for name in sorted(chunk_ids)])
    return True


async def add_pack(transaction: Transaction, pack_id: str, org_id: str, sha256: str, size: int) -> None:
    """Insert a pack."""
    await transaction.run(ADD_PACK, pack_id, org_id, sha256, size, clock.now())


async def use_chunks(transaction: Transaction, org_id: str, chunk_rows: Iterable[ChunkRow]) -> None:
    """Increment the use count of each chunk. To avoid deadlocks, the chunks are updated in the order of their names."""
    rows = [(org_id, *row) for row in sorted(chunk_rows)]
    await transaction.run_many(USE_CHUNK, rows)


async def move_chunks(transaction: Transaction, org_id: str, chunk_rows: Iterable[ChunkRow]) -> None:
    """Update the locations of the chunks."""
    rows = [(org_id, row.id, row.pack_id, row.start, row.length) for row in sorted(chunk_rows)]
    await transaction.run_many(MOVE_CHUNK, rows)


_reading = ThreadPoolExecutor(1, thread_name_prefix="manifests")


class ArtifactGone(NotFound):
    """No ready artifact of the caller's organisation has this id."""

    resolution = "List the release's artifacts, and use the id of one whose status is ready."


async def ready_artifact(reader: Reader, artifact_id: str) -> ReadyArtifact:
    """The artifact.

    Raises:
        ArtifactGone: no ready artifact has this id.
    """
    ready = await artifact(reader, artifact_id.lower()) if ids.is_uuid(artifact_id) else None
    if ready is None:
        raise ArtifactGone("no ready artifact has this id")
    return ready


async def admit(
    reader: Reader, caller: Caller, payload: ProcessPayload | ExtractPayload | VerifyPayload
) -> AdmittedJob:
    """Check that the caller may start a job on the artifact.

    Raises:
        ArtifactGone: the artifact does not exist, or belongs to another organisation.
        InsufficientScope: the caller may not write releases.
    """
    ready = await ready_artifact(reader, payload.artifact_id)
    if ready.org_id not in caller.orgs:
        raise ArtifactGone("no ready artifact has this id")
    if ready.org_id not in caller.orgs_allowing(WRITE_RELEASES):
        raise InsufficientScope(f"this requires the scope {WRITE_RELEASES}")
    return AdmittedJob(ready.org_id, ready.size)


async def read_manifest(store: Store, build: Build) -> Manifest:
    """The manifest of a build, with its signature verified.

    Raises:
        NotFound: the manifest's blob is missing.
        SignatureRefused: the organisation's signature is invalid, or the manifest belongs to another build.
    """
    size = await store.blobs.size(build.envelope_sha256)
    envelope_json = b"".join([piece async for piece in store.blobs.read(build.envelope_sha256, 0, size or 0)])
    chain, _ = await signing.chain(store.database, build.org_id)
    try:
        envelope = msgspec.json.decode(envelope_json, type=Envelope)
        payload = dsse.verify(envelope, manifest.PAYLOAD_TYPE, {key.keyid: key for key in chain})
        if manifest.digest(payload) != build.manifest_sha256:
            raise dsse.SignatureRefused("the manifest belongs to another build")
        return manifest.decode(payload)
    except msgspec.DecodeError as error:
        raise dsse.SignatureRefused("the manifest cannot be read") from error


class _Chunks(msgspec.Struct, frozen=True):
    """The part of a manifest that lists the chunks. To decode a large manifest completely would take a hundred times as
    much memory."""

    chunks: list[Chunk]


async def chunk_names(store: Store, build: Build) -> list[str]:
    """Return the names of a build's chunks, as listed in the manifest. The signature is not verified, because the store
    wrote the manifest itself, and clients verify it. A thread decodes one manifest at a time, because manifests can be
    large.

    Raises:
        NotFound: the manifest's blob is missing.
        SignatureRefused: the manifest is damaged.
    """
    size = await store.blobs.size(build.envelope_sha256)
    envelope_json = b"".join([piece async for piece in store.blobs.read(build.envelope_sha256, 0, size or 0)])
    return await asyncio.get_running_loop().run_in_executor(_reading, _decoded_names, envelope_json)


def _decoded_names(envelope_json: bytes) -> list[str]:
    try:
        payload = base64.b64decode(msgspec.json.decode(envelope_json, type=Envelope).payload)
        return [chunk.id for chunk in msgspec.json.decode(payload, type=_Chunks).chunks]
    except (msgspec.DecodeError, ValueError) as error:
        raise dsse.SignatureRefused("the manifest cannot be read") from error
