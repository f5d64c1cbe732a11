"""A page that is watched: whatever breaks its policy, its scripts or this machine's walls fails the test."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, ConsoleMessage, Error, Page, Request

from tests.browser.rules import broken
from tests.browser.shared_pages import fresh_page

PICTURES = "COUNTERSIGN_PICTURES"
"""The variable that names a folder for `picture`."""


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
    """A fresh page of a fresh browser, whose addresses may be paths of the site. What the console says of errors
    fails the test, but for texts that hold one of those `expected`; so does a request to any other place."""
    looks: dict[str, Any] = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme, "locale": "en-GB"}
    found: list[str] = []

    def said(message: ConsoleMessage) -> None:
        if message.type == "error" and not any(each in message.text for each in expected):
            found.append(f"{page.url}: {message.text}")

    def failed(error: Error) -> None:
        found.append(f"{page.url}: {error}")

    def asked(request: Request) -> None:
        if not request.url.startswith(site):
            found.append(f"asked {request.url}")

    async with fresh_page(browser, site, base_url=site, **{**looks, **options}) as page:
        page.on("console", said)
        page.on("pageerror", failed)
        page.on("request", asked)
        yield page
        page.remove_listener("console", said)
        page.remove_listener("pageerror", failed)
        page.remove_listener("request", asked)
    assert not found, "\n".join(found)


async def assert_accessible(page: Page, axe: str) -> None:
    """Insist that no rule is broken."""
    found = await broken(page, axe)
    assert not found, "\n".join(found)


async def picture(page: Page, name: str) -> None:
    """Keep a picture of the whole page, where a folder for them is named in the environment."""
    folder = os.environ.get(PICTURES)
    if folder:
        await page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)
