"""Redeeming codes: a code is redeemed as it was pasted, alone or with others, and the products are found in the
library."""

import asyncio
import re

import pytest
from playwright.async_api import Browser, Route, expect

from tests.browser.store.people import PLAYER, call, new_person, sign_in
from tests.browser.store.products import create_draft_product, publish_release_without_files
from tests.browser.waiting import until_equal
from tests.browser.watched import assert_accessible, open_watched_page
from tests.servers.countersign import Running

MISSED = "status of 404"


def issue_codes(store: Running, product: str, count: int = 1) -> list[str]:
    """Issue codes for the product."""
    return call(store, "POST", "/codes", {"kind": "license", "products": [product], "count": count})["codes"]


async def test_codes_are_redeemed_as_pasted_and_the_product_is_in_the_library(
    browser: Browser, demo_store: Running, axe: str
) -> None:
    email = await asyncio.to_thread(new_person, demo_store)
    code = (await asyncio.to_thread(issue_codes, demo_store, "awl"))[0]
    async with open_watched_page(browser, demo_store.url, expected=(MISSED,)) as page:
        await sign_in(page, email, "/redeem")
        await page.fill("#code", f"  {code.lower().replace('-', ' ')} \nnot a code\n{code}")
        await page.click("button:text('Redeem 2 codes')")

        results = page.locator(".results li")
        await expect(results).to_have_count(2)
        await expect(results.nth(0)).to_contain_text("Added to your library")
        await expect(results.nth(0)).to_contain_text("Awl")
        await expect(results.nth(1)).to_contain_text("Code not found")
        await assert_accessible(page, axe)
        await page.click(".results >> text=Awl")
        await page.wait_for_selector(".get >> text=In your library")
        await page.click("nav >> text=Library")
        await page.fill("#find", "awl")
        await expect(page.locator(".card h3")).to_have_text(["Awl"])
        await page.click(".card .get-more")
        await page.wait_for_selector("dialog a[download]")


@pytest.mark.full
async def test_pressed_again_after_a_cut_a_code_is_used_once(browser: Browser, demo_store: Running) -> None:
    slug = await asyncio.to_thread(create_draft_product, demo_store)
    await asyncio.to_thread(publish_release_without_files, demo_store, slug, "1.0.0")
    code = (await asyncio.to_thread(issue_codes, demo_store, slug))[0]
    keys: list[str | None] = []

    async def cut_redemption(route: Route) -> None:
        keys.append(route.request.headers.get("idempotency-key"))
        if len(keys) == 1:
            # The store has redeemed it, but its answer is lost on the way.
            await route.fetch()
            await route.abort()
        else:
            await route.continue_()

    async with open_watched_page(browser, demo_store.url, expected=("ERR_FAILED",)) as page:
        await sign_in(page, PLAYER, "/redeem")
        await page.route("**/api/v1/redeem", cut_redemption)
        await page.fill("#code", code)
        await page.click("button:text('Redeem')")
        await page.wait_for_selector(".results >> text=Can’t reach the server")
        await page.click("button:text('Redeem')")
        await page.wait_for_selector(".results >> text=Added to your library")

    assert keys[0] is not None
    assert keys[0] == keys[1]


@pytest.mark.full
async def test_a_code_from_a_link_survives_the_sign_in_and_is_sent_to_no_other_site(
    browser: Browser, demo_store: Running
) -> None:
    slug = await asyncio.to_thread(create_draft_product, demo_store)
    await asyncio.to_thread(publish_release_without_files, demo_store, slug, "1.0.0")
    code = (await asyncio.to_thread(issue_codes, demo_store, slug))[0]
    requested_urls: list[str] = []
    async with open_watched_page(browser, demo_store.url) as page:
        page.on("request", lambda request: requested_urls.append(f"{request.url} {request.headers.get('referer')}"))
        await page.goto(f"/redeem#code={code.lower()}")
        await page.wait_for_selector("h2:text-is('Sign in')")
        await page.wait_for_selector("text=We’ll keep your code in this tab")
        await expect(page).to_have_url(re.compile("/redeem$"))
        await page.click("main a:text('Sign in')")
        await page.fill("#email", PLAYER)
        await page.fill("#password", "countersign-demo")
        await page.click("button")
        await expect(page.locator("#code")).to_have_value(code.lower())
        await page.click("button.strong:text('Redeem')")
        await page.wait_for_selector(".results >> text=/Added to your library|Already in your library/")
        await page.reload()
        await expect(page.locator("#code")).to_have_value("")

    assert not [url for url in requested_urls if code.lower() in url.lower()]


