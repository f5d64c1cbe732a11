"""A watched page: a violation of its policy, an error in a script or a request to another machine fails the test."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, ConsoleMessage, Page

from tests.browser.rules import broken

PICTURES = "COUNTERSIGN_PICTURES"
"""The variable that names a folder for `picture`."""

ENOUGH_MS = 60_000
"""How long an element of a page may take to appear on a busy machine."""

_REPORT = """
addEventListener("securitypolicyviolation", event =>
  console.error(`policy: ${event.violatedDirective} refused ${event.blockedURI} ${event.sample}`))
"""


@asynccontextmanager
async def watched(
    browser: Browser,
    site: str,
    *,
    width: int = 1440,
    scheme: str = "light",
    expected: tuple[str, ...] = (),
    **options: Any,
) -> AsyncIterator[Page]:
    """A new page of a new browser, whose addresses may be paths of the site. An error in the console fails the test
    unless its text contains one of those in `expected`; a request to any other host fails it too."""
    viewport = {"width": width, "height": 900}
    context = await browser.new_context(
        base_url=site, viewport=viewport, color_scheme=scheme, **{"locale": "en-GB", **options}
    )
    # The default of 30 seconds is too short for a busy machine.
    context.set_default_timeout(ENOUGH_MS)
    found: list[str] = []

    def said(message: ConsoleMessage) -> None:
        if message.type == "error" and not any(text in message.text for text in expected):
            found.append(f"{message.page and message.page.url}: {message.text}")

    # Of the whole context, because a test may open another page.
    context.on("console", said)
    context.on("weberror", lambda error: found.append(f"{error.page and error.page.url}: {error.error}"))
    context.on("request", lambda asked: None if asked.url.startswith(site) else found.append(f"asked {asked.url}"))
    await context.add_init_script(_REPORT)
    yield await context.new_page()
    await context.close()
    assert not found, "\n".join(found)


async def assert_accessible(page: Page, axe: str) -> None:
    """Require that no rule is broken."""
    found = await broken(page, axe)
    assert not found, "\n".join(found)


async def picture(page: Page, name: str) -> None:
    """Save a picture of the whole page, if the environment names a folder for pictures."""
    folder = os.environ.get(PICTURES)
    if folder:
        await page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)
