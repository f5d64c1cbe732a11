"""The header of the store's pages: what it shows about the visitor when requests fail."""

from urllib.parse import urlsplit

from playwright.async_api import Browser, Route

from tests.browser.store.people import PLAYER, sign_in
from tests.browser.watched import watched
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

    async with watched(browser, demo_store.url, expected=LOST) as page:
        await sign_in(page, PLAYER, "/browse")
        for path in failures:
            await page.route(f"**{path}", fail_first)
        await page.goto("/browse")
        await page.locator("header.top-bar .avatar").wait_for()

    assert failures == {"/session": 0, "/api/v1/auth/me": 0}
