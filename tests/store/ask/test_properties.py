"""Random filters: SQL finds the same products as plain Python, and the text form of a filter is a question with the
same meaning."""

import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from countersign.store.ask import answers, lexicon
from countersign.store.catalog.filter import KNOWN, Filter, Values, conditions, with_slots
from countersign.store.catalog.filter_queries import forms
from countersign.store.catalog.search import words
from countersign.store.context import Store
from tests.store.ask.shelf import NOW, PUBLIC, Item, ask_shelf

SIZES = [200, pytest.param(20_000, marks=pytest.mark.full)]
DAYS = ("2025-01-01", "2025-07-01", "2026-01-01", "2026-06-01", "2026-08-01", "2026-08-15", "2027-01-01")
Test = Callable[[Item, str], bool]
OF_ITEMS: dict[str, Test] = {
    "kind": lambda item, value: item.kind == value,
    "platform": lambda item, value: value in item.platforms,
    "channel": lambda item, value: value in {each.channel for each in item.published},
    "access": lambda item, value: item.access == value,
    "tag": lambda item, value: value in item.tags,
    "org": lambda item, value: item.org == value,
    "license": lambda item, value: item.license == value,
    "product": lambda item, value: item.slug == value,
    "title": lambda item, value: {*words(value)} <= {*words(item.title)},
    "text": lambda item, value: all({*forms(word)} & _held(item) for word in words(value)),
}


def _held(item: Item) -> set[str]:
    return {*words(item.title), *words(" ".join(item.tags)), *words(item.description or "")}


def is_true(question_filter: Filter, item: Item) -> bool:
    """Return whether the filter matches the item. This is the oracle in plain Python."""
    dated = any((question_filter.since, question_filter.until))
    left_out = ["channel"] if dated and question_filter.when in ("any", "none") else []
    slots = [(OF_ITEMS[name], values) for name, values in conditions(question_filter) if name not in left_out]
    fits = all(holds(test, values, item) for test, values in slots)
    return fits and (not dated or is_released(question_filter, item))


def holds(test: Test, values: Values, item: Item) -> bool:
    """Return whether the item meets one of `any`, each of `all` and none of `not`."""
    either = any(test(item, value) for value in values.any) if values.any else True
    each = all(test(item, value) for value in values.all)
    return either and each and not any(test(item, value) for value in values.none)


def is_released(question_filter: Filter, item: Item) -> bool:
    """Return whether any release, the first release, the last release or no release of the item is in the range."""
    begin, end = (question_filter.since or "")[:10], (question_filter.until or "9999")[:10]
    days = sorted(each.day for each in item.published if is_in_channel(question_filter, each.channel))
    if question_filter.when in ("first", "last"):
        days = sorted(each.day for each in item.published)[
            slice(1) if question_filter.when == "first" else slice(-1, None)
        ]
    return any(begin <= day < end for day in days) != (question_filter.when == "none")


def is_in_channel(question_filter: Filter, channel: str) -> bool:
    """Return whether the filter requires a release in the channel."""
    channels = (*question_filter.channel.any, *question_filter.channel.all) or (channel,)
    return channel in channels and channel not in question_filter.channel.none


def as_text(question_filter: Filter) -> str:
    """Return the filter as a question: `kind=game|app; platform=linux&macos; platform!=windows; order=newest`."""
    members: dict[str, Any] = msgspec.to_builtins(question_filter)
    pieces: list[str] = []
    for name, values in conditions(question_filter):
        members.pop(name, None)
        for sign, separator, texts in (("=", "|", values.any), ("=", "&", values.all), ("!=", "|", values.none)):
            if texts:
                pieces.append(f"{name}{sign}{separator.join(map(_quoted, texts))}")
    members.pop("where", None)
    pieces += [f"{name}={'|'.join(value) if name == 'fields' else value}" for name, value in members.items()]
    return "; ".join(pieces)


