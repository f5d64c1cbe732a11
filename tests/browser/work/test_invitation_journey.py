"""An administrator invites a person, who sets a password and sees the records of their role, by keyboard alone and by
mouse: no typed text is lost, although the page is reloaded, the network is lost, the service restarts and the session
ends."""

from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.store.input_devices import Keyboard, Mouse
from tests.browser.work.conftest import PASSWORD, Desk, require_pages
from tests.browser.work.test_connection import AWAY
from tests.servers.countersign import served
from tests.servers.process import free_port

ENOUGH_MS = 120_000
EXPECTED = (*AWAY, "ERR_INTERNET_DISCONNECTED", "401", "404")
"""What the console reports about a stopped service, a lost network, an ended session and a page without access."""
FIELDS = {"#person-username": "nora", "#person-name": "Nora Dvořák", "#person-email": "nora@northwind.example"}
CHOSEN = "nine quiet harbours"
SEND = "button:text-is('Create invitation')"


async def sign_in(keyboard: Keyboard, name: str, password: str) -> None:
    """Sign in on the sign-in page."""
    await keyboard.type("#username", name)
    await keyboard.type("#password", password)
    await keyboard.press("main form button")


async def is_kept(page: Page) -> None:
    """Require that the form has everything that was typed."""
    for field, text in FIELDS.items():
        await expect(page.locator(field)).to_have_value(text)
    await expect(page.locator("#person-role option:checked")).to_have_text("Accountant")


async def fill_in_the_invitation(page: Page, keyboard: Keyboard) -> None:
    """Sign in, fill in the form for a new person, and find it filled in after a reload."""
    await page.goto("/signin")
    await sign_in(keyboard, "root", PASSWORD)
    await keyboard.press(".side-link[href='/users']")
    await keyboard.press("button:text-is('Invite a person')")
    for field, text in FIELDS.items():
        await keyboard.type(field, text)
    await keyboard.select("#person-role", "Accountant")
    await is_kept(page)
    await page.reload()
    await is_kept(page)


async def send_in_vain(page: Page, keyboard: Keyboard) -> None:
    """Send the form while the service cannot be reached: the page reports this and keeps the form."""
    async with page.expect_event("requestfailed", lambda request: request.url.endswith("/api/user/create")):
        await keyboard.press(SEND)
    await page.wait_for_selector("main form [role=alert]")
    await is_kept(page)


async def invite_after_the_session(page: Page, keyboard: Keyboard) -> str:
    """Send the form although the session has ended, sign in above the page, send it again, and return the link."""
    await page.context.clear_cookies()
    await keyboard.press(SEND)
    await keyboard.type("#session-password", PASSWORD)
    await page.keyboard.press("Enter")
    await expect(page.locator("#session-password")).to_have_count(0)
    await is_kept(page)
    await keyboard.press(SEND)
    link = await page.inner_text(".signed .secret")
    await expect(page.locator("#link-made")).to_be_focused()
    await expect(page.locator("tr:has(th:has-text('nora'))")).to_contain_text("Accountant")
    return link


async def accept_the_invitation(page: Page, keyboard: Keyboard, link: str) -> None:
    """Open the link, set a password, sign in, and see the records of the role and no others."""
    await page.goto(link)
    await page.reload()
    await keyboard.type("#password", CHOSEN)
    await keyboard.press("main button")
    await keyboard.press("a:text-is('Sign in')")
    await sign_in(keyboard, "nora", CHOSEN)
    await keyboard.press(".side-link[href='/models/invoice']")
    await page.wait_for_selector("h1:text-is('Invoices')")
    await page.reload()
    await page.wait_for_selector("h1:text-is('Invoices')")
    await expect(page.locator(".side-person")).to_contain_text("nora")
    await expect(page.locator(".side-link[href='/models/lead']")).to_have_count(0)
    await expect(page.locator(".side-link[href='/users']")).to_have_count(0)
    await page.goto("/users")
    await page.wait_for_selector("h1:text-is('Page not found')")
    await page.goto(link)
    await page.wait_for_selector("h1:text-is('This link no longer works')")


@pytest.mark.full
@pytest.mark.parametrize("kind", [Keyboard, Mouse])
async def test_a_person_is_invited_and_signs_in_despite_disturbances(
    browser: Browser, tmp_path: Path, kind: type[Keyboard]
) -> None:
    require_pages()
    data, ports = tmp_path / "data", (free_port(), free_port())
    settings = {"COUNTERSIGN_GRACE_S": "1"}
    with served(data, "--demo", service="both", ports=ports, settings=settings) as running:
        desk = Desk(running)
        watching = desk.page(browser, expected=EXPECTED)
        page = await watching.__aenter__()
        page.set_default_timeout(ENOUGH_MS)
        keyboard = kind(page)
        await fill_in_the_invitation(page, keyboard)
        await page.context.set_offline(True)
        await send_in_vain(page, keyboard)
        await page.context.set_offline(False)
    await send_in_vain(page, keyboard)
    with served(data, service="both", ports=ports, settings=settings):
        link = await invite_after_the_session(page, keyboard)
        async with desk.page(browser, expected=EXPECTED) as invited_page:
            invited_page.set_default_timeout(ENOUGH_MS)
            await accept_the_invitation(invited_page, kind(invited_page), link)
        await watching.__aexit__(None, None, None)

        nora = next(user for user in desk.caller("root").run("user.list") if user["username"] == "nora")
        assert (nora["name"], nora["email"]) == (FIELDS["#person-name"], FIELDS["#person-email"])
