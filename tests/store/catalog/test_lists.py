"""Lists of products: order, filters compared with an oracle, cursors during changes, search, entity tags, current
pages."""

import random
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import httpx
import pytest

from countersign.kernel import clock
from countersign.store import app as distribution
from countersign.store.catalog import search
from tests.store.conftest import ROOT_URL
from tests.store.world import World, slugs

KINDS = ("game", "app", "tool")
PLATFORMS = ("windows", "macos", "linux", "android", "ios", "web")
TAGS = ("cozy", "cli", "music")
LETTERS = "aäbßzZ0 -éЖ日🙂"


async def create_products(world: World, count: int, seed: int = 7) -> list[dict[str, Any]]:
    """Create products of all kinds, platforms, tags and both organisations, and return them for the oracle."""
    rng = random.Random(seed)
    products: list[dict[str, Any]] = []
    for number in range(count):
        product: dict[str, Any] = {
            "slug": f"product-{number}",
            "title": "".join(rng.choice(LETTERS) for _ in range(4)).strip() or "x",
            "kind": rng.choice(KINDS),
            "platforms": sorted(rng.sample(PLATFORMS, rng.randint(1, 3))),
            "tags": sorted(rng.sample(TAGS, rng.randint(0, 2))),
            "status": "draft" if rng.random() < 0.15 else "public",
        }
        org = rng.choice(("north", "south"))
        members = {name: value for name, value in product.items() if name != "slug"}
        product["id"] = await world.product(org, product["slug"], **members)
        product["org"] = org
        products.append(product)
    return products


def expected_slugs(products: list[dict[str, Any]], **filters: str) -> list[str]:
    """Return the slugs that a list must contain: the products that meet the filter, by the code points of the title and
    then by id."""
    matching = [
        product
        for product in products
        if product["status"] == "public"
        and filters.get("kind") in (None, product["kind"])
        and filters.get("org") in (None, product["org"])
        and (filters.get("platform") is None or filters["platform"] in product["platforms"])
        and (filters.get("tag") is None or filters["tag"] in product["tags"])
    ]
    return [product["slug"] for product in sorted(matching, key=lambda product: (product["title"], product["id"]))]


async def walk_pages(world: World, token: str | None = None, **parameters: str) -> list[str]:
    """Return the slugs of all pages."""
    found_slugs: list[str] = []
    cursor = None
    while True:
        page = await world.call(
            "GET", "/products", token, params={**parameters, **({"cursor": cursor} if cursor else {})}
        )
        assert page.is_success, page.text
        found_slugs += [str(slug) for slug in slugs(page.json()["items"])]
        assert len(found_slugs) < 1_000, "a page repeats the one before"
        cursor = page.json()["next_cursor"]
        if cursor is None:
            return found_slugs


async def test_every_filter_and_combination_finds_the_matching_products(world: World) -> None:
    products = await create_products(world, 40)
    rng = random.Random(1)
    for _ in range(40):
        filters: dict[str, str] = {}
        for name, choices in (("kind", KINDS), ("platform", PLATFORMS), ("tag", TAGS), ("org", ("north", "south"))):
            if rng.random() < 0.4:
                filters[name] = rng.choice(choices)
        limit = str(rng.choice((1, 3, 7, 100)))

        assert await walk_pages(world, limit=limit, **filters) == expected_slugs(products, **filters), filters


async def test_newest_first_is_the_other_order(world: World) -> None:
    products = await create_products(world, 12)
    public = [product["slug"] for product in reversed(products) if product["status"] == "public"]

    assert await walk_pages(world, limit="5", sort="-published_at") == public


async def publish_release(world: World, token: str, slug: str, version: str, channel: str) -> None:
    """Create and publish a release of the product."""
    body = {"version": version, "channel": channel, "notes_only": True}
    assert (await world.call("POST", f"/products/{slug}/releases", token, json=body)).is_success
    assert (await world.call("POST", f"/products/{slug}/releases/{version}/publish", token)).is_success


