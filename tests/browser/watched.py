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
async def open_watched_page(
    browser: Browser,
    site: str,
    *,
    width: int = 1440,
    scheme: str = "light",
    expected: tuple[str, ...] = (),
    **options: Any,
) -> AsyncIterator[Page]:
    """Open a page in a new browser context. Its addresses may be paths of the site. The test fails if the console shows
    an error without one of the `expected` texts, or if the page sends a request to another host."""
    viewport = {"width": width, "height": 900}
    context = await browser.new_context(
        base_url=site, viewport=viewport, color_scheme=scheme, **{"locale": "en-GB", **options}
    )
    # The default of 30 seconds is too short for a busy machine.
    context.set_default_timeout(ENOUGH_MS)
    errors: list[str] = []

    def record_console_message(message: ConsoleMessage) -> None:
        if message.type == "error" and not any(text in message.text for text in expected):
            errors.append(f"{message.page and message.page.url}: {message.text}")

    # Watch the whole context, because a test may open another page.
    context.on("console", record_console_message)
    context.on("weberror", lambda error: errors.append(f"{error.page and error.page.url}: {error.error}"))
    context.on(
        "request", lambda request: None if request.url.startswith(site) else errors.append(f"asked {request.url}")
    )
    await context.add_init_script(_REPORT)
    yield await context.new_page()
    await context.close()
    assert not errors, "\n".join(errors)


async def assert_accessible(page: Page, axe: str) -> None:
    """Require that the page breaks no rule of accessibility."""
    violations = await broken(page, axe)
    assert not violations, "\n".join(violations)


async def picture(page: Page, name: str) -> None:
    """Save a picture of the whole page, if the environment names a folder for pictures."""
    folder = os.environ.get(PICTURES)
    if folder:
        await page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)
