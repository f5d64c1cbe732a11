"""For random typed queries: SQL finds what plain Python finds, and the query's own words ask for the same again."""

import random

import pytest

from countersign.distribution.ask import phrases, replies
from countersign.distribution.ask.grammar import understand
from countersign.distribution.ask.names import names
from countersign.distribution.ask.query import Count, Products
from countersign.distribution.ask.statements import forms
from countersign.distribution.ask.tokens import tokens
from countersign.distribution.ask.told import (
    AnyCondition,
    By,
    Either,
    Every,
    Free,
    Licensed,
    Mentioning,
    Named,
    Not,
    OfKind,
    On,
    OnlyChannel,
    OnlyOn,
    Released,
    StartingWith,
    Tagged,
    Titled,
)
from countersign.distribution.catalog.words import words
from countersign.distribution.context import Store
from tests.distribution.ask.shelf import NOW, PUBLIC, Item

SIZES = [200, pytest.param(20_000, marks=pytest.mark.full)]
DAYS = ("2025-01-01", "2025-07-01", "2026-01-01", "2026-06-01", "2026-08-01", "2026-08-15", "2027-01-01")
PLATFORMS = ("windows", "macos", "linux", "android", "ios", "web")
CHANNELS = ("stable", "beta", "nightly", "alpha")


def of_texts(condition: AnyCondition, item: Item) -> bool:
    """Whether a condition about words or releases is true of the item."""
    title = words(item.title)
    match condition:
        case Titled(wanted):
            return {*wanted} <= {*title}
        case Mentioning(wanted):
            held = {*title, *words(" ".join(item.tags)), *words(item.description or "")}
            return all({*forms(word)} & held for word in wanted)
        case StartingWith(begin):
            return "".join(title).startswith(begin)
        case OnlyChannel(channel):
            return {each.channel for each in item.published} == {channel}
        case Released():
            return is_released(condition, item)
        case _:
            raise TypeError(condition)


def is_released(told: Released, item: Item) -> bool:
    """Whether a release of the item is as told."""
    days = sorted(each.day for each in item.published if told.channel in (None, each.channel))
    begin, end = (told.since or "")[:10], (told.until or "9999")[:10]
    return any(begin <= day < end for day in (days[:1] if told.first else days))


def is_true(condition: AnyCondition, item: Item) -> bool:
    """Whether the condition is true of the item: the oracle, in plain Python."""
    match condition:
        case Every(of):
            return all(is_true(each, item) for each in of)
        case Either(of):
            return any(is_true(each, item) for each in of)
        case Not(of):
            return not is_true(of, item)
        case OfKind(kind):
            return item.kind == kind
        case On(platform):
            return platform in item.platforms
        case OnlyOn(values):
            return {*item.platforms} == {*values}
        case _:
            return of_facets(condition, item)


def of_facets(condition: AnyCondition, item: Item) -> bool:
    """Whether a condition about a product's plain members is true of the item."""
    match condition:
        case Tagged(tag):
            return tag in item.tags
        case By(org):
            return item.org == org
        case Licensed(license):
            return item.license == license
        case Free():
            return item.access == "free"
        case Named(slug):
            return item.slug == slug
        case _:
            return of_texts(condition, item)


def ranged(chance: random.Random) -> dict[str, str]:
    """A random range of time; empty for all of it."""
    first, last = sorted(chance.sample(range(len(DAYS)), 2))
    ends = {"since": f"{DAYS[first]}T00:00:00.000Z", "until": f"{DAYS[last]}T00:00:00.000Z"}
    return {name: ends[name] for name in chance.choice(((), ("since",), ("until",), ("since", "until")))}


def leaf(chance: random.Random) -> AnyCondition:
    """A random condition that holds no other."""
    item = chance.choice(PUBLIC)
    made = (
        lambda: OfKind(item.kind),
        lambda: On(chance.choice(PLATFORMS)),
        lambda: OnlyOn(item.platforms and tuple(sorted(item.platforms, key=PLATFORMS.index))),
        lambda: Tagged(chance.choice(item.tags)),
        lambda: By(item.org),
        lambda: Licensed(item.license),
        lambda: Free(),
        lambda: Named(item.slug),
        lambda: Titled((chance.choice(words(item.title)),)),
        lambda: Mentioning((chance.choice(("barge", "letters", "maps", "cozy")),)),
        lambda: StartingWith(chance.choice("slqwe9")),
        lambda: OnlyChannel(chance.choice(CHANNELS)),
        lambda: Released(chance.choice((None, *CHANNELS)), **ranged(chance)),
        lambda: Released(None, first=True, since=f"{chance.choice(DAYS)}T00:00:00.000Z"),
    )
    return chance.choice(made)()


def tree(chance: random.Random, depth: int) -> AnyCondition:
    """A random condition of conditions."""
    if depth == 0 or chance.random() < 0.3:
        return leaf(chance)
    held = tuple(tree(chance, depth - 1) for _ in range(chance.randint(1, 3)))
    return chance.choice((lambda: Every(held), lambda: Either(held), lambda: Not(held[0])))()


@pytest.mark.parametrize("size", SIZES)
async def test_sql_finds_what_plain_python_finds(shelf: Store, size: int) -> None:
    chance = random.Random(7)
    for _ in range(size):
        where = tree(chance, 3)
        expected = [item.slug for item in PUBLIC if is_true(where, item)]

        found = await replies.which(shelf.database, Products(where))
        counted = await replies.count(shelf.database, Count(Products(where)))

        assert [slug for (slug,) in found.rows] == expected, where
        assert (found.total, counted.total) == (len(expected), len(expected)), where


def sayable(chance: random.Random) -> AnyCondition:
    """A random condition as people say them: a few leaves or denied ones, all of them or one of them."""
    held: list[AnyCondition] = []
    for _ in range(chance.randint(1, 3)):
        each = leaf(chance)
        held.append(Not(each) if chance.random() < 0.3 else each)
    return chance.choice((lambda: Every(tuple(held)), lambda: Either(tuple(held)), lambda: held[0]))()


@pytest.mark.parametrize("size", SIZES)
async def test_a_query_in_words_asks_for_the_same_again(shelf: Store, size: int) -> None:
    chance = random.Random(11)
    for _ in range(size):
        where = sayable(chance)
        question = f"Which {phrases.products(where)}?"
        read = tokens(question)

        understood = understand(read, await names(shelf.database, question, read), NOW).queries

        assert understood, question
        again = understood[0]
        assert isinstance(again, Products), question
        same = [is_true(where, item) == is_true(again.where, item) for item in PUBLIC]
        assert all(same), (question, again.where)
