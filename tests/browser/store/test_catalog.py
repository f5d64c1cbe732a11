"""The list of products: search while typing, and filters in the address."""

import re

import httpx
import pytest
from playwright.async_api import Browser, expect

from tests.browser.rules import evaluated
from tests.browser.store.people import PLAYER, type_sign_in
from tests.browser.watched import assert_accessible, watched
from tests.servers.countersign import Running

CHOICES = (("channel", "nightly", "nightly"), ("access", "Free", "free"), ("published_since", "In the last year", "20"))


async def test_what_is_typed_is_found_and_stands_in_the_address(
    browser: Browser, demo_store: Running, axe: str
) -> None:
    async with watched(browser, demo_store.url) as page:
        await page.goto("/browse")
        await page.wait_for_selector(".card")
        await page.keyboard.press("/")
        await page.keyboard.type("auorra frei")
        await expect(page.locator(".card h2")).to_have_text(["Aurora Freight"])

        await expect(page).to_have_url(re.compile(r"q=auorra\+frei"))
        await page.reload()
        await expect(page.locator(".card h2")).to_have_text(["Aurora Freight"])
        await assert_accessible(page, axe)


@pytest.mark.full
async def test_a_tag_narrows_and_is_taken_away_again(browser: Browser, demo_store: Running) -> None:
    async with watched(browser, demo_store.url) as page:
        await page.goto("/products/awl")
        await page.click(".tags >> text=database")
        await page.wait_for_selector(".token:has-text('database')")
        few = await page.locator(".card").count()
        await page.click(".token:has-text('database')")
        await expect(page.locator(".card")).not_to_have_count(few)

        assert "tag=" not in page.url
        await page.go_back()
        await expect(page.locator(".card")).to_have_count(few)


@pytest.mark.full
async def test_facets_narrow_by_keyboard_and_stay_in_the_address(
    browser: Browser, demo_store: Running, axe: str
) -> None:
    async with watched(browser, demo_store.url) as page:
        await page.goto("/browse")
        await page.wait_for_selector(".facet .count")
        all_shown = await page.inner_text(".toolbar [role=status]")
        for name, label, found in CHOICES:
            await page.focus(f".facet:has-text('{label}')")
            await page.keyboard.press("Enter")
            await page.wait_for_url(re.compile(f"{name}={found}"))
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


@pytest.mark.full
async def test_facets_narrow_without_a_script(browser: Browser, demo_store: Running) -> None:
    async with watched(browser, demo_store.url, java_script_enabled=False) as page:
        await page.goto("/browse")
        some = await page.locator(".card").all_inner_texts()
        await page.goto("/browse?channel=nightly&access=free")

        assert 0 < await page.locator(".card").count() <= len(some)
        assert await page.locator(".card").all_inner_texts() != some


@pytest.mark.full
async def test_the_head_without_a_script_knows_who_is_signed_in(browser: Browser, demo_store: Running) -> None:
    async with watched(browser, demo_store.url, java_script_enabled=False) as page:
        await page.goto("/")
        await page.wait_for_selector("header >> text=Sign in")
        await type_sign_in(page, PLAYER, "/products/awl")
        for path in ("/products/awl", "/"):
            answer = await page.goto(path)
            assert answer is not None
            assert answer.headers["cache-control"] == "private, no-cache"
            assert await page.locator("header >> text=Sign in").count() == 0
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
    home = httpx.get(f"{demo_store.url}/api/v1/store/home").json()
    downloaded = next(each for each in home["shelves"] if each["id"] == "downloaded")

    async with watched(browser, demo_store.url) as page:
        await page.goto("/")
        await page.locator(".list-panel .access").nth(3).wait_for()
        shelves = await evaluated(page, SHELVES)
        ranking = await evaluated(page, RANKING)
        about = await page.locator(".feature h2 + p").first.inner_text()

    summary = home["hero"][0]["summary"]
    assert summary.startswith(about)
    assert len(about) < len(summary)
    large = {f"/products/{each['slug']}" for each in home["hero"]}
    at_once = [path for shelf in shelves[:3] for path in shelf]
    assert len(at_once) == 15
    assert len(set(at_once)) == 15
    assert not large & {*at_once}
    expected = [
        [f"/products/{each['slug']}", f"{downloads:,} downloads"]
        for each, downloads in zip(downloaded["items"][:4], downloaded["downloads_7d"], strict=False)
    ]
    assert ranking == expected


DAY = "2026-11-29T12:00:00Z"
QUEUE = """[...document.querySelectorAll(".queue button")].map((each) =>
    [each.querySelector(".name").textContent, each.querySelector(".note").textContent])"""
DAYS = """[...document.querySelectorAll(".list-panel time")].map((each) => [each.dateTime, each.textContent])"""


async def test_the_front_page_says_why_products_are_large_and_how_many_days_ago_versions_came_out(
    browser: Browser, demo_store: Running
) -> None:
    async with watched(browser, demo_store.url) as page:
        await page.clock.set_fixed_time(DAY)
        await page.goto("/")
        await page.locator(".list-panel time").nth(3).wait_for()
        await page.locator(".queue .note:has-text('New: Editions')").wait_for()
        queue = await evaluated(page, QUEUE)
        days = await evaluated(page, DAYS)
        chip = await page.inner_text(".feature .chip")

    assert queue == [
        ["Aurora Freight", "Most downloaded this week"],
        ["Harbour of Small Lights", "New: The ferry line"],
        ["Neon Abbey", "New: Your music"],
        ["Marginalia", "New: Editions"],
        ["Ferrule", "Free"],
    ]
    assert chip == "1.4.0 update"
    within = {f"2026-11-{29 - ago:02}": f"{ago} days ago" for ago in range(2, 29)}
    told = [(within[at[:10]], text) for at, text in days if at[:10] in within]
    assert told
    assert all(expected == text for expected, text in told)


COVERS = "[...document.querySelectorAll('.banner img')].map((each) => new URL(each.src).pathname)"
ROWS = """(() => {
    const cards = [...document.querySelectorAll(".cards > .card")];
    const tops = cards.map((card) => Math.round(card.getBoundingClientRect().top));
    return [...new Set(tops)].map((top) => tops.filter((each) => each === top).length);
})()"""


async def test_a_publishers_page_has_a_banner_of_its_covers_and_full_rows(
    browser: Browser, demo_store: Running
) -> None:
    listed = {"org": "northwind-games", "limit": 60}
    products = httpx.get(f"{demo_store.url}/api/v1/products", params=listed).json()["items"]
    covers = {httpx.URL(each["cover"]["url"]).path: each["cover"]["color"] for each in products}

    async with watched(browser, demo_store.url) as page:
        await page.set_viewport_size({"width": 1440, "height": 900})
        await page.goto("/publishers/northwind-games")
        await page.wait_for_selector(".figures >> text=products")
        banner = await evaluated(page, COVERS)
        rows = await evaluated(page, ROWS)

    colours = [covers[path] for path in banner]
    assert len(set(colours)) == len(colours) == 5
    assert sum(rows) == len(products)
    assert len(rows) == 1 or rows[-1] > 1 or len(products) % 4 == 1
