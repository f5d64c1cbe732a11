"""The list of products: search while typing, and filters in the address."""

import re
from datetime import date, datetime, timedelta

import httpx
import pytest
from playwright.async_api import Browser, expect

from tests.browser.rules import evaluate, settle
from tests.browser.store.people import PLAYER, type_sign_in
from tests.browser.waiting import eventually, press, until_equal
from tests.browser.watched import assert_accessible, open_watched_page
from tests.servers.countersign import Running

CHOICES = (("platform", "Linux", "linux"), ("access", "Free", "free"), ("published_since", "In the last year", "20"))


async def test_typed_text_is_searched_for_and_kept_in_the_address(
    browser: Browser, demo_store: Running, axe: str
) -> None:
    async with open_watched_page(browser, demo_store.url) as page:
        await page.goto("/browse")
        # The server sends the cards, but not the field for the search.
        await page.wait_for_selector("#q")
        await press(page, "/")
        await expect(page.locator("#q")).to_be_focused()
        await page.keyboard.type("auorra frei")
        await expect(page.locator(".card h2")).to_have_text(["Aurora Freight"])

        await expect(page).to_have_url(re.compile(r"q=auorra\+frei"))
        await page.reload()
        await expect(page.locator(".card h2")).to_have_text(["Aurora Freight"])
        await assert_accessible(page, axe)


@pytest.mark.full
async def test_a_tag_narrows_the_list_and_is_removed_again(browser: Browser, demo_store: Running) -> None:
    async with open_watched_page(browser, demo_store.url) as page:
        await page.goto("/products/awl")
        await page.click(".tags >> text=database")
        await page.wait_for_selector(".token:has-text('database')")
        await page.wait_for_selector(".card")
        few = await page.locator(".card").count()
        await page.click(".token:has-text('database')")
        await expect(page.locator(".card")).not_to_have_count(few)

        await expect(page).not_to_have_url(re.compile("tag="))
        await page.go_back()
        await expect(page.locator(".card")).to_have_count(few)


@pytest.mark.full
async def test_facets_narrow_by_keyboard_and_stay_in_the_address(
    browser: Browser, demo_store: Running, axe: str
) -> None:
    async with open_watched_page(browser, demo_store.url) as page:
        await page.goto("/browse")
        await page.wait_for_selector(".facet .count")
        all_shown = await page.inner_text(".toolbar [role=status]")
        for name, label, choice in CHOICES:
            async with page.expect_response("**/api/v1/products?*") as answer:
                await page.press(f".facet:has-text('{label}')", "Enter")
            await page.wait_for_url(re.compile(f"{name}={choice}"))
            await (await answer.value).finished()
            await settle(page)
        await expect(page.locator(".toolbar [role=status]")).not_to_have_text(all_shown)
        narrowed = await page.locator(".card h2").all_inner_texts()
        assert narrowed
        await expect(page.locator(".token")).to_have_count(3)
        await assert_accessible(page, axe)

        await page.reload()
        await expect(page.locator(".card h2")).to_have_text(narrowed)
        await page.go_back()
        await expect(page.locator(".token")).to_have_count(2)
        await page.goto("/browse?published_since=2020-02-29&access=free")
        await expect(page.locator(".token:has-text('Since 29 Feb 2020')")).to_have_count(1)
        await page.goto("/browse?channel=nightly")
        await expect(page.locator(".token:has-text('Nightly')")).to_have_count(1)


@pytest.mark.full
async def test_facets_narrow_without_a_script(browser: Browser, demo_store: Running) -> None:
    async with open_watched_page(browser, demo_store.url, java_script_enabled=False) as page:
        await page.goto("/browse")
        some = await page.locator(".card").all_inner_texts()
        await page.goto("/browse?channel=nightly&access=free")

        assert 0 < await page.locator(".card").count() <= len(some)
        assert await page.locator(".card").all_inner_texts() != some


@pytest.mark.full
async def test_the_head_without_a_script_knows_who_is_signed_in(browser: Browser, demo_store: Running) -> None:
    async with open_watched_page(browser, demo_store.url, java_script_enabled=False) as page:
        await page.goto("/")
        await page.wait_for_selector("header >> text=Sign in")
        await type_sign_in(page, PLAYER, "/products/awl")
        for path in ("/products/awl", "/"):
            answer = await page.goto(path)
            assert answer is not None
            assert answer.headers["cache-control"] == "private, no-cache"
            await expect(page.locator("header >> text=Sign out")).to_have_count(1)
            await expect(page.locator("header >> text=Sign in")).to_have_count(0)
        async with page.expect_navigation():
            await page.click("header >> text=Sign out")
        await page.goto("/")

        await page.wait_for_selector("header >> text=Sign in")


SHELVES = """[...document.querySelectorAll(".shelf")].map((shelf) =>
    [...shelf.querySelectorAll(".card a")].slice(0, 5).map((link) => link.pathname))"""
RANKING = r"""[...document.querySelectorAll(".list-panel li")].filter((row) => /download/.test(row.textContent))
    .map((row) => [row.querySelector("a").pathname, row.querySelector(".num").textContent])"""


