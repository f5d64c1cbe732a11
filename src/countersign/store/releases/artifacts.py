"""Artifacts of releases: announcement, upload and download, with the table and the routes of artifacts."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple

from countersign.kernel import clock, ids
from countersign.kernel.blobs.port import ChecksumMismatch
from countersign.kernel.database.port import Reader, Transaction
from countersign.kernel.errors import NotFound, Refused, StorageFull, Unavailable, invalid_member
from countersign.kernel.http import range_response, response
from countersign.kernel.http.range_response import (
    OCTETS,
    RANGE_REQUEST_HEADERS,
    RANGE_RESPONSE_HEADERS,
    RangeNotSatisfiable,
    StoredContent,
    attachment,
    requested_range,
)
from countersign.kernel.http.response import Response
from countersign.kernel.http.routing import Nothing, route
from countersign.store.auth.authentication import InsufficientScope
from countersign.store.auth.callers import StoreRequest
from countersign.store.catalog import projection
from countersign.store.catalog.products import ProductNotFound
from countersign.store.catalog.schemas import Artifact
from countersign.store.context import PREFIX, Store
from countersign.store.releases import blobs, download, receive_upload, uploads
from countersign.store.releases.download import AddressExpired, ArtifactNotFound, InvalidSignature, NotEntitled
from countersign.store.releases.lifecycle import Yanked
from countersign.store.releases.permissions import NotYourOrganisation, OwnedRelease, ReleaseNotFound, owned_release
from countersign.store.releases.receive_upload import Progress
from countersign.store.releases.schemas import Announced, NewArtifact, SignedQuery
from countersign.store.releases.uploads import (
    Content,
    Purpose,
    TooManyParts,
    Upload,
    UploadAddress,
    UploadNotFound,
    check_filename,
)
from countersign.store.scopes import WRITE_RELEASES
from countersign.store.statistics import counts

MEBIBYTE = 1 << 20

INSERT = """
    INSERT INTO artifact (id, release_id, filename, size, platform, status, created_at)
    VALUES ($1, $2, $3, $4, $5, 'receiving', $6)
    ON CONFLICT (release_id, filename) DO NOTHING
"""
BY_FILENAME = "SELECT id, status FROM artifact WHERE release_id = $1 AND filename = $2"
ANNOUNCE_AGAIN = "UPDATE artifact SET size = $2, platform = $3 WHERE id = $1 AND status = 'receiving'"
MAKE_READY = """
    UPDATE artifact SET status = 'ready', sha256 = $2
    WHERE id = $1 AND status = 'receiving'
      AND EXISTS (SELECT 1 FROM release r WHERE r.id = artifact.release_id AND r.status <> 'yanked')
"""
DELETE_UNFINISHED = "DELETE FROM artifact WHERE id = $1 AND status = 'receiving'"
OF_RELEASE = "SELECT id FROM artifact WHERE release_id = $1 ORDER BY id"
DELETE_ALL = "DELETE FROM artifact WHERE release_id = $1"
BY_ID = "SELECT id, filename, size, sha256, platform, status FROM artifact WHERE id = $1"
PRODUCT_OF = """
    SELECT r.product_id
    FROM artifact a
    JOIN release r ON r.id = a.release_id
    WHERE a.id = $1
