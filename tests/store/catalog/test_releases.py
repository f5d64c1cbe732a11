"""The list of releases: its order, who sees which releases, and conditional requests for it."""

import itertools
import json
import random

import pytest

from countersign.kernel import clock, ids
from countersign.store.catalog.versions import sort_key
from tests.store.world import World, slugs

INSERT = """
    INSERT INTO release (id, product_id, version, sort_key, channel, status, created_at, published_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
"""
# Each version is lower than the next by SemVer or, where SemVer does not define the order, by the rules of the package
# ecosystem.
ASCENDING = (
    "0.9.0",
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-alpha.beta",
    "1.0.0-beta",
    "1.0.0-beta.2",
    "1.0.0-beta.11",
    "1.0.0-rc.1",
    "1.0.0",
    "1.0.0.post1",
    "1.0.2",
    "1.0.10",
    "1.2",
    "1.10.0",
    "2.0a1",
    "2.0b1",
    "2.0rc1",
    "2.0",
    "10.0.0",
    "1!0.1",
)


async def add_releases(
    world: World, product: str, versions: list[str], status: str = "published", step_us: int = 0
) -> None:
    """Insert releases directly into the table, published at intervals of `step_us`."""
    now = clock.now()
    published_times = [None if status == "draft" else now + step_us * number for number in range(len(versions))]
    rows = [
        (ids.new_uuid(), product, version, sort_key(version), "stable", status, now, at)
        for version, at in zip(versions, published_times, strict=True)
    ]
    async with world.store.database.transaction() as transaction:
        await transaction.run_many(INSERT, rows)
    await world.refresh_entry(product)


async def list_versions(
    world: World, token: str | None = None, collection: str = "releases", **parameters: str
) -> list[str]:
    """Return the versions in the whole list. If the response is a page, follow the links to the next pages."""
    versions: list[str] = []
    path = f"/products/one/{collection}"
    page = await world.call("GET", path, token, params=parameters)
    while True:
        assert page.is_success, page.text
        versions += [release["version"] for release in page.json()]
        if "next" not in page.links:
            return versions
        page = await world.call("GET", page.links["next"]["url"], token)


async def test_releases_published_at_one_moment_are_ordered_by_version(world: World) -> None:
    product = await world.product("north", "one")
    shuffled = random.Random(3).sample(ASCENDING, len(ASCENDING))
    await add_releases(world, product, shuffled)

    whole_list = await list_versions(world)

    assert whole_list == list(reversed(ASCENDING))
    for limit in ("1", "3", "7", "100"):
        assert await list_versions(world, limit=limit) == whole_list
        assert await list_versions(world, limit=limit, channel="stable") == whole_list
    assert await list_versions(world, channel="beta") == []


async def test_releases_are_sorted_by_publication_time_before_version(world: World) -> None:
    product = await world.product("north", "one")
    await add_releases(world, product, list(reversed(ASCENDING)), step_us=1)

    assert await list_versions(world) == list(ASCENDING)


async def test_a_long_list_without_a_limit_is_complete_and_has_an_etag(world: World) -> None:
    product = await world.product("north", "one")
    versions = [f"1.{number}.0" for number in range(1203)]
    await add_releases(world, product, versions)

    answer = await world.call("GET", "/products/one/releases")

    assert [release["version"] for release in answer.json()] == list(reversed(versions))
    tag = answer.headers["etag"]
    assert (await world.call("GET", "/products/one/releases", headers={"If-None-Match": tag})).status_code == 304
    await add_releases(world, product, ["9.9.9"])
    changed_response = await world.call("GET", "/products/one/releases", headers={"If-None-Match": tag})
    assert (changed_response.status_code, len(changed_response.json())) == (200, 1204)
    assert changed_response.headers["etag"] != tag


async def test_paging_lists_every_release_once_while_others_are_published(world: World) -> None:
    product = await world.product("north", "one")
    versions = [f"1.{number}.0" for number in range(20)]
    await add_releases(world, product, versions, step_us=1)
    versions_found: list[str] = []
    path = "/products/one/releases?limit=3"
    for number in itertools.count():
        page = await world.call("GET", path)
        versions_found += [release["version"] for release in page.json()]
        if "next" not in page.links:
            break
        path = page.links["next"]["url"]
        await add_releases(world, product, [f"2.{number}.0"])

    assert [version for version in versions_found if version in versions] == list(reversed(versions))


async def test_members_list_drafts_separately_and_only_members_and_customers_list_yanked_releases(world: World) -> None:
    product = await world.product("north", "one")
    await add_releases(world, product, ["1.0.0"])
    await add_releases(world, product, ["2.0.0", "2.1.0", "2.2.0"], "draft")
    await add_releases(world, product, ["3.0.0"], "yanked")
    entitled_token, stranger_token = await world.person("a@example.com"), await world.person("b@example.com")
    await world.grant("a@example.com", product)
    viewer_token = await world.person("viewer@north.example", north="viewer")
    foreign_token = await world.person("owner@south.example", south="owner")

    assert (
        await list_versions(world)
        == await list_versions(world, stranger_token)
        == await list_versions(world, foreign_token)
        == ["1.0.0"]
    )
    assert await list_versions(world, entitled_token) == ["3.0.0", "1.0.0"]
    assert await list_versions(world, viewer_token) == ["3.0.0", "1.0.0"]
    for limit in ({}, {"limit": "1"}, {"limit": "2", "channel": "stable"}):
        assert await list_versions(world, viewer_token, "drafts", **limit) == ["2.2.0", "2.1.0", "2.0.0"]
    assert await list_versions(world, viewer_token, "drafts", channel="beta") == []
    for caller in (entitled_token, stranger_token, foreign_token):
        assert (await world.call("GET", "/products/one/drafts", caller)).json()["code"] == "insufficient_scope"
    next_page_url = (await world.call("GET", "/products/one/drafts?limit=1", viewer_token)).links["next"]["url"]
    wrong_cursor_response = await world.call("GET", next_page_url.replace("/drafts?", "/releases?"), viewer_token)
    assert wrong_cursor_response.json()["code"] == "invalid_cursor"
    shown_release = (await world.call("GET", "/products/one/releases", entitled_token)).json()[0]
    assert shown_release["status"] == "yanked"
    assert [channel["version"] for channel in (await world.call("GET", "/products/one")).json()["channels"]] == [
        "1.0.0"
    ]


