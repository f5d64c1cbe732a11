"""The card of a product in lists: it is the same in every list and for every caller, and changes with the product."""

from typing import Any

from countersign.store.catalog import projection
from countersign.store.catalog.covers import placeholder
from tests.store.world import World

MEMBERS = {
    *("id", "slug", "title", "description", "kind", "platforms", "summary", "org", "publisher", "cover", "latest"),
    *("access", "is_free", "media_count", "has_trailer"),
}
RELEASED = """
    INSERT INTO artifact (id, release_id, filename, size, sha256, platform, status, created_at)
    SELECT $1, id, $2, $3, $4, $5, 'ready', 0 FROM release WHERE version = $6
"""
MEDIA = """
    INSERT INTO media (id, product_id, kind, alt, media_type, sha256, size, width, height, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, 10, 1280, 720, $7)
"""


async def item(world: World, slug: str = "one") -> dict[str, Any]:
    """Return the product as GET /products lists it."""
    catalog_item: dict[str, Any]
    (catalog_item,) = [item for item in (await world.call("GET", "/products")).json()["items"] if item["slug"] == slug]
    return catalog_item


async def release(world: World, owner: str, version: str, channel: str) -> None:
    body = {"version": version, "channel": channel, "notes_only": True}
    assert (await world.call("POST", "/products/one/releases", owner, json=body)).is_success
    assert (await world.call("POST", f"/products/one/releases/{version}/publish", owner)).is_success


async def test_a_new_product_has_a_whole_card(world: World) -> None:
    await world.product("north", "one", description="# One\n\nPlay **this**. Then that.", tags=["cozy"], access="free")

    card = await item(world)

    described_cover = placeholder.describe("one", "game", ["cozy"])
    assert set(card) == MEMBERS
    assert card["summary"] == "Play this."
    assert card["publisher"] == {"slug": "north", "name": "North", "verified": False}
    assert card["cover"] == {
        "url": f"/api/v1/products/one/cover.svg?v={described_cover.version}",
        "srcset": [],
        "color": described_cover.color,
        "focus": described_cover.focus,
        "placeholder": True,
        "alt": "",
    }
    assert (card["latest"], card["media_count"], card["has_trailer"]) == (None, 0, False)
    assert (card["access"], card["is_free"]) == ("free", True)
    shown_response = await world.http.get(card["cover"]["url"])
    assert shown_response.headers["cache-control"].endswith("immutable")


async def test_every_list_and_the_product_itself_have_the_same_members(world: World) -> None:
    product = await world.product("north", "one")
    owner = await world.person("owner@north.example", north="owner")
    await world.grant("owner@north.example", product)
    card = await item(world)

    library = (await world.call("GET", "/library", owner)).json()
    catalog = (await world.call("GET", "/catalog")).json()["products"]
    detail = (await world.call("GET", "/products/one")).json()

    for other_card in (library[0], catalog[0], detail):
        assert {name: other_card.get(name) for name in card} == card


async def test_latest_is_the_newest_stable_release_with_its_sizes(world: World) -> None:
    await world.product("north", "one", platforms=["windows", "linux"])
    owner = await world.person("owner@north.example", north="owner")
    await release(world, owner, "1.0.0-beta.1", "beta")
    card = await item(world)
    latest_before = card["latest"]
    await release(world, owner, "1.0.0", "stable")
    await release(world, owner, "1.1.0-beta.1", "beta")
    async with world.store.database.transaction() as transaction:
        for number, (name, platform, size) in enumerate(
            (("b.zip", "windows", 30), ("a.zip", "windows", 20), ("c.zip", "linux", 10), ("d.txt", None, 5))
        ):
            await transaction.run(RELEASED, f"a{number}", name, size, "0" * 64, platform, "1.0.0")
        await projection.refresh(transaction, card["id"], reindex=False)

    latest = (await item(world))["latest"]

    assert (latest_before["version"], latest_before["channel"], latest_before["size_by_platform"]) == (
        "1.0.0-beta.1",
        "beta",
        {},
    )
    assert (latest["version"], latest["channel"]) == ("1.0.0", "stable")
    assert latest["size_by_platform"] == {"windows": 20, "linux": 10}
    assert latest["first_published_at"] == latest_before["published_at"]

    await world.call("POST", "/products/one/releases/1.0.0/yank", owner, json={"reason": "broken"})
    assert (await item(world))["latest"]["version"] == "1.1.0-beta.1"


