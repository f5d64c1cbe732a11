"""GET /search/suggest: which suggestions a text gets, in which order, and only public ones."""

from typing import Any

import pytest

from countersign.store.catalog import catalog_index, suggest
from tests.store.world import World, slugs


async def suggestions_for(world: World, q: str) -> dict[str, Any]:
    """Return the suggestions for a text."""
    answer = await world.call("GET", "/search/suggest", params={"q": q})
    assert answer.is_success, answer.text
    return answer.json()


async def test_titles_are_found_by_the_beginning_of_their_words(world: World) -> None:
    for slug in ("star-harbour", "stars-of-old", "harbour-town", "mustard"):
        await world.product("north", slug)
    await world.product("north", "star-draft", status="draft")

    assert slugs((await suggestions_for(world, "sta"))["products"]) == ["star-harbour", "stars-of-old"]
    assert slugs((await suggestions_for(world, "star"))["products"]) == ["star-harbour", "stars-of-old"]
    assert slugs((await suggestions_for(world, "harbour"))["products"]) == ["harbour-town", "star-harbour"]
    assert slugs((await suggestions_for(world, "star har"))["products"]) == ["star-harbour"]
    assert slugs((await suggestions_for(world, "Stär"))["products"]) == ["star-harbour", "stars-of-old"]
    assert (await suggestions_for(world, "zzz"))["products"] == []


async def test_a_typing_error_is_tolerated_if_nothing_matches_exactly(world: World) -> None:
    await world.product("north", "star-harbour")

    assert slugs((await suggestions_for(world, "harbuor"))["products"]) == ["star-harbour"]


async def test_the_parts_are_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suggest, "MAX_READ", 8)
    for number in range(12):
        await world.org(f"star-{number}")
        await world.product(f"star-{number}", f"star-{number}", tags=[f"star-{number}"])

    suggestions = await suggestions_for(world, "star")

    assert [len(suggestions[name]) for name in ("products", "publishers", "tags")] == [6, 3, 3]


async def test_publishers_are_found_by_their_name(world: World) -> None:
    for slug, count in (("north-star", 1), ("star-works", 1), ("starlight", 2), ("empty-star", 0)):
        await world.org(slug)
        for number in range(count):
            await world.product(slug, f"{slug}-{number}")

    publishers = (await suggestions_for(world, "sTAR"))["publishers"]

    assert [publisher["slug"] for publisher in publishers] == ["starlight", "star-works", "north-star"]
    assert publishers[0] == {"slug": "starlight", "name": "Starlight", "verified": False, "product_count": 2}
    assert [publisher["slug"] for publisher in (await suggestions_for(world, "North-Star"))["publishers"]] == [
        "north-star"
    ]


@pytest.mark.parametrize("sets", [0, 1, 128])
async def test_tags_are_counted_by_public_products(world: World, sets: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog_index, "MAX_WORDS", sets)
    await world.product("north", "one", tags=["strategy", "story"])
    await world.product("north", "two", tags=["strategy"])
    await world.product("south", "three", tags=["stealth", "strategy"], status="draft")

    tag_counts = (await suggestions_for(world, "st"))["tags"]

    assert tag_counts == [{"value": "strategy", "count": 2}, {"value": "story", "count": 1}]


@pytest.mark.parametrize("wordless_text", ["", "...", "x" * 201])
async def test_a_text_without_a_word_is_refused(world: World, wordless_text: str) -> None:
    answer = await world.call("GET", "/search/suggest", params={"q": wordless_text})

    assert answer.status_code == 400
    assert answer.json()["errors"][0]["parameter"] == "q"


@pytest.mark.parametrize("odd_text", ["%", "_a_", "a%", "'; DROP TABLE product", "²"])
async def test_odd_texts_match_nothing_by_accident(world: World, odd_text: str) -> None:
    await world.product("north", "one", tags=["one"])

    answer = await world.call("GET", "/search/suggest", params={"q": odd_text})

    assert answer.status_code in (200, 400)
    if answer.is_success:
        assert answer.json() == {"products": [], "publishers": [], "tags": []}
