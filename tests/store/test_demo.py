"""The demonstration data matches the documentation, is always the same, and is created once."""

import re
from base64 import b64decode
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import httpx
import msgspec

from countersign.kernel import clock
from countersign.settings import Settings
from countersign.store import app as distribution
from countersign.store import demo
from countersign.store.catalog.covers.primitives import PALETTES
from countersign.store.demo import player, signed_builds
from countersign.store.demo.catalog import latest_day, moment, products
from countersign.store.demo.downloads import POPULAR
from countersign.store.jobs.job_types import JobContext
from countersign.store.releases.processing.build_job import TYPES
from tests.store.conftest import ROOT_URL, with_settings
from tests.store.world import World

JOB_TYPES = {type_.name: type_ for type_ in TYPES}


async def every_page(world: World, path: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    cursor = None
    while True:
        page = (await world.call("GET", path, params={"limit": 100, **({"cursor": cursor} if cursor else {})})).json()
        items += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            return items


async def player_token(world: World) -> str:
    return await world.person_token(demo.PLAYER, "read:library")


async def test_the_demonstration_has_sixty_public_products_of_all_kinds_and_platforms(demo_world: World) -> None:
    products = await every_page(demo_world, "/products")

    assert len(products) == 60
    assert {product["kind"] for product in products} == {"game", "app", "tool"}
    platforms = {platform for product in products for platform in product["platforms"]}
    assert platforms == {"windows", "macos", "linux", "android", "ios", "web"}


async def test_every_product_has_releases_with_notes_and_a_file_for_each_platform(demo_world: World) -> None:
    channels: set[str] = set()
    for product in await every_page(demo_world, "/products"):
        releases = (await demo_world.call("GET", f"/products/{product['slug']}/releases")).json()
        channels |= {release["channel"] for release in releases}
        assert 1 <= len(releases) <= 7
        assert [release["published_at"] for release in releases] == sorted(
            (release["published_at"] for release in releases), reverse=True
        )
        for release in releases:
            assert release["notes"]
            assert {artifact["platform"] for artifact in release["artifacts"]} == set(product["platforms"])

    assert channels == {"stable", "beta", "nightly", "alpha"}


async def test_every_product_has_a_whole_card_and_screenshots(demo_world: World) -> None:
    for card in await every_page(demo_world, "/products"):
        detail = (await demo_world.call("GET", f"/products/{card['slug']}")).json()
        assert card["summary"] == next(product.summary for product in products() if product.slug == card["slug"])
        assert not re.search(r"[*#`_]", card["summary"])
        assert len(detail["description"]) > len(card["summary"])
        assert card["publisher"]["name"] == dict(demo.ORGANISATIONS)[card["org"]]
        assert set(card["latest"]["size_by_platform"]) == set(card["platforms"])
        assert (detail["buy_url"] is None) == card["is_free"]
        assert detail["languages"]
        gallery = [media_file for media_file in detail["media"] if media_file["kind"] != "cover"]
        assert card["media_count"] == len(gallery) >= 2
        assert all(media_file["alt"] for media_file in detail["media"])
        shown_response = await demo_world.http.get(detail["media"][0]["url"], headers={"Accept": "image/*"})
        assert (shown_response.status_code, shown_response.headers["content-type"]) == (200, "image/svg+xml")
        assert "default-src 'none'" in shown_response.headers["content-security-policy"]


async def test_withdrawn_releases_show_reasons_to_owners_of_the_product(demo_world: World) -> None:
    publisher = await demo_world.person_token(demo.PUBLISHER, "read:products read:releases")
    releases = (await demo_world.call("GET", "/products/harbour-of-small-lights/releases", publisher)).json()

    withdrawn_releases = [release for release in releases if release.get("status") == "yanked"]
    assert [release["version"] for release in withdrawn_releases] == ["1.2.0"]
    assert withdrawn_releases[0]["yank_reason"]


async def test_the_codes_are_for_products_that_neither_person_owns(demo_world: World) -> None:
    token = await player_token(demo_world)
    owned_before = {product["id"] for product in (await demo_world.call("GET", "/library", token)).json()}

    for code in (demo.LICENCE_CODES[0], demo.PROMO_CODE):
        answer = (await demo_world.call("POST", "/redeem", token, json={"code": code})).json()
        assert answer["success"] is True
        assert answer["product_id"] not in owned_before


async def test_a_licence_code_works_once_and_the_promo_code_for_many(demo_world: World) -> None:
    player = await player_token(demo_world)
    publisher = await demo_world.person_token(demo.PUBLISHER, "read:library")

    assert (await demo_world.call("POST", "/redeem", player, json={"code": demo.LICENCE_CODES[4]})).is_success
    fifth_redemption = await demo_world.call("POST", "/redeem", publisher, json={"code": demo.LICENCE_CODES[4]})
    assert (await demo_world.call("POST", "/redeem", player, json={"code": demo.PROMO_CODE})).is_success
    assert (await demo_world.call("POST", "/redeem", publisher, json={"code": demo.PROMO_CODE})).is_success

    assert fifth_redemption.json()["code"] == "code_already_redeemed"


async def test_the_demonstration_client_gets_all_of_its_scopes(demo_world: World) -> None:
    answer = await demo_world.http.post(
        "/api/v1/auth/token",
        data={"grant_type": "client_credentials"},
        auth=(demo.CLIENT_ID, demo.CLIENT_SECRET),
    )

    assert set(answer.json()["scope"].split()) == set(demo.CLIENT_SCOPES.split())


async def test_both_people_sign_in(demo_world: World) -> None:
    for email in (demo.PLAYER, demo.PUBLISHER):
        form = {"email": email, "password": demo.PASSWORD}
        answer = await demo_world.http.post("/auth/signin", data=form, headers={"Origin": ROOT_URL})
        assert answer.status_code == 303


async def test_seeding_twice_changes_nothing(demo_world: World) -> None:
    products_before = await every_page(demo_world, "/products")

    assert not await demo.seed(demo_world.store)

    assert await every_page(demo_world, "/products") == products_before


async def test_the_demonstration_is_the_same_everywhere(demo_world: World, settings: Settings, tmp_path: Path) -> None:
    other_settings = with_settings(settings, data=str(tmp_path / "other"), database_url="")
    async with distribution.open_store(other_settings, ROOT_URL, is_loopback=True) as store:
        await demo.seed(store)
        twin = distribution.create(store)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(twin), base_url=ROOT_URL) as http:
            foreign_response = await http.get("/api/v1/catalog", params={"limit": 60})

    our_catalog = await demo_world.call("GET", "/catalog", params={"limit": 60})

    assert our_catalog.json()["products"] == foreign_response.json()["products"]


