"""The typed query: what a question means, before any row is read; questions become this and nothing else reaches SQL.

Conditions are about products and nest; a question is one of the `Query` structs. Moments are RFC 3339 texts in UTC,
`since` belonging to the range and `until` not.
"""

from typing import Annotated, Literal, TypeAlias

import msgspec

from countersign.distribution.ask.told import ANYTHING, AnyCondition, Moment, Text
from countersign.distribution.catalog.schemas import ChannelName, Platform


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="ask", omit_defaults=True):
    """A question."""


Limit = Annotated[int, msgspec.Meta(ge=1, le=200)]


class Products(Asked, frozen=True, tag="products"):
    """Which products: in catalog order, by their newest release, or by their first one; `limit` of them."""

    where: AnyCondition = ANYTHING
    order: Literal["title", "newest", "oldest", "debut_first", "debut_last"] = "title"
    limit: Limit | None = None


class Releases(Asked, frozen=True, tag="releases"):
    """Which published releases of the products there are in the channel and in the range, with versions above the one
    and below the other, and not in the barred channels."""

    where: AnyCondition = ANYTHING
    channel: ChannelName | None = None
    since: Moment | None = None
    until: Moment | None = None
    order: Literal["newest", "oldest"] = "newest"
    limit: Limit | None = None
    above: Text | None = None
    below: Text | None = None
    barred: tuple[ChannelName, ...] = ()


class Publishers(Asked, frozen=True, tag="publishers"):
    """Which organisations publish such products, or with `none`, which have public products but none of these."""

    where: AnyCondition = ANYTHING
    none: bool = False


class Most(Asked, frozen=True, tag="most"):
    """Which of the products has the most platforms, releases (in the channel) or tags, or which organisation has the
    most of the products; all of them where several are equal. With `least`, the fewest."""

    of: Literal["platforms", "releases", "tags", "products"]
    where: AnyCondition = ANYTHING
    channel: ChannelName | None = None
    least: bool = False


class NewestOfEach(Asked, frozen=True, tag="newest_of_each"):
    """The newest (or oldest) published release of each of the products, in the channel."""

    where: AnyCondition = ANYTHING
    channel: ChannelName | None = None
    order: Literal["newest", "oldest"] = "newest"


class Count(Asked, frozen=True, tag="count"):
    """How many of them there are."""

    of: Products | Releases | Publishers


class Exists(Asked, frozen=True, tag="exists"):
    """Whether there are any."""

    of: Products | Releases


class Check(Asked, frozen=True, tag="check"):
    """Whether this is true of each of the products."""

    products: tuple[Text, ...]
    where: AnyCondition


class Newest(Asked, frozen=True, tag="newest"):
    """The newest (or oldest) published release of the product in the channel, for the platform: `by` the order of
    versions, or by when they were published, which differs where an old line got a late fix."""

    product: Text
    channel: ChannelName | None = None
    platform: Platform | None = None
    order: Literal["newest", "oldest"] = "newest"
    by: Literal["version", "date"] = "date"
    about: Literal["version", "moment"] = "version"


class Changes(Asked, frozen=True, tag="changes"):
    """What the notes of a release say (None: of the newest, or the oldest), or of all after `after` up to it, or of
    all in the range."""

    product: Text
    version: Text | None = None
    after: Text | None = None
    channel: ChannelName | None = None
    order: Literal["newest", "oldest"] = "newest"
    since: Moment | None = None
    until: Moment | None = None


class WhenReleased(Asked, frozen=True, tag="when"):
    """When this version of the product was published."""

    product: Text
    version: Text


class HasVersion(Asked, frozen=True, tag="has_version"):
    """Whether the product has this version, published, in this channel and in this range."""

    product: Text
    version: Text
    channel: ChannelName | None = None
    since: Moment | None = None
    until: Moment | None = None


class IsNewest(Asked, frozen=True, tag="is_newest"):
    """Whether this version is the one of the product (in the channel) that was published last."""

    product: Text
    version: Text
    channel: ChannelName | None = None


class IsNewer(Asked, frozen=True, tag="is_newer"):
    """Whether a version is higher than another of the product and was published later; None: whether any was."""

    product: Text
    than: Text
    version: Text | None = None
    channel: ChannelName | None = None


class Noting(Asked, frozen=True, tag="noting"):
    """Which releases of the product have all of these words in their notes."""

    product: Text
    words: tuple[Text, ...]


class AllAre(Asked, frozen=True, tag="all_are"):
    """Whether this is true of every one of the products."""

    where: AnyCondition
    told: AnyCondition


class NewestIs(Asked, frozen=True, tag="newest_is"):
    """Whether the newest release of the product (in the channel `of`) is in this channel and in this range."""

    product: Text
    of: ChannelName | None = None
    channel: ChannelName | None = None
    since: Moment | None = None
    until: Moment | None = None


class Precedes(Asked, frozen=True, tag="precedes"):
    """Whether the first of two releases, of these products in this order, was published before the second."""

    products: tuple[Text, Text]
    versions: tuple[Text, Text]


class Tells(Asked, frozen=True, tag="tells"):
    """Whether the notes of this version have all of these words."""

    product: Text
    version: Text
    words: tuple[Text, ...]


class CountOf(Asked, frozen=True, tag="count_of"):
    """How many platforms, tags or channels the product has."""

    product: Text
    of: Literal["platforms", "tags", "channels"]


class Same(Asked, frozen=True, tag="same"):
    """Whether the products agree in this, or with `differ`, whether they do not."""

    products: tuple[Text, ...]
    aspect: Literal["publisher", "license", "platforms", "tags", "kind", "access"]
    differ: bool = False


class Beats(Asked, frozen=True, tag="beats"):
    """Whether the first of two products has more of this than the second (fewer with `least`), was updated later, or
    was first published earlier."""

    products: tuple[Text, ...]
    by: Literal["platforms", "releases", "tags", "updated", "debut"]
    least: bool = False


class Compare(Asked, frozen=True, tag="compare"):
    """What tells these products apart, after which of them it is that was asked for."""

    products: tuple[Text, ...]
    which: Most | Products | None = None


Aspect = Literal[
    "description", "publisher", "platforms", "tags", "channels", "license", "kind", "homepage", "access", "added"
]


class About(Asked, frozen=True, tag="about"):
    """What the catalog says of the product."""

    product: Text
    aspect: Aspect


Query: TypeAlias = (
    Products
    | Releases
    | Publishers
    | Most
    | NewestOfEach
    | Count
    | Exists
    | Check
    | Newest
    | Changes
    | WhenReleased
    | HasVersion
    | IsNewest
    | IsNewer
    | Noting
    | AllAre
    | NewestIs
    | Precedes
    | Tells
    | CountOf
    | Same
    | Beats
    | Compare
    | About
)
