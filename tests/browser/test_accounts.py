"""The account pages in a real browser: all of them without scripts, and the rules of accessibility on each page."""

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, expect

from tests.browser.conftest import Site
from tests.browser.pages import (
    NARROW,
    SCHEMES,
    WIDE,
    Faults,
    Looks,
    Scheme,
    newest_link,
    no_faults,
    open_page,
    send,
)
from tests.servers.countersign import served

ANN = "ann@example.com"
LONG = "a.rather.long.address.that.does.not.fit@a-domain-as-long-as-the-window.example.com"


async def is_signed_in(site: Site, context: BrowserContext) -> bool:
    answer = await context.request.post(f"{site.url}/auth/session/token", data={}, headers={"Origin": site.url})
    return answer.ok


async def test_the_whole_walk_works_without_scripts(browser: Browser, site: Site) -> None:
    async with open_page(browser, site.running, java_script_enabled=False) as (context, page):
        await page.goto(f"{site.url}/auth/signin?return_to=/healthz")
        async with page.expect_navigation():
            await page.click("text=Create an account")
        await send(page, email=ANN)
        await expect(page.locator("h1")).to_have_text("Check your e-mail")

        await page.goto(newest_link(site.running, ANN))
        await expect(page.locator("#email")).to_have_value(ANN)
        await send(page, password="short")
        await expect(page.locator("[role=alert]")).to_contain_text("at least 10")
        await send(page, password="the first password")
        await expect(page).to_have_url(f"{site.url}/healthz")
        assert await is_signed_in(site, context)

        await context.request.post(f"{site.url}/auth/signout", form={}, headers={"Origin": site.url}, max_redirects=0)
        assert not await is_signed_in(site, context)

        await page.goto(f"{site.url}/auth/signin?return_to=/healthz")
        async with page.expect_navigation():
            await page.click("text=Forgot your password?")
        first_link = newest_link(site.running, ANN)
        await send(page, email=ANN)
        await page.goto(newest_link(site.running, ANN, other_than=first_link))
        await send(page, password="the second password")
        await expect(page).to_have_url(f"{site.url}/healthz")

        await context.clear_cookies()
        await page.goto(f"{site.url}/auth/signin?return_to=/healthz")
        await send(page, email=ANN, password="the first password")
        await expect(page.locator("[role=alert]")).to_have_text("E-mail or password is wrong")
        await expect(page.locator("#email")).to_have_value(ANN)
        await send(page, password="the second password")
        await expect(page).to_have_url(f"{site.url}/healthz")
        assert await is_signed_in(site, context)
        await page.goto(first_link)
        await expect(page.locator("h1")).to_have_text("This link does not work")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def faults(
    shared_browser: Browser, axe: str, tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Faults:
    """The faults of each page, which is loaded once and checked in each look."""
    looks = Looks(axe, bool(pytestconfig.getoption("--full")), no_faults())
    with served(tmp_path_factory.mktemp("accounts") / "data") as running:
        site = Site(running)
        async with open_page(shared_browser, running) as (_, page):
            for path in ("/auth/signin", "/auth/signup?return_to=/library", "/auth/reset", "/auth/prove?token=none"):
                await page.goto(site.url + path)
                await looks.add(page)
            await page.goto(f"{site.url}/auth/signin")
            await send(page, email=ANN, password="not the password")
            await looks.add(page)
            await page.goto(f"{site.url}/auth/signup")
            await send(page, email=LONG)
            await looks.add(page)
            await page.goto(newest_link(running, LONG))
            await looks.add(page)
            await page.goto(site.set_up_link())
            await looks.add(page)
            members = {"slug": "north", "name": "North", "email": "owner@example.com", "password": "a long password"}
            await send(page, **members)
            await expect(page.locator("h1")).to_have_text("Ready")
            await looks.add(page)
    return looks.faults


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_every_page_keeps_the_rules_of_accessibility(faults: Faults, scheme: Scheme, width: int) -> None:
    assert not faults[scheme, width]


async def test_the_sign_in_form_works_by_keyboard_and_shows_the_focus(browser: Browser, site: Site) -> None:
    async with open_page(browser, site.running) as (_, page):
        await page.goto(f"{site.url}/auth/signin")
        await expect(page.locator("#email")).to_be_focused()
        reached: list[str] = []
        for tabs in range(5):
            if tabs:
                await page.keyboard.press("Tab")
            await expect(page.locator(":focus")).to_have_css("outline-width", "2px")
            reached.append(await page.evaluate("document.activeElement.id || document.activeElement.textContent"))

    assert reached == ["email", "password", "Sign in", "Create an account", "Forgot your password?"]
