"""Wire structs of artifacts and their uploads (decisions 4)."""

from typing import Annotated

import msgspec

from countersign.distribution.catalog.schemas import Platform
from countersign.kernel.http.response import Moment, Uri, Uuid

Filename = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
Size = Annotated[int, msgspec.Meta(ge=1)]
Digest = Annotated[
    str, msgspec.Meta(pattern="^[0-9a-fA-F]{64}$", extra={"needs": "must be a SHA-256 in 64 hexadecimal digits"})
]


class NewArtifact(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A file that is about to be uploaded; `size` in bytes, `sha256` checked at the end when it is given."""

    filename: Filename
    size: Size
    platform: Platform | None = None
    sha256: Digest | None = None


class Announced(msgspec.Struct):
    """Where to send the file; the address is a secret and works until `expires_at`."""

    artifact_id: Uuid
    upload_url: Uri
    expires_at: Moment


class SignedQuery(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The parameters of a signed address; `expires` in seconds since 1970."""

    expires: Annotated[int, msgspec.Meta(ge=0, le=1 << 40, description="When the address ends, in seconds since 1970.")]
    filename: Annotated[str, msgspec.Meta(min_length=1, max_length=255, description="The name to save the file under.")]
    signature: Annotated[str, msgspec.Meta(min_length=1, max_length=64, description="The signature of the address.")]
