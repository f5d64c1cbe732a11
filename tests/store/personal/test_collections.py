"""Collections and notes about products in the library, and filters and orders of GET /library."""

from typing import Any

import pytest

from countersign.kernel import clock
from countersign.store.personal import collections
from tests.store.library.test_library import walk_pages
from tests.store.personal.test_follows import publish
from tests.store.world import World, slugs


@pytest.fixture
async def ann(world: World) -> str:
    """A token of ann, who owns four products. The product p-3 was granted last."""
    token = await world.person("ann@example.com")
    now = clock.now()
    for number, kind in enumerate(("game", "app", "game", "tool")):
        product = await world.product("north", f"p-{number}", kind=kind, title=f"Title {9 - number}")
        with clock.fixed(clock.later(now, seconds=number - 60)):
            await world.grant("ann@example.com", product)
    return token


async def create(world: World, token: str, name: str) -> str:
    """Create a collection, and return its id."""
    answer = await world.call("POST", "/me/collections", token, json={"name": name})
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


async def library(world: World, token: str, query: str = "") -> list[dict[str, Any]]:
    """Return the first page of the library."""
    answer = await world.call("GET", f"/library?{query}", token)
    assert answer.is_success, answer.text
    return answer.json()


async def test_a_collection_is_made_renamed_filled_and_deleted(world: World, ann: str) -> None:
    collection_id = await create(world, ann, "Later")
    taken_response = await world.call("POST", "/me/collections", ann, json={"name": "Later"})
    other_collection = await create(world, ann, "Best")
    clash = await world.call("PATCH", f"/me/collections/{other_collection}", ann, json={"name": "Later"})
    same_response = await world.call("PATCH", f"/me/collections/{other_collection}", ann, json={"name": "Best"})
    for slug in ("p-1", "p-2", "p-1"):
        assert (await world.call("PUT", f"/me/collections/{collection_id}/items/{slug}", ann)).status_code == 204
    renamed_response = await world.call("PATCH", f"/me/collections/{collection_id}", ann, json={"name": "Soon"})
    listed_response = await world.call("GET", "/me/collections", ann)

    assert (taken_response.status_code, taken_response.json()["code"]) == (clash.status_code, clash.json()["code"])
    assert (taken_response.status_code, taken_response.json()["code"]) == (409, "collection_exists")
    assert same_response.is_success
    assert renamed_response.json() == {"id": collection_id, "name": "Soon", "count": 2}
    assert [(item["name"], item["count"]) for item in listed_response.json()["items"]] == [("Best", 0), ("Soon", 2)]
    assert slugs(await library(world, ann, f"collection={collection_id}")) == ["p-2", "p-1"]
    assert [product["collections"] for product in await library(world, ann)] == [
        [],
        [collection_id],
        [collection_id],
        [],
    ]
    for slug in ("p-1", "p-1"):
        assert (await world.call("DELETE", f"/me/collections/{collection_id}/items/{slug}", ann)).status_code == 204
    assert slugs(await library(world, ann, f"collection={collection_id}")) == ["p-2"]
    assert (await world.call("DELETE", f"/me/collections/{collection_id}", ann)).status_code == 204
    assert (await world.call("DELETE", f"/me/collections/{collection_id}", ann)).status_code == 404
    assert len(await library(world, ann)) == 4


async def test_a_collection_is_seen_only_by_its_owner(world: World, ann: str) -> None:
    bob = await world.person("bob@example.com")
    await world.grant("bob@example.com", await world.product("south", "his"))
    collection_id = await create(world, ann, "Mine")

    answers = [
        await world.call("PATCH", f"/me/collections/{collection_id}", bob, json={"name": "His"}),
        await world.call("DELETE", f"/me/collections/{collection_id}", bob),
        await world.call("PUT", f"/me/collections/{collection_id}/items/his", bob),
        await world.call("DELETE", f"/me/collections/{collection_id}/items/his", bob),
    ]

    assert [answer.status_code for answer in answers] == [404, 404, 404, 404]
    assert (await world.call("GET", "/me/collections", bob)).json() == {"items": []}
    assert await library(world, bob, f"collection={collection_id}") == []
    assert (await world.call("PUT", f"/me/collections/{collection_id}/items/his", ann)).status_code == 404


async def test_collections_are_bounded(world: World, ann: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collections, "MAX_COLLECTIONS", 1)
    monkeypatch.setattr(collections, "MAX_ITEMS", 1)
    collection_id = await create(world, ann, "Only")
    assert (await world.call("PUT", f"/me/collections/{collection_id}/items/p-0", ann)).is_success

    further_response = await world.call("POST", "/me/collections", ann, json={"name": "More"})
    item = await world.call("PUT", f"/me/collections/{collection_id}/items/p-1", ann)

    assert [response.json()["code"] for response in (further_response, item)] == ["limit_reached"] * 2


@pytest.mark.parametrize("bad_name", ["", " ", "x" * 101, "a\u202eb", "a\nb", 5, None])
async def test_a_name_that_cannot_be_shown_is_refused(world: World, ann: str, bad_name: object) -> None:
    answer = await world.call("POST", "/me/collections", ann, json={"name": bad_name})

    assert answer.status_code == 400
    assert answer.json()["errors"][0]["pointer"] == "/name"


