"""A customer's journey from the front page to a download, by keyboard alone and by mouse: nothing typed is lost,
although the page is reloaded, the service restarts, the network is lost and the session ends on the way."""

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.store.conftest import require_pages
from tests.browser.store.input_devices import Keyboard, Mouse
from tests.browser.store.people import PASSWORD, PLAYER, call
from tests.browser.waiting import press
from tests.browser.watched import open_watched_page
from tests.servers.countersign import Running, served
from tests.servers.process import free_port

EXPECTED = ("ERR_CONNECTION", "ERR_EMPTY_RESPONSE", "ERR_INTERNET_DISCONNECTED", "status of 401")
"""What the console reports about a stopped service, a lost network and an ended session."""
PRODUCT, TITLE = "awl", "Awl"
NOTE = "Bought for the workshop"


def issue_code(store: Running) -> str:
    """Return a fresh code for the product."""
    return call(store, "POST", "/codes", {"kind": "license", "products": [PRODUCT], "count": 1})["codes"][0]


async def sign_in(keyboard: Keyboard) -> None:
    """Sign in on the page for that."""
    await keyboard.type("#email", PLAYER)
    await keyboard.type("#password", PASSWORD)
    await keyboard.press("main form button")


async def find_the_product(page: Page, keyboard: Keyboard) -> None:
    """Search on the front page, reload the results, and open the product."""
    await page.goto("/")
    await page.wait_for_selector("header [role=combobox]")
    await press(page, "/")
    await keyboard.type("#q", TITLE)
    await expect(page.locator(".search-panel [role=option]").first).to_contain_text(TITLE)
    await page.keyboard.press("Enter")
    await page.wait_for_url(f"**/browse?q={TITLE}")
    result = page.locator(f".card a[href='/products/{PRODUCT}']")
    await result.first.wait_for()
    await page.reload()
    await expect(page.locator("#q")).to_have_value(TITLE)
    await keyboard.press(f".card a[href='/products/{PRODUCT}']")
    await page.wait_for_selector(f"h1:text-is('{TITLE}')")


async def redeem_refused(page: Page, keyboard: Keyboard, code: str) -> None:
    """Send the code where it cannot arrive: the page says so and keeps the code."""
    async with page.expect_event("requestfailed", lambda request: request.url.endswith("/api/v1/redeem")):
        await keyboard.press(".get-code button")
    await page.wait_for_selector(".get-code [role=alert] >> text=Can’t reach the server")
    await expect(page.locator("#get-code")).to_have_value(code)


async def redeem_after_the_session(page: Page, keyboard: Keyboard, code: str) -> None:
    """Send the code when the session has ended, sign in again, and send it then."""
    await page.context.clear_cookies()
    await keyboard.press(".get-code button")
    await keyboard.press(".get-code [role=alert] a:text-is('Sign in')")
    await page.wait_for_selector("#password")
    await sign_in(keyboard)
    await expect(page.locator("#get-code")).to_have_value(code)
    await keyboard.press(".get-code button")
    await page.wait_for_selector("text=Added to your library")
    await expect(page.locator(".get a:has-text('Download for Linux')")).to_be_focused()


async def note_and_download_after_a_lost_network(page: Page, keyboard: Keyboard) -> None:
    """Note something and start the download in the library while there is no network, and again when there is."""
    card = f".card:has(a[href='/products/{PRODUCT}'])"
    note = page.locator("dialog[open] textarea")
    await keyboard.press(f"{card} .get-more")
    await page.context.set_offline(True)
    await keyboard.type("dialog[open] textarea", NOTE)
    await page.keyboard.press("Tab")
    await page.wait_for_selector("dialog[open] .fault >> text=Can’t reach the server")
    await page.keyboard.press("Escape")
    await keyboard.press(f"{card} .get-now")
    await page.wait_for_selector(".toast >> text=Can’t reach the server")
    await page.context.set_offline(False)
    await expect(page.locator("header [role=status]")).to_have_text("")
    await keyboard.press(f"{card} .get-more")
    await expect(note).to_have_value(NOTE)
    await page.keyboard.press("Escape")
    await expect(page.locator(card)).to_contain_text(NOTE)
    async with page.expect_response("**/api/v1/library/*"), page.expect_download() as started_download:
        await keyboard.press(f"{card} .get-now")
    assert await (await started_download.value).failure() is None


@pytest.mark.parametrize("device", [Keyboard, pytest.param(Mouse, marks=pytest.mark.full)])
async def test_a_customer_redeems_and_downloads_despite_disturbances(
    browser: Browser, tmp_path: Path, device: type[Keyboard]
) -> None:
    require_pages()
    data, ports = tmp_path / "data", (free_port(), free_port())
    with served(data, "--demo", ports=ports) as store:
        code = await asyncio.to_thread(issue_code, store)
        watching = open_watched_page(browser, store.url, expected=EXPECTED)
        page = await watching.__aenter__()
        keyboard = device(page)
        await find_the_product(page, keyboard)
        await keyboard.press(".get a:text('Sign in to redeem')")
        await page.wait_for_selector("#password")
        await sign_in(keyboard)
        await keyboard.type("#get-code", code)
        await page.reload()
        await expect(page.locator("#get-code")).to_have_value(code)
    await redeem_refused(page, keyboard, code)
    with served(data, ports=ports) as store:
        await expect(page.locator("header [role=status]")).to_have_text("")
        await redeem_after_the_session(page, keyboard, code)
        await keyboard.press("header nav a:text-is('Library')")
        await note_and_download_after_a_lost_network(page, keyboard)
        await watching.__aexit__(None, None, None)
        library = await asyncio.to_thread(call, store, "GET", "/library", email=PLAYER)

    bought = next(item for item in library if item["slug"] == PRODUCT)
    assert bought["note"] == NOTE
    assert bought["installed_version"] is not None
