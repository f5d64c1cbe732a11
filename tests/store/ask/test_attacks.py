"""Questions and filters that failed earlier, caused unlimited reads, or were answered wrongly."""

import pytest

from countersign.kernel.database.port import Row, Value
from countersign.store.ask import answers
from countersign.store.catalog import names
from countersign.store.catalog.filter import MAX_TERMS, Filter, Values, Where, error_in
from countersign.store.catalog.projection import lookup_key
from countersign.store.context import Store
from tests.store.ask.shelf import PUBLIC, ask_shelf


@pytest.mark.parametrize(
    "question",
    [
        "games released until 9999-12-31",
        "games before 0500-01-01",
        "releases from 29 Feb 2024 to March 2023",
        "፩ games",
        "tag=cozy puzzle, strategy; kind=game",
        "released=2026-10-21T10:00:00Z; kind=game",
        "product=quill|hammer; kind=game; order=newest; answer=exists",
        "Which games were released on 31 February 2026?",
        "games org=",
        "product:",
    ],
)
async def test_odd_values_are_answered_or_refused(shelf: Store, question: str) -> None:
    answer = await ask_shelf(shelf, question)

    assert answer.status in ("answered", "partial", "refused")
    assert answer.filter is None or error_in(answer.filter) is None


@pytest.mark.parametrize("which", ["any", "all", "none"])
async def test_versions_are_compared_with_every_combinator(shelf: Store, which: str) -> None:
    everything = Filter(find="releases", limit=100)
    newer = Filter(find="releases", where=Where(version=Values(**{which: (">1.0.0",)})), limit=100)
    exact = Filter(find="releases", where=Where(version=Values(**{which: ("1.0.0",)})), limit=100)
    counts = [(await answers.of_filter(shelf, each)).total for each in (everything, newer, exact)]

    assert 0 < counts[1] < counts[0]
    assert 0 < counts[2] < counts[0]


async def test_fields_are_those_of_the_products_that_the_filter_finds(shelf: Store) -> None:
    no_products = await answers.of_filter(shelf, Filter(answer="fields", fields=("license",), since="2030-01-01"))
    two_products = await answers.of_filter(shelf, Filter(answer="fields", fields=("license",), limit=2))

    assert (no_products.total, two_products.total) == (0, 2)


def test_a_filter_searches_a_bounded_number_of_words() -> None:
    text = " ".join("abcdefghijklmnopqrstuvwxyz")
    question_filter = Filter(where=Where(text=Values(any=(text,))))

    assert error_in(question_filter) == f"title and text must have at most {MAX_TERMS} words together"


async def test_a_stranger_with_the_same_title_is_named_as_another_that_fits(shelf: Store) -> None:
    item, stranger = PUBLIC[0], PUBLIC[-1]
    async with shelf.database.transaction() as transaction:
        await transaction.run(
            "UPDATE catalog_public SET title = $2, name_key = $3 WHERE slug = $1",
            stranger.slug,
            item.title.upper(),
            lookup_key(item.title),
        )

    answer = await ask_shelf(shelf, f"What is {item.title}?")

    assert [source.product for source in answer.sources] == [item.slug]
    assert stranger.slug in answer.candidates


async def test_words_of_drafts_alone_correct_no_typing_error(shelf: Store) -> None:
    async with shelf.database.transaction() as transaction:
        await transaction.run("INSERT INTO catalog_typo (shortened, term) VALUES ('quil', 'quilz')")

    spelt = (await names.spellings(shelf.database, ["quilx"]))["quilx"]

    assert "quilz" not in spelt
    assert "quill" in spelt


async def test_a_license_that_is_named_repeatedly_is_looked_up_once(
    shelf: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_for: list[str] = []
    scan = shelf.database.scan

    async def scan_counted(text: str, *values: Value) -> list[Row]:
        asked_for.append(text)
        return await scan(text, *values)

    monkeypatch.setattr(shelf.database, "scan", scan_counted)

    await ask_shelf(shelf, "gpl " * 400)

    assert 0 < len(asked_for) < 40
