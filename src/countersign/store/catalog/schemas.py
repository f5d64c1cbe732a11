"""Request and response bodies of the catalog (API document, Resources; decisions 3)."""

from datetime import date
from typing import Annotated, Literal

import msgspec

from countersign.kernel.http.response import CursorText, Moment, Sha256, UriReference, Uuid

Kind = Literal["game", "app", "tool"]
Platform = Literal["windows", "macos", "linux", "android", "ios", "web"]
ChannelName = Literal["stable", "beta", "nightly", "alpha"]
MediaKind = Literal["icon", "cover", "screenshot", "video"]
Access = Literal["free", "entitled"]
Status = Literal["draft", "public", "archived"]

Limit = Annotated[int, msgspec.Meta(ge=1, le=100, description="The maximum number of items on a page.")]
Cursor = Annotated[CursorText, msgspec.Meta(min_length=1, max_length=4096)]
Color = Annotated[str, msgspec.Meta(extra_json_schema={"pattern": "^#[0-9a-f]{6}$"})]
Word = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]


class CoverImage(msgspec.Struct):
    """An image of a cover in one size. `width` is in pixels."""

    url: UriReference
    width: int
    type: str


class Cover(msgspec.Struct, kw_only=True):
    """The cover of a product, 16:9. `color` is the colour to show while the image loads, and `focus` is the position of
    the subject. A `placeholder` is drawn by the store. It has no text, so a page may mirror it."""

    url: UriReference
    srcset: list[CoverImage]
    color: Color
    focus: Literal["left", "center", "right"]
    placeholder: bool
    alt: str


class ProductPublisher(msgspec.Struct, kw_only=True):
    """The organisation that publishes a product. `verified` is true if the organisation proved that it
    owns its domain."""

    slug: str
    name: str
    verified: bool


class LatestRelease(msgspec.Struct, kw_only=True):
    """The newest published release of the channel stable, or of all channels if stable has none. `size_by_platform` is
    in bytes. `first_published_at` is the time when the first release of the product was published."""

    version: str
    channel: ChannelName
    published_at: Moment
    size_by_platform: dict[Platform, int]
    first_published_at: Moment


