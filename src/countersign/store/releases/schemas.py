"""Request and response bodies of products, releases, artifacts and deliveries (decisions 3 and 4)."""

from typing import Annotated

import msgspec

from countersign.kernel.http.response import Moment, Uri, Uuid
from countersign.store.auth.schemas import OwnOrg, Slug
from countersign.store.catalog.schemas import Access, ChannelName, Kind, Platform, Status

Title = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=r"\S", extra={"needs": "must not be blank"})]
Description = Annotated[str, msgspec.Meta(max_length=20_000)]
Tag = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[a-z0-9][a-z0-9-]{0,39}(?!\n)$",
        extra={"needs": "must be 1 to 40 of a-z, 0-9 and -, and not begin with -"},
    ),
]
Platforms = Annotated[list[Platform], msgspec.Meta(min_length=1, max_length=6)]
Address = Annotated[
    str,
    msgspec.Meta(
        max_length=2_000,
        pattern=r"^https?://\S+(?!\n)$",
        extra={"needs": "must be an address that begins with https:// or http://"},
    ),
]
Summary = Annotated[
    str,
    msgspec.Meta(
        max_length=140,
        pattern=r"^[^\r\n]*\S[^\r\n]*(?!\n)$",
        extra={"needs": "must be one line of text, not blank"},
        description="One sentence of plain text; by default the first sentence of the description.",
    ),
]
Language = Annotated[
    str,
    msgspec.Meta(
        max_length=35,
        pattern=r"^[a-zA-Z]{2,3}(-[a-zA-Z0-9]{2,8})*(?!\n)$",
        extra={"needs": "must be a BCP 47 language tag such as en or pt-BR"},
    ),
]
License = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Notes = Annotated[str, msgspec.Meta(max_length=100_000)]
VersionName = Annotated[
    str,
    msgspec.Meta(
        max_length=64,
        pattern=r"^[0-9A-Za-z][0-9A-Za-z.+_!-]*(?!\n)$",
        extra={"needs": "must be of A-Z, a-z, 0-9 and .+_!-, and begin with a letter or digit"},
    ),
]


class ProductWrite(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """All writable members of a product. PUT replaces all of them."""

    slug: Slug
    title: Title
    description: Description | None = None
    summary: Summary | None = None
    kind: Kind
    platforms: Platforms
    tags: Annotated[list[Tag], msgspec.Meta(max_length=20)] = []
    homepage: Address | None = None
    buy_url: Address | None = None
    languages: Annotated[list[Language], msgspec.Meta(max_length=100)] = []
    license: License | None = None
    access: Access = "entitled"
    status: Status | None = None


class NewProductQuery(msgspec.Struct, forbid_unknown_fields=True):
    """The organisation of the caller that will own the product."""

    org: OwnOrg | None = None


class NewRelease(msgspec.Struct, forbid_unknown_fields=True):
    """A draft release. A `notes_only` release has no files and is published without a build."""

    version: VersionName
    channel: ChannelName
    notes: Notes | None = None
    notes_only: bool = False


class ReleaseUpdate(msgspec.Struct, forbid_unknown_fields=True):
    """The changes of a release. Omitted members do not change."""

    notes: Notes | None | msgspec.UnsetType = msgspec.UNSET
    channel: ChannelName | msgspec.UnsetType = msgspec.UNSET
    notes_only: bool | msgspec.UnsetType = msgspec.UNSET


class Yank(msgspec.Struct, forbid_unknown_fields=True):
    """The reason why a release should no longer be used."""

    reason: Annotated[
        str, msgspec.Meta(min_length=1, max_length=1_000, pattern=r"\S", extra={"needs": "must not be blank"})
    ]


class Promotion(msgspec.Struct, forbid_unknown_fields=True):
    """The new channel of a release."""

    channel: ChannelName


Filename = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
Size = Annotated[int, msgspec.Meta(ge=1)]
Digest = Annotated[
    str, msgspec.Meta(pattern="^[0-9a-fA-F]{64}$", extra={"needs": "must be a SHA-256 in 64 hexadecimal digits"})
]


class NewArtifact(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The announcement of a file that will be uploaded. `size` is in bytes. If `sha256` is present, it is checked after
    the upload."""

    filename: Filename
    size: Size
    platform: Platform | None = None
    sha256: Digest | None = None


class Announced(msgspec.Struct):
    """The address to which the file is uploaded. It is a secret, and it expires at `expires_at`."""

    artifact_id: Uuid
    upload_url: Uri
    expires_at: Moment


class SignedQuery(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The parameters of a signed address. `expires` is in seconds since 1970."""

    expires: Annotated[
        int, msgspec.Meta(ge=0, le=1 << 40, description="When the address expires, in seconds since 1970.")
    ]
    filename: Annotated[
        str, msgspec.Meta(min_length=1, max_length=255, description="The name under which a client saves the file.")
    ]
    signature: Annotated[str, msgspec.Meta(min_length=1, max_length=64, description="The signature of the address.")]


Version = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
_BUILD = "The platform of the build; by default the build without a platform."


class BuildQuery(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Selects a build of a release. By default, it is the build without a platform."""

    platform: Annotated[Platform, msgspec.Meta(description=_BUILD)] | None = None


class DeltaQuery(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """The version of the product that is installed on this platform."""

    from_: Annotated[Version, msgspec.Meta(description="The installed version.")] = msgspec.field(name="from")
    platform: Annotated[Platform, msgspec.Meta(description=_BUILD)] | None = None
