"""GET /library: the products of the caller, the newest first, in pages, and none of other callers."""

from typing import Any

import pytest

from countersign.kernel import clock
from tests.store.world import World, slugs


async def walk_pages(world: World, token: str, limit: int) -> list[object]:
    """Return the slugs of all pages by following their links."""
    walked_slugs: list[object] = []
    path = f"/library?limit={limit}"
    while path:
        page = await world.call("GET", path, token)
        assert page.is_success, page.text
        assert isinstance(page.json(), list)
        assert len(page.json()) <= limit
        walked_slugs += slugs(page.json())
        path = page.links["next"]["url"] if "next" in page.links else ""
    return walked_slugs


@pytest.fixture
async def owned_slugs(world: World) -> list[str]:
    """Return the slugs of ann's products, the newest entitlement first. Two were granted at the same time."""
    await world.person("ann@example.com")
    now = clock.now()
    product_slugs: list[str] = []
    for number in range(7):
        # Ids contain the time. Of two that were granted together, the later one comes first.
        with clock.fixed(clock.later(now, seconds=number - 200)):
            org, status = ("north", "draft") if number < 3 else ("south", "public")
            product_slugs.append(await world.product(org, f"p-{number}", status=status))
    for number, product in enumerate(product_slugs):
        with clock.fixed(clock.later(now, seconds=number // 2 - 60)):
            await world.grant("ann@example.com", product)
    return [f"p-{number}" for number in (6, 5, 4, 3, 2, 1, 0)]


async def test_the_library_is_a_bare_array_of_products(world: World, owned_slugs: list[str]) -> None:
    token = await world.person_token("ann@example.com", "read:library")

    answer = await world.call("GET", "/library", token)

    assert slugs(answer.json()) == owned_slugs
    assert {"id", "slug", "title", "kind", "platforms"} <= set(answer.json()[0])
    assert {"status", "media", "tags"} & set(answer.json()[0]) == set()
    assert answer.headers["cache-control"] == "private, no-cache"
    assert "link" not in answer.headers


async def test_the_library_shows_the_date_of_each_product_and_its_newest_release(world: World) -> None:
    token = await world.person("ann@example.com")
    owner = await world.person("owner@north.example", north="owner")
    product = await world.product("north", "one")
    granted_at = clock.later(clock.now(), seconds=-60)
    with clock.fixed(granted_at):
        await world.grant("ann@example.com", product)
    for version, channel in (("1.0.0", "stable"), ("1.1.0", "stable"), ("2.0.0", "beta"), ("3.0.0", "alpha")):
        drafted = {"version": version, "channel": channel, "notes": "What is new", "notes_only": True}
        assert (await world.call("POST", "/products/one/releases", owner, json=drafted)).is_success
        if channel != "alpha":
            assert (await world.call("POST", f"/products/one/releases/{version}/publish", owner)).is_success

    (item,) = (await world.call("GET", "/library", token)).json()

    assert item["granted_at"] == clock.rfc3339(granted_at)
    assert [(channel["channel"], channel["version"]) for channel in item["channels"]] == [
        ("beta", "2.0.0"),
        ("stable", "1.1.0"),
    ]
    assert all(set(channel) == {"channel", "version", "published_at"} for channel in item["channels"])


@pytest.mark.parametrize("limit", [1, 2, 3, 6, 7, 100])
async def test_pages_hold_everything_once_in_order(world: World, owned_slugs: list[str], limit: int) -> None:
    token = await world.person_token("ann@example.com", "read:library")

    assert await walk_pages(world, token, limit) == owned_slugs


async def test_fifty_products_are_shown_unless_a_limit_is_requested(world: World) -> None:
    token = await world.person("ann@example.com")
    products = [await world.product("north", f"p-{number}") for number in range(52)]
    await world.grant("ann@example.com", *products)

    first_response = await world.call("GET", "/library", token)
    second_response = await world.call("GET", first_response.links["next"]["url"], token)

    assert (len(first_response.json()), len(second_response.json())) == (50, 2)
    assert 'rel="next"' in first_response.headers["link"]


async def test_paging_lists_every_unchanged_product_once_while_others_are_added_and_removed(
    world: World, owned_slugs: list[str]
) -> None:
    token = await world.person_token("ann@example.com", "read:library")
    first_response = await world.call("GET", "/library?limit=2", token)
    await world.grant("ann@example.com", await world.product("south", "late"))
    async with world.store.database.transaction() as transaction:
        revoke_entitlement = (
            "UPDATE entitlement SET revoked_at = 1 WHERE product_id = (SELECT id FROM product WHERE slug = $1)"
        )
        assert await transaction.run(revoke_entitlement, "p-5") == 1
        assert await transaction.run(revoke_entitlement, "p-3") == 1

    walked_slugs = [slug for slug in slugs(first_response.json()) if slug]
    path = first_response.links["next"]["url"]
    while path:
        page = await world.call("GET", path, token)
        walked_slugs += slugs(page.json())
        path = page.links["next"]["url"] if "next" in page.links else ""

    assert [slug for slug in walked_slugs if slug not in ("p-5", "p-3")] == ["p-6", "p-4", "p-2", "p-1", "p-0"]
    assert "p-5" not in await walk_pages(world, token, 100)


async def test_a_library_is_seen_only_by_its_owner(world: World, owned_slugs: list[str]) -> None:
    bob = await world.person("bob@example.com", north="owner")
    ann = await world.person_token("ann@example.com", "read:library")
    following = (await world.call("GET", "/library?limit=2", ann)).links["next"]["url"]

    foreign_response = await world.call("GET", following, bob)

    assert (await world.call("GET", "/library", bob)).json() == []
    assert (foreign_response.status_code, foreign_response.json()["code"]) == (400, "invalid_cursor")


async def test_an_organisation_and_its_owner_have_libraries_of_their_own(world: World) -> None:
    await world.product("south", "one")
    issuer = await world.person("owner@south.example", south="owner")
    body = {"kind": "license", "products": ["one"], "count": 1}
    (code,) = (await world.call("POST", "/codes", issuer, json=body)).json()["codes"]
    client, person = await world.client_token("north"), await world.person("owner@north.example", north="owner")

    assert (await world.call("POST", "/redeem", client, json={"code": code})).is_success

    assert slugs((await world.call("GET", "/library", client)).json()) == ["one"]
    assert (await world.call("GET", "/library", person)).json() == []


async def test_owned_products_keep_their_position_when_they_are_renamed_or_archived(
    world: World, owned_slugs: list[str]
) -> None:
    token = await world.person_token("ann@example.com", "read:library")
    owner = await world.person("owner@south.example", south="owner")
    body: dict[str, Any] = {"slug": "renamed", "title": "Z", "kind": "app", "platforms": ["web"], "status": "draft"}

    assert (await world.call("PUT", "/products/p-4", owner, json=body)).is_success

    assert await walk_pages(world, token, 3) == ["renamed" if slug == "p-4" else slug for slug in owned_slugs]
