"""A person follows products and organisations, and others do not see it. /me/owned reports ownership and follows."""

import pytest

from countersign.store.personal import follows
from tests.store.world import World


async def publish(world: World, token: str, slug: str, version: str, notes: str = "New.") -> None:
    """Publish a release without files."""
    release = {"version": version, "channel": "stable", "notes": notes, "notes_only": True}
    assert (await world.call("POST", f"/products/{slug}/releases", token, json=release)).is_success
    assert (await world.call("POST", f"/products/{slug}/releases/{version}/publish", token)).is_success


async def test_products_and_organisations_are_followed_and_unfollowed(world: World) -> None:
    ann, bob = await world.person("ann@example.com"), await world.person("bob@example.com")
    await world.product("north", "one")

    first_response = await world.call("PUT", "/me/follows/product/one", ann)
    second_response = await world.call("PUT", "/me/follows/product/one", ann)
    org_response = await world.call("PUT", "/me/follows/org/north", ann)
    listed_response = await world.call("GET", "/me/follows", ann)

    assert first_response.json() == second_response.json()
    assert first_response.json()["target"] == {"type": "product", "slug": "one", "name": "One"}
    assert org_response.json()["target"] == {"type": "org", "slug": "north", "name": "North"}
    assert listed_response.headers["cache-control"] == "private, no-store"
    listed_follows = [
        (item["target"]["type"], item["unseen"], item["product"] is None) for item in listed_response.json()["items"]
    ]
    assert listed_follows == [("org", 0, True), ("product", 0, False)]
    assert listed_response.json()["items"][1]["product"]["slug"] == "one"
    assert (await world.call("GET", "/me/follows", bob)).json() == {"items": []}
    for path in ("product/one", "org/north", "product/one"):
        assert (await world.call("DELETE", f"/me/follows/{path}", ann)).status_code == 204
    assert (await world.call("GET", "/me/follows", ann)).json() == {"items": []}


async def test_releases_since_the_last_look_are_counted(world: World) -> None:
    owner = await world.person("owner@north.example", north="owner")
    ann = await world.person("ann@example.com")
    for slug in ("one", "two"):
        await world.product("north", slug)
    await publish(world, owner, "one", "0.9")
    for path in ("product/one", "org/north"):
        assert (await world.call("PUT", f"/me/follows/{path}", ann)).is_success
    await publish(world, owner, "one", "1.0")
    await publish(world, owner, "two", "1.0")

    async def unseen() -> dict[str, int]:
        items = (await world.call("GET", "/me/follows", ann)).json()["items"]
        return {item["target"]["slug"]: item["unseen"] for item in items}

    assert await unseen() == {"one": 1, "north": 2}
    assert (await world.call("POST", "/me/notifications/seen", ann, json={})).status_code == 204
    assert await unseen() == {"one": 0, "north": 0}


async def test_a_hidden_product_can_only_be_unfollowed_by_its_followers(world: World) -> None:
    owner = await world.person("owner@north.example", north="owner")
    ann = await world.person("ann@example.com")
    await world.product("north", "draft", status="draft")
    await world.product("north", "one")
    assert (await world.call("PUT", "/me/follows/product/one", ann)).is_success
    changed_product = {"slug": "one", "title": "One", "kind": "app", "platforms": ["web"], "status": "draft"}
    assert (await world.call("PUT", "/products/one", owner, json=changed_product)).is_success

    for method in ("PUT", "DELETE"):
        hidden_response = await world.call(method, "/me/follows/product/draft", ann)
        missing_response = await world.call(method, "/me/follows/product/nothing", ann)
        assert (hidden_response.status_code, missing_response.status_code) == (404, 404)
        assert hidden_response.json()["detail"] == missing_response.json()["detail"]
        assert (await world.call(method, "/me/follows/org/south", ann)).status_code == 404
    assert (await world.call("GET", "/me/follows", ann)).json() == {"items": []}
    # A product that was followed before can be unfollowed once.
    assert (await world.call("DELETE", "/me/follows/product/one", ann)).status_code == 204
    assert (await world.call("DELETE", "/me/follows/product/one", ann)).status_code == 404


async def test_the_number_of_follows_of_a_caller_is_limited(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follows, "MAX_FOLLOWS", 2)
    ann = await world.person("ann@example.com")
    for number in range(3):
        await world.product("north", f"p-{number}")
    for number in range(2):
        assert (await world.call("PUT", f"/me/follows/product/p-{number}", ann)).is_success

    refused_response = await world.call("PUT", "/me/follows/product/p-2", ann)

    assert (refused_response.status_code, refused_response.json()["code"]) == (409, "limit_reached")
    assert (await world.call("PUT", "/me/follows/product/p-1", ann)).is_success


async def test_ownership_and_follows_are_reported_for_the_given_ids_only(world: World) -> None:
    ann, bob = await world.person("ann@example.com"), await world.person("bob@example.com")
    product_ids = [await world.product("north", f"p-{number}") for number in range(4)]
    await world.grant("ann@example.com", product_ids[0], product_ids[1])
    for number in (1, 2):
        assert (await world.call("PUT", f"/me/follows/product/p-{number}", ann)).is_success

    response = await world.call(
        "GET", f"/me/owned?ids={product_ids[3]},{product_ids[1].upper()},{product_ids[2]},{product_ids[1]}", ann
    )

    assert response.json() == {"owned": [product_ids[1]], "followed": [product_ids[1], product_ids[2]]}
    assert response.headers["cache-control"] == "private, no-store"
    assert (await world.call("GET", f"/me/owned?ids={','.join(product_ids)}", bob)).json() == {
        "owned": [],
        "followed": [],
    }


@pytest.mark.parametrize("ids", ["", "one", "a" * 36 + ",", ",".join(["0" * 36] * 101), "0" * 36 + "\n"])
async def test_a_list_of_ids_that_is_invalid_or_longer_than_a_hundred_is_refused(world: World, ids: str) -> None:
    ann = await world.person("ann@example.com")

    refused_response = await world.call("GET", "/me/owned", ann, params={"ids": ids})
    full_response = await world.call("GET", f"/me/owned?ids={','.join(['0' * 36] * 100)}", ann)

    assert refused_response.status_code == 400
    assert refused_response.json()["errors"][0]["parameter"] == "ids"
    assert full_response.json() == {"owned": [], "followed": []}


async def test_a_client_follows_for_its_organisation(world: World) -> None:
    await world.product("north", "one")
    client, other_client = (
        await world.client_token("south", "read:library"),
        await world.client_token("south", "admin:org"),
    )
    client_without_scope = await world.client_token("south", "read:products")

    assert (await world.call("PUT", "/me/follows/product/one", client)).is_success
    assert len((await world.call("GET", "/me/follows", other_client)).json()["items"]) == 1
    assert (await world.call("GET", "/me/follows", client_without_scope)).status_code == 403
    assert (await world.call("GET", "/me/follows")).status_code == 401