async def test_the_front_page_repeats_no_product_in_its_shelves_and_shows_downloads(
    browser: Browser, demo_store: Running
) -> None:
    home = httpx.get(f"{demo_store.url}/api/v1/store/home", timeout=60).json()
    downloaded = next(shelf for shelf in home["shelves"] if shelf["id"] == "downloaded")

    large = {f"/products/{product['slug']}" for product in home["hero"]}
    expected = [
        [f"/products/{item['slug']}", f"{downloads:,} downloads"]
        for item, downloads in zip(downloaded["items"][:4], downloaded["downloads_7d"], strict=False)
    ]

    # With reduced motion, the large product stays the first one.
    async with open_watched_page(browser, demo_store.url, reduced_motion="reduce") as page:

        async def repeat_none() -> None:
            shelves = await evaluate(page, SHELVES)
            at_once = [path for shelf in shelves[:3] for path in shelf]
            assert len(at_once) == 15
            assert len(set(at_once)) == 15
            assert not large & {*at_once}

        await page.goto("/")
        await page.locator(".list-panel .access").nth(3).wait_for()
        await eventually(repeat_none)
        await until_equal(page, RANKING, expected)
        feature_text = await page.locator(".feature h2 + p").first.inner_text()

    summary = home["hero"][0]["summary"]
    assert summary.startswith(feature_text)
    assert len(feature_text) < len(summary)


DAY = "2026-11-29T12:00:00Z"
QUEUE = """[...document.querySelectorAll(".queue button")].map((each) =>
    [each.querySelector(".name").textContent, each.querySelector(".note").textContent])"""
DAYS = """[...document.querySelectorAll(".list-panel time")].map((each) => [each.dateTime, each.textContent])"""


async def test_the_front_page_has_a_different_reason_for_each_large_product(
    browser: Browser, demo_store: Running
) -> None:
    queue = [
        ["Aurora Freight", "Out now · version 1.4.0"],
        ["Harbour of Small Lights", "With a trailer"],
        ["Neon Abbey", "Popular this week"],
        ["Marginalia", "Runs in the browser"],
        ["Ferrule", "Free to download"],
    ]
    async with open_watched_page(browser, demo_store.url, timezone_id="UTC", reduced_motion="reduce") as page:
        await page.clock.set_fixed_time(DAY)
        await page.goto("/")
        await until_equal(page, QUEUE, queue)
        await expect(page.locator(".feature .chip").first).to_have_text("1.4.0 update")
        await expect(page.locator(".feature h2 + p")).to_have_text("Haul impossible cargo across a frozen moon.")


async def test_the_shelf_of_new_products_states_the_age_of_its_products(browser: Browser, demo_store: Running) -> None:
    home = httpx.get(f"{demo_store.url}/api/v1/store/home", timeout=60).json()
    latest = {
        f"/products/{item['slug']}": datetime.fromisoformat(item["latest"]["published_at"])
        for shelf in home["shelves"]
        for item in shelf["items"]
    }
    now = max(latest.values())
    async with open_watched_page(browser, demo_store.url, timezone_id="UTC") as page:

        async def shows(note: str, limit: timedelta) -> None:
            shelf = page.locator(".shelf").first
            await expect(shelf.locator(".shelf-head p")).to_have_text(note)
            links = await shelf.locator(".card h3 a").evaluate_all("(links) => links.map((link) => link.pathname)")
            dates = [latest[link] for link in links]
            assert len(links) >= 5
            assert all(moment - date <= limit for date in dates)

        moment = now
        await page.clock.set_fixed_time(moment)
        await page.goto("/")
        await shows("Published in the last seven days", timedelta(days=7))
        moment = now + timedelta(days=30)
        await page.clock.set_fixed_time(moment)
        await page.reload()
        await shows("New titles and new versions", timedelta.max)


async def test_recently_updated_lists_the_newest_versions_of_all_products_with_their_age(
    browser: Browser, demo_store: Running
) -> None:
    list_query = {"sort": "-published_at", "limit": 100}
    products = httpx.get(f"{demo_store.url}/api/v1/products", params=list_query, timeout=60)
    latest = [item["latest"] for item in products.json()["items"] if item["latest"]]
    newest = sorted((release["published_at"] for release in latest), reverse=True)[:4]
    today = date.fromisoformat(newest[0][:10])
    ages = [(today - date.fromisoformat(at[:10])).days for at in newest]
    age_texts = {0: "today", 1: "yesterday"}
    days = [[at, age_texts.get(age, f"{age} days ago")] for at, age in zip(newest, ages, strict=True)]

    async with open_watched_page(browser, demo_store.url, timezone_id="UTC") as page:
        await page.clock.set_fixed_time(f"{today}T23:00:00Z")
        await page.goto("/")
        await until_equal(page, DAYS, days)


COVERS = "[...document.querySelectorAll('.banner img')].map((each) => new URL(each.src).pathname)"
ROWS = """(() => {
    const cards = [...document.querySelectorAll(".cards > .card")];
    const tops = cards.map((card) => Math.round(card.getBoundingClientRect().top));
    return [...new Set(tops)].map((top) => tops.filter((each) => each === top).length);
})()"""


async def test_a_publishers_page_has_a_banner_of_its_covers_and_full_rows(
    browser: Browser, demo_store: Running
) -> None:
    list_query = {"org": "northwind-games", "limit": 60}
    products = httpx.get(f"{demo_store.url}/api/v1/products", params=list_query, timeout=60).json()["items"]
    covers = {httpx.URL(product["cover"]["url"]).path: product["cover"]["color"] for product in products}

    async with open_watched_page(browser, demo_store.url) as page:

        async def has_banner_and_rows() -> None:
            colours = [covers[path] for path in await evaluate(page, COVERS)]
            assert len(set(colours)) == len(colours) == 5
            rows = await evaluate(page, ROWS)
            assert sum(rows) == len(products)
            assert len(rows) == 1 or rows[-1] > 1 or len(products) % 4 == 1

        await page.set_viewport_size({"width": 1440, "height": 900})
        await page.goto("/publishers/northwind-games")
        await page.wait_for_selector(".figures >> text=products")
        await eventually(has_banner_and_rows)