@pytest.mark.parametrize("path", ["/products", "/products/one", "/products/one/releases", "/catalog"])
async def test_a_cached_response_for_one_caller_is_not_fresh_for_another_caller(world: World, path: str) -> None:
    product = await world.product("north", "one")
    await add_releases(world, product, ["1.0.0"])
    await add_releases(world, product, ["2.0.0"], "draft")
    await world.product("north", "two", status="draft")
    viewer_token = await world.person("viewer@north.example", north="viewer")

    member_response = await world.call("GET", path, viewer_token)
    anonymous_response = await world.call("GET", path, headers={"If-None-Match": member_response.headers["etag"]})

    assert member_response.headers["cache-control"] == "private, no-cache"
    assert "Authorization" in member_response.headers["vary"]
    if anonymous_response.status_code == 200:
        assert anonymous_response.headers["cache-control"].startswith("public, max-age=")
        assert "two" not in anonymous_response.text
        assert "2.0.0" not in anonymous_response.text
    assert (
        await world.call("GET", path, viewer_token, headers={"If-None-Match": member_response.headers["etag"]})
    ).status_code == 304


async def test_a_row_of_a_public_list_has_the_same_bytes_for_every_caller(world: World) -> None:
    product = await world.product("north", "one")
    await add_releases(world, product, ["1.0.0", "1.1.0"], step_us=1)
    await add_releases(world, product, ["2.0.0"], "yanked")
    await add_releases(world, product, ["3.0.0"], "draft")
    await world.product("north", "two", status="draft")
    entitled_token = await world.person("a@example.com")
    await world.grant("a@example.com", product)
    owner = await world.person("owner@north.example", north="owner")
    callers = (None, entitled_token, owner, await world.client_token("north"))

    releases_path = "/products/one/releases"
    for path in ("/products", "/products?q=one", "/catalog", releases_path, f"{releases_path}?limit=2"):
        anonymous_rows: set[str] | None = None
        for caller in callers:
            response = await world.call("GET", path, caller)
            body = response.json()
            items = body if isinstance(body, list) else body.get("items", body.get("products"))
            rows = {json.dumps(item) for item in items}
            public_rows = {row for row in rows if '"draft"' not in row and '"yanked"' not in row}
            anonymous_rows = anonymous_rows or public_rows
            assert rows
            assert public_rows <= anonymous_rows, (path, caller)
            is_shared = response.headers["cache-control"].startswith("public")
            assert is_shared == (caller is None), (path, caller)
            assert "Authorization" in response.headers["vary"]


async def test_the_catalog_as_ndjson_and_as_json_has_different_etags(world: World) -> None:
    await add_releases(world, await world.product("north", "one"), ["1.0.0"])
    ndjson_headers = {"Accept": "application/x-ndjson"}

    document, stream = await world.call("GET", "/catalog"), await world.call("GET", "/catalog", headers=ndjson_headers)
    other_etag_response = await world.call(
        "GET", "/catalog", headers={**ndjson_headers, "If-None-Match": document.headers["etag"]}
    )
    limited = [await world.call("GET", "/catalog?limit=1", headers=ndjson_headers) for _ in range(2)]

    assert document.headers["etag"] != stream.headers["etag"]
    assert other_etag_response.status_code == 200
    assert "Accept" in stream.headers["vary"]
    assert len(limited[0].text.splitlines()) == 1
    assert document.headers["content-type"] == "application/json"


async def test_the_catalog_document_has_all_keys_and_the_newest_release_of_each_channel(world: World) -> None:
    product = await world.product("north", "one")
    await world.product("north", "two", status="draft")
    await world.product("north", "three", status="archived")
    await add_releases(world, product, ["1.0.0", "2.0.0"], step_us=1)

    catalog = (await world.call("GET", "/catalog")).json()

    assert set(catalog) == {"service", "version", "generated_at", "products", "next_cursor"}
    (only,) = catalog["products"]
    assert [release["version"] for release in only["releases"]] == ["2.0.0"]


async def test_archived_products_are_not_listed_outside_the_organisation(world: World) -> None:
    product = await world.product("north", "old", status="archived")
    owner, person = await world.person("o@north.example", north="owner"), await world.person("a@example.com")
    await world.grant("a@example.com", product)
    south = await world.person("owner@south.example", south="owner")

    for token in (None, person, south):
        assert slugs((await world.call("GET", "/products", token)).json()["items"]) == []
        assert slugs((await world.call("GET", "/products?q=old", token)).json()["items"]) == []
    assert (await world.call("GET", "/products/old")).status_code == 404
    assert (await world.call("GET", "/products/old", south)).status_code == 404
    assert (await world.call("GET", "/products/old", person)).json()["status"] == "archived"
    assert (await world.call("GET", "/products/old", owner)).json()["status"] == "archived"