async def test_the_player_keeps_collections_follows_and_waiting_updates(demo_world: World) -> None:
    await player.add_activity(demo_world.store)
    token = await player_token(demo_world)

    owned_body = (await demo_world.call("GET", "/library", token=token, params={"limit": 100})).json()
    collections = (await demo_world.call("GET", "/me/collections", token=token)).json()["items"]
    follows = (await demo_world.call("GET", "/me/follows", token=token)).json()["items"]

    assert {product["slug"] for product in owned_body if product["update"]} == {"neon-abbey", "marginalia", "gantry"}
    assert [product["slug"] for product in owned_body if product["hidden"]] == ["fathom"]
    assert {collection["name"]: collection["count"] for collection in collections} == {
        name: len(slugs) for name, slugs in player.COLLECTIONS.items()
    }
    assert {follow["target"]["slug"] for follow in follows} == {
        *player.FOLLOWED_PRODUCTS,
        *player.FOLLOWED_ORGANISATIONS,
    }
    unowned_response = await demo_world.call("GET", "/library", params={"limit": 100})
    assert unowned_response.status_code == 401


async def run_jobs(world: World, folder: Path) -> None:
    """Run the queued jobs and those that they queue, one after the other."""
    signed_products: set[str] = set()

    async def ignore(_: float) -> None:
        pass

    while rows := [
        row
        for row in await world.store.database.fetch("SELECT id, org_id, type, payload FROM job ORDER BY created_at, id")
        if row[0] not in signed_products
    ]:
        job_id, org_id, kind, payload = rows[0]
        signed_products.add(job_id)
        job = JOB_TYPES[kind]
        scratch = folder / job_id
        scratch.mkdir()
        decoded = msgspec.json.decode(payload, type=job.payload)
        outcome = await job.run(world.store, JobContext(job_id, org_id, "demo", decoded, 1, scratch, ignore))
        assert outcome.commit is not None
        async with world.store.database.transaction() as transaction:
            await outcome.commit(transaction)