async def test_a_channel_is_a_filter_while_a_release_is_published_in_the_channel(world: World) -> None:
    owner = await world.person("owner@north.example", north="owner")
    for slug in ("a", "b", "c"):
        await world.product("north", slug)
    await publish_release(world, owner, "a", "1.0.0", "stable")
    await publish_release(world, owner, "b", "1.0.0", "beta")
    await publish_release(world, owner, "b", "1.1.0", "beta")
    drafted = {"version": "1.0.0", "channel": "stable"}
    assert (await world.call("POST", "/products/c/releases", owner, json=drafted)).is_success
    assert (await walk_pages(world, channel="stable"), await walk_pages(world, channel="beta")) == (["a"], ["b"])

    await world.call("POST", "/products/b/releases/1.1.0/promote", owner, json={"channel": "stable"})
    assert (await walk_pages(world, channel="stable", limit="1"), await walk_pages(world, channel="beta")) == (
        ["a", "b"],
        ["b"],
    )
    await world.call("POST", "/products/b/releases/1.0.0/yank", owner, json={"reason": "broken"})
    assert (await walk_pages(world, channel="stable"), await walk_pages(world, channel="beta")) == (["a", "b"], [])
    body = {"slug": "b", "title": "Renamed", "kind": "game", "platforms": ["web"], "status": "public"}
    assert (await world.call("PUT", "/products/b", owner, json=body)).is_success
    assert await walk_pages(world, channel="stable", platform="web") == ["b"]


async def test_free_products_can_be_filtered(world: World) -> None:
    await world.product("north", "a", access="free")
    await world.product("south", "b", access="entitled")

    slugs_by_access = [
        await walk_pages(world, access="free"),
        await walk_pages(world, access="entitled", sort="-published_at"),
    ]

    assert slugs_by_access == [["a"], ["b"]]


@pytest.mark.parametrize("sort", ["title", "-published_at"])
async def test_products_are_filtered_by_the_day_of_their_last_publication(world: World, sort: str) -> None:
    owner = await world.person("owner@north.example", north="owner")
    midnight = clock.from_datetime(datetime(2026, 3, 1, tzinfo=UTC))
    for slug, seconds in (("a", -1), ("b", 0), ("c", 90_000), ("old", -9_000_000)):
        with clock.fixed(clock.later(midnight, seconds=seconds)):
            await world.product("north", slug)
    await publish_release(world, owner, "old", "1.0.0", "stable")

    async def since(day: str) -> list[str]:
        return sorted(await walk_pages(world, published_since=day, sort=sort, limit="1"))

    assert await since("2026-02-28") == ["a", "b", "c", "old"]
    assert await since("2026-03-01") == ["b", "c", "old"]
    assert await since("2026-03-02") == ["c", "old"]
    assert await since("2026-03-03") == ["old"]


@pytest.mark.parametrize("sort", ["title", "-published_at"])
async def test_channel_and_day_together_ask_for_one_release(world: World, sort: str) -> None:
    owner = await world.person("owner@north.example", north="owner")
    midnight = clock.from_datetime(datetime(2026, 3, 1, tzinfo=UTC))
    numbers = count()
    releases_by_slug: dict[str, list[tuple[str, int]]] = {
        "old-beta": [("beta", -5), ("stable", 5)],
        "old-stable": [("stable", -5), ("beta", 5)],
        "both": [("stable", 1), ("beta", 6)],
        "twice": [("beta", -9), ("stable", -7), ("beta", 3)],
        "none": [],
    }
    move_release = "UPDATE release SET published_at = $2 WHERE version = $1"
    for slug, releases in releases_by_slug.items():
        await world.product("north", slug)
        for channel, days in releases:
            version = f"1.0.{next(numbers)}"
            await publish_release(world, owner, slug, version, channel)
            async with world.store.database.transaction() as transaction:
                await transaction.run(move_release, version, clock.later(midnight, seconds=days * 86_400))

    for day in (-9, -8, -5, -4, 1, 2, 3, 4, 5, 6, 7):
        since = (datetime(2026, 3, 1, tzinfo=UTC) + timedelta(days=day)).date().isoformat()
        for wanted_channel in ("stable", "beta", "nightly"):
            expected = [
                slug
                for slug, value in releases_by_slug.items()
                if any(c == wanted_channel and at >= day for c, at in value)
            ]
            found_slugs = await walk_pages(world, channel=wanted_channel, published_since=since, sort=sort, limit="1")
            assert sorted(found_slugs) == sorted(expected), (day, wanted_channel)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("channel", "gold"),
        ("access", "cheap"),
        ("published_since", "yesterday"),
        ("published_since", "2026-02-30"),
        ("published_since", "2026-02-03T00:00:00Z"),
        ("free", "true"),
        ("updated", "2026-02-03"),
    ],
)
async def test_an_invalid_filter_is_refused_by_its_name(world: World, name: str, value: str) -> None:
    answer = await world.call("GET", "/products", params={name: value})

    assert answer.status_code == 400
    assert answer.json()["errors"][0]["parameter"] == name