@pytest.mark.full
async def test_typed_codes_stay_over_a_reload_a_lost_network_and_an_ended_session(
    browser: Browser, demo_store: Running
) -> None:
    slug = await asyncio.to_thread(create_draft_product, demo_store)
    await asyncio.to_thread(publish_release_without_files, demo_store, slug, "1.0.0")
    code = (await asyncio.to_thread(issue_codes, demo_store, slug))[0]
    expected = (MISSED, "ERR_FAILED", "ERR_INTERNET_DISCONNECTED", "status of 401")
    async with open_watched_page(browser, demo_store.url, expected=expected) as page:
        await sign_in(page, PLAYER, "/redeem")
        await page.fill("#code", code)
        await page.reload()
        await expect(page.locator("#code")).to_have_value(code)

        await page.route("**/api/v1/redeem", lambda route: route.abort())
        await page.click("button.strong:text('Redeem')")
        await page.wait_for_selector(".results >> text=Can’t reach the server")
        await page.unroute("**/api/v1/redeem")
        await page.reload()
        await expect(page.locator("#code")).to_have_value(code)

        session = await page.context.cookies()
        await page.context.clear_cookies()
        await page.click("button.strong:text('Redeem')")
        await page.click(".results a:text('Sign in')")
        await page.wait_for_url("**/auth/signin?return_to=%2Fredeem")
        await page.context.add_cookies(session)
        await page.goto("/redeem")
        await expect(page.locator("#code")).to_have_value(code)
        await page.click("button.strong:text('Redeem')")
        await page.wait_for_selector(".results >> text=Added to your library")
        await page.reload()
        await expect(page.locator("#code")).to_have_value("")


@pytest.mark.full
async def test_a_used_code_and_a_code_for_an_owned_product_get_different_messages(
    browser: Browser, demo_store: Running
) -> None:
    slug = await asyncio.to_thread(create_draft_product, demo_store)
    used_code, unused_code = await asyncio.to_thread(issue_codes, demo_store, slug, 2)
    await asyncio.to_thread(publish_release_without_files, demo_store, slug, "1.0.0")
    await asyncio.to_thread(call, demo_store, "POST", "/redeem", {"code": used_code}, email=PLAYER)
    async with open_watched_page(browser, demo_store.url) as page:
        await sign_in(page, PLAYER, "/redeem")
        await page.fill("#code", f"{used_code}\n{unused_code}")
        await page.click("button:text('Redeem 2 codes')")

        results = page.locator(".results li")
        await expect(results.nth(0)).to_contain_text("You’ve already used this code")
        await expect(results.nth(1)).to_contain_text("Already in your library. The code is still valid.")


@pytest.mark.full
async def test_a_person_without_a_session_signs_in_and_returns_to_the_page(
    browser: Browser, demo_store: Running
) -> None:
    async with open_watched_page(browser, demo_store.url) as page:
        await page.goto("/library?view=list")
        await page.click("main a:text('Sign in')")
        await page.fill("#email", PLAYER)
        await page.fill("#password", "countersign-demo")
        await page.click("button")

        await page.wait_for_selector(".product-rows")
        await expect(page).to_have_url(re.compile(r"/library\?view=list$"))
        await page.click("header .avatar")
        async with page.expect_navigation():
            await page.click("text=Sign out")
        await page.goto("/library")
        await page.wait_for_selector("h2:text-is('Sign in')")


async def test_a_code_typed_by_one_person_is_not_shown_to_the_next_person(
    browser: Browser, demo_store: Running
) -> None:
    first_person = await asyncio.to_thread(new_person, demo_store)
    second_person = await asyncio.to_thread(new_person, demo_store)
    async with open_watched_page(browser, demo_store.url) as page:
        await sign_in(page, first_person, "/products/awl")
        await page.fill("#get-code", "ABCDE-12345-FGHIJ")
        await page.reload()
        await expect(page.locator("#get-code")).to_have_value("ABCDE-12345-FGHIJ")

        # The session ends elsewhere, so that nothing clears this tab. Nothing that the page still asks for is refused.
        await page.goto("/logo.svg")
        await page.context.clear_cookies()
        await sign_in(page, second_person, "/products/awl")

        await expect(page.locator("#get-code")).to_have_value("")
        await until_equal(page, "Object.values(sessionStorage).join().includes('ABCDE')", expected=False)