async def test_jobs_sign_the_newest_build_of_a_product(demo_world: World, tmp_path: Path) -> None:
    product = (await demo_world.call("GET", "/products/aurora-freight")).json()
    channel = f"/products/{product['id']}/channels/stable"
    channel_before = await demo_world.call("GET", channel)

    assert await signed_builds.request_builds(demo_world.store) == 6
    await run_jobs(demo_world, tmp_path)

    signed_body = (await demo_world.call("GET", channel)).json()
    payload = msgspec.json.decode(b64decode(signed_body["statement"]["payload"]))
    assert channel_before.json()["code"] == "nothing_built"
    assert (payload["product"], payload["version"]) == ("aurora-freight", "1.4.0")
    assert set(payload["builds"]) == set(product["platforms"])
    await demo_world.grant(demo.PUBLISHER, product["id"])
    owner = await demo_world.person_token(demo.PUBLISHER, "read:products read:library")
    parts = await demo_world.call("GET", f"/products/{product['id']}/releases/1.4.0/sbom?platform=linux", owner)
    assert "SDL" in {component["name"] for component in parts.json()["components"]}
    newest = (await demo_world.call("GET", f"/products/{product['id']}/releases")).json()[0]
    sizes = {artifact["platform"]: artifact["size"] for artifact in newest["artifacts"]}
    assert {(update["from_version"], update["platform"]) for update in newest["updates"]} == {
        ("1.3.1", platform) for platform in product["platforms"]
    }
    assert all(0 < update["size"] < sizes[update["platform"]] / 4 for update in newest["updates"])


async def test_no_job_waits_where_no_worker_runs_jobs(demo_world: World) -> None:
    store = replace(demo_world.store, settings=with_settings(demo_world.store.settings, job_workers=0))

    assert await signed_builds.request_builds(store) == 0
    assert await store.database.fetch("SELECT id FROM job") == []


async def test_popular_products_lead_the_front_page(demo_world: World) -> None:
    home = (await demo_world.call("GET", "/store/home")).json()

    with_cover = {product.slug for product in products() if product.cover}
    assert [product["slug"] for product in home["hero"]] == [slug for slug in POPULAR if slug in with_cover][:5]
    downloaded_response = await demo_world.call("GET", "/products", params={"sort": "-downloads_7d", "limit": 5})
    assert [item["slug"] for item in downloaded_response.json()["items"]] == list(POPULAR)[:5]


async def test_the_newest_releases_are_of_the_last_days(demo_world: World) -> None:
    newest = await demo_world.call("GET", "/products", params={"sort": "-published_at", "limit": 8})
    days = [date.fromisoformat(item["latest"]["published_at"][:10]) for item in newest.json()["items"]]

    ages = [(days[0] - day).days for day in days]
    assert ages[:6] == [0, 1, 1, 2, 2, 3]
    assert 0 <= (date.fromisoformat(clock.rfc3339(clock.now())[:10]) - days[0]).days <= 2


def test_a_release_of_a_day_is_published_before_the_day_counts_as_the_latest() -> None:
    opening_time = moment(date(2026, 11, 29), minutes=17 * 3)

    assert latest_day(opening_time) == date(2026, 11, 28)
    assert latest_day(clock.later(opening_time, seconds=3_600)) == date(2026, 11, 29)


async def test_the_front_page_shows_no_palette_twice_in_a_row_of_products(demo_world: World) -> None:
    home = (await demo_world.call("GET", "/store/home")).json()

    colours = [product["cover"]["color"] for product in home["hero"]]
    assert len(set(colours)) == len(colours)
    assert not any(product["cover"]["placeholder"] for product in home["hero"])
    for shelf in home["shelves"]:
        first_covers = [item["cover"] for item in shelf["items"][:6]]
        assert len({cover["color"] for cover in first_covers}) >= 4, shelf["id"]


async def test_pictures_of_a_product_have_the_palette_of_its_cover(demo_world: World) -> None:
    detail = (await demo_world.call("GET", "/products/aurora-freight")).json()

    assert len(detail["media"]) >= 6
    palette = PALETTES[3]
    for media_file in detail["media"]:
        shown_response = await demo_world.http.get(media_file["url"])
        if shown_response.headers["content-type"] == "image/svg+xml":
            assert f'<stop stop-color="{palette.sky_top}"/>' in shown_response.text
