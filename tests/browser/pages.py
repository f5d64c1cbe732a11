"""A person's actions on a page in a browser."""

import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal

from playwright.async_api import Browser, BrowserContext, Page

from tests.browser.rules import LOOKS, broken
from tests.browser.watched import ENOUGH_MS
from tests.servers.countersign import COMMAND, Running, environment

NARROW, WIDE = 360, 1440
Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
Faults = dict[tuple[Scheme, int], list[str]]
"""Faults of pages, by colour scheme and window width."""


@asynccontextmanager
async def open_page(browser: Browser, store: Running, **options: Any) -> AsyncIterator[tuple[BrowserContext, Page]]:
    """Open a page in a new browser context. A request to another site fails the test."""
    context = await browser.new_context(**options)
    context.set_default_timeout(ENOUGH_MS)
    page = await context.new_page()
    requested_urls: list[str] = []
    page.on("request", lambda request: requested_urls.append(request.url))
    yield context, page
    await context.close()
    assert not [url for url in requested_urls if not url.startswith(store.url)]


@dataclass
class Looks:
    """Pages in each combination of colour scheme and width, and their faults.

    axe-core checks the rules that depend on the look in two combinations that share neither scheme nor width, and all
    other rules in one of them, in turn. With --full it checks all rules in every combination.
    """

    axe: str
    is_full: bool
    faults: Faults
    pages: int = 0

    async def add(self, page: Page) -> None:
        """Check the page in its current state."""
        looks = list(self.faults)
        full_look, opposite = looks[self.pages % len(looks)], looks[-1 - self.pages % len(looks)]
        for scheme, width in looks:
            await page.emulate_media(color_scheme=scheme)
            await page.set_viewport_size({"width": width, "height": 740})
            is_whole = self.is_full or (scheme, width) == full_look
            axe = self.axe if is_whole or (scheme, width) == opposite else ""
            self.faults[scheme, width] += await broken(page, axe, only=() if is_whole else LOOKS)
        self.pages += 1


def no_faults() -> Faults:
    """Return an empty collection of faults."""
    return {(scheme, width): [] for scheme in SCHEMES for width in (NARROW, WIDE)}


async def send(page: Page, **fields: str) -> None:
    """Fill the form's fields by their names, press its first button, and wait for the page it leads to."""
    for name, value in fields.items():
        await page.fill(f"#{name}", value)
    async with page.expect_navigation():
        await page.click("button")


async def heading(page: Page) -> str:
    """Return the heading of the page."""
    return await page.inner_text("h1")


def newest_link(store: Running, recipient: str, *, other_than: str = "") -> str:
    """Return the link in the newest e-mail, which the operator reads with a command."""
    command = [*COMMAND, "mail", "--last", "--to", recipient, "--json", "--data", str(store.data)]
    for _ in range(100):
        process = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False, timeout=120)
        if (
            process.returncode == 0
            and (link := str(json.loads(process.stdout)["letters"][0]["links"][0])) != other_than
        ):
            return link
    raise AssertionError(process.stdout + process.stderr)