class Described(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A product. `summary` is one sentence of plain text, and `media_count` is the number of screenshots and videos."""

    id: Uuid
    slug: str
    title: str
    description: str | None = None
    kind: Kind
    platforms: list[Platform]
    summary: str | None
    org: str
    publisher: ProductPublisher
    cover: Cover
    latest: LatestRelease | None
    access: Access
    is_free: bool
    media_count: int
    has_trailer: bool


class Product(Described, kw_only=True):
    """A product in a list. Only products of the caller's organisations that are not public have `status`."""

    status: Status | None = None


class Channel(msgspec.Struct):
    """The newest published release of one channel."""

    channel: ChannelName
    version: str
    published_at: Moment


class Media(msgspec.Struct, kw_only=True):
    """An image or a video of a product. `width` and `height` are in pixels, and null for videos. `duration` is in
    seconds; it is null for images, and for videos whose files do not contain it."""

    id: Uuid
    kind: MediaKind
    url: UriReference
    alt: str
    width: int | None
    height: int | None
    duration: float | None


class ProductDetail(Described, kw_only=True):
    """A product with all its details. `languages` contains BCP 47 tags. `buy_url` is the address where people buy
    codes."""

    status: Status
    channels: list[Channel]
    media: list[Media]
    tags: list[str]
    homepage: str | None
    buy_url: str | None
    languages: list[str]
    license: str | None
    created_at: Moment
    updated_at: Moment


FacetName = Literal["kind", "platform", "access", "since", "tag"]


class FacetCount(msgspec.Struct):
    """The number of products that the list has if this value is the filter of the facet. The values of `since` are
    `7d`, `30d`, `90d` and `365d`: the products with a release in this number of days."""

    value: str
    count: int


class ProductList(msgspec.Struct, omit_defaults=True):
    """A page of products. If the request has `facets`, the page also contains the number of products on all pages and
    the counts of each facet."""

    items: list[Product]
    next_cursor: str | None
    total: int | msgspec.UnsetType = msgspec.UNSET
    facets: dict[FacetName, list[FacetCount]] | msgspec.UnsetType = msgspec.UNSET


class Artifact(msgspec.Struct):
    """A file of a release. `size` is in bytes."""

    id: Uuid
    filename: str
    size: int
    sha256: Sha256 | None
    platform: Platform | None
    status: str


class UpdateSize(msgspec.Struct):
    """The size in bytes of the prepared update from an earlier version, for the files of a platform (null: files
    without a platform). Files that have no prepared update, for example very large files, are downloaded in
    addition."""

    from_version: str
    platform: Platform | None
    size: int


class Release(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A release that is or was published. Only yanked releases have `status` and `yank_reason`, and only releases
    without files have `notes_only`. `updates` has one entry for each platform for which an update is prepared."""

    version: str
    channel: ChannelName
    published_at: Moment
    notes: str | None = None
    status: str | None = None
    yank_reason: str | None = None
    notes_only: bool = False
    artifacts: list[Artifact] | msgspec.UnsetType = msgspec.UNSET
    updates: list[UpdateSize] | msgspec.UnsetType = msgspec.UNSET


class Draft(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A release that is not published, so it has no `published_at`."""

    version: str
    channel: ChannelName
    status: Literal["draft"]
    notes: str | None = None
    notes_only: bool = False
    artifacts: list[Artifact] | msgspec.UnsetType = msgspec.UNSET


class CatalogItem(Described, kw_only=True):
    """A product of the catalog document, with the newest release of each channel."""

    releases: list[Release]


class Catalog(msgspec.Struct):
    """A page of the catalog document. `generated_at` is the time of the last change of the catalog."""

    service: str
    version: str
    generated_at: Moment
    products: list[CatalogItem]
    next_cursor: str | None


SearchText = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=200,
        description="Words to find in titles, descriptions and tags. A word may contain one typing error.",
    ),
]
ProductOrder = Annotated[
    Literal["title", "-published_at", "relevance", "-updated_at", "-downloads_7d"],
    msgspec.Meta(
        description="The order of the list: by title (the default), by the newest release, by how well `q` matches, by "
        "the last change of the product or its releases, or by the downloads of the last seven whole days."
    ),
]
Facets = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(kind|platform|access|since|tag)(,(kind|platform|access|since|tag)){0,9}$",
        max_length=100,
        description="The facets to count, separated by commas: kind, platform, access, since, tag. The counts of a "
        "facet apply all filters except the filter of this facet.",
        examples=["kind,platform"],
        extra={"needs": "must be some of kind, platform, access, since and tag, separated by commas"},
    ),
]
_IN_CHANNEL = "Only products with a published release in this channel."
_SINCE = (
    "Only products with a release published on or after this day (UTC); products without releases by their creation. "
    "With `channel`, the release must be in this channel."
)


class ListQuery(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The parameters of GET /products."""

    cursor: Cursor | None = None
    limit: Limit = 20
    kind: Annotated[Kind, msgspec.Meta(description="Only products of this kind.")] | None = None
    platform: Annotated[Platform, msgspec.Meta(description="Only products that run on this platform.")] | None = None
    org: Annotated[Word, msgspec.Meta(description="Only products of the organisation with this slug.")] | None = None
    tag: Annotated[Word, msgspec.Meta(description="Only products with this tag.")] | None = None
    q: SearchText | None = None
    sort: ProductOrder | None = None
    channel: Annotated[ChannelName, msgspec.Meta(description=_IN_CHANNEL)] | None = None
    access: Annotated[
        Access,
        msgspec.Meta(description="Only products with free downloads, or only products that require an entitlement."),
    ] | (None) = None
    published_since: Annotated[date, msgspec.Meta(description=_SINCE)] | None = None
    facets: Facets | None = None


class ReleasesQuery(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The parameters of GET /products/{id}/releases. Without a limit, the array contains all releases."""

    channel: Annotated[ChannelName, msgspec.Meta(description="Only releases in this channel.")] | None = None
    limit: Limit | None = None
    cursor: Cursor | None = None


class CatalogQuery(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The parameters of GET /catalog."""

    cursor: Cursor | None = None
    limit: (
        Annotated[int, msgspec.Meta(ge=1, le=1000, description="The maximum number of products on a page.")] | None
    ) = None