async def test_a_cursor_keeps_its_filters_and_is_refused_with_other_filters(world: World) -> None:
    for slug in ("a", "b", "c"):
        await world.product("north", slug, access="free")
    filters = {"access": "free", "published_since": "2020-01-01", "limit": "1"}
    cursor = (await world.call("GET", "/products", params=filters)).json()["next_cursor"]

    remaining_response = await world.call("GET", "/products", params={"cursor": cursor})
    other_response = await world.call("GET", "/products", params={"cursor": cursor, "access": "entitled"})

    assert slugs(remaining_response.json()["items"]) == ["b", "c"]
    assert (other_response.status_code, other_response.json()["code"]) == (400, "invalid_cursor")


async def test_lists_report_the_state_of_a_product_only_to_its_members(world: World) -> None:
    await world.product("north", "open")
    await world.product("north", "secret", status="draft")
    viewer = await world.person("viewer@north.example", north="viewer")

    items = (await world.call("GET", "/products", viewer)).json()["items"]

    assert [(item["slug"], item.get("status")) for item in items] == [("open", None), ("secret", "draft")]
    assert [set(item) & {"status"} for item in (await world.call("GET", "/products")).json()["items"]] == [set()]


async def disturb(world: World, owner: str, touched: list[dict[str, Any]], step: int, title: str) -> None:
    """Make one change during a walk: a product is added, removed or renamed."""
    if step % 3 == 0:
        await world.product("north", f"late-{step}", title=title)
    elif step % 3 == 1 and touched:
        deleted_product = touched.pop()
        assert (await world.call("DELETE", f"/products/{deleted_product['id']}", owner)).status_code == 204
    elif touched:
        renamed_product = touched[0]
        body = {
            "slug": renamed_product["slug"],
            "title": title,
            "kind": "app",
            "platforms": ["web"],
            "status": "public",
        }
        assert (await world.call("PUT", f"/products/{renamed_product['id']}", owner, json=body)).is_success


async def one_page(world: World, cursor: str | None) -> dict[str, Any]:
    """Return a page of three products after the cursor."""
    cursor_parameter = {"cursor": cursor} if cursor else {}
    return (await world.call("GET", "/products", params={"limit": "3", **cursor_parameter})).json()


async def test_paging_lists_every_untouched_product_once_while_others_are_added_removed_and_renamed(
    world: World
) -> None:
    products = await create_products(world, 40, seed=3)
    owner = await world.person("owner@north.example", north="owner", south="owner")
    rng = random.Random(5)
    untouched = [product for product in products if product["status"] == "public"][::2]
    touched = [product for product in products if product not in untouched]
    found_slugs: list[str] = []
    cursor = None
    for step in range(200):
        page = await one_page(world, cursor)
        found_slugs += [str(slug) for slug in slugs(page["items"])]
        cursor = page["next_cursor"]
        if cursor is None:
            break
        await disturb(world, owner, touched, step, "".join(rng.choices("abyzé日", k=4)))

    assert [found_slugs.count(product["slug"]) for product in untouched] == [1] * len(untouched)


async def test_members_see_their_drafts_among_the_rest(world: World) -> None:
    products = await create_products(world, 30)
    viewer = await world.person("viewer@north.example", north="viewer")

    seen_slugs = set(await walk_pages(world, viewer, limit="10"))

    drafts = {product["slug"] for product in products if product["status"] == "draft" and product["org"] == "north"}
    assert seen_slugs == set(expected_slugs(products)) | drafts
    assert drafts


