"""The artifacts that jobs work on, who may ask for that, and the manifests of their builds."""

import asyncio
import base64
from concurrent.futures import ThreadPoolExecutor

import msgspec

from countersign.kernel import ids
from countersign.kernel.database.port import Reader
from countersign.kernel.errors import NotFound
from countersign.store import signing_keys as signing
from countersign.store.auth.authentication import InsufficientScope
from countersign.store.auth.callers import Caller
from countersign.store.context import Store
from countersign.store.jobs.job_types import AdmittedJob
from countersign.store.releases.processing import queries
from countersign.store.releases.processing.queries import Artifact, Build
from countersign.store.releases.processing.schemas import ExtractPayload, ProcessPayload, VerifyPayload
from countersign.store.scopes import WRITE_RELEASES
from countersign.updates import dsse, manifest
from countersign.updates.api_types import Envelope
from countersign.updates.manifest import Chunk, Manifest

_reading = ThreadPoolExecutor(1, thread_name_prefix="manifests")


class ArtifactGone(NotFound):
    """No ready artifact of the caller's organisation has this id."""

    resolution = "List the release's artifacts, and use the id of one whose status is ready."


async def ready(reader: Reader, artifact_id: str) -> Artifact:
    """The artifact.

    Raises:
        ArtifactGone: there is none of this id that is ready.
    """
    found = await queries.artifact(reader, artifact_id.lower()) if ids.is_uuid(artifact_id) else None
    if found is None:
        raise ArtifactGone("no ready artifact has this id")
    return found


async def admit(
    reader: Reader, caller: Caller, payload: ProcessPayload | ExtractPayload | VerifyPayload
) -> AdmittedJob:
    """Let a caller have work done on an artifact of their own organisation.

    Raises:
        ArtifactGone: there is none, or it is another organisation's: the same answer.
        InsufficientScope: the caller may only look.
    """
    found = await ready(reader, payload.artifact_id)
    if found.org_id not in caller.orgs:
        raise ArtifactGone("no ready artifact has this id")
    if found.org_id not in caller.orgs_allowing(WRITE_RELEASES):
        raise InsufficientScope(f"this needs the scope {WRITE_RELEASES}")
    return AdmittedJob(found.org_id, found.size)


async def read_manifest(store: Store, build: Build) -> Manifest:
    """The manifest of a build, held against its signature.

    Raises:
        NotFound: its bytes are gone.
        SignatureRefused: it is not signed by a key of the organisation, or is another one.
    """
    size = await store.blobs.size(build.envelope_sha256)
    said = b"".join([piece async for piece in store.blobs.read(build.envelope_sha256, 0, size or 0)])
    chain, _ = await signing.chain(store.database, build.org_id)
    try:
        shown = msgspec.json.decode(said, type=Envelope)
        payload = dsse.verify(shown, manifest.PAYLOAD_TYPE, {key.keyid: key for key in chain})
        if manifest.digest(payload) != build.manifest_sha256:
            raise dsse.SignatureRefused("the manifest is signed, and is another build's")
        return manifest.decode(payload)
    except msgspec.DecodeError as error:
        raise dsse.SignatureRefused("the manifest cannot be read") from error


class _Chunks(msgspec.Struct, frozen=True):
    """Of a manifest the chunks alone: a manifest of many files takes a hundred times the memory."""

    chunks: list[Chunk]


async def chunk_names(store: Store, build: Build) -> list[str]:
    """The names of a build's chunks, as its manifest has them. Its signature is not looked at: the bytes are the
    store's own, and clients look. Read in a thread, one manifest at a time: anybody may ask for a large one.

    Raises:
        NotFound: the manifest's bytes are gone.
        SignatureRefused: they are damaged.
    """
    size = await store.blobs.size(build.envelope_sha256)
    said = b"".join([piece async for piece in store.blobs.read(build.envelope_sha256, 0, size or 0)])
    return await asyncio.get_running_loop().run_in_executor(_reading, _names, said)


def _names(said: bytes) -> list[str]:
    try:
        payload = base64.b64decode(msgspec.json.decode(said, type=Envelope).payload)
        return [chunk.id for chunk in msgspec.json.decode(payload, type=_Chunks).chunks]
    except (msgspec.DecodeError, ValueError) as error:
        raise dsse.SignatureRefused("the manifest cannot be read") from error
