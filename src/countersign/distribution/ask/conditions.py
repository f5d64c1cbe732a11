"""Conditions of several phrases: "that run on Linux and are free, except those by Orrery", and the slots they need."""

from collections.abc import Iterator
from typing import Any

from countersign.distribution.ask import dates
from countersign.distribution.ask.clauses import CLAUSES, within
from countersign.distribution.ask.templates import Reading, Slot, match, values
from countersign.distribution.ask.told import (
    ANYTHING,
    AnyCondition,
    By,
    Either,
    Every,
    MakerOf,
    Named,
    Released,
    Tagged,
    either,
    every,
    opposite,
)
from countersign.distribution.ask.values import MOST_WAYS, Values, listed
from countersign.distribution.ask.vocabulary import phrases
from countersign.distribution.ask.wordlists import said

EXCEPTIONS = (
    "(except|except for|excluding|other than|besides|apart from|minus|but not|with the exception of|not counting|"
    "not including|and not|without|leaving out|aside from|leaving aside|outside|outside of|save for|"
    "ignoring|omitting|skipping|leave out|but none|but no|setting aside|not those|but without|and no|not) [for] "
    "[the|all|any|anything|everything|those|the ones|ones] "
)
EXCLUDED = (
    "(excluded|left out|left aside|set aside|aside|omitted|not included|excepted|not counted|ignored|exempt|apart|"
    "being excluded|being left out|taken out|removed)"
)
_AND = phrases(
    said("and|but|, and|, but|and also|as well as|plus|yet|while|and that|and which|and who|but which|but that|,|")
)
_OR = phrases(said("or|, or|or that|or which|or else|or who|or which are"))
_PROVIDED = (
    "as long as they",
    "so long as they",
    "provided they",
    "provided that they",
    "if they",
    "given they",
    "as long as it",
    "so long as it",
    "provided it",
    "provided that it",
    "if it",
    "but they have to be ones that",
)
_PRONOUN = phrases(said("that|which|who") | said("|".join((*_PROVIDED, *(f", {each}" for each in _PROVIDED)))))
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
    for template in (
        f"{EXCEPTIONS} ({{products}}|{{things}}|{{orgs}}|{{clause}})",
        f"[with|,|and|but] [the|those|anything|everything|all] ({{products}}|{{things}}|{{orgs}}|{{clause}}) "
        f"{EXCLUDED}",
    ):
        yield from _excepted(reading, start, template)


def _excepted(reading: Reading, start: int, template: str) -> Iterator[tuple[AnyCondition, int]]:
    for captured, end in match(template, reading, start):
        slot, told = captured[-1]
        if isinstance(told, Values):
            yield opposite(told.condition), end
        elif slot == "things":
            if told.is_plain and told.where != ANYTHING:
                yield opposite(told.where), end
        else:
            yield opposite(told), end


def _unit(reading: Reading, start: int) -> Iterator[tuple[AnyCondition, int]]:
    """A clause, an exception, conditions in parentheses, or all that one relative pronoun begins."""
    yield from _grouped(reading, start)
    for _, end in _PRONOUN(reading, start):
        yield from reading.slot("where", end)
    yield from reading.slot("exception", start)
    for captured, end in match("{neg} [{runs}] neither {clause} [,] nor {clause}", reading, start):
        yield every([opposite(each) for each in values(captured, "clause")]), end
    for captured, end in match("{neg} either {clause} [,] or {clause}", reading, start):
        told = either(values(captured, "clause"))
        yield opposite(told) if any(values(captured, "neg")) else told, end
    for captured, end in match("both {clause} and {clause}", reading, start):
        yield every(values(captured, "clause")), end
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


def _by(told: Any) -> AnyCondition:
    """By the organisation with this slug, or as the maker of a product was told."""
    return told if isinstance(told, MakerOf) else By(told)


