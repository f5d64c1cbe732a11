"""The typed query: what a question means, before any row is read; questions become this and nothing else reaches SQL.

Conditions are about products and nest; a question is one of the `Query` structs. Moments are RFC 3339 texts in UTC,
`since` belonging to the range and `until` not.
"""

from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias

import msgspec

from countersign.distribution.catalog.schemas import ChannelName, Kind, Platform

MOST_CONDITIONS = 40
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Moment = Annotated[str, msgspec.Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z(?!\n)$")]


class Condition(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="is", omit_defaults=True):
    """Something that is true of a product, or not."""


class OfKind(Condition, frozen=True, tag="kind"):
    """It is a game, an app or a tool."""

    value: Kind


class On(Condition, frozen=True, tag="platform"):
    """It runs on the platform."""

    value: Platform


class OnlyOn(Condition, frozen=True, tag="only_on"):
    """It runs on these platforms, each of them, and on no other."""

    values: tuple[Platform, ...]


class Tagged(Condition, frozen=True, tag="tag"):
    """It carries the tag."""

    value: Text


class By(Condition, frozen=True, tag="org"):
    """The organisation with this slug publishes it."""

    value: Text


class MakerOf(Condition, frozen=True, tag="maker_of"):
    """The organisation that publishes the product with this slug publishes it."""

    value: Text


class Licensed(Condition, frozen=True, tag="license"):
    """It has this licence; None: none is told."""

    value: Text | None


class Free(Condition, frozen=True, tag="free"):
    """Anyone may download it."""


class Named(Condition, frozen=True, tag="slug"):
    """It is the product with this slug."""

    value: Text


class Titled(Condition, frozen=True, tag="title"):
    """Its title holds all of these words."""

    words: tuple[Text, ...]


class Mentioning(Condition, frozen=True, tag="mentions"):
    """Title, tags or description hold all of these words, in singular or plural."""

    words: tuple[Text, ...]


class StartingWith(Condition, frozen=True, tag="starts"):
    """Its title begins so, whatever the case."""

    value: Text


class Released(Condition, frozen=True, tag="released"):
    """A published release of it is in the channel and in the range; with `first`, its first one is."""

    channel: ChannelName | None = None
    since: Moment | None = None
    until: Moment | None = None
    first: bool = False


class OnlyChannel(Condition, frozen=True, tag="only_channel"):
    """It has releases, all of them in this channel."""

    value: ChannelName


class Every(Condition, frozen=True, tag="every"):
    """All of these are true."""

    of: tuple["AnyCondition", ...]


class Either(Condition, frozen=True, tag="either"):
    """One of these is true, or more."""

    of: tuple["AnyCondition", ...]


class Not(Condition, frozen=True, tag="not"):
    """This is not true."""

    of: "AnyCondition"


AnyCondition: TypeAlias = (
    OfKind
    | On
    | OnlyOn
    | Tagged
    | By
    | MakerOf
    | Licensed
    | Free
    | Named
    | Titled
    | Mentioning
    | StartingWith
    | Released
    | OnlyChannel
    | Every
    | Either
    | Not
)
ANYTHING = Every(())


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
    | CountOf
    | Same
    | Beats
    | Compare
    | About
)


def every(conditions: Sequence[AnyCondition]) -> AnyCondition:
    """All of the conditions as one, flat."""
    flat: list[AnyCondition] = []
    for each in conditions:
        flat += each.of if isinstance(each, Every) else (each,)
    flat = list(dict.fromkeys(flat))
    return flat[0] if len(flat) == 1 else Every(tuple(flat))


def either(conditions: Sequence[AnyCondition]) -> AnyCondition:
    """One of the conditions or more, as one, flat."""
    flat: list[AnyCondition] = []
    for each in conditions:
        flat += each.of if isinstance(each, Either) else (each,)
    flat = list(dict.fromkeys(flat))
    return flat[0] if len(flat) == 1 else Either(tuple(flat))


def opposite(condition: AnyCondition) -> AnyCondition:
    """The condition's opposite, denied leaf by leaf: "not (a or b)" is "not a and not b"."""
    if isinstance(condition, Either):
        return every([opposite(each) for each in condition.of])
    if isinstance(condition, Every) and condition.of:
        return either([opposite(each) for each in condition.of])
    return condition.of if isinstance(condition, Not) else Not(condition)


def is_of_releases(told: AnyCondition) -> bool:
    """Whether the condition is about what was released, and when."""
    if isinstance(told, Every | Either):
        return any(is_of_releases(each) for each in told.of)
    return is_of_releases(told.of) if isinstance(told, Not) else isinstance(told, Released | OnlyChannel)


def size(condition: AnyCondition) -> int:
    """How many conditions it is made of."""
    if isinstance(condition, Every | Either):
        return 1 + sum(size(each) for each in condition.of)
    return 1 + size(condition.of) if isinstance(condition, Not) else 1