async def test_an_own_summary_is_shown_and_found_and_other_members_are_kept(world: World) -> None:
    await world.product("north", "one", description="A game.")
    owner = await world.person("owner@north.example", north="owner")
    body = {"slug": "one", "title": "One", "kind": "game", "platforms": ["web"], "description": "A game."}
    new_members = {"summary": "Sail a zeppelin.", "buy_url": "https://buy.example/one", "languages": ["en", "pt-BR"]}

    changed_response = await world.call("PUT", "/products/one", owner, json={**body, **new_members})
    items = (await world.call("GET", "/products?q=zeppelin")).json()["items"]

    detail = (await world.call("GET", "/products/one")).json()
    assert changed_response.status_code == 200
    assert [item["summary"] for item in items] == ["Sail a zeppelin."]
    assert {name: detail[name] for name in new_members} == new_members
    assert (await world.call("PUT", "/products/one", owner, json=body)).is_success
    product_after = (await world.call("GET", "/products/one")).json()
    assert (product_after["summary"], product_after["buy_url"], product_after["languages"]) == ("A game.", None, [])


async def test_wrong_members_are_refused(world: World) -> None:
    owner = await world.person("owner@north.example", north="owner")
    body = {"slug": "one", "title": "One", "kind": "game", "platforms": ["web"]}
    for name, value in (
        ("summary", "x" * 141),
        ("summary", "two\nlines"),
        ("summary", "  "),
        ("buy_url", "javascript:alert(1)"),
        ("languages", ["english!"]),
        ("languages", ["en\n"]),
    ):
        answer = await world.call("POST", "/products", owner, json={**body, name: value})
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request"), (name, value)
        assert answer.json()["errors"][0]["pointer"].startswith(f"/{name}")


async def test_media_are_counted_and_an_own_cover_replaces_the_placeholder(world: World) -> None:
    product = await world.product("north", "one")
    kinds = (("icon", "image/png"), ("cover", "image/webp"), ("screenshot", "image/png"), ("video", "video/mp4"))
    async with world.store.database.transaction() as transaction:
        for number, (kind, media_type) in enumerate(kinds):
            alt = f"The {kind}"
            await transaction.run(MEDIA, f"m{number}", product, kind, alt, media_type, f"{number}" * 64, number)
        await projection.refresh(transaction, product, reindex=False)

    card = await item(world)

    assert (card["media_count"], card["has_trailer"]) == (2, True)
    assert card["cover"]["url"] == f"/api/v1/media/{'1' * 64}"
    assert (card["cover"]["placeholder"], card["cover"]["alt"]) == (False, "The cover")


async def test_a_new_name_of_the_publisher_is_on_every_card_at_once(world: World) -> None:
    for slug in ("one", "two"):
        await world.product("north", slug)
    await world.product("south", "three")
    owner = await world.person("owner@north.example", north="owner")
    tag_before = (await world.call("GET", "/products")).headers["etag"]

    assert (await world.call("PUT", "/org", owner, json={"name": "Northern Lights"})).is_success

    after_response = await world.call("GET", "/products")
    names = [item["publisher"]["name"] for item in after_response.json()["items"]]
    assert sorted(names) == ["Northern Lights", "Northern Lights", "South"]
    assert after_response.headers["etag"] != tag_before


async def test_rows_of_an_earlier_version_are_rewritten_at_the_start(world: World) -> None:
    for number in range(7):
        await world.product("north", f"p{number}", description="An old text.")
    expected = await world.store.database.fetch("SELECT product_id, card, detail, etag FROM catalog_entry ORDER BY 1")
    version_before = (await world.store.versions())[0]
    async with world.store.database.transaction() as transaction:
        await transaction.run("UPDATE catalog_entry SET encoding = 0, card = $1, detail = $1, etag = '\"old\"'", b"{}")

    await projection.reencode_outdated(world.store.database)

    entries = await world.store.database.fetch("SELECT product_id, card, detail, etag FROM catalog_entry ORDER BY 1")
    assert entries == expected
    assert (await world.store.versions())[0] > version_before
    assert await world.store.database.fetch(projection.OUTDATED, projection.ENCODING, 1) == []
