"""Free API keys, the sandbox, the list of keys, and the messages when there is no answer."""

import asyncio

import httpx
import pytest
from playwright.async_api import Browser, Route, expect

from tests.browser.rules import settle
from tests.browser.waiting import press, press_together
from tests.browser.watched import assert_accessible, open_watched_page, picture
from tests.servers.countersign import Running


async def test_a_sandbox_key_is_created_and_works_only_in_the_sandbox(
    browser: Browser, demo_store: Running, axe: str
) -> None:
    async with open_watched_page(browser, demo_store.url) as page:
        await page.goto("/keys")
        await page.click("text=Use sample data")
        await page.click("text=Create sandbox key")
        key = await page.inner_text("code:text('csk_sandbox_')")
        await assert_accessible(page, axe)
        await picture(page, "keys-1440-light")

    headers = {"Authorization": f"Bearer {key}"}
    within = await asyncio.to_thread(httpx.get, f"{demo_store.url}/sandbox/api/v1/library", headers=headers, timeout=60)
    service_answer = await asyncio.to_thread(httpx.get, f"{demo_store.url}/api/v1/library", headers=headers, timeout=60)
    assert (within.status_code, service_answer.status_code) == (200, 403)


@pytest.mark.full
async def test_every_page_is_reached_by_keyboard_and_the_keys_are_listed(
    browser: Browser, demo_store: Running, axe: str
) -> None:
    async with open_watched_page(browser, demo_store.url) as page:
        await page.goto("/")
        # The server sends cards, but not the field for the search.
        await page.wait_for_selector("#q")
        await page.wait_for_selector(".card")
        await press(page, "?")
        await page.wait_for_selector("dialog >> text=Redeem a code")
        await assert_accessible(page, axe)
        await page.keyboard.press("Escape")
        await expect(page.locator("dialog[open]")).to_have_count(0)
        for key, title in (("a", "Ask"), ("k", "API keys"), ("l", "Library"), ("p", "Discover")):
            await press_together(page, "g", key)
            await expect(page.locator("h1")).to_have_text(title)
            await expect(page.locator("h1")).to_be_focused()
        await page.keyboard.type("lark")
        await settle(page)
        await expect(page.locator("h1")).to_have_text("Discover")


@pytest.mark.full
async def test_too_many_requests_are_waited_out_and_tried_again(
    browser: Browser, demo_store: Running, axe: str
) -> None:
    refused_count = 0

    async def limited(route: Route) -> None:
        nonlocal refused_count
        refused_count += 1
        if refused_count > 1:
            await route.continue_()
            return
        problem = '{"title": "Too many requests", "detail": "the quota is used up", "status": 429}'
        headers = {"Retry-After": "2", "Content-Type": "application/problem+json"}
        await route.fulfill(status=429, headers=headers, body=problem)

    async with open_watched_page(browser, demo_store.url, expected=("status of 429",)) as page:
        await page.goto("/questions")
        await page.route("**/api/v1/products?*", limited)
        await page.click("nav >> text=Browse")
        await page.wait_for_selector("[role=alert] >> text=Try again in 2 s.")
        await assert_accessible(page, axe)

        await page.wait_for_selector(".card")


@pytest.mark.full
async def test_a_lost_connection_is_reported(browser: Browser, demo_store: Running) -> None:
    async with open_watched_page(browser, demo_store.url, expected=("ERR_INTERNET_DISCONNECTED", "ERR_FAILED")) as page:
        await page.goto("/questions")
        await page.wait_for_selector("h1:text('Ask')")
        await page.context.set_offline(True)
        await page.wait_for_selector("header >> text=Offline")
        await page.click("nav >> text=Browse")
        await page.wait_for_selector("text=Can’t reach the server")
        await page.wait_for_selector("text=Try again")
        await page.context.set_offline(False)

        await page.wait_for_selector(".card")
