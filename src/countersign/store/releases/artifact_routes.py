"""POST /products/{id}/releases/{version}/artifacts, /artifacts/uploads/{token}, /artifacts/{artifact_id}, /blobs."""

from collections.abc import AsyncIterator, Awaitable, Callable

from countersign.kernel import clock
from countersign.kernel.blobs.port import ChecksumMismatch
from countersign.kernel.errors import NotFound, StorageFull, Unavailable
from countersign.kernel.http import range_response, response
from countersign.kernel.http.range_response import (
    OCTETS,
    RANGE_READS,
    RANGE_SENDS,
    RangeNotSatisfiable,
    StoredContent,
    attachment,
    requested_range,
)
from countersign.kernel.http.response import Response
from countersign.kernel.http.routing import Nothing, route
from countersign.store.auth.authentication import InsufficientScope
from countersign.store.auth.callers import StoreRequest
from countersign.store.catalog.schemas import Artifact
from countersign.store.catalog.visibility import ProductNotFound
from countersign.store.releases import artifacts, download, receive_upload
from countersign.store.releases.artifacts import ARTIFACT, FilenameTaken
from countersign.store.releases.download import AddressExpired, ArtifactNotFound, InvalidSignature, NotEntitled
from countersign.store.releases.permissions import NotYourOrganisation, ReleaseNotFound, owned_release
from countersign.store.releases.publishing import Yanked
from countersign.store.releases.receive_upload import Progress
from countersign.store.releases.schemas import Announced, NewArtifact, SignedQuery
from countersign.store.releases.uploads import TooManyParts, UploadNotFound
from countersign.store.scopes import WRITE_RELEASES


async def announce_artifact(call: StoreRequest[Nothing, NewArtifact]) -> Response:
    """Announce a file of a release and get the address to upload it to."""
    store, transaction = call.context, call.transaction
    path = call.path
    release = await owned_release(transaction, call.caller, path["id"], path["version"], WRITE_RELEASES)
    artifact_id, address = await artifacts.announce(
        transaction,
        release,
        call.body,
        by=call.caller.key,
        max_mib=store.settings.artifact_max_mib,
        ttl_s=store.settings.upload_ttl_s,
    )
    url = f"{store.capability_base_url}/artifacts/uploads/{address.token}"
    return response.json(Announced(artifact_id, url, clock.rfc3339(address.expires_at)), 201)


async def receive_artifact(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Send a file, whole or a part of it (Content-Range: bytes FIRST-LAST/SIZE), in any order and again after a cut.

    The address is all that is needed. 204 carries `Upload-Received: FIRST-LAST,FIRST-LAST,…`, what has arrived.
    """
    return await receive_upload.receive(call, ARTIFACT)


async def show_upload(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Show which stretches of a file have arrived, each from its first byte to its last."""
    return await receive_upload.show(call, ARTIFACT)


async def download_artifact(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Download a file of a release: anyone where the product is free, else whoever is entitled to it."""
    store = call.context
    found, is_for_anyone = await download.permitted(store, call.caller, call.path["artifact_id"])
    count = download.counting(store, found.id)
    address = await download.elsewhere(store, found)
    if address is None:
        offered = download.offered(found, is_for_anyone=is_for_anyone)
        return await range_response.range_response(store.blobs, call.headers, offered, count)
    wanted = requested_range(call.headers.get("range"), found.size)
    counts = wanted is None or wanted.start == 0
    headers = (("Location", address), ("Cache-Control", "no-store"), ("Content-Length", "0"))
    return Response(307, _nothing(count if counts else None), OCTETS, headers)


async def _nothing(begin: Callable[[], Awaitable[None]] | None) -> AsyncIterator[bytes]:
    """An empty body, which HEAD never asks for."""
    if begin is not None:
        await begin()
    yield b""


async def download_blob(call: StoreRequest[SignedQuery, Nothing]) -> Response:
    """Download bytes by a signed address, which a download answered with; for CDNs."""
    store, query = call.context, call.query
    sha256 = call.path["sha256"]
    left_s = download.check(store.addresses, sha256, query.filename, query.expires, query.signature)
    size = await store.blobs.size(sha256)
    if size is None:
        raise NotFound("these bytes are no longer here")
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
        reads=RANGE_READS,
        sends={**RANGE_SENDS, 307: ("Location",)},
    ),
    route(
        "GET",
        "/blobs/{sha256}",
        download_blob,
        query=SignedQuery,
        answers={200: bytes, 206: bytes},
        refusals=(InvalidSignature, AddressExpired, RangeNotSatisfiable, NotFound),
        produces=(OCTETS,),
        reads=RANGE_READS,
        sends=RANGE_SENDS,
    ),
)