def _quoted(text: str) -> str:
    return text if text.replace("-", "").replace(".", "").isalnum() else '"{}"'.format(text.replace('"', "'"))


def random_filter(chance: random.Random) -> Filter:
    """Return a random filter of products."""
    item = chance.choice(PUBLIC)
    values = {
        **{name: chance.sample(known_values, min(2, len(known_values))) for name, known_values in KNOWN.items()},
        "tag": [chance.choice(item.tags), "cozy"],
        "org": [item.org, "orrery"],
        "license": [item.license or "MIT", "Apache-2.0"],
        "product": [item.slug, "quill"],
        "title": [chance.choice(words(item.title))],
        "text": [chance.choice(("barge", "letters", "maps", "cozy"))],
    }
    slots: dict[str, Values] = {}
    for name in chance.sample(sorted(values), chance.randint(1, 3)):
        is_multiple = name in ("platform", "channel", "tag")
        combinator = chance.choice(("any", "any", "none", "all") if is_multiple else ("any", "none"))
        texts = tuple(dict.fromkeys(values[name]))
        slots[name] = Values(**{"any" if combinator == "all" and len(texts) == 1 else combinator: texts})
    filled_filter = with_slots(Filter(), **slots)
    first_day, last_day = sorted(chance.sample(range(len(DAYS)), 2))
    ends = {"since": f"{DAYS[first_day]}T00:00:00Z", "until": f"{DAYS[last_day]}T00:00:00Z"}
    bounds = {name: ends[name] for name in chance.choice(((), (), ("since",), ("until",), ("since", "until")))}
    when = chance.choice(("any", "any", "first", "last", "none")) if bounds else "any"
    return replace(filled_filter, **bounds, when=when)  # pyright: ignore


@pytest.mark.parametrize("size", SIZES)
async def test_sql_finds_what_plain_python_finds(shelf: Store, size: int) -> None:
    chance = random.Random(7)
    for _ in range(size):
        question_filter = random_filter(chance)
        expected = [item.slug for item in PUBLIC if is_true(question_filter, item)]

        answer = await answers.of_filter(shelf, question_filter)
        counted_answer = await answers.of_filter(shelf, replace(question_filter, answer="count"))

        assert [each.product for each in answer.sources] == expected, question_filter
        assert (answer.total, counted_answer.total) == (len(expected), len(expected)), question_filter


@pytest.mark.parametrize("size", SIZES)
async def test_a_filter_as_text_is_a_question_with_the_same_meaning(shelf: Store, size: int) -> None:
    chance = random.Random(11)
    for _ in range(size):
        question_filter = random_filter(chance)
        members = {"order": chance.choice(("title", "newest", "oldest")), "limit": chance.choice((None, 3))}
        members["answer"] = chance.choice(("list", "list", "count"))
        question_filter = replace(question_filter, **members)  # pyright: ignore

        answer = await ask_shelf(shelf, as_text(question_filter))

        assert answer.filter == question_filter, as_text(question_filter)


@pytest.mark.parametrize("size", SIZES)
async def test_any_words_have_an_answer_whose_filter_is_valid(shelf: Store, size: int) -> None:
    chance = random.Random(13)
    phrases = [" ".join(phrase) for phrase in {**lexicon.WORDS, **lexicon.KEYS}]
    other_words = [
        *sorted(lexicon.IGNORED),
        *(each.title for each in PUBLIC),
        "2026",
        "1.2.0",
        "=",
        "!=",
        ">",
        ",",
        ".",
        "?",
        ":",
    ]
    for _ in range(size):
        question = " ".join(
            chance.choice(chance.choice((phrases, phrases, other_words))) for _ in range(chance.randint(1, 12))
        )

        answer = await answers.answer(shelf, question, NOW, [chance.choice(phrases)] * chance.randint(0, 1))

        assert answer.text, question
        assert "`$" not in answer.text, (question, answer.text)
