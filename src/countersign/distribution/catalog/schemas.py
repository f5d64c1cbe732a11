"""Wire structs of the catalog (API document, Resources; decisions 3)."""

from datetime import date
from typing import Annotated, Literal

import msgspec

from countersign.kernel.http.texts import Moment, Sha256, UriReference, Uuid

Kind = Literal["game", "app", "tool"]
Platform = Literal["windows", "macos", "linux", "android", "ios", "web"]
ChannelName = Literal["stable", "beta", "nightly", "alpha"]
MediaKind = Literal["icon", "cover", "screenshot", "video"]
Access = Literal["free", "entitled"]
Status = Literal["draft", "public", "archived"]

Limit = Annotated[int, msgspec.Meta(ge=1, le=100)]
Cursor = Annotated[str, msgspec.Meta(min_length=1, max_length=4096)]
Word = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]


class Described(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What every view of a product has: the documented members."""

    id: Uuid
    slug: str
    title: str
    description: str | None = None
    kind: Kind
    platforms: list[Platform]


class Product(Described, kw_only=True):
    """A product as lists show it; `status` where it is one of the caller's own organisations that is not public."""

    status: Status | None = None


class Channel(msgspec.Struct):
    """The newest published release of one channel."""

    channel: ChannelName
    version: str
    published_at: Moment


class Media(msgspec.Struct, kw_only=True):
    """A picture or a film of a product; `width` and `height` in pixels, null for films."""

    id: Uuid
    kind: MediaKind
    url: UriReference
    alt: str
    width: int | None
    height: int | None


class ProductDetail(Described, kw_only=True):
    """A product with what its page shows."""

    org: str
    access: Access
    status: Status
    channels: list[Channel]
    media: list[Media]
    tags: list[str]
    homepage: str | None
    license: str | None
    created_at: Moment
    updated_at: Moment


class ProductList(msgspec.Struct):
    """A page of products."""

    items: list[Product]
    next_cursor: str | None


class Artifact(msgspec.Struct):
    """A file of a release; `size` in bytes."""

    id: Uuid
    filename: str
    size: int
    sha256: Sha256 | None
    platform: Platform | None
    status: str


class Release(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A release that is or was published; `status` and `yank_reason` are shown for yanked ones alone."""

    version: str
    channel: ChannelName
    published_at: Moment
    notes: str | None = None
    status: str | None = None
    yank_reason: str | None = None
    artifacts: list[Artifact] | msgspec.UnsetType = msgspec.UNSET


class Draft(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A release that is not published yet: it has no `published_at`."""

    version: str
    channel: ChannelName
    status: Literal["draft"]
    notes: str | None = None
    artifacts: list[Artifact] | msgspec.UnsetType = msgspec.UNSET


class CatalogItem(Described, kw_only=True):
    """A product of the catalog document, with the newest release of each channel."""

    releases: list[Release]


class Catalog(msgspec.Struct):
    """A page of the catalog document; `generated_at` is when the catalog last changed."""

    service: str
    version: str
    generated_at: Moment
    products: list[CatalogItem]
    next_cursor: str | None


class ListQuery(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The parameters of GET /products. `channel` asks for a published release in it; `published_since` is a day (UTC)
    on or after which something was released, or the product made where nothing was. Together they ask for one release:
    published in this channel on or after that day."""

    cursor: Cursor | None = None
    limit: Limit = 20
    kind: Kind | None = None
    platform: Platform | None = None
    org: Word | None = None
    tag: Word | None = None
    q: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | None = None
    sort: Literal["title", "-published_at", "relevance"] | None = None
    channel: ChannelName | None = None
    access: Access | None = None
    published_since: date | None = None


class ReleasesQuery(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The parameters of GET /products/{id}/releases; without a limit the array is whole."""

    channel: ChannelName | None = None
    limit: Limit | None = None
    cursor: Cursor | None = None


class CatalogQuery(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The parameters of GET /catalog."""

    cursor: Cursor | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] | None = None
