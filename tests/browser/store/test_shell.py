"""The header of the store's pages: what it shows about the visitor when requests fail."""

from urllib.parse import urlsplit

from playwright.async_api import Browser, Route, expect

from tests.browser.store.people import PLAYER, sign_in
from tests.browser.waiting import box
from tests.browser.watched import assert_accessible, open_watched_page
from tests.servers.countersign import Running

LOST = ("Failed to load resource",)


async def test_the_account_appears_when_the_server_can_be_reached_again(browser: Browser, demo_store: Running) -> None:
    failures = {"/session": 2, "/api/v1/auth/me": 1}

    async def fail_first(route: Route) -> None:
        path = urlsplit(route.request.url).path
        if failures[path] > 0:
            failures[path] -= 1
            await route.abort()
        else:
            await route.continue_()

    async with open_watched_page(browser, demo_store.url, expected=LOST) as page:
        await sign_in(page, PLAYER, "/browse")
        for path in failures:
            await page.route(f"**{path}", fail_first)
        await page.goto("/browse")
        await page.locator("header.top-bar .avatar").wait_for()

    assert failures == {"/session": 0, "/api/v1/auth/me": 0}


async def test_account_pages_have_their_navigation_at_the_side_and_on_phones_in_a_list(
    browser: Browser, demo_store: Running, axe: str
) -> None:
    async with open_watched_page(browser, demo_store.url) as page:
        await sign_in(page, PLAYER, "/account")
        account_navigation = page.get_by_role("navigation", name="Account", exact=True)
        await expect(account_navigation.locator("[aria-current=page]")).to_have_text("Account")
        assert (await box(page.locator("h1")))["x"] > (await box(account_navigation))["x"] + 200
        await account_navigation.get_by_text("API keys").click()
        await expect(page.locator("h1")).to_have_text("API keys")
        await expect(account_navigation.locator("[aria-current=page]")).to_have_text("API keys")
        await assert_accessible(page, axe)
        await page.set_viewport_size({"width": 390, "height": 844})
        await page.emulate_media(color_scheme="dark")
        await assert_accessible(page, axe)
        await page.goto("/account")
        await page.locator(".link-list").get_by_text("API keys").wait_for()
        await assert_accessible(page, axe)
        await page.set_viewport_size({"width": 320, "height": 844})
        assert await page.evaluate("document.documentElement.scrollWidth") <= 320
        await page.locator(".link-list").get_by_text("API keys").click()
        await expect(page.locator("h1")).to_have_text("API keys")
