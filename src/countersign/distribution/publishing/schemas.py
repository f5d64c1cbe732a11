"""Wire structs of what publishers write (decisions 3)."""

from typing import Annotated

import msgspec

from countersign.distribution.auth.schemas import OwnOrg, Slug
from countersign.distribution.catalog.schemas import Access, ChannelName, Kind, Platform, Status

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
        pattern=r"^https?://[^\s]+(?!\n)$",
        extra={"needs": "must be an address that begins with https:// or http://"},
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
    """All writable members of a product: PUT replaces every one of them."""

    slug: Slug
    title: Title
    description: Description | None = None
    kind: Kind
    platforms: Platforms
    tags: Annotated[list[Tag], msgspec.Meta(max_length=20)] = []
    homepage: Address | None = None
    license: License | None = None
    access: Access = "entitled"
    status: Status | None = None


class OrgQuery(msgspec.Struct, forbid_unknown_fields=True):
    """For which of the caller's organisations."""

    org: OwnOrg | None = None


class NewRelease(msgspec.Struct, forbid_unknown_fields=True):
    """A release to draft. One that is `notes_only` has no files, and is published without a build."""

    version: VersionName
    channel: ChannelName
    notes: Notes | None = None
    notes_only: bool = False


class ReleaseUpdate(msgspec.Struct, forbid_unknown_fields=True):
    """What may be changed about a release; what is left out stays."""

    notes: Notes | None | msgspec.UnsetType = msgspec.UNSET
    channel: ChannelName | msgspec.UnsetType = msgspec.UNSET
    notes_only: bool | msgspec.UnsetType = msgspec.UNSET


class Yank(msgspec.Struct, forbid_unknown_fields=True):
    """Why a release should no longer be used."""

    reason: Annotated[
        str, msgspec.Meta(min_length=1, max_length=1_000, pattern=r"\S", extra={"needs": "must not be blank"})
    ]


class Promotion(msgspec.Struct, forbid_unknown_fields=True):
    """The channel a release moves to."""

    channel: ChannelName
