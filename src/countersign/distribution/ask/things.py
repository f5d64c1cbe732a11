"""Noun phrases: "the 5 newest free Linux games by Toolsmith", "all beta releases of Kettle since March"."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Literal, NamedTuple

from countersign.distribution.ask.clauses import only_on, ranged, within
from countersign.distribution.ask.dates import Range
from countersign.distribution.ask.names import UNRESOLVED
from countersign.distribution.ask.query import Products, Releases
from countersign.distribution.ask.templates import Reading, Slot, match, value, values
from countersign.distribution.ask.told import (
    ANYTHING,
    AnyCondition,
    By,
    Every,
    Free,
    Named,
    Not,
    Released,
    either,
    every,
    is_of_releases,
    opposite,
)
from countersign.distribution.ask.values import MOST_WAYS, Values, listed
from countersign.distribution.ask.vocabulary import phrases
from countersign.distribution.ask.wordlists import said
from countersign.distribution.catalog.schemas import ChannelName
from countersign.kernel import clock

MOST_MODIFIERS, MOST_TAILS = 6, 4
DEFAULT_OF_MANY = 10


class Things(NamedTuple):
    """The products a noun phrase is about; `order` and `limit` as it says ("the 5 newest games")."""

    where: AnyCondition
    order: Literal["title", "newest", "oldest"] = "title"
    limit: int | None = None

    @property
    def is_plain(self) -> bool:
        """Whether it is about a set of products, not about the newest of them."""
        return self.order == "title" and self.limit is None

    def asked(self) -> Products:
        """The question for them."""
        return Products(self.where, self.order, self.limit)


_SINGULAR = frozenset(
    [
        "game",
        "app",
        "application",
        "tool",
        "utility",
        "product",
        "title",
        "thing",
        "item",
        "program",
        "release",
        "version",
        "build",
    ]
)
_DETERMINERS = phrases(
    said(
        "all|all the|all of the|all your|every|each|any|some|the|a|an|your|available|all "
        "available|all of your|other|"
        "those|these|different|public|published|of the|of your|such|any of the|of all the|of all|the available|"
        "listed|a few|"
        "every single|only the|of those|these|many|various|more|all other|our|"
    )
)
_MODIFIER = phrases(said("and|,|, and|but|yet|, but", "and") | said("or", "or") | {"": "and"})
_NOUN = listed("[a|an|the|the other] {thing}", lambda told: told, is_single=True)


def _modifier(reading: Reading, start: int) -> Iterator[tuple[AnyCondition, int]]:
    """One or several of a kind before the noun: "Linux", "free", "cozy or horror", "Toolsmith's", "MIT-licensed"."""
    for captured, end in match(
        "[{non}] ({free}|{paid}|{platforms} {only}|{platforms} [compatible]|{tags} [tagged]|{orgs} ['s]|"
        "{licenses} [licensed|license]|{was_released}|{channels})",
        reading,
        start,
    ):
        told = _modified(captured)
        if told is not None:
            yield (opposite(told) if value(captured, "non") else told), end


def _modified(captured: tuple[tuple[str, Any], ...]) -> AnyCondition | None:
    slot, told = captured[-1]
    if slot == "only":
        return None if value(captured, "non") else only_on(value(captured, "platforms"))
    if isinstance(told, Values):
        return _of_values(told, is_denied=bool(value(captured, "non")))
    return _ALONE.get(slot, told)


_ALONE: dict[str, AnyCondition] = {"free": Free(), "paid": Not(Free())}


def _of_values(told: Values, *, is_denied: bool) -> AnyCondition | None:
    if isinstance(told.condition, By) and told.condition.value.startswith(UNRESOLVED):
        return None
    return told.condition if told.joint in ("", "or") or not is_denied else None


def _modifiers(reading: Reading, start: int, left: int = MOST_MODIFIERS) -> Iterator[tuple[list[AnyCondition], int]]:
    if left:
        for told, end in reading.slot("modifier", start)[:MOST_WAYS]:
            for joint, after in _MODIFIER(reading, end):
                reading.step()
                for rest, stop in _modifiers(reading, after, left - 1):
                    if joint == "or" and rest:
                        yield [either([told, rest[0]]), *rest[1:]], stop
                    elif not (joint == "or" or (after > end and not rest)):
                        yield [told, *rest], stop
    yield [], start


def _things(reading: Reading, start: int) -> Iterator[tuple[Things, int]]:
    """Determiner, number, order, modifiers, noun, and what is said after it."""
    for captured, at in match("[{determiner}] [{number}] [{order}] [{number}] [{determiner}] [{new}]", reading, start):
        for modifiers, place in _modifiers(reading, at):
            for noun, end in _NOUN(reading, place):
                yield from _completed(reading, captured, every([noun.condition, *modifiers]), end)


def _completed(
    reading: Reading, captured: tuple[tuple[str, Any], ...], about: AnyCondition, end: int
) -> Iterator[tuple[Things, int]]:
    order, limit = value(captured, "order", "title"), value(captured, "number")
    if order != "title" and limit is None:
        limit = 1 if reading.words[end - 1] in _SINGULAR else DEFAULT_OF_MANY
    if limit is not None and order == "title":
        return
    is_new = bool(values(captured, "new"))
    tails = [*reading.slot("where", end)[:MOST_WAYS], (ANYTHING, end)]
    for told, stop in tails:
        if not is_new:
            yield Things(every([about, told]), order, limit), stop
            continue
        # "New games this month" are those whose first release is in it.
        for when, after in reading.slot("when", stop):
            yield Things(every([about, told, within(Released(), when, first=True)]), order, limit), after


RELEASES_AT = (
    "[{determiner}] [{number}] [{newest}] [{number}] [{new}] [{channel}] {release} [history]",
    "[{determiner}] [{number}] [{newest}] [{number}] [{new}] {product} ['s] [{channel}] {release}",
    "{product} 's [{number}] [{newest}] [{number}] [{channel}] {release} [history]",
    "{org} 's [{number}] [{newest}] [{number}] [{channel}] {release}",
    "[{determiner}] [{number}] {channel_noun}",
    "[{determiner}] [{number}] [{newest}] [{number}] [{new}] [{channel}] ({kinds}|{org}) [{channel}] {release}",
    "[{determiner}] [{number}] [{newest}] [{number}] [{new}] ({kinds}|{org}) ['s] {channel_noun}",
)
TAILS = (
    "(of|for|from|in|to|by|about) {products}",
    "(of|for|from|in|to|among) {things}",
    "(by|from|of) {orgs}",
    "(that|which) {orgs} {makes}",
    "{neg} {orgs} {neg} {makes} [{when}]",
    "{neg} {products} {neg} [have|has|had|get|got|gotten|received|receive|offer|publish|"
    "published|see|seen|seen so far] [{when}]",
    "[that|which] {neg} {out} {when}",
    "{neg} {out} (by|from|for) {orgs} [{when}]",
    "[that|which] {neg} (came|come|arrived|arrive|landed|happened|there) {when}",
    "[that|which] {neg} {out}",
    "{when}",
    "[that|which] {neg} [{out}] (on|in|to) [the] {channel} [channel]",
    "[that|which] {neg} [{channel_said}] {channel} [{release}|ones]",
    "{here}",
    "[,] (except|except for|excluding|not|but not|without|other than|besides|apart from|leaving out|and not|minus|"
    "ignoring|not counting|but no|no|and no) [any|the|those in|those in the|in|in the] ({channel}|"
    "{channel_noun}) [ones|{release}|channel] "
    "[(and|or|nor|and no|,) ({channel}|{channel_noun}) [ones|{release}|channel]]",
    "[,] {exception}",
)


_BUT = "[,] (except"


class _Found(NamedTuple):
    """What was said of releases so far."""

    where: tuple[AnyCondition, ...] = ()
    channel: ChannelName | None = None
    when: Range | None = None
    barred: tuple[ChannelName, ...] = ()


def _releases(reading: Reading, start: int) -> Iterator[tuple[Releases, int]]:
    """Releases, with what is said of them before and after the noun."""
    seen: dict[tuple[Releases, int], None] = {}
    for template in RELEASES_AT:
        for captured, end in match(template, reading, start):
            first = _Found(tuple(_named(captured)), value(captured, "channel") or value(captured, "channel_noun"), None)
            order, limit = value(captured, "newest"), value(captured, "number")
            if order and limit is None:
                limit = 1 if reading.words[end - 1] in _SINGULAR else DEFAULT_OF_MANY
            seen |= {
                (_asked(found, order or "newest", limit), stop): None
                for found, stop in _tails(reading, end, first, MOST_TAILS)
            }
    yield from seen


def _named(captured: tuple[tuple[str, Any], ...]) -> Iterator[AnyCondition]:
    for slot, told in captured:
        if slot == "product":
            yield Named(told)
        elif slot == "org":
            yield By(told)
        elif slot == "kinds":
            yield told.condition


def _asked(found: _Found, order: Any, limit: int | None) -> Releases:
    """The question; `late` says the times of the range."""
    since, until = ranged(found.when)
    return Releases(every(found.where), found.channel, since, until, order, limit, barred=found.barred)


def _tails(reading: Reading, start: int, found: _Found, left: int) -> Iterator[tuple[_Found, int]]:
    if left:
        for template in TAILS:
            for captured, end in match(f"[and|, and|,] {template}", reading, start):
                more = _with(found, captured, template) if end > start else None
                if more is not None:
                    yield from _tails(reading, end, more, left - 1)
    yield found, start


def _with(found: _Found, captured: tuple[tuple[str, Any], ...], template: str) -> _Found | None:
    """With what a tail says; None where it contradicts what was said, or denies it."""
    if any(values(captured, "neg")):
        return _outside(found, captured)
    more: _Found | None = found
    if template.startswith(_BUT):
        barred = tuple(told for slot, told in captured if slot.startswith("channel"))
        return found._replace(barred=(*found.barred, *barred)) if found.channel is None else None
    for slot, told in captured:
        more = None if more is None else _added(more, slot, told)
    return more


def _outside(found: _Found, captured: tuple[tuple[str, Any], ...]) -> _Found | None:
    """Those not in the channel: "that aren't stable"; None where something else is denied."""
    slots = {slot for slot, _ in captured} - {"neg", "release", "channel_said"}
    is_channel = slots == {"channel"} and len(values(captured, "neg")) == 1 and found.channel is None
    return found._replace(barred=(*found.barred, value(captured, "channel"))) if is_channel else None


def _without(found: _Found, told: AnyCondition) -> _Found | None:
    """Without releases of some products, or those in a channel; None for what only products have or have not."""
    if isinstance(told, Not) and isinstance(told.of, Released):
        is_channel = told.of == Released(told.of.channel) and told.of.channel is not None and found.channel is None
        return found._replace(barred=(*found.barred, told.of.channel)) if is_channel and told.of.channel else None
    return None if is_of_releases(told) else found._replace(where=(*found.where, told))


def _added(found: _Found, slot: str, told: Any) -> _Found | None:
    if slot in ("products", "orgs"):
        is_second = any(type(each) is type(told.condition) for each in found.where)
        return None if is_second else found._replace(where=(*found.where, told.condition))
    if slot == "things":
        return _of_things(found, told) if told.is_plain else None
    if slot == "exception":
        return _without(found, told)
    if slot == "when":
        return found._replace(when=told) if found.when is None else None
    return _in_channel(found, told) if slot == "channel" else found


def _of_things(found: _Found, told: Things) -> _Found | None:
    """Of such products; when they were released is when the releases were: "versions of tools that came out in May"."""
    timed, rest = _parted(told.where)
    if not timed or is_of_releases(rest):
        return found._replace(where=(*found.where, told.where))
    channel = timed[0].channel or found.channel
    if len(timed) > 1 or found.when is not None or found.barred or found.channel not in (None, channel):
        return None
    when = Range(_moment(timed[0].since), _moment(timed[0].until))
    return found._replace(where=(*found.where, rest), channel=channel, when=when)


def _parted(where: AnyCondition) -> tuple[list[Released], AnyCondition]:
    """When the products were released, and what else is said of them."""
    held = where.of if isinstance(where, Every) else (where,)
    timed = [each for each in held if isinstance(each, Released) and not each.first and _is_timed(each)]
    return timed, every([each for each in held if each not in timed])


def _is_timed(told: Released) -> bool:
    return bool(told.since or told.until)


def _moment(told: str | None) -> clock.Instant | None:
    return None if told is None else clock.from_datetime(datetime.fromisoformat(told))


def _in_channel(found: _Found, told: Any) -> _Found | None:
    return found._replace(channel=told) if found.channel in (None, told) and not found.barred else None


SLOTS: dict[str, Slot] = {
    "determiner": _DETERMINERS,
    "non": phrases(said("non|not")),
    "was_released": phrases(said("released", Released()) | said("unreleased", Not(Released()))),
    "only": phrases(said("only|exclusive|exclusives")),
    "new": phrases(said("new|brand new|newly published|fresh")),
    "modifier": _modifier,
    "things": _things,
    "releases": _releases,
    "channel_said": phrases(said("in|in the|on|on the|from the|marked|marked as|part of the|a|an")),
    "channel_noun": phrases(said("betas", "beta") | said("alphas", "alpha") | said("nightlies", "nightly")),
}
