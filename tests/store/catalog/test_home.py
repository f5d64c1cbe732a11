"""GET /store/home: its shelves are equal to the lists that they name, follow changes, and are the same for every
caller."""

from typing import Any

from tests.store.catalog.test_facets import SET_DOWNLOADS
from tests.store.catalog.test_lists import create_products
from tests.store.world import World, slugs


async def home(world: World, token: str | None = None) -> dict[str, Any]:
    """Return the front page."""
    answer = await world.call("GET", "/store/home", token)
    assert answer.is_success, answer.text
    return answer.json()


async def test_each_shelf_is_the_beginning_of_its_list(world: World) -> None:
    products = await create_products(world, 60)
    free = {"slug": "free", "title": "Free", "kind": "app", "platforms": ["web"], "access": "free"}
    await world.product("north", **free)
    async with world.store.database.transaction() as transaction:
        for number, product in enumerate(products):
            await transaction.run(SET_DOWNLOADS, product["id"], number * 7 % 13)

    home_page = await home(world)

    assert [row["id"] for row in home_page["shelves"]] == [
        "new", "free", "updated", "downloaded", "games", "apps", "tools"
    ]  # fmt: skip
    for shelf in home_page["shelves"]:
        listed_response = await world.call("GET", f"/products?{shelf['query']}&limit=12")
        assert shelf["items"] == listed_response.json()["items"]
        assert 1 <= len(shelf["items"]) <= 12
    downloads = {product["id"]: number * 7 % 13 for number, product in enumerate(products)}
    for shelf in home_page["shelves"]:
        expected_downloads = (
            [downloads.get(item["id"], 0) for item in shelf["items"]] if "downloads" in shelf["query"] else None
        )
        assert shelf.get("downloads_7d") == expected_downloads, shelf["id"]
    most_downloaded = await world.call("GET", "/products?sort=-downloads_7d&limit=5")
    assert home_page["hero"] == most_downloaded.json()["items"]


async def test_the_front_page_of_an_empty_store_is_empty(world: World) -> None:
    await world.product("north", "draft", status="draft")

    assert await home(world) == {"hero": [], "shelves": []}


async def test_the_front_page_is_the_same_for_every_caller_and_follows_changes(world: World) -> None:
    token = await world.person("p@north.example", north="publisher")
    await world.product("north", "one")
    first_response = await world.call("GET", "/store/home")
    own_response = await world.call("GET", "/store/home", token)
    second_response = await world.call("GET", "/store/home", headers={"If-None-Match": first_response.headers["etag"]})

    await world.product("north", "two", status="draft")
    await world.product("north", "three")
    change = {"slug": "one", "title": "One", "kind": "app", "platforms": ["web"], "status": "draft"}
    assert (await world.call("PUT", "/products/one", token, json=change)).is_success

    assert (first_response.status_code, second_response.status_code) == (200, 304)
    assert own_response.content == first_response.content
    assert own_response.headers["cache-control"] == "private, no-cache"
    assert slugs((await home(world))["hero"]) == slugs((await home(world, token))["hero"]) == ["three"]


async def test_a_product_with_a_cover_of_its_own_is_shown_first(world: World) -> None:
    for number in range(8):
        await world.product("north", f"p-{number}")
    statement = "UPDATE catalog_entry SET card = $2 WHERE slug = $1"
    card = b'{"id":"x","slug":"p-3","title":"P","kind":"game","platforms":[],"cover":{"placeholder":false}}'
    async with world.store.database.transaction() as transaction:
        await transaction.run(statement, "p-3", card)
    await world.product("north", "last")

    assert slugs((await home(world))["hero"])[0] == "p-3"
