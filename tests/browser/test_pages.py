"""The pages of both services in a real browser: one journey each, partly by keyboard, and the rules."""

import re
from collections.abc import Iterator

import pytest
from playwright.async_api import Browser, expect

from countersign.web.assets import Assets
from tests.browser.rules import evaluate, settle
from tests.browser.waiting import eventually, press, until_equal
from tests.browser.watched import open_watched_page
from tests.servers.countersign import Running, served

PASSWORD = "countersign-demo"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Both services with the demonstration; the test is skipped when the pages are not built."""
    if Assets.of_package().entry_assets("store") is None:
        pytest.skip("the pages are not built here (make setup, with Node and npm's registry)")
    with served(tmp_path_factory.mktemp("demo") / "data", "--demo", service="both") as running:
        yield running


def store(demo: Running) -> str:
    return demo.url


def work(demo: Running) -> str:
    return f"http://127.0.0.1:{demo.records_port}"


async def test_a_product_is_found_while_typing_and_opened_by_keyboard(browser: Browser, demo: Running) -> None:
    async with open_watched_page(browser, store(demo)) as page:
        await page.goto("/")
        await page.wait_for_selector("#q")
        await press(page, "/")
        await expect(page.locator("#q")).to_be_focused()
        await page.keyboard.type("auror")
        await page.wait_for_selector("[role=option]:has-text('Aurora Freight')")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/browse?q=auror")
        await expect(page.locator(".card")).to_have_count(1)
        await page.press(".card a", "Enter")
        await page.wait_for_selector("h1:text-is('Aurora Freight')")

        await expect(page).to_have_title("Aurora Freight · Countersign")
        await expect(page.locator("h1")).to_be_focused()
        await page.go_back()
        await page.wait_for_selector("h1:has-text('Results for')")
        await expect(page.locator("#q")).to_have_value("auror")


async def test_all_products_come_page_after_page(browser: Browser, demo: Running) -> None:
    async with open_watched_page(browser, store(demo)) as page:
        await page.goto("/browse")
        for shown_count in (24, 48):
            await expect(page.locator(".card")).to_have_count(shown_count)
            await page.click("text=/^Show .* more$/")

        await expect(page.locator(".card")).to_have_count(60)
        await expect(page.locator("text=/^Show .* more$/")).to_have_count(0)


async def test_a_product_is_read_without_scripts(browser: Browser, demo: Running) -> None:
    async with open_watched_page(browser, store(demo), java_script_enabled=False) as page:
        await page.goto("/browse")
        await page.click("text=Aurora Freight")

        await expect(page.locator("h1")).to_have_text("Aurora Freight")
        await expect(page.locator("a[href^='/api/v1/artifacts/']").first).to_be_attached()


async def test_a_customer_signs_in_and_out_of_the_store(browser: Browser, demo: Running) -> None:
    async with open_watched_page(browser, store(demo)) as page:
        await page.goto("/products/aurora-freight")
        await page.click("header >> text=Sign in")
        await page.fill("#email", "player@example.com")
        await page.fill("#password", PASSWORD)
        await page.press("#password", "Enter")
        await page.wait_for_selector("header .avatar")
        await expect(page).to_have_url(re.compile("/products/aurora-freight$"))
        owned = await page.evaluate("fetch('/api/v1/library').then(answer => answer.status)")
        assert owned == 200
        assert "csk" not in await page.evaluate("document.cookie + JSON.stringify(localStorage)")

        await page.click("header .avatar")
        await page.click("text=Sign out")
        await page.wait_for_selector("h1:text-is('Sign in')")


async def test_a_clerk_signs_in_reads_records_and_signs_out(browser: Browser, demo: Running) -> None:
    async with open_watched_page(browser, work(demo), expected=("401",)) as page:
        await page.goto("/models/lead")
        await page.fill("#username", "bob")
        await page.fill("#password", "not the password")
        await page.press("#password", "Enter")
        await page.wait_for_selector("[role=alert]")
        await expect(page.locator("[role=alert]")).to_be_focused()
        await page.fill("#password", PASSWORD)
        await page.press("#password", "Enter")
        await page.wait_for_selector("h1:text-is('Leads')")
        await page.click("[role=columnheader]:text('Title')")
        await page.wait_for_selector("[role=columnheader][aria-sort=ascending]")
        await expect(page).to_have_url(re.compile("order=title"))
        assert not await page.evaluate("document.cookie")
        assert (await page.context.cookies())[0]["httpOnly"]

        await page.click(".side-person button")
        await page.click("text=Sign out")
        await page.wait_for_selector("h1:text-is('Sign in')")

        async def is_signed_out() -> None:
            assert not await page.context.cookies()

        await eventually(is_signed_out)


async def test_keys_can_be_shown_and_switched_off(browser: Browser, demo: Running) -> None:
    async with open_watched_page(browser, store(demo)) as page:
        await page.goto("/")
        await page.wait_for_selector("#q")
        await press(page, "?")
        await page.wait_for_selector("dialog[open]")
        await page.check("dialog input[type=checkbox]")
        await page.keyboard.press("Escape")
        await page.wait_for_selector("dialog:not([open])", state="attached")
        await press(page, "?", "/")

        # What the keys do without the switch is shown then.
        await settle(page)
        await expect(page.locator("dialog[open]")).to_have_count(0)
        assert await evaluate(page, "document.activeElement.id") != "q"


async def test_the_language_and_colours_stay_chosen(browser: Browser, demo: Running) -> None:
    async with open_watched_page(browser, store(demo)) as page:
        await page.goto("/design")
        await page.select_option("footer label:nth-of-type(1) select", "dark")
        await page.select_option("footer label:nth-of-type(2) select", "de")
        await page.wait_for_selector("h1:text-is('Gestaltung')")

        root = "[document.documentElement.lang, {...document.documentElement.dataset}]"
        await until_equal(page, root, ["de", {"theme": "dark"}])


async def go_astray(browser: Browser, site: str) -> None:
    async with open_watched_page(browser, site) as page:
        await page.goto("/design")
        await page.evaluate("document.head.append(document.createElement('style'))")
        async with page.expect_console_message(lambda message: message.text.startswith("policy: ")):
            await page.evaluate("document.head.lastChild.textContent = 'a{}'")


async def test_a_violation_of_the_content_security_policy_fails_a_test(browser: Browser, demo: Running) -> None:
    with pytest.raises(AssertionError, match="policy: "):
        await go_astray(browser, store(demo))
