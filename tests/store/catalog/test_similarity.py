"""GET /products/{id}/related: the most similar products first, the same products every time, and only public ones."""

import pytest

from countersign.store.catalog import similarity
from tests.store.world import World, slugs


async def alike(world: World, slug: str) -> list[object]:
    """Return the slugs of the related products."""
    answer = await world.call("GET", f"/products/{slug}/related")
    assert answer.is_success, answer.text
    return slugs(answer.json()["items"])


async def test_products_with_the_most_common_tags_come_first(world: World) -> None:
    await world.product("north", "one", tags=["space", "trade", "cozy"])
    await world.product("north", "all", tags=["cozy", "space", "trade"])
    await world.product("south", "two", tags=["space", "trade"], kind="app")
    await world.product("south", "kind", tags=["racing"])
    await world.product("south", "tag", tags=["space"])
    await world.product("south", "nothing", tags=["racing"], kind="tool")
    await world.product("north", "draft", tags=["space", "trade", "cozy"], status="draft")

    assert await alike(world, "one") == ["all", "two", "tag", "kind"]
    assert await alike(world, "nothing") == ["kind"]
    assert (await world.call("GET", "/products/draft/related")).status_code == 404


async def test_at_most_eight_are_listed_and_few_are_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(12):
        await world.product("north", f"p-{number:02}", tags=["often"])
    assert await alike(world, "p-05") == [f"p-{number:02}" for number in (0, 1, 2, 3, 4, 6, 7, 8)]

    monkeypatch.setattr(similarity, "MAX_READ", 2)
    await world.product("north", "p-99")

    assert await alike(world, "p-05") == ["p-03", "p-04", "p-06", "p-07"]