@pytest.mark.parametrize(
    ("question", "expected_slugs"),
    [
        ("lantern", ["lanternfall"]),
        ("LANTERNFALL", ["lanternfall"]),
        ("lant", ["lanternfall"]),
        ("lanternfal", ["lanternfall"]),
        ("lantrenfall", ["lanternfall"]),
        ("lanternfalll", ["lanternfall"]),
        ("lamternfall", ["lanternfall"]),
        ("laternfall platform", ["lanternfall"]),
        ("lanternfall racing", []),
        ("cafe", ["cafe"]),
        ("café", ["cafe"]),
        ("coop", ["cafe"]),
        ("nothing-like-it", []),
        ("l", []),
        ("lanternfall l", []),
        ("lxntxrnfall", []),
        ("'; DROP TABLE product; --", []),
        ("%", None),
        ("\\", None),
        ("  ", None),
    ],
)
async def test_search_corrects_one_typing_error_and_adds_no_other_results(
    world: World, question: str, expected_slugs: list[str] | None
) -> None:
    await world.product("north", "lanternfall", title="Lanternfall", description="A platformer of light.")
    await world.product("south", "cafe", title="Café Simulator", tags=["coop"])
    await world.product("south", "hidden-lantern", title="Lantern", status="draft")

    for sort in ({}, {"sort": "relevance"}):
        answer = await world.call("GET", "/products", params={"q": question, **sort})
        if expected_slugs is None:
            assert answer.status_code == 400
        else:
            assert slugs(answer.json()["items"]) == expected_slugs


async def test_relevance_puts_titles_before_descriptions_and_pages_through(world: World) -> None:
    for number in range(5):
        await world.product("north", f"about-{number}", title=f"Other {number}", description="All about whales.")
    await world.product("north", "whales", title="Whales")

    found_slugs = await walk_pages(world, q="whales", sort="relevance", limit="2")

    assert found_slugs == ["whales", *(f"about-{number}" for number in range(5))]


