"""Downloads of artifacts: who may download, signed addresses, and how the bytes are sent."""

import base64
import binascii
from collections.abc import Awaitable, Callable
from typing import NamedTuple
from urllib.parse import urlencode

from countersign.kernel import clock, ids, telemetry
from countersign.kernel.database.port import Reader
from countersign.kernel.errors import NotFound, Refused, StorageFull, Unavailable
from countersign.kernel.http.range_response import StoredContent, attachment
from countersign.kernel.security.encryption import Signer
from countersign.store.auth.authentication import Authenticator, InsufficientScope
from countersign.store.auth.callers import Caller
from countersign.store.catalog import products as catalog
from countersign.store.context import Store


class InvalidSignature(Refused):
    """The address was not signed by this service, or was changed since."""

    status = 403
    code = "invalid_signature"
    title = "Invalid signature"
    resolution = "Start the download again at the artifact's own address."


class AddressExpired(Refused):
    """The address was good, and its time is over."""

    status = 410
    code = "address_expired"
    title = "Address expired"
    resolution = "Start the download again at the artifact's own address."


def _message(sha256: str, filename: str, expires: int) -> bytes:
    return f"blob\n{sha256}\n{expires}\n{filename}".encode()


def signed_path(signer: Signer, sha256: str, filename: str, expires: int) -> str:
    """The path and query, after the API's base address, that give the blob until `expires` (seconds since 1970)."""
    signature = base64.urlsafe_b64encode(signer.sign(_message(sha256, filename, expires))).rstrip(b"=").decode()
    return f"/blobs/{sha256}?" + urlencode({"expires": expires, "filename": filename, "signature": signature})


def check_signature(signer: Signer, sha256: str, filename: str, expires: int, signature: str) -> int:
    """Insist that the address is one of `signed_path` and still good; the seconds it has left.

    Raises:
        InvalidSignature: it is forged or changed.
        AddressExpired: its time is over.
    """
    try:
        raw = base64.b64decode(signature.encode("ascii") + b"=" * (-len(signature) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidSignature("the signature is none of this service") from error
    if not signer.verify(_message(sha256, filename, expires), raw):
        raise InvalidSignature("the signature does not belong to this address")
    left_s = expires - clock.now() // clock.SECOND
    if left_s <= 0:
        raise AddressExpired("the address has expired")
    return int(left_s)


READ_RELEASES = "read:releases"
PRIVATE = "private, no-cache"
SHARED = "public, max-age=31536000, immutable"

READY = """
    SELECT a.id, a.filename, a.size, a.sha256, r.status, p.id, p.org_id, p.access, p.status
    FROM artifact a
    JOIN release r ON r.id = a.release_id
    JOIN product p ON p.id = r.product_id
    WHERE a.id = $1 AND a.status = 'ready'
"""
COUNT = """
    INSERT INTO download_count (artifact_id, day, downloads)
    VALUES ($1, $2, 1)
    ON CONFLICT (artifact_id, day) DO UPDATE SET downloads = download_count.downloads + 1
"""


class ArtifactNotFound(NotFound):
    """No finished artifact has this id, or the caller may not know of it."""

    resolution = "List the product's releases and use an artifact's id from there."


class NotEntitled(Refused):
    """The product has to be in the caller's library before it can be downloaded."""

    status = 403
    code = "not_entitled"
    title = "Not entitled"
    resolution = "Redeem a code for the product with POST /api/v1/redeem, then download again."


class DownloadableArtifact(NamedTuple):
    """A finished artifact, with what its release and product say about it."""

    id: str
    filename: str
    size: int
    sha256: str
    release_status: str
    product_id: str
    org_id: str
    access: str
    product_status: str


async def permitted(store: Store, caller: Caller, artifact_id: str) -> tuple[DownloadableArtifact, bool]:
    """The artifact, when the caller may download it; and whether anyone may.

    Raises:
        ArtifactNotFound: there is none, or the caller cannot see its release.
        InsufficientScope: the caller's organisation owns it, and the token cannot read releases.
        Unauthenticated: it takes an entitlement, and there is no credential.
        NotEntitled: it takes an entitlement, and the caller has none.
    """
    artifact = await _ready_artifact(store.database, artifact_id)
    if artifact is None:
        raise ArtifactNotFound("no artifact has this id")
    if artifact.org_id in caller.orgs_allowing(READ_RELEASES):
        return artifact, False
    is_open = artifact.product_status == "public" and artifact.release_status == "published"
    if is_open and artifact.access == "free":
        return artifact, True
    if await _is_entitled(store.database, caller, artifact):
        return artifact, False
    if artifact.org_id in caller.orgs:
        raise InsufficientScope(f"this needs the scope {READ_RELEASES}")
    if not is_open:
        raise ArtifactNotFound("no artifact has this id")
    Authenticator(store).admit(caller, None)
    raise NotEntitled("the product is not in the caller's library")


async def _is_entitled(reader: Reader, caller: Caller, artifact: DownloadableArtifact) -> bool:
    if caller.is_anonymous or artifact.product_status == "draft" or artifact.release_status == "draft":
        return False
    return await catalog.owns(reader, caller.owner, artifact.product_id)


async def _ready_artifact(reader: Reader, artifact_id: str) -> DownloadableArtifact | None:
    if not ids.is_uuid(artifact_id):
        return None
    row = await reader.fetch_one(READY, artifact_id.lower())
    return None if row is None else DownloadableArtifact(*row)


def stored_content(artifact: DownloadableArtifact, *, is_for_anyone: bool) -> StoredContent:
    """The artifact's bytes with the headers they are sent under; a yanked release's are marked."""
    headers = (("Content-Disposition", attachment(artifact.filename)),)
    if artifact.release_status == "yanked":
        headers = (*headers, ("Release-Status", "yanked"))
    return StoredContent(artifact.sha256, artifact.size, SHARED if is_for_anyone else PRIVATE, headers=headers)


async def redirect_address(store: Store, artifact: DownloadableArtifact) -> str | None:
    """The signed address at the CDN or the store that the customer is sent to; None: the service sends the bytes."""
    settings = store.settings
    if settings.downloads != "redirect":
        return None
    if settings.cdn_url:
        expires = int(clock.later(clock.now(), seconds=settings.signed_url_ttl_s) // clock.SECOND)
        path = signed_path(store.addresses, artifact.sha256, artifact.filename, expires)
        return settings.cdn_url.rstrip("/") + path
    return await store.blobs.signed_url(artifact.sha256, artifact.filename, settings.signed_url_ttl_s)


def download_counter(store: Store, artifact_id: str) -> Callable[[], Awaitable[None]]:
    """What counts one download of the artifact, today (UTC). A customer gets the file though it cannot be counted."""

    async def count() -> None:
        day = clock.rfc3339(clock.now())[:10]
        try:
            async with store.database.transaction() as transaction:
                await transaction.run(COUNT, artifact_id, day)
        except (StorageFull, Unavailable) as refused:
            telemetry.logger("builds").warning("a download was not counted", artifact=artifact_id, code=refused.code)

    return count