async def test_products_are_hidden_noted_and_shown_again(world: World, ann: str) -> None:
    path = "/library/p-1"
    hidden_response = await world.call("PATCH", path, ann, json={"hidden": True, "note": "For the train"})
    kept_response = await world.call("PATCH", path, ann, json={})

    assert (
        hidden_response.json() == kept_response.json() == {"hidden": True, "note": "For the train", "downloaded": None}
    )
    assert slugs(await library(world, ann)) == ["p-3", "p-2", "p-1", "p-0"]
    assert slugs(await library(world, ann, "hidden=0")) == ["p-3", "p-2", "p-0"]
    (item,) = await library(world, ann, "hidden=1")
    assert (item["slug"], item["hidden"], item["note"]) == ("p-1", True, "For the train")
    shown_response = await world.call("PATCH", path, ann, json={"hidden": False, "note": None})
    assert shown_response.json() == {"hidden": False, "note": None, "downloaded": None}
    assert await library(world, ann, "hidden=1") == []


async def test_a_product_that_is_not_owned_has_no_notes(world: World, ann: str) -> None:
    await world.product("north", "other")

    for slug in ("other", "nothing"):
        answer = await world.call("PATCH", f"/library/{slug}", ann, json={"hidden": True})
        assert (answer.status_code, answer.json()["code"]) == (404, "resource_not_found")


async def test_an_update_is_a_newer_release_in_the_same_channel(world: World, ann: str) -> None:
    owner = await world.person("owner@north.example", north="owner")
    await publish(world, owner, "p-0", "1.0")
    await publish(world, owner, "p-1", "1.0")
    at = clock.rfc3339(clock.now())
    for slug in ("p-0", "p-1"):
        download = {"downloaded": {"version": "1.0", "platform": "linux", "at": at}}
        answer = await world.call("PATCH", f"/library/{slug}", ann, json=download)
        assert answer.json()["downloaded"] == download["downloaded"]
    assert await library(world, ann, "update=1") == []
    await publish(world, owner, "p-0", "1.1")
    await publish(world, owner, "p-0", "1.2")
    beta = {"version": "2.0", "channel": "beta", "notes_only": True}
    assert (await world.call("POST", "/products/p-1/releases", owner, json=beta)).is_success
    assert (await world.call("POST", "/products/p-1/releases/2.0/publish", owner)).is_success

    (item,) = await library(world, ann, "update=1")

    assert (item["slug"], item["installed_version"], item["update"]["version"]) == ("p-0", "1.0", "1.2")
    assert (item["update"]["channel"], item["update"]["size"], item["update"]["delta_size"]) == ("stable", None, None)
    by_slug = {product["slug"]: product for product in await library(world, ann)}
    assert (by_slug["p-1"]["installed_version"], by_slug["p-1"]["update"]) == ("1.0", None)
    forgotten_response = await world.call("PATCH", "/library/p-0", ann, json={"downloaded": None})
    assert forgotten_response.json()["downloaded"] is None
    assert await library(world, ann, "update=1") == []


@pytest.mark.parametrize(
    ("members", "pointer"),
    [
        ({"hidden": 1}, "/hidden"),
        ({"note": "x" * 2_001}, "/note"),
        ({"note": " "}, "/note"),
        ({"downloaded": {"version": "9.9"}}, "/downloaded/version"),
        ({"downloaded": {"version": "1.0", "at": "2026-13-01T00:00:00Z"}}, "/downloaded/at"),
        ({"downloaded": {"version": "1.0", "platform": "amiga"}}, "/downloaded/platform"),
        ({"downloaded": {}}, "/downloaded/version"),
        ({"other": 1}, "/other"),
    ],
)
async def test_an_invalid_collection_is_refused(world: World, ann: str, members: dict[str, Any], pointer: str) -> None:
    owner = await world.person("owner@north.example", north="owner")
    await publish(world, owner, "p-0", "1.0")

    answer = await world.call("PATCH", "/library/p-0", ann, json=members)

    assert answer.status_code == 400
    assert answer.json()["errors"][0]["pointer"] == pointer


async def test_the_library_is_filtered_and_ordered(world: World, ann: str) -> None:
    assert slugs(await library(world, ann, "kind=game")) == ["p-2", "p-0"]
    assert slugs(await library(world, ann, "sort=title")) == ["p-3", "p-2", "p-1", "p-0"]
    assert slugs(await library(world, ann, "q=title 8")) == ["p-1"]
    assert slugs(await library(world, ann, "q=titl&kind=tool")) == ["p-3"]
    owner = await world.person("owner@north.example", north="owner")
    await publish(world, owner, "p-1", "1.0")
    assert slugs(await library(world, ann, "sort=-updated_at"))[0] == "p-1"
    for query in ("sort=newest", "update=0", "hidden=yes", "kind=book", "collection=x", "q=..."):
        assert (await world.call("GET", f"/library?{query}", ann)).status_code == 400, query


@pytest.mark.parametrize("query", ["", "sort=title&", "sort=-updated_at&", "kind=game&hidden=0&"])
async def test_pages_of_a_filtered_library_hold_everything_once(world: World, ann: str, query: str) -> None:
    whole_library = slugs(await library(world, ann, query))
    walked_slugs: list[object] = []
    path = f"/library?{query}limit=1"
    while path:
        page = await world.call("GET", path, ann)
        assert page.is_success, page.text
        walked_slugs += slugs(page.json())
        path = page.links["next"]["url"] if "next" in page.links else ""

    assert walked_slugs == whole_library
    assert await walk_pages(world, ann, 3) == slugs(await library(world, ann))


async def test_a_cursor_belongs_to_its_filter_and_owner(world: World, ann: str) -> None:
    bob = await world.person("bob@example.com")
    page = await world.call("GET", "/library?kind=game&limit=1", ann)
    url = page.links["next"]["url"]

    assert (await world.call("GET", url.replace("kind=game", "kind=app"), ann)).status_code == 400
    assert (await world.call("GET", url, bob)).status_code == 400
    bare_response = await world.call("GET", url.replace("&kind=game", ""), ann)
    assert slugs(bare_response.json()) == ["p-0"]
