"""Conditions of the typed query: what can be true of a product; they are about products, and nest."""

from collections.abc import Sequence
from typing import Annotated, TypeAlias

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
