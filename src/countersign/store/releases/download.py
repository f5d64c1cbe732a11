"""Downloads of artifacts: permissions, signed addresses, and responses."""

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
from countersign.store.statistics import counts


class InvalidSignature(Refused):
    """The address was not signed by this service, or was modified."""

    status = 403
    code = "invalid_signature"
    title = "Invalid signature"
    resolution = "Start the download again at the artifact's own address."


class AddressExpired(Refused):
    """The signed address has expired."""

    status = 410
    code = "address_expired"
    title = "Address expired"
    resolution = "Start the download again at the artifact's own address."


def _message(sha256: str, filename: str, expires: int) -> bytes:
    return f"blob\n{sha256}\n{expires}\n{filename}".encode()


def signed_path(signer: Signer, sha256: str, filename: str, expires: int) -> str:
    """The signed path and query of the blob, relative to the API's base address, valid until `expires` (Unix time)."""
    signature = base64.urlsafe_b64encode(signer.sign(_message(sha256, filename, expires))).rstrip(b"=").decode()
    return f"/blobs/{sha256}?" + urlencode({"expires": expires, "filename": filename, "signature": signature})


def check_signature(signer: Signer, sha256: str, filename: str, expires: int, signature: str) -> int:
    """Verify an address made by `signed_path`; return the seconds until its expiry.

    Raises:
        InvalidSignature: the signature does not match.
        AddressExpired: the address has expired.
    """
    try:
        raw = base64.b64decode(signature.encode("ascii") + b"=" * (-len(signature) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidSignature("the signature is malformed") from error
    if not signer.verify(_message(sha256, filename, expires), raw):
        raise InvalidSignature("the signature does not match the address")
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

class ArtifactNotFound(NotFound):
    """No ready artifact has this id, or the caller may not see it."""

    resolution = "List the product's releases and use an artifact's id from there."


class NotEntitled(Refused):
    """The product is not in the caller's library."""

    status = 403
    code = "not_entitled"
    title = "Not entitled"
    resolution = "Redeem a code for the product with POST /api/v1/redeem, then download again."


class DownloadableArtifact(NamedTuple):
    """A ready artifact, with the status of its release and product."""

    id: str
    filename: str
    size: int
    sha256: str
    release_status: str
    product_id: str
    org_id: str
    access: str
    product_status: str


async def permitted_artifact(store: Store, caller: Caller, artifact_id: str) -> tuple[DownloadableArtifact, bool]:
    """Return the artifact if the caller may download it, and whether the artifact is public.

    Raises:
        ArtifactNotFound: the artifact does not exist, or the caller cannot see its release.
        InsufficientScope: the caller's organisation owns the artifact, but the token does not permit reading releases.
        Unauthenticated: the artifact requires an entitlement, and the request has no credential.
        NotEntitled: the artifact requires an entitlement, and the caller has none.
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
        raise InsufficientScope(f"this requires the scope {READ_RELEASES}")
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


def stored_content(artifact: DownloadableArtifact, *, is_public: bool) -> StoredContent:
    """Return the artifact's content with its headers. A header marks files of a yanked release."""
    headers = (("Content-Disposition", attachment(artifact.filename)),)
    if artifact.release_status == "yanked":
        headers = (*headers, ("Release-Status", "yanked"))
    return StoredContent(artifact.sha256, artifact.size, SHARED if is_public else PRIVATE, headers=headers)


async def redirect_address(store: Store, artifact: DownloadableArtifact) -> str | None:
    """Return the signed address at the CDN or bucket to redirect to, or None if the service sends the bytes itself."""
    settings = store.settings
    if settings.downloads != "redirect":
        return None
    if settings.cdn_url:
        expires = int(clock.later(clock.now(), seconds=settings.signed_url_ttl_s) // clock.SECOND)
        path = signed_path(store.addresses, artifact.sha256, artifact.filename, expires)
        return settings.cdn_url.rstrip("/") + path
    return await store.blobs.signed_url(artifact.sha256, artifact.filename, settings.signed_url_ttl_s)


def download_counter(store: Store, artifact_id: str, *, is_update: bool = False) -> Callable[[], Awaitable[None]]:
    """Return a function that counts one download of the artifact for the current day (UTC), or one update to its build.
    A download succeeds even if the count fails."""

    async def count() -> None:
        try:
            async with store.database.transaction() as transaction:
                await counts.count_download(transaction, artifact_id, is_update=is_update)
        except (StorageFull, Unavailable) as refused:
            telemetry.logger("builds").warning("a download was not counted", artifact=artifact_id, code=refused.code)

    return count