"""


class FilenameTaken(Refused):
    """The release has a file of this name; files cannot be replaced."""

    status = 409
    code = "filename_taken"
    title = "Filename taken"
    resolution = "Use another filename, or draft a new release."


class Announcement(NamedTuple):
    """An announced artifact and its upload address."""

    artifact_id: str
    address: UploadAddress


async def announce(
    transaction: Transaction, release: OwnedRelease, body: NewArtifact, *, announcer: str, max_mib: int, ttl_s: int
) -> Announcement:
    """Announce a file of the release. If an earlier upload of the file is unfinished, the file keeps its id and gets a
    new upload address, and the received parts are discarded.

    Raises:
        InvalidRequest: the filename is invalid, or the file exceeds the maximum size.
        Yanked: a yanked release accepts no files.
        FilenameTaken: a file of this name is ready.
    """
    check_filename(body.filename)
    if body.size > max_mib * MEBIBYTE:
        raise invalid_member("/size", f"must be at most {max_mib * MEBIBYTE}, {max_mib} MiB")
    if release.status == "yanked":
        raise Yanked(f"the release {release.version} was yanked")
    artifact_id = await _find_or_add_artifact(transaction, release, body)
    address = await uploads.announce(
        transaction,
        "artifact",
        artifact_id,
        org_id=release.product.org_id,
        announced_by=announcer,
        size=body.size,
        sha256=None if body.sha256 is None else body.sha256.lower(),
        ttl_s=ttl_s,
    )
    return Announcement(artifact_id, address)


async def _find_or_add_artifact(transaction: Transaction, release: OwnedRelease, body: NewArtifact) -> str:
    """Return the id of a new or unfinished artifact with this filename. The artifact then has no upload."""
    artifact_id = ids.new_uuid()
    row = (release.id, body.filename, body.size, body.platform, clock.now())
    if await transaction.run(INSERT, artifact_id, *row):
        return artifact_id
    existing_row = await transaction.fetch_one(BY_FILENAME, release.id, body.filename)
    if existing_row is not None and existing_row[1] == "receiving":
        # To avoid deadlocks, lock the upload before the artifact, as all other code does.
        await uploads.delete_of_subject(transaction, existing_row[0])
        if await transaction.run(ANNOUNCE_AGAIN, existing_row[0], body.size, body.platform):
            return existing_row[0]
    # A concurrent request may have removed or finished the artifact: insert it, unless it exists now.
    if await transaction.run(INSERT, artifact_id, *row):
        return artifact_id
    raise FilenameTaken(f"the release {release.version} has a file {body.filename}")


async def put_ready(transaction: Transaction, release: str, filename: str, content: Content, platform: str) -> str:
    """Insert a ready artifact of the release with this id; return the artifact's id. The artifact's blob must already
    be stored. This function is used for demonstration data."""
    await blobs.keep(transaction, [await blobs.touch(transaction, content.sha256, content.size)])
    artifact_id = ids.new_uuid()
    await transaction.run(INSERT, artifact_id, release, filename, content.size, platform, clock.now())
    await transaction.run(MAKE_READY, artifact_id, content.sha256)
    return artifact_id


async def abandon(transaction: Transaction, upload: Upload) -> None:
    """Remove an artifact that is not ready."""
    await transaction.run(DELETE_UNFINISHED, upload.subject_id)


async def remove_all(transaction: Transaction, release_id: str) -> None:
    """Remove all files of a draft release, including unfinished uploads. The collector removes unused blobs later."""
    for (artifact_id,) in await transaction.fetch(OF_RELEASE, release_id):
        await uploads.delete_of_subject(transaction, artifact_id)
    await counts.forget_release(transaction, release_id)
    await transaction.run(DELETE_ALL, release_id)


async def _content(store: Store, upload: Upload, sha256: str) -> Content:
    return Content(sha256, upload.size)


async def _keep(transaction: Transaction, upload: Upload, content: Content) -> None:
    """Raises UploadNotFound if the artifact was removed or its release was yanked."""
    product = await transaction.fetch_one(PRODUCT_OF, upload.subject_id)
    if product is None or not await transaction.run(MAKE_READY, upload.subject_id, content.sha256):
        raise UploadNotFound("the artifact of this upload was removed, or its release was yanked")
    await projection.refresh(transaction, product[0], reindex=False)


async def _upload_response(reader: Reader, upload: Upload) -> Response:
    row = await reader.fetch_one(BY_ID, upload.subject_id)
    if row is None:
        raise UploadNotFound("the artifact of this upload was removed")
    location = (("Location", f"{PREFIX}/artifacts/{upload.subject_id}"),)
    return response.json(Artifact(*row), 201, location)


ARTIFACT = Purpose("artifact", _content, _keep, abandon, _upload_response)


async def announce_artifact(call: StoreRequest[Nothing, NewArtifact]) -> Response:
    """Announce a file of a release; the response has its upload address."""
    store, transaction = call.context, call.transaction
    path = call.path
    release = await owned_release(transaction, call.caller, path["id"], path["version"], WRITE_RELEASES)
    artifact_id, address = await announce(
        transaction,
        release,
        call.body,
        announcer=call.caller.key,
        max_mib=store.settings.artifact_max_mib,
        ttl_s=store.settings.upload_ttl_s,
    )
    url = f"{store.capability_base_url}/artifacts/uploads/{address.token}"
    return response.json(Announced(artifact_id, url, clock.rfc3339(address.expires_at)), 201)


async def receive_artifact(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Upload a file, whole or in parts (Content-Range: bytes FIRST-LAST/SIZE), in any order; interrupted parts can be
    resent.

    The address is the only credential. 204 has `Upload-Received: FIRST-LAST,FIRST-LAST,…`, the received ranges.
    """
    return await receive_upload.receive(call, ARTIFACT)


