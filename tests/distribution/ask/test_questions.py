"""What people ask is answered with exactly what the catalog holds, and what it does not hold is refused."""

import pytest

from countersign.distribution.context import Store
from countersign.settings import Settings
from tests.distribution.ask import questions, questions_for_products
from tests.distribution.ask import questions_in_other_words as other_words
from tests.distribution.ask.shelf import PUBLIC, asked


@pytest.fixture
def most(settings: Settings, is_full: bool) -> int | None:
    """How many ways to ask are tried: on PostgreSQL one, since the wording is read before a database is asked."""
    return 1 if settings.database_url and not is_full else None


def phrased(text: str, most: int | None = None) -> list[str]:
    """The ways to ask, which bars separate."""
    return text.split("|")[:most]


async def test_questions_for_products_name_exactly_those(shelf: Store, most: int | None) -> None:
    wrong: list[object] = []
    for test, text in (*questions_for_products.PRODUCTS, *other_words.PRODUCTS):
        right = [item for item in PUBLIC if test(item)]
        expected = ("products", tuple((item.slug,) for item in right), len(right))
        for question in phrased(text, most):
            found = await asked(shelf, question)
            unsaid = [item.title for item in right if item.title not in found.text]
            if unsaid or (found.kind, found.rows, found.total) != expected:
                wrong.append((question, found.rows, unsaid, found.query))

    assert not wrong


async def test_questions_for_a_number_tell_it(shelf: Store, most: int | None) -> None:
    wrong: list[object] = []
    for expected, text in (*questions.COUNTS, *other_words.COUNTS):
        for question in phrased(text, most):
            found = await asked(shelf, question)
            if (found.kind, found.total) != ("count", expected) or str(expected) not in found.text.split():
                wrong.append((question, found.kind, found.total, expected, found.text))

    assert not wrong


async def test_questions_for_yes_or_no_begin_with_it(shelf: Store, most: int | None) -> None:
    wrong: list[object] = []
    for expected, asked_for in ((True, [*questions.YES, *other_words.YES]), (False, [*questions.NO, *other_words.NO])):
        for question in asked_for if most is None else asked_for[::3]:
            found = await asked(shelf, question)
            opening = "Yes" if expected else "No"
            if found.value is not expected or not found.text.startswith(opening):
                wrong.append((question, found.kind, found.value, found.text))

    assert not wrong


async def test_questions_for_a_release_name_exactly_that(shelf: Store, most: int | None) -> None:
    wrong: list[object] = []
    for expected, text in (*questions.ONE_RELEASE, *other_words.ONE_RELEASE):
        for question in phrased(text, most):
            found = await asked(shelf, question)
            if found.rows != (expected,) or expected[1] not in found.text:
                wrong.append((question, found.rows, expected, found.text))

    assert not wrong


async def test_questions_for_releases_name_exactly_those(shelf: Store, most: int | None) -> None:
    wrong: list[object] = []
    for expected, text in (*questions.MANY_RELEASES, *other_words.MANY_RELEASES):
        for question in phrased(text, most):
            found = await asked(shelf, question)
            if {*found.rows} != expected or found.kind != "releases":
                wrong.append((question, found.rows, expected, found.text))

    assert not wrong


async def test_questions_for_the_newest_name_them_in_order(shelf: Store, most: int | None) -> None:
    wrong: list[object] = []
    for expected, text in questions.FIRST_PRODUCTS:
        for question in phrased(text, most):
            found = await asked(shelf, question)
            if [row[0] for row in found.rows] != expected:
                wrong.append((question, found.rows, expected, found.text))

    assert not wrong


async def test_questions_about_a_product_tell_what_the_catalog_says(shelf: Store, most: int | None) -> None:
    wrong: list[object] = []
    for expected, text in (*questions.TEXTS, *other_words.TEXTS):
        for question in phrased(text, most):
            found = await asked(shelf, question)
            if found.kind != "text" or expected not in found.text:
                wrong.append((question, found.kind, found.text, expected))

    assert not wrong


async def test_what_the_catalog_does_not_tell_is_refused_without_a_guess(shelf: Store, most: int | None) -> None:
    wrong: list[object] = []
    every = (*questions.REFUSED, *other_words.REFUSED)
    for question in every if most is None else every[::3]:
        found = await asked(shelf, question)
        if found.kind != "refused" or found.rows or found.sources or found.confidence or found.query:
            wrong.append((question, found.kind, found.text))

    assert not wrong


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("which releases were yanked", "withdrawn releases are never looked at"),
        ("how much does the cheapest tool cost", "prices are not in the catalog"),
        ("which products cost less than 10 euros", "prices are not in the catalog"),
        ("Welche Spiele gibt es?", "I read questions in English alone"),
    ],
)
async def test_a_refusal_says_what_the_catalog_never_holds(shelf: Store, question: str, told: str) -> None:
    found = await asked(shelf, question)

    assert found.kind == "refused"
    assert told in found.text


def test_there_are_enough_questions() -> None:
    lists = (
        questions_for_products.PRODUCTS,
        questions.COUNTS,
        questions.ONE_RELEASE,
        questions.MANY_RELEASES,
        questions.TEXTS,
    )
    phrasings = sum(len(phrased(text)) for each in lists for _, text in each)

    assert phrasings + len(questions.YES) + len(questions.NO) + len(questions.REFUSED) >= 150
