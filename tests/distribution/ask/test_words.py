"""Phrases of time, tokens, keys of names, and how far two spellings are apart."""

import random
from functools import cache

import pytest

from countersign.distribution.ask import dates
from countersign.distribution.ask.fuzzy import distance, is_like
from countersign.distribution.ask.templates import Reading
from countersign.distribution.ask.tokens import MAX_WORDS, TooLong, tokens
from countersign.distribution.catalog.public import key
from countersign.kernel import clock
from tests.distribution.ask.shelf import at

NOW = at("2026-11-20")  # a Friday


def told(phrase: str) -> tuple[str | None, str | None]:
    """The days that the longest reading of the phrase begins and ends with."""
    found = tokens(phrase)
    (since, until), end = next(iter(dates.when(Reading(found, {}, {}, NOW), 0)))
    assert end == len(found), phrase
    return since and clock.rfc3339(since)[:10], until and clock.rfc3339(until)[:10]


@pytest.mark.parametrize(
    ("phrase", "since", "until"),
    [
        ("in March 2026", "2026-03-01", "2026-04-01"),
        ("in December", "2025-12-01", "2026-01-01"),
        ("since march", "2026-03-01", None),
        ("after 1 March 2026", "2026-03-02", None),
        ("before 2026", None, "2026-01-01"),
        ("until June 3rd, 2026", None, "2026-06-04"),
        ("between 1 May and June 3, 2026", "2026-05-01", "2026-06-04"),
        ("from 2026-01-01 to 2026-02-01", "2026-01-01", "2026-02-02"),
        ("after 1 June 2026 but before 1 October 2026", "2026-06-02", "2026-10-01"),
        ("in the last 30 days", "2026-10-21", None),
        ("in the past year", "2025-11-20", None),
        ("last month", "2026-10-01", "2026-11-01"),
        ("this week", "2026-11-16", "2026-11-23"),
        ("last week", "2026-11-09", "2026-11-16"),
        ("in Q1 2024", "2024-01-01", "2024-04-01"),
        ("in February 2024", "2024-02-01", "2024-03-01"),
        ("on 29 February 2024", "2024-02-29", "2024-03-01"),
        ("yesterday", "2026-11-19", "2026-11-20"),
        ("more than 3 months ago", None, "2026-08-20"),
        ("two weeks ago", "2026-11-06", "2026-11-07"),
    ],
)
def test_a_phrase_of_time_is_these_days(phrase: str, since: str | None, until: str | None) -> None:
    assert told(phrase) == (since, until)


@pytest.mark.parametrize("phrase", ["on 31 February 2026", "in month 13", "in 2026-13", "on 2026-02-30", "soon", ""])
def test_what_is_no_day_is_no_time(phrase: str) -> None:
    found = tokens(phrase)

    assert all(end < len(found) for _, end in dates.when(Reading(found, {}, {}, NOW), 0))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("What's new in Quill's 1.0.0-beta.2?", ["what", "is", "new", "in", "quill", "'s", "1.0.0-beta.2"]),
        ("Don't they run?", ["do", "not", "they", "run"]),
        ('the "Café Noir", please', ["the", "Café Noir", ",", "please"]),
        ("Ember & Ash: $15", ["ember", "and", "ash", "$", "15"]),
    ],
)
def test_a_question_is_these_words(text: str, words: list[str]) -> None:
    assert [token.word for token in tokens(text)] == words


def test_a_question_has_an_end() -> None:
    with pytest.raises(TooLong):
        tokens("x " * (MAX_WORDS + 1))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ember & Ash", "ember and ash"),
        ("Clockmaker's Debt", "clockmakers debt"),
        ("Ærø", "aero"),
        ("Über See", "uber-see"),
    ],
)
def test_names_that_are_said_alike_have_one_key(one: str, other: str) -> None:
    assert key(one) == key(other)


@cache
def far(one: str, other: str) -> int:
    """The distance by its definition."""
    if not one or not other:
        return len(one) + len(other)
    best = min(far(one[1:], other) + 1, far(one, other[1:]) + 1, far(one[1:], other[1:]) + (one[0] != other[0]))
    if one[:2] == other[1::-1] and len(one) > 1:
        best = min(best, far(one[2:], other[2:]) + 1)
    return best


def test_the_distance_is_the_fewest_typing_errors() -> None:
    chance = random.Random(2)
    for _ in range(500):
        one, other = ("".join(chance.choices("abc", k=chance.randint(0, 6))) for _ in "ab")

        assert distance(one, other, 2) == min(far(one, other), 3), (one, other)


@pytest.mark.parametrize(
    ("asked", "title", "alike"),
    [
        ("Blakbird Studio", "Blackbird Studio", True),
        ("Harbour of Lights", "Harbour Lights", True),
        ("Quill", "Quilt Pro", False),
        ("Rail Yard 2", "Rail Yard 3", False),
        ("Kettle 2", "Kettle", False),
        ("Tea", "Pea", False),
    ],
)
def test_only_a_typing_error_is_forgiven(asked: str, title: str, alike: bool) -> None:
    assert is_like(asked, title) is alike
