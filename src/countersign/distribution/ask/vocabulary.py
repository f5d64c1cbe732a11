"""Slots for words of one meaning and for names, which templates of questions are made of."""

from collections.abc import Iterator
from typing import Any

from countersign.distribution.ask.templates import Reading, Slot
from countersign.distribution.ask.wordlists import (
    ASPECTS,
    AUXILIARIES,
    CHANNELS,
    DEBUTED,
    FREE,
    HERE,
    KINDS,
    LAST_BY,
    LAST_UPDATED,
    LIST_HEADS,
    MADE,
    MAKES,
    NEGATIONS,
    NUMBERS,
    ONE_RELEASE,
    OPEN_SOURCE,
    ORDER,
    OUT,
    PAID,
    PLATFORMS,
    POLITE,
    PUBLISHERS,
    RELEASE,
    RUNS,
    THINGS,
    UPDATED,
    VERSION_ORDER,
    Phrases,
)


def phrases(table: Phrases) -> Slot:
    """A slot for the phrases of the table, the longest first; '' stands for nothing said."""
    by_first: dict[str, list[tuple[list[str], Any]]] = {}
    for phrase in sorted(table, key=lambda each: -len(each.split())):
        words = phrase.split()
        by_first.setdefault(words[0] if words else "", []).append((words, table[phrase]))
    nothing = by_first.pop("", [])

    def slot(reading: Reading, start: int) -> Iterator[tuple[Any, int]]:
        first = reading.words[start] if start < len(reading.words) else ""
        for words, value in by_first.get(first, ()) if first else ():
            if reading.words[start : start + len(words)] == words:
                yield value, start + len(words)
        for _, value in nothing:
            yield value, start

    return slot


def auxiliaries(reading: Reading, start: int) -> Iterator[tuple[bool, int]]:
    """Auxiliary verbs and pronouns, as many as there are, then fewer, then none; whether they negate."""
    ends = [(False, start)]
    place, negated = start, False
    while place < len(reading.words) and place < start + 6:
        word = reading.words[place]
        if word in NEGATIONS and not negated:
            negated = True
        elif word not in AUXILIARIES:
            break
        place += 1
        ends.append((negated, place))
    yield from reversed(ends)


def name(kind: str) -> Slot:
    """A slot for the names of this kind that the catalog has."""

    def slot(reading: Reading, start: int) -> Iterator[tuple[Any, int]]:
        yield from reading.names.get(kind, {}).get(start, ())

    return slot


_OPEN_SOURCE = phrases(OPEN_SOURCE)
_LICENSE = name("license")


def license_said(reading: Reading, start: int) -> Iterator[tuple[Any, int]]:
    """A slot for licences that the catalog has, and for all that are open source: those that are not proprietary."""
    yield from _OPEN_SOURCE(reading, start)
    yield from _LICENSE(reading, start)


def quoted(reading: Reading, start: int) -> Iterator[tuple[str, int]]:
    """A text in quotation marks."""
    if start < len(reading.tokens) and reading.tokens[start].is_quoted and reading.tokens[start].word:
        yield reading.tokens[start].word, start + 1


_NO_TOPIC = frozenset(
    [
        "a",
        "an",
        "the",
        "of",
        "on",
        "in",
        "for",
        "by",
        "with",
        "to",
        "from",
        "and",
        "or",
        "not",
        "nor",
        "but",
        "that",
        "which",
        "who",
        "is",
        "are",
        "was",
        "were",
        "do",
        "does",
        "did",
        "can",
        "has",
        "have",
        "had",
        "except",
        "excluding",
        "without",
        "than",
        "at",
        "as",
        "i",
        "you",
        "it",
        "they",
        "under",
        "since",
        "before",
        "after",
        "between",
        ",",
        "(",
        ")",
        "only",
        "both",
        "either",
        "neither",
        "all",
        "any",
        "price",
        "cost",
        "rating",
        "ratings",
        "review",
        "reviews",
        "players",
        "$",
        "€",
        "£",
        "%",
        "<",
        ">",
        "=",
        "*",
        "+",
        "#",
        "@",
        "~",
        "^",
        "|",
        "\\",
        "/",
    ]
)
MOST_TOPIC_WORDS = 3


def topic(reading: Reading, start: int) -> Iterator[tuple[tuple[str, ...], int]]:
    """What something is about: a quoted text, or up to three words that mean nothing to the grammar."""
    for text, end in quoted(reading, start):
        yield tuple(text.split()), end
    end = start
    while end < len(reading.words) and end < start + MOST_TOPIC_WORDS:
        if reading.words[end] in _NO_TOPIC or not reading.words[end]:
            break
        end += 1
    yield from ((tuple(reading.words[start:stop]), stop) for stop in range(end, start, -1))


def version(reading: Reading, start: int) -> Iterator[tuple[str, int]]:
    """A version's name: anything with a digit, or a quoted text."""
    yield from quoted(reading, start)
    if start < len(reading.words) and any(letter.isdigit() for letter in reading.words[start]):
        yield reading.words[start], start + 1


SLOTS: dict[str, Slot] = {
    "platform": phrases(PLATFORMS),
    "channel": phrases(CHANNELS),
    "thing": phrases(THINGS),
    "kind": phrases(KINDS),
    "release": phrases(RELEASE),
    "one_release": phrases(ONE_RELEASE),
    "free": phrases(FREE),
    "paid": phrases(PAID),
    "order": phrases(ORDER),
    "last_by": phrases(LAST_BY),
    "newest": phrases(VERSION_ORDER),
    "number": phrases(NUMBERS),
    "runs": phrases(RUNS),
    "made": phrases(MADE),
    "makes": phrases(MAKES),
    "out": phrases(OUT),
    "updated": phrases(UPDATED),
    "debuted": phrases(DEBUTED),
    "last_updated": phrases(LAST_UPDATED),
    "aspect": phrases(ASPECTS),
    "publishers": phrases(PUBLISHERS),
    "here": phrases(HERE),
    "list_head": phrases(LIST_HEADS),
    "polite": phrases({**POLITE, "": False}),
    "neg": auxiliaries,
    "tag": name("tag"),
    "org": name("org"),
    "license": license_said,
    "product": name("product"),
    "quoted": quoted,
    "topic": topic,
    "version": version,
}
