"""From phrases to conditions: "that run on Linux or macOS but not on Windows", "without a stable release"."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from countersign.distribution.ask import dates
from countersign.distribution.ask.dates import Range
from countersign.distribution.ask.query import (
    ANYTHING,
    AnyCondition,
    By,
    Either,
    Every,
    Free,
    Licensed,
    Mentioning,
    Named,
    Not,
    On,
    OnlyChannel,
    OnlyOn,
    Released,
    StartingWith,
    Tagged,
    Titled,
    either,
    every,
    opposite,
)
from countersign.distribution.ask.templates import Captured, Reading, Slot, match, value, values
from countersign.distribution.ask.vocabulary import ALL_PLATFORMS, phrases, said
from countersign.kernel import clock

MOST_WAYS = 40
MOST_UNITS = 8


class Values(NamedTuple):
    """Several values as one condition; `joint` is "and", "or", or "" for a single one."""

    condition: AnyCondition
    joint: str


Builder = Callable[[Captured, Reading], AnyCondition | None]


@dataclass(frozen=True, slots=True)
class Clause:
    """A way to say something of products; the builder answers None where it cannot mean that."""

    template: str
    build: Builder


JOINTS = said("and|as well as|plus|and also|and on|and for|and by|and in|, and|, and on|, and for|and with|and under", "and") | said(
    "or|nor|or on|or for|or by|or in|, or|and / or|or with|nor on|nor for|nor by|or under|, or on", "or"
) | {",": ","} | said("but not|and not|but not on|but not for|and not on|but not by|, but not|, not|not|but not with|, but not on", "not")  # fmt: skip
_JOINT = phrases(JOINTS)


def listed(
    item: str, made: Callable[[Any], AnyCondition], *, is_single: bool = False, tells_joint: bool = False
) -> Slot:
    """A slot for one or several values: "a", "a and b", "both a and b", "a, b or c", "neither a nor b", "a but not b".

    `item` is the template of one, whose first slot is its value; of `is_single` kinds a product has one alone, so
    that "by A and B" can only mean either; `joint` tells what was said where it `tells_joint`.
    """

    def chain(reading: Reading, start: int) -> Iterator[tuple[list[tuple[str, AnyCondition]], int]]:
        for captured, end in match(item, reading, start):
            one = made(captured[0][1])
            for joint, after in _JOINT(reading, end):
                for rest, stop in chain(reading, after):
                    yield [("", one), (joint, rest[0][1]), *rest[1:]], stop
            yield [("", one)], end

    def slot(reading: Reading, start: int) -> Iterator[tuple[Values, int]]:
        for opening in ("both", "either", "neither", ""):
            at = start + bool(opening)
            if opening and (start >= len(reading.words) or reading.words[start] != opening):
                continue
            for found, end in _first(chain(reading, at)):
                told = _joined(found, opening, is_single=is_single)
                if told is not None:
                    said_and = tells_joint and all(joint in ("", ",", "and") for joint, _ in found) and len(found) > 1
                    yield (told._replace(joint="and") if said_and else told), end

    return slot


def _first(ways: Iterator[tuple[Any, int]]) -> list[tuple[Any, int]]:
    """The first ways, each end once."""
    kept: dict[int, Any] = {}
    for place, (found, end) in enumerate(ways):
        kept.setdefault(end, found)
        if place > MOST_WAYS:
            break
    return [(found, end) for end, found in kept.items()]


def _joined(found: list[tuple[str, AnyCondition]], opening: str, *, is_single: bool) -> Values | None:
    held = [condition for joint, condition in found if joint != "not"]
    barred = [opposite(condition) for joint, condition in found if joint == "not"]
    joints = [joint for joint, _ in found if joint not in ("", "not")]
    if opening == "neither":
        return Values(opposite(either(held)), "") if len(held) > 1 and not barred else None
    if opening and len(held) < 2:
        return None
    explicit = {joint for joint in joints if joint != ","}
    if not joints:
        told = Values(held[0], "")
    elif explicit == {"and", "or"}:
        told = Values(_mixed(found), "mixed")
    elif "or" in explicit or is_single:
        told = Values(either(held), "or")
    else:
        told = Values(every(held), "both" if opening else "and")
    return Values(every([told.condition, *barred]), "and") if barred else told


def _mixed(found: list[tuple[str, AnyCondition]]) -> AnyCondition:
    """`and` binds more than `or`."""
    groups: list[list[AnyCondition]] = [[]]
    for joint, condition in found:
        if joint == "or":
            groups.append([])
        if joint != "not":
            groups[-1].append(condition)
    return either([every(group) for group in groups])


def negated(told: Values, reading: Reading) -> AnyCondition | None:
    """The opposite of the values; None where "not A and B" may mean two things."""
    if told.joint in ("and", "mixed") and not isinstance(told.condition, Either):
        reading.doubts.append('"not A and B" can mean two things: say "neither A nor B", or "not both A and B"')
        return None
    return opposite(told.condition)


def signed(told: Values, reading: Reading, *flags: Any) -> AnyCondition | None:
    """The values, or their opposite where an odd number of the flags is set."""
    return negated(told, reading) if sum(map(bool, flags)) % 2 else told.condition


def of(slot: str) -> Builder:
    """A builder of what the slot says, or of its opposite after a negation."""
    return lambda captured, reading: signed(
        value(captured, slot), reading, *values(captured, "neg"), *values(captured, "no")
    )


def so(condition: AnyCondition) -> Builder:
    """A builder of a condition without values."""
    return lambda captured, reading: signed(
        Values(condition, ""), reading, *values(captured, "neg"), *values(captured, "no")
    )


def ranged(told: Range | None) -> dict[str, str]:
    """The range as the typed query writes it."""
    if told is None:
        return {}
    ends = (("since", told.since), ("until", told.until))
    return {name: clock.rfc3339(moment) for name, moment in ends if moment is not None}


def within(condition: AnyCondition, told: Range | None, *, first: bool = False) -> AnyCondition:
    """The condition with all its releases in the range."""
    if isinstance(condition, Every | Either):
        return msgspec.structs.replace(condition, of=tuple(within(each, told, first=first) for each in condition.of))
    if isinstance(condition, Not):
        return Not(within(condition.of, told, first=first))
    if isinstance(condition, Released):
        return Released(condition.channel, first=first, **ranged(told))
    return condition


def _released(captured: Captured, reading: Reading) -> AnyCondition | None:
    told: Values = value(captured, "channels") or Values(Released(), "")
    ranged_too = Values(within(told.condition, value(captured, "when")), told.joint)
    return signed(ranged_too, reading, *values(captured, "neg"), *values(captured, "no"))


def _debuted(captured: Captured, reading: Reading) -> AnyCondition | None:
    told = within(Released(), value(captured, "when"), first=True)
    return signed(Values(told, ""), reading, *values(captured, "neg"))


def _last_updated(captured: Captured, reading: Reading) -> AnyCondition | None:
    told: Range = value(captured, "when")
    late = [Not(within(Released(), Range(told.until, None)))] if told.until is not None else []
    return signed(Values(every([within(Released(), told), *late]), ""), reading, *values(captured, "neg"))


def only_on(told: Values) -> AnyCondition | None:
    """On these platforms, each of them, and on no other; None where it cannot mean that."""
    held = told.condition.of if isinstance(told.condition, Every | Either) else (told.condition,)
    named = tuple(each.value for each in held if isinstance(each, On))
    if len(named) != len(held) or told.joint == "or":
        return None
    return OnlyOn(tuple(sorted(named, key=ALL_PLATFORMS.index)))


def _only_on(captured: Captured, reading: Reading) -> AnyCondition | None:
    only = only_on(value(captured, "platforms"))
    return None if only is None else signed(Values(only, ""), reading, *values(captured, "neg"))


def _only_channel(captured: Captured, reading: Reading) -> AnyCondition | None:
    return signed(Values(OnlyChannel(value(captured, "channel")), ""), reading, *values(captured, "neg"))


def _titled(captured: Captured, reading: Reading) -> AnyCondition | None:
    return signed(Values(Titled(value(captured, "topic")), ""), reading, *values(captured, "neg"))


def _mentioning(captured: Captured, reading: Reading) -> AnyCondition | None:
    return signed(Values(Mentioning(value(captured, "topic")), ""), reading, *values(captured, "neg"))


def _starting(captured: Captured, reading: Reading) -> AnyCondition | None:
    told = StartingWith(" ".join(value(captured, "topic")))
    return signed(Values(told, ""), reading, *values(captured, "neg"))


def _org_released(captured: Captured, reading: Reading) -> AnyCondition | None:
    by: Values = value(captured, "orgs")
    if value(captured, "when") is None:
        return signed(by, reading, *values(captured, "neg"))
    return every([by.condition, within(Released(), value(captured, "when"))]) if not value(captured, "neg") else None


_ALL = every([On(each) for each in ALL_PLATFORMS])
_WHOSE = "(whose (title|name|titles|names)|with (a|the) (title|name) that|with titles that|with names that)"
_INSIDE = "in [the|its|their|a] (title|titles|name|names)"
_LICENSE = "(license|licence|licenses|licences)"

CLAUSES = (
    Clause("{neg} {runs} only [{on}] {platforms}", _only_on),
    Clause("{neg} only {runs} [{on}] {platforms}", _only_on),
    Clause("{neg} [{runs}] (only|exclusively|solely) [{runs}] [{on}] {platforms}", _only_on),
    Clause("{neg} only support {platforms}", _only_on),
    Clause("{neg} only supports {platforms}", _only_on),
    Clause("{neg} (exclusive|exclusively available) (to|on|for) {platforms}", _only_on),
    Clause("{neg} [{runs}] [{on}] {platforms} (only|exclusively|alone|exclusive|exclusives)", _only_on),
    Clause("{neg} [{runs}] [{on}] {platforms} and (nothing|nowhere|no other platform|on nothing|on no other platform) [else]", _only_on),
    Clause("{neg} [{runs}] [{on}] (nothing but|no platform but|no other platform than) {platforms}", _only_on),
    Clause("{neg} {runs} {on} (all|every|each|all of the|all six|all the) [supported|available] (platforms|platform)", so(_ALL)),
    Clause("{neg} (support|supports|supporting) (all|every|each|all six|all the) [supported|available] (platforms|platform)", so(_ALL)),
    Clause("{neg} [{on}] (all|every) (platforms|platform)", so(_ALL)),
    Clause("{neg} {runs} [{on}] {platforms}", of("platforms")),
    Clause("{neg} (support|supports|supporting|target|targets|targeting|supported on) {platforms}", of("platforms")),
    Clause("{neg} {on} {platforms}", of("platforms")),
    Clause("{neg} compatible with {platforms}", of("platforms")),
    Clause("{neg} {platforms} compatible", of("platforms")),
    Clause("{neg} [{with}] {no} [native] {platforms} (version|versions|port|ports|build|builds|edition|editions|client|support|release|releases)", of("platforms")),
    Clause("{neg} {made} (by|from) [either] {orgs}", of("orgs")),
    Clause("{neg} (by|from|of|belonging to|belongs to|belong to|owned by) {orgs}", of("orgs")),
    Clause("{neg} {orgs} {neg} {makes} [{when}]", _org_released),
    Clause("{neg} {orgs} (product|products)", of("orgs")),
    Clause("{neg} (tagged|labelled|labeled|marked|categorised|categorized|classified|filed) [as|with|under] [the tag|the tags] {tags}", of("tags")),
    Clause("{neg} {with} {no} [the] (tag|tags|label|labels|keyword) {tags}", of("tags")),
    Clause("{neg} {with} {no} {tags} (tag|tags|label)", of("tags")),
    Clause("{neg} (carry|carries|carrying|bear|bearing|use|using) [the] (tag|tags|label) {tags}", of("tags")),
    Clause("{neg} (carry|carries|carrying) [the] {tags} (tag|tags|label)", of("tags")),
    Clause("{neg} for {tags}", of("tags")),
    Clause("{neg} in [the] (category|genre|tag) {tags}", of("tags")),
    Clause("{neg} in [the] {tags} (category|genre|tag|categories|genres)", of("tags")),
    Clause("{neg} {free}", so(Free())),
    Clause("{neg} {paid}", so(Not(Free()))),
    Clause("{neg} (licensed|released|published|available|distributed|offered|shipped|made available) (under|with|as) [a|an|the|either] {licenses}", of("licenses")),
    Clause("{neg} under [a|an|the|either] {licenses}", of("licenses")),
    Clause("{neg} {licenses} licensed", of("licenses")),
    Clause("{neg} {with} {no} [the] {licenses}", of("licenses")),
    Clause("{neg} (use|uses|using|carry|carries) [a|an|the] {licenses}", of("licenses")),
    Clause(f"{{neg}} {{with}} [the] {_LICENSE} {{licenses}}", of("licenses")),
    Clause("{neg} {licenses}", of("licenses")),
    Clause(f"{{neg}} {{with}} {{no}} [stated|known] {_LICENSE} [at all]", lambda captured, reading: signed(
        Values(Not(Licensed(None)), ""), reading, *values(captured, "neg"), *values(captured, "no"))),
    Clause("{neg} [{with}] {no} {channels} {release} [{out}] {when}", _released),
    Clause("{neg} [{with}] {no} {release} [{out}] (in|on|from) [the] {channels} [channel|channels] [{when}]", _released),
    Clause("{neg} (only|exclusively) [{with}] {channel} [{release}]", _only_channel),
    Clause("{neg} [{with}] {channel} {release} only", _only_channel),
    Clause("{neg} [{with}] (only|nothing but|no other than|just) {channel} {release}", _only_channel),
    Clause("{neg} [{with}] {no} {channels} {release}", _released),
    Clause("{neg} {with} {no} {channels} [{when}]", _released),
    Clause("{neg} (available|released|published|out|offered|shipped|{runs}) (in|on|as|from|to|via) [a|an|the] {channels} [channel|channels|release|releases|build|builds] [{when}]", _released),
    Clause("{neg} (in|on) [the] {channels} [channel|channels] [{when}]", _released),
    Clause("{neg} {channels} {updated} {when}", _released),
    Clause("{neg} {debuted} {when}", _debuted),
    Clause("{neg} {last_updated} {when}", _last_updated),
    Clause("{neg} [{with}] {no} [new] {release} [{out}] {when}", _released),
    Clause("{neg} [with] {updated} {when}", _released),
    Clause("{neg} {with} {no} (published|public) {release}", _released),
    Clause("{neg} {with} {no} {release} [at all]", _released),
    Clause("{neg} (released|published|come out|came out|been released) [at all]", _released),
    Clause("{neg} [a|an] {kinds}", of("kinds")),
    Clause("{neg} (called|named|titled) {topic}", _titled),
    Clause(f"{{neg}} {{with}} [the word|the words] {{topic}} {_INSIDE}", _titled),
    Clause(f"{_WHOSE} {{neg}} (contains|contain|containing|includes|include|has|have|mentions|mention) [the word|the words] {{topic}}", _titled),
    Clause(f"{{neg}} (containing|contain|contains|including|include|mentioning|mention) [the word|the words] {{topic}} {_INSIDE}", _titled),
    Clause(f"{_WHOSE} {{neg}} (starts|begins|start|begin) with [the letter|the letters|the word|an|a] {{topic}}", _starting),
    Clause("{neg} (start|starts|starting|begin|begins|beginning) with [the letter|the letters|the word] {topic}", _starting),
    Clause("{neg} (about|matching|match|mentioning|mention|mentions|related to|concerning|dealing with|on the topic of|to do with) {topic}", _mentioning),
    Clause("{neg} {tags}", of("tags")),
    Clause("{neg} the (product|products) {products}", of("products")),
    Clause("{here}", lambda captured, reading: ANYTHING),
)  # fmt: skip
EXCEPTIONS = (
    "(except|except for|excluding|other than|besides|apart from|minus|but not|with the exception of|not counting|"
    "not including|and not|without|leaving out|aside from) [for] [the|all|any|those|the ones|ones] "
)
_AND = phrases(
    said("and|but|, and|, but|and also|as well as|plus|yet|while|and that|and which|and who|but which|but that|,|")
)
_OR = phrases(said("or|, or|or that|or which|or else|or who|or which are"))
_RELATIVE = "[that|which|who|where|those that|ones that|the ones that|those which|those|ones]"


def _clause(reading: Reading, start: int) -> Iterator[tuple[AnyCondition, int]]:
    """One phrase that says something of products."""
    seen: set[tuple[AnyCondition, int]] = set()
    for each in CLAUSES:
        for captured, end in match(f"{_RELATIVE} {each.template}", reading, start):
            told = each.build(captured, reading) if end > start else None
            if told is not None and (told, end) not in seen:
                seen.add((told, end))
                yield told, end
        if len(seen) > MOST_WAYS:
            return


def _exception(reading: Reading, start: int) -> Iterator[tuple[AnyCondition, int]]:
    for captured, end in match(f"{EXCEPTIONS} ({{products}}|{{things}}|{{clause}})", reading, start):
        slot, told = captured[-1]
        if slot == "products":
            yield opposite(told.condition), end
        elif slot == "things":
            if told.is_plain and told.where != ANYTHING:
                yield opposite(told.where), end
        else:
            yield opposite(told), end


def _unit(reading: Reading, start: int) -> Iterator[tuple[AnyCondition, int]]:
    """A clause, an exception, or conditions in parentheses."""
    yield from _grouped(reading, start)
    yield from reading.slot("exception", start)
    for captured, end in match("{neg} neither {clause} [,] nor {clause}", reading, start):
        yield every([opposite(each) for each in values(captured, "clause")]), end
    yield from reading.slot("clause", start)


def _grouped(reading: Reading, start: int) -> Iterator[tuple[AnyCondition, int]]:
    is_not = reading.words[start : start + 1] == ["not"]
    opening = start + is_not
    if reading.words[opening : opening + 1] != ["("]:
        return
    for told, end in reading.slot("where", opening + 1):
        if reading.words[end : end + 1] == [")"]:
            yield opposite(told) if is_not else told, end + 1


def _all_of(reading: Reading, start: int) -> Iterator[tuple[AnyCondition, int]]:
    """Clauses one after another, with or without `and` between them."""
    for told, end in _first_units(reading, start):
        for place in reading.starts(end):
            for _, after in _AND(reading, place):
                for rest, stop in reading.slot("all_of", after):
                    if stop > end:
                        yield every([told, rest]), stop
        yield told, end


def _first_units(reading: Reading, start: int) -> list[tuple[AnyCondition, int]]:
    return reading.slot("unit", start)[:MOST_WAYS]


def _where(reading: Reading, start: int) -> Iterator[tuple[AnyCondition, int]]:
    """Conditions joined by `and`, which binds more, and `or`; the longest way first."""
    found: dict[tuple[AnyCondition, int], None] = {}
    for told, end in reading.slot("all_of", start)[:MOST_WAYS]:
        for _, after in _OR(reading, end):
            for rest, stop in reading.slot("where", after):
                found[either([told, rest]), stop] = None
        found[told, end] = None
    yield from sorted(list(found)[:MOST_WAYS], key=lambda way: -way[1])


def _product(slug: Any) -> AnyCondition:
    return Named(slug)


SLOTS: dict[str, Slot] = {
    "when": dates.when,
    "on": phrases(said("on|for|with|under|in|on both|natively on|to|via|through|on the|in the|for the|inside|using")),
    "with": phrases(said("with|having|have|has|had|got|get|gets|getting|offer|offers|offering|include|includes|including|ship|ships|publish|publishes|provide|provides|with at least|receive|received|contain|containing|that got|come with|comes with|there is|gotten|saw|see|")),
    "no": phrases({**said("no|without|without a|without an|without any|lack|lacks|lacking|missing|lack a|lack an|lacks a|lacks an|lacking a|lacking an|not a|not an|not any|not one|without the|none of the|lacked|miss|misses|missing a|missing an|lacking any|lack any|without even a|without a single|not a single", True), **said("a|an|any|some|at least one|one or more|the|their|its|new|a new|a published|published||any new|at least a|at least an|one", False)}),
    "platforms": listed("[the|my] {platform} [platform|devices|device|machines]", lambda told: told),
    "channels": listed("[a|an|any|the|no] {channel} [release|version|build|channel|update]", lambda told: Released(told)),
    "tags": listed("[a|an|the|tag|tagged|as] {tag}", lambda told: Tagged(told)),
    "orgs": listed("[the|publisher|the publisher|the organisation|the company|the studio|the developer|by] {org}", lambda told: By(told), is_single=True),
    "licenses": listed("[the|a|an] {license} [license|licence|licenses|licences]", lambda told: told, is_single=True),
    "kinds": listed("[a|an|the] {kind}", lambda told: told, is_single=True),
    "products": listed("[the|the game|the app|the tool|the product] {product}", _product, is_single=True, tells_joint=True),
    "clause": _clause,
    "exception": _exception,
    "unit": _unit,
    "all_of": _all_of,
    "where": _where,
}  # fmt: skip