@pytest.mark.parametrize("sort", ["relevance", "title"])
async def test_the_pages_for_a_common_word_together_equal_one_long_page(
    world: World, sort: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    member = await world.person("member@north.example", north="viewer")
    texts = ("Whale", "Whales", "Whaler Whale", "Whael", "Other")
    for number in range(30):
        text = texts[number % len(texts)]
        tags, status = ["whale"] if number % 3 else [], "draft" if number % 7 == 3 else "public"
        title = f"{chr(ord('Z') - number % 26)} {text} {number}"
        await world.product("north", f"p{number}", title=title, tags=tags, description="A whale.", status=status)

    for token in (None, member):
        monkeypatch.setattr(search, "MIN_COMMON", 5_000)
        whole_walk = await walk_pages(world, token, q="whale", sort=sort, limit="100")
        monkeypatch.setattr(search, "MIN_COMMON", 3)
        for limit, window in (("1", 2_000), ("2", 2_000), ("2", 4), ("7", 2_000), ("7", 9), ("11", 2_000)):
            monkeypatch.setattr(search, "MAX_TESTED", window)
            assert await walk_pages(world, token, q="whale", sort=sort, limit=limit) == whole_walk
        assert len(whole_walk) == (30 if token else 26)


@pytest.mark.parametrize("sort", ["-updated_at", "-downloads_7d"])
async def test_a_rare_tag_has_the_same_pages_as_a_common_tag(
    world: World, sort: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create_products(world, 30)
    filters = ({"tag": "cli"}, {"org": "north", "kind": "app"}, {"tag": "music", "platform": "linux"})
    filters += ({"tag": "cozy", "published_since": "2020-01-01"}, {"tag": "cli", "q": "product"})

    for filter_ in filters:
        monkeypatch.setattr(search, "MIN_COMMON", 0)
        as_common = await walk_pages(world, sort=sort, limit="100", **filter_)
        monkeypatch.setattr(search, "MIN_COMMON", 1_000)
        for limit in ("2", "100"):
            assert await walk_pages(world, sort=sort, limit=limit, **filter_) == as_common
        assert as_common or "q" in filter_


async def test_the_newest_of_a_facet_follow_their_releases(world: World) -> None:
    owner = await world.person("owner@north.example", north="owner")
    for number in range(6):
        await world.product("north", f"p{number}", kind="tool" if number % 2 else "app", tags=["quiet"])
    await publish_release(world, owner, "p1", "1.0.0", "stable")
    await publish_release(world, owner, "p0", "1.0.0", "beta")

    for limit in ("1", "4"):
        newest = await walk_pages(world, tag="quiet", sort="-published_at", limit=limit)
        assert newest == ["p0", "p1", "p5", "p4", "p3", "p2"]
        assert await walk_pages(world, tag="quiet", kind="tool", sort="-published_at", limit=limit) == [
            "p1",
            "p5",
            "p3",
        ]


@pytest.mark.parametrize(
    "path", ["/products", "/products/one", "/products/one/releases", "/catalog", "/catalog?limit=1"]
)
async def test_catalog_reads_have_a_tag_that_lasts_until_something_changes(world: World, path: str) -> None:
    await world.product("north", "one")
    first_response = await world.call("GET", path)
    tag = first_response.headers["etag"]
    assert tag.startswith('"')
    assert first_response.headers["cache-control"].startswith("public")

    for header in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        second_response = await world.call("GET", path, headers={"If-None-Match": header})
        assert (second_response.status_code, second_response.content, second_response.headers["etag"]) == (
            304,
            b"",
            tag,
        )
    head = await world.call("HEAD", path)
    assert (head.status_code, head.content, head.headers["etag"]) == (200, b"", tag)

    owner = await world.person("owner@north.example", north="owner")
    body = {"slug": "one", "title": "Another", "kind": "game", "platforms": ["web"], "status": "public"}
    await world.call("PUT", "/products/one", owner, json=body)
    first_response = {"version": "1.0.0", "channel": "beta", "notes_only": True}
    await world.call("POST", "/products/one/releases", owner, json=first_response)
    await world.call("POST", "/products/one/releases/1.0.0/publish", owner)
    changed_response = await world.call("GET", path, headers={"If-None-Match": tag})
    assert changed_response.status_code == 200
    assert changed_response.headers["etag"] != tag


async def test_no_worker_gives_out_a_page_that_is_older_than_an_acknowledged_write(world: World) -> None:
    await world.product("north", "one", title="Zero")
    owner = await world.person("owner@north.example", north="owner")
    transport = httpx.ASGITransport(distribution.create(world.store))
    async with httpx.AsyncClient(transport=transport, base_url=ROOT_URL) as other_worker:
        for number in range(30):
            body = {"slug": "one", "title": f"Title {number}", "kind": "game", "platforms": ["web"], "status": "public"}
            assert (await world.call("PUT", "/products/one", owner, json=body)).is_success
            for path in ("/api/v1/products", "/api/v1/products/one", "/api/v1/catalog?limit=5"):
                for worker in (other_worker, world.http, other_worker):
                    assert f"Title {number}" in (await worker.get(path)).text


async def test_the_catalog_is_served_as_a_document_in_pages_and_as_ndjson(world: World) -> None:
    products = await create_products(world, 20)
    titles = expected_slugs(products)

    whole_body = (await world.call("GET", "/catalog")).json()
    lines = await world.call("GET", "/catalog", headers={"Accept": "application/x-ndjson"})
    paged: list[str] = []
    cursor = None
    while True:
        page = await world.call("GET", "/catalog", params={"limit": "3", **({"cursor": cursor} if cursor else {})})
        paged += [item["slug"] for item in page.json()["products"]]
        cursor = page.json()["next_cursor"]
        if cursor is None:
            break

    assert slugs(whole_body["products"]) == titles == paged
    assert whole_body["next_cursor"] is None
    assert lines.headers["content-type"] == "application/x-ndjson"
    assert len(lines.text.splitlines()) == len(titles)
    assert all("releases" in item for item in whole_body["products"])