MAKERS = (
    "the (makers|maker|developers|developer|publisher|publishers|company|studio|team|people|creators|creator|author|"
    "authors|organisation|organization|vendor|ones|folks|guys) (of|behind|who made|that made|who make|that makes|"
    "who makes|that make|which makes|which made|responsible for|who published|that published|that publishes|"
    "which publishes|who developed|that developed|who did|that did|who built|who wrote|who created|who put out|"
    "who brought us|who gave us) {product}",
    "the same (makers|maker|developers|developer|publisher|publishers|company|studio|team|people|organisation|"
    "organization|vendor) (as|that made|that makes|behind|who made|which made|that publishes|that published) {product}",
    "{product} 's (makers|maker|developers|developer|publisher|publishers|company|studio|team|creators|creator|author|"
    "authors|organisation|organization|vendor)",
    "whoever (made|makes|publishes|published|is behind|develops|developed) {product}",
)


def _maker(reading: Reading, start: int) -> Iterator[tuple[AnyCondition, int]]:
    """The publisher of a product that is named in its stead."""
    for template in MAKERS:
        for captured, end in match(template, reading, start):
            yield MakerOf(captured[0][1]), end


def _product(slug: Any) -> AnyCondition:
    return Named(slug)


_TIMES = listed("{when}", lambda told: within(Released(), told))


def _times(reading: Reading, start: int) -> Iterator[tuple[Any, int]]:
    """Several periods: all with their years or none, for "in May or June 2025" means 2025 both times; and each with its
    own preposition, for "in May and June" may mean either of them."""
    for told, end in _TIMES(reading, start):
        words, count = reading.words[start:end], _periods(told.condition)
        years = sum(len(word) == _YEAR and word.isdigit() for word in words)
        is_one_by_one = told.joint == "or" or sum(word in ("in", "during", "on") for word in words) == count
        if years in (0, count) and is_one_by_one:
            yield told, end


def _periods(told: AnyCondition) -> int:
    """How many periods it is about."""
    if isinstance(told, Every | Either):
        return sum(map(_periods, told.of))
    return 1


_YEAR = 4
SLOTS: dict[str, Slot] = {
    "when": dates.when,
    "times": _times,
    "on": phrases(said("on|for|with|under|in|on both|natively on|to|via|through|on the|in the|for the|inside|using")),
    "with": phrases(
        said(
            "with|having|have|has|had|got|get|gets|getting|offer|offers|offering|include|includes|"
            "including|ship|ships|shipped|shipping|published|put out|pushed out|publish|publishes|provide|"
            "provides|with at least|receive|received|"
            "contain|containing|that got|come with|comes with|there is|gotten|saw|see"
        )
        | said("", False)
    ),
    "no": phrases(
        {
            **said(
                "no|without|without a|without an|without any|lack|lacks|lacking|missing|lack a|lack an|"
                "lacks a|lacks an|lacking a|lacking an|not a|not an|not any|not one|without the|none of "
                "the|lacked|miss|misses|missing a|missing an|lacking any|lack any|without even a|without "
                "a single|not a single",
                True,
            ),
            **said(
                "a|an|any|some|at least one|one or more|the|their|its|new|a new|a published|published||"
                "any new|at least a|at least an|one",
                False,
            ),
        }
    ),
    "platforms": listed(
        "[the|my|a|an|your|our|his|her|any] {platform} [platform|devices|device|machines|users|owners|based]",
        lambda told: told,
    ),
    "channels": listed("[a|an|any|the] {channel} [release|version|build|channel|update]", lambda told: Released(told)),
    "tags": listed("[a|an|the|tag|tagged|as] {tag}", lambda told: Tagged(told)),
    "orgs": listed(
        "[the|publisher|the publisher|the organisation|the company|the studio|the developer|by|either] ({org}|{maker})",
        _by,
        is_single=True,
    ),
    "licenses": listed("[the|a|an] {license} [license|licence|licenses|licences]", lambda told: told, is_single=True),
    "kinds": listed("[a|an|the] {kind}", lambda told: told, is_single=True),
    "products": listed(
        "[the|the game|the app|the tool|the product] {product}", _product, is_single=True, tells_joint=True
    ),
    "maker": _maker,
    "clause": _clause,
    "exception": _exception,
    "unit": _unit,
    "all_of": _all_of,
    "where": _where,
}