async def show_upload(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Show the received byte ranges of a file, each as first and last byte."""
    return await receive_upload.show(call, ARTIFACT)


async def download_artifact(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Download a file of a release. Free products need no credential; others require an entitlement."""
    store = call.context
    artifact, is_public = await download.permitted_artifact(store, call.caller, call.path["artifact_id"])
    count = download.download_counter(store, artifact.id)
    address = await download.redirect_address(store, artifact)
    if address is None:
        content_response = download.stored_content(artifact, is_public=is_public)
        return await range_response.range_response(store.blobs, call.headers, content_response, count)
    byte_range = requested_range(call.headers.get("range"), artifact.size)
    is_counted = byte_range is None or byte_range.start == 0
    headers = (("Location", address), ("Cache-Control", "no-store"), ("Content-Length", "0"))
    return Response(307, _empty_body(count if is_counted else None), OCTETS, headers)


async def _empty_body(begin: Callable[[], Awaitable[None]] | None) -> AsyncIterator[bytes]:
    """An empty body; HEAD requests do not read it."""
    if begin is not None:
        await begin()
    yield b""


async def download_blob(call: StoreRequest[SignedQuery, Nothing]) -> Response:
    """Download a blob by the signed address of a download; for CDNs."""
    store, query = call.context, call.query
    sha256 = call.path["sha256"]
    left_s = download.check_signature(store.addresses, sha256, query.filename, query.expires, query.signature)
    size = await store.blobs.size(sha256)
    if size is None:
        raise NotFound("the blob was removed")
    headers = (("Content-Disposition", attachment(query.filename)),)
    return await range_response.range_response(
        store.blobs, call.headers, StoredContent(sha256, size, f"public, max-age={left_s}", headers=headers)
    )


_RECEIVING = (UploadNotFound, ChecksumMismatch, TooManyParts, StorageFull, Unavailable)

ROUTES = (
    route(
        "POST",
        "/products/{id}/releases/{version}/artifacts",
        announce_artifact,
        body=NewArtifact,
        answers={201: Announced},
        refusals=(ProductNotFound, NotYourOrganisation, ReleaseNotFound, FilenameTaken, Yanked),
        scope=WRITE_RELEASES,
        writes=True,
        secret=True,
    ),
    route(
        "PUT",
        "/artifacts/uploads/{token}",
        receive_artifact,
        answers={201: Artifact, 204: None},
        refusals=_RECEIVING,
        streams=True,
        reads=("Content-Range",),
        sends={201: ("Location",), 204: ("Upload-Received",)},
    ),
    route(
        "GET",
        "/artifacts/uploads/{token}",
        show_upload,
        answers={200: Progress},
        refusals=(UploadNotFound,),
    ),
    route(
        "GET",
        "/artifacts/{artifact_id}",
        download_artifact,
        answers={200: bytes, 206: bytes, 307: None},
        refusals=(ArtifactNotFound, NotEntitled, InsufficientScope, RangeNotSatisfiable),
        produces=(OCTETS,),
        reads=RANGE_REQUEST_HEADERS,
        sends={**RANGE_RESPONSE_HEADERS, 307: ("Location",)},
    ),
    route(
        "GET",
        "/blobs/{sha256}",
        download_blob,
        query=SignedQuery,
        answers={200: bytes, 206: bytes},
        refusals=(InvalidSignature, AddressExpired, RangeNotSatisfiable, NotFound),
        produces=(OCTETS,),
        reads=RANGE_REQUEST_HEADERS,
        sends=RANGE_RESPONSE_HEADERS,
    ),
)
