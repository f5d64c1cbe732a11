"""The parts of the server's responses that the command line uses. Other members are ignored."""

from typing import Annotated, TypeVar

import msgspec

from countersign.updates.api_types import Bytes

Answer = TypeVar("Answer")

MAX_WAIT_S = 86_400
"""The longest time, in seconds, that a server may ask a client to wait for a person's confirmation."""


class ProblemError(msgspec.Struct):
    """One invalid parameter, or one invalid member of the body."""

    detail: str = ""
    parameter: str = ""
    pointer: str = ""


class Problem(msgspec.Struct):
    """Problem details (API document, Errors), or the OAuth error shape (RFC 6749 §5.2)."""

    detail: str = ""
    code: str = ""
    resolution: str = ""
    error: str = ""
    error_description: str = ""
    errors: list[ProblemError] = []


class Token(msgspec.Struct):
    """A token response (RFC 6749 §5.1)."""

    access_token: str


class ClaimInstructions(msgspec.Struct):
    """How a person confirms the registration. Times are in seconds."""

    user_code: str
    verification_uri: str
    expires_in: Annotated[int, msgspec.Meta(ge=0, le=MAX_WAIT_S)]
    interval: Annotated[int, msgspec.Meta(ge=0, le=MAX_WAIT_S)] = 5


class Registration(msgspec.Struct):
    """A registration that waits for the confirmation of a person."""

    claim_token: str
    claim: ClaimInstructions


class ClaimStatus(msgspec.Struct):
    """The status of a claim: pending, or claimed with the assertion to exchange."""

    status: str
    identity_assertion: str = ""


class Me(msgspec.Struct):
    """The person or OAuth client that the token acts for."""

    sub: str
    client_id: str = ""
    email: str | None = None
    scope: str = ""
    expires_at: str = ""
    orgs: list[str] = []


class LibraryProduct(msgspec.Struct):
    """A product of the library."""

    id: str
    slug: str
    title: str
    kind: str
    platforms: list[str]


class Channel(msgspec.Struct):
    """The newest published release of one channel."""

    channel: str
    version: str


class CatalogProduct(LibraryProduct):
    """A product with its organisation and its channels."""

    org: str
    channels: list[Channel] = []


class BatchResult(msgspec.Struct):
    """The response to one request of a batch."""

    status: int
    body: dict[str, object]


class BatchResponse(msgspec.Struct):
    """The responses to the requests of a batch, in the order of the requests."""

    results: list[BatchResult]


class Artifact(msgspec.Struct):
    """A file of a release; `size` in bytes."""

    id: str
    filename: str
    size: Bytes
    sha256: str | None = None
    platform: str | None = None
    status: str = "ready"


class Release(msgspec.Struct):
    """A release; `status` is set for drafts and yanked releases."""

    version: str
    channel: str
    published_at: str | None = None
    status: str | None = None
    artifacts: list[Artifact] = []


class Upload(msgspec.Struct):
    """The URL to upload the bytes of an announced artifact to."""

    artifact_id: str
    upload_url: str
    expires_at: str


class UploadStatus(msgspec.Struct):
    """The received byte ranges of an upload, each as its first and its last byte, and the total size of the file."""

    received: list[tuple[Bytes, Bytes]]
    size: Bytes


class Batch(msgspec.Struct):
    """A batch of new codes, which the server returns only once."""

    batch_id: str
    codes: list[str]


class Redemption(msgspec.Struct):
    """The result of redeeming a code."""

    success: bool
    product_id: str
    products: list[str] = []
    already_owned: bool = False
