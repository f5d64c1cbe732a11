"""What a person does with a page in a browser, and what is wrong with a page."""

import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from playwright.async_api import Browser, BrowserContext, Page

from tests.servers.countersign import COMMAND, Running, environment

NARROW, WIDE = 360, 1440
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


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
    """The options of a browser of this width and colour scheme, in which axe-core may look at pages."""
    # The policy of the pages lets no script in, that of the test neither.
    return {"color_scheme": scheme, "viewport": {"width": width, "height": 740}, "bypass_csp": True}


async def send(page: Page, **fields: str) -> None:
    """Fill the form's fields by their names and press its first button."""
    for name, value in fields.items():
        await page.fill(f"#{name}", value)
    await page.click("button")


async def heading(page: Page) -> str:
    """What the page is called."""
    return await page.inner_text("h1")


async def faults(page: Page, axe: str) -> list[str]:
    """What breaks a rule of axe-core on the page, and whether it is wider than its window."""
    await page.evaluate(axe)
    result = await page.evaluate("tags => axe.run(document, {runOnly: {type: 'tag', values: tags}})", TAGS)
    found = [f"{each['id']}: {each['nodes'][0]['html'][:120]}" for each in result["violations"]]
    is_wide = await page.evaluate("document.documentElement.scrollWidth > window.innerWidth")
    return [f"{page.url}: {each}" for each in (*found, *(["wider than its window"] if is_wide else []))]


def mailed_link(store: Running, to: str, *, other_than: str = "") -> str:
    """The link in the newest letter, as whoever runs the service finds it."""
    command = [*COMMAND, "mail", "--last", "--to", to, "--json", "--data", str(store.data)]
    for _ in range(100):
        done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False, timeout=30)
        if done.returncode == 0 and (link := str(json.loads(done.stdout)["letters"][0]["links"][0])) != other_than:
            return link
    raise AssertionError(done.stdout + done.stderr)
