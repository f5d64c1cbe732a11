"""Products are found by titles with typing errors, for any number of products that share words of the title."""

import pytest

from countersign.store.catalog import names
from countersign.store.context import Store
from tests.store.ask.shelf import Item, Version, ask_shelf, stock_store

TITLE = "Amber Boats Maps 029550"


@pytest.fixture
async def boats(shelf: Store) -> Store:
    """The shelf with one additional product. Its title ends with two tags of other products and a number."""
    product = Item(
        *("amber-boats-maps-029550", TITLE, "boat-works", "tool", ("linux",)),
        versions=(Version("1.0.0", "stable", "2026-01-01"),),
    )
    return await stock_store(shelf, [product], [("boat-works", "Boat Works")])


@pytest.mark.parametrize("question", ["Latest version of Abmer Boats Maps 029550?", "Is Abmer Boats Maps 029550 free?"])
async def test_a_mistyped_title_contains_the_tags_and_numbers_beside_the_unknown_word(
    boats: Store, question: str
) -> None:
    answer = await ask_shelf(boats, question)

    assert [source.product for source in answer.sources] == ["amber-boats-maps-029550"]


@pytest.mark.parametrize("max_counted", [0, names.MAX_COUNTED])
@pytest.mark.parametrize(
    ("text", "slugs"),
    [
        ("Slow Rivres", ["slow-rivers"]),
        ("Slwo Rivers: Maps", ["slow-rivers-maps"]),
        ("Embre and Ash", ["ember-and-ash"]),
        ("Ember and Asj", []),
        ("Wohse Keys", ["whose-keys"]),
        ("Slow Keys", []),
        ("Hiden Garden", []),
    ],
)
async def test_the_same_products_are_found_when_all_words_of_a_title_are_frequent(
    shelf: Store, monkeypatch: pytest.MonkeyPatch, max_counted: int, text: str, slugs: list[str]
) -> None:
    monkeypatch.setattr(names, "MAX_COUNTED", max_counted)

    assert [slug for slug, _ in await names.products_like(shelf.database, text)] == slugs


async def test_the_titles_that_are_looked_up_for_frequent_words_are_limited(
    shelf: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(names, "MAX_COUNTED", 0)
    monkeypatch.setattr(names, "MAX_TITLE_KEYS", 1)

    assert await names.products_like(shelf.database, "Slow Rivers Maps")
