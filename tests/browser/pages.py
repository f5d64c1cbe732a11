"""What a person does with a page in a browser."""

import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from playwright.async_api import Browser, BrowserContext, Page

from tests.servers.countersign import COMMAND, Running, environment

NARROW, WIDE = 360, 1440


@asynccontextmanager
async def opened(browser: Browser, store: Running, **options: Any) -> AsyncIterator[tuple[BrowserContext, Page]]:
    """A fresh page of a fresh browser context; whatever it asks another site for fails the test."""
    context = await browser.new_context(**options)
    page = await context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    yield context, page
    await context.close()
    assert not [url for url in asked if not url.startswith(store.url)]


def looks(scheme: str, width: int) -> dict[str, Any]:
    """The options of a browser of this width and colour scheme."""
    return {"color_scheme": scheme, "viewport": {"width": width, "height": 740}}


async def send(page: Page, **fields: str) -> None:
    """Fill the form's fields by their names and press its first button."""
    for name, value in fields.items():
        await page.fill(f"#{name}", value)
    await page.click("button")


async def heading(page: Page) -> str:
    """What the page is called."""
    return await page.inner_text("h1")


def mailed_link(store: Running, to: str, *, other_than: str = "") -> str:
    """The link in the newest letter, as whoever runs the service finds it."""
    command = [*COMMAND, "mail", "--last", "--to", to, "--json", "--data", str(store.data)]
    for _ in range(100):
        done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False, timeout=30)
        if done.returncode == 0 and (link := str(json.loads(done.stdout)["letters"][0]["links"][0])) != other_than:
            return link
    raise AssertionError(done.stdout + done.stderr)
