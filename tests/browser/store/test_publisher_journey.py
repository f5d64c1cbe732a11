"""A publisher's journey from a title to a product that visitors download, by keyboard alone and by mouse: no typed text
is lost, although the page is reloaded, the network is lost, the service restarts and the session ends on the way."""

import asyncio
import io
import secrets
import zipfile
from pathlib import Path

import pytest
from playwright.async_api import Browser, FilePayload, Page, Route, expect

from tests.browser.store.conftest import require_pages
from tests.browser.store.input_devices import Keyboard, Mouse
from tests.browser.store.people import PASSWORD, PUBLISHER
from tests.browser.watched import open_watched_page
from tests.servers.countersign import served
from tests.servers.process import free_port

EXPECTED = ("ERR_CONNECTION", "ERR_EMPTY_RESPONSE", "ERR_INTERNET_DISCONNECTED", "status of 401")
"""What the console reports about a stopped service, a lost network and an ended session."""
TITLE, SLUG = "Tide Tables", "tide-tables"
RELEASE = f"/publisher/products/{SLUG}/releases/1.0.0"
TWO_PARTS = 5 << 20
"""The pages upload files in parts of 4 MiB."""


def build() -> FilePayload:
    """Return a build that is uploaded in two parts."""
    zip_bytes = io.BytesIO()
    with zipfile.ZipFile(zip_bytes, "w") as file:
        file.writestr("tide/run.sh", "#!/bin/sh\necho tide\n")
        file.writestr("tide/tables.bin", secrets.token_bytes(TWO_PARTS))
    return {"name": "tide-tables.zip", "mimeType": "application/zip", "buffer": zip_bytes.getvalue()}


async def sign_in(keyboard: Keyboard) -> None:
    """Sign in on the sign-in page."""
    await keyboard.type("#email", PUBLISHER)
    await keyboard.type("#password", PASSWORD)
    await keyboard.press("main form button")


async def describe_the_product(page: Page, keyboard: Keyboard) -> None:
    """Sign in, fill in the form of a new product, and find it filled in after a reload."""
    await page.goto("/publisher")
    await keyboard.press("main a:text-is('Sign in')")
    await page.wait_for_selector("#password")
    await sign_in(keyboard)
    await keyboard.press("main a:text-is('New product')")
    await keyboard.type("#title", TITLE)
    await keyboard.check("#platforms label:has-text('Linux') input")
    await keyboard.select("#access", "Free")
    await page.reload()
    await expect(page.locator("#title")).to_have_value(TITLE)
    await expect(page.locator("#slug")).to_have_value(SLUG)
    await expect(page.locator("#platforms label:has-text('Linux') input")).to_be_checked()
    await expect(page.locator("#access")).to_have_value("free")
    await keyboard.press("button:text-is('Create draft')")
    await page.wait_for_selector(f"h1:text-is('{TITLE}')")


async def draft_without_a_network(page: Page, keyboard: Keyboard) -> None:
    """Create a draft release without a network, and again with one."""
    await keyboard.press("summary:text-is('New release')")
    await keyboard.type("#version", "1.0.0")
    await keyboard.type("#notes", "Tides of **all** harbours")
    await page.context.set_offline(True)
    await keyboard.press("button:text-is('Save draft')")
    await page.wait_for_selector("main [role=alert] >> text=Can’t reach the server")
    await expect(page.locator("#version")).to_have_value("1.0.0")
    await expect(page.locator("#notes")).to_have_value("Tides of **all** harbours")
    await page.context.set_offline(False)
    await expect(page.locator("header [role=status]")).to_have_text("")
    await keyboard.press("button:text-is('Save draft')")
    await page.wait_for_url(f"**{RELEASE}")


class SecondPart:
    """Delays the second part of an upload until the service is stopped."""

    def __init__(self) -> None:
        self.parts = 0
        self.is_sent, self.may_go = asyncio.Event(), asyncio.Event()

    async def hold(self, route: Route) -> None:
        """Let all other requests pass."""
        if route.request.method == "PUT":
            self.parts += 1
            if self.parts == 2:
                self.is_sent.set()
                await self.may_go.wait()
        await route.continue_()


async def pass_the_checks(page: Page, keyboard: Keyboard) -> None:
    """Wait for the file, of which only the missing part is sent again, and for its checks."""
    await page.wait_for_selector("tr:has-text('tide-tables.zip') >> text=Uploaded")
    await keyboard.press(".step:not([hidden]) button:text-is('Continue')")
    await page.wait_for_selector(".step:not([hidden]) [role=status] >> text=Passed")
    await keyboard.press(".step:not([hidden]) button:text-is('Continue')")


async def note_after_the_session(page: Page, keyboard: Keyboard) -> None:
    """Change the notes after the session has ended, sign in again, and save them then."""
    await expect(page.locator("#notes")).to_have_value("Tides of **all** harbours")
    await keyboard.type("#notes", "Tides of **four** harbours")
    await page.context.clear_cookies()
    await keyboard.press(".step:not([hidden]) button:text-is('Save and continue')")
    alert = page.locator(".step:not([hidden]) [role=alert]")
    await expect(alert.locator("h2")).to_have_text("Sign in to continue")
    await expect(alert.locator("p")).to_have_text(["You’re signed out."])
    await keyboard.press(".step:not([hidden]) [role=alert] a:text-is('Sign in')")
    await page.wait_for_selector("#password")
    await sign_in(keyboard)
    await expect(page.locator("#notes")).to_have_value("Tides of **four** harbours")
    await keyboard.press(".step:not([hidden]) button:text-is('Save and continue')")


async def publish(page: Page, keyboard: Keyboard) -> None:
    """Review the release and publish it."""
    await expect(page.locator(".step:not([hidden])")).to_contain_text("Tides of four harbours")
    await keyboard.press(".step:not([hidden]) button:text-is('Publish'):enabled")
    await page.wait_for_selector(".page-head >> text=Published")


@pytest.mark.parametrize("device", [Keyboard, pytest.param(Mouse, marks=pytest.mark.full)])
async def test_a_publisher_publishes_despite_disturbances(
    browser: Browser, tmp_path: Path, device: type[Keyboard]
) -> None:
    require_pages()
    data, ports = tmp_path / "data", (free_port(), free_port())
    settings = {"COUNTERSIGN_JOB_WORKERS": "1"}
    upload = SecondPart()
    with served(data, "--demo", ports=ports, settings=settings) as store:
        watching = open_watched_page(browser, store.url, expected=EXPECTED)
        page = await watching.__aenter__()
        keyboard = device(page)
        await describe_the_product(page, keyboard)
        await draft_without_a_network(page, keyboard)
        await keyboard.select("#platform", "Linux")
        await page.route("**/uploads/*", upload.hold)
        await keyboard.choose_file("button:text-is('Choose files')", await asyncio.to_thread(build))
        await upload.is_sent.wait()
    upload.may_go.set()
    await page.wait_for_selector("header [role=status] >> text=Offline")
    with served(data, ports=ports, settings=settings):
        await pass_the_checks(page, keyboard)
        await note_after_the_session(page, keyboard)
        await publish(page, keyboard)
        await page.context.clear_cookies()
        await page.goto(f"/products/{SLUG}")
        await expect(page.locator("main")).to_contain_text("Tides of four harbours")
        async with page.expect_download() as started_download:
            await keyboard.press(".get a:has-text('Download for Linux')")
        assert await (await started_download.value).failure() is None
        await watching.__aexit__(None, None, None)

    assert upload.parts == 3, "the first part arrived once, the second was sent again"
