"""The list of products: found while one types, narrowed by what stands in the address."""

import pytest
from playwright.async_api import Browser, expect

from tests.browser.watched import assert_accessible, watched
from tests.servers.countersign import Running


async def test_what_is_typed_is_found_and_stands_in_the_address(
    browser: Browser, demo_store: Running, axe: str
) -> None:
    async with watched(browser, demo_store.url) as page:
        await page.goto("/")
        await page.wait_for_selector(".card")
        await page.keyboard.press("/")
        await page.keyboard.type("auorra frei")
        await expect(page.locator(".card h2")).to_have_text(["Aurora Freight"])

        assert "q=auorra+frei" in page.url
        await page.reload()
        await expect(page.locator(".card h2")).to_have_text(["Aurora Freight"])
        await assert_accessible(page, axe)


@pytest.mark.full
async def test_a_tag_narrows_and_is_taken_away_again(browser: Browser, demo_store: Running) -> None:
    async with watched(browser, demo_store.url) as page:
        await page.goto("/products/awl")
        await page.click("text=database")
        await page.wait_for_selector("text=Tags: database")
        few = await page.locator(".card").count()
        await page.click("text=Tags: database")
        await expect(page.locator(".card")).not_to_have_count(few)

        assert "tag=" not in page.url
        await page.go_back()
        await expect(page.locator(".card")).to_have_count(few)
