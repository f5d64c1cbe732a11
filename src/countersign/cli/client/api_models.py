"""What the command line reads of the server's answers; members it does not use are ignored."""

from typing import Annotated, TypeVar

import msgspec

from countersign.updates.api_types import Bytes

Answer = TypeVar("Answer")

MAX_WAIT_S = 86_400
"""Seconds that a server may let somebody wait for a person."""


class ProblemError(msgspec.Struct):
    """One thing wrong with the input: a parameter or a member of the body."""

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
    """How a person confirms what registered; times in seconds."""

    user_code: str
    verification_uri: str
    expires_in: Annotated[int, msgspec.Meta(ge=0, le=MAX_WAIT_S)]
    interval: Annotated[int, msgspec.Meta(ge=0, le=MAX_WAIT_S)] = 5


class Registration(msgspec.Struct):
    """A registration that waits for its person."""

    claim_token: str
    claim: ClaimInstructions


class ClaimStatus(msgspec.Struct):
    """The status of a claim: pending, or claimed with the assertion to exchange."""

    status: str
    identity_assertion: str = ""


class Me(msgspec.Struct):
    """The subject of the token."""

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
    """A product's detail."""

    org: str
    channels: list[Channel] = []


class BatchResult(msgspec.Struct):
    """The answer to one call of a batch."""

    status: int
    body: dict[str, object]


class BatchResponse(msgspec.Struct):
    """The answers to the calls of a batch, in their order."""

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
    """Where an announced artifact's bytes go."""

    artifact_id: str
    upload_url: str
    expires_at: str


class UploadStatus(msgspec.Struct):
    """The byte ranges of an upload that have arrived, each from its first byte to its last, and the total size."""

    received: list[tuple[Bytes, Bytes]]
    size: Bytes


class Batch(msgspec.Struct):
    """A batch of codes, shown this once."""

    batch_id: str
    codes: list[str]


class Redemption(msgspec.Struct):
    """The result of redeeming a code."""

    success: bool
    product_id: str
    products: list[str] = []
    already_owned: bool = False
