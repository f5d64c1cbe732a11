"""What people note about products for themselves, what they follow, and what is newer than what they downloaded."""

import asyncio

import pytest
from playwright.async_api import Browser, expect

from tests.browser.rules import evaluated
from tests.browser.store.goods import free_product, owned_with_a_file, published
from tests.browser.store.people import PLAYER, PUBLISHER, sign_in
from tests.browser.watched import assert_accessible, picture, watched
from tests.servers.countersign import Running

LINES = """new Set([...document.querySelectorAll(".library-head .input, .library-head .button")]
  .map((each) => each.getBoundingClientRect().top)).size"""
"""On how many lines the search of the library and the button beside it stand."""


async def test_a_product_is_followed_by_keyboard_and_its_news_are_told(
    browser: Browser, demo_store: Running, axe: str
) -> None:
    slug = await asyncio.to_thread(free_product, demo_store)
    async with watched(browser, demo_store.url) as page:
        await page.goto(f"/products/{slug}")
        await page.focus("button:text('Follow')")
        await page.keyboard.press("Enter")
        await expect(page.locator("button:text('Follow')")).to_have_attribute("aria-pressed", "true")
        await page.keyboard.press("Escape")
        await page.click("h1")
        await page.keyboard.press("g")
        await page.keyboard.press("f")
        await expect(page.locator(".followed li a.cut")).to_have_text([slug.title()])
        assert await page.locator(".feed-entry .chip").count() == 0

        await asyncio.to_thread(published, demo_store, slug, "1.1.0")
        await page.reload()
        await expect(page.locator(".feed-entry")).to_contain_text("1.1.0")
        await expect(page.locator(".feed-entry .chip")).to_have_text("New")
        await assert_accessible(page, axe)
        await picture(page, "following-1440-light")
        async with page.expect_response("**/feed") as told:
            await evaluated(page, "fetch(document.querySelector('a[href$=\"/feed\"]').href).then(() => 0)")
        assert f"{slug.title()} 1.1.0" in await (await told.value).text()
        await page.click(f"text={slug.title()} >> nth=0")
        await page.click("nav >> text=Following")
        await expect(page.locator(".feed-entry .chip")).to_have_count(0)
        await page.click("button:text('Unfollow')")

        await page.wait_for_selector("text=Nothing followed yet")


@pytest.mark.full
async def test_notes_collections_and_what_is_hidden_stay_in_this_browser_and_with_this_person(
    browser: Browser, demo_store: Running, axe: str
) -> None:
    async with watched(browser, demo_store.url) as page:
        await sign_in(page, PLAYER, "/library?order=title")
        await page.wait_for_selector(".card")
        assert await evaluated(page, LINES) == 1
        titles = await page.locator(".card h3").all_inner_texts()
        assert titles == sorted(titles, key=str.lower)
        first = page.locator(".card").first
        await first.locator(".get-more").click()
        await page.fill("dialog label:text('Collections') ~ input", "cosy, with Ann, cosy")
        await page.fill("dialog textarea", "Left at <b>chapter 3</b>")
        await page.keyboard.press("Tab")
        await page.goto("/library")
        await page.click(".side-nav >> text=with Ann")
        await expect(page.locator(".card h3")).to_have_text([titles[0]])
        await expect(page.locator(".card")).to_contain_text("Left at <b>chapter 3</b>")
        await assert_accessible(page, axe)
        await picture(page, "library-noted-1440-light")

        await page.click(".card .get-more")
        await page.click("dialog >> button:text('Hide')")
        await expect(page.locator("#find")).to_be_focused()
        await page.click("[role=status] >> text=Undo")
        await page.click(".card .get-more")
        await page.click("dialog >> button:text('Hide')")
        await page.goto("/library?order=updated&view=list")
        await expect(page.locator(".product-rows > li")).to_have_count(len(titles) - 1)
        await page.fill("#find", "chapter 3")
        await expect(page.locator(".product-rows > li")).to_have_count(0)
        await page.click(".side-nav >> text=Hidden")
        await expect(page.locator(".card")).to_have_count(1)
        await expect(page.locator(".card")).to_contain_text("Left at")
        assert await evaluated(page, "Object.keys(localStorage).filter(each => each.includes('shelf')).length") == 1

        await sign_in(page, PUBLISHER, "/library?hidden=1")
        await expect(page.locator("text=Left at")).to_have_count(0)
        await sign_in(page, PLAYER, "/library")
        await page.click("button:text('Delete all')")
        await expect(page.locator(".card")).to_have_count(len(titles))


@pytest.mark.full
async def test_the_library_says_what_is_newer_than_what_was_downloaded(browser: Browser, demo_store: Running) -> None:
    slug = await asyncio.to_thread(owned_with_a_file, demo_store)
    async with watched(browser, demo_store.url) as page:
        await sign_in(page, PLAYER, f"/products/{slug}")
        async with page.expect_download():
            await page.click(".get a.strong")
        await asyncio.to_thread(published, demo_store, slug, "1.1.0")
        await page.goto("/library?order=updated")

        await expect(page.locator(".updates > li")).to_contain_text("1.1.0 · you have 1.0.0")
        await expect(page.locator(".card").first.locator(".flag")).to_have_text("Update")
        await page.click(f".updates >> text={slug.title()}")
        await page.wait_for_selector(f"h1:text('{slug.title()}')")
