"""A page that is watched: whatever breaks its policy, its scripts or this machine's walls fails the test."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, ConsoleMessage, Page

from tests.browser.pages import TAGS

PICTURES = "COUNTERSIGN_PICTURES"
"""The variable that names a folder for `picture`."""

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
    """A fresh page of a fresh browser, whose addresses may be paths of the site. What the console says of errors
    fails the test, but for texts that hold one of those `expected`; so does a request to any other place."""
    viewport = {"width": width, "height": 900}
    context = await browser.new_context(
        base_url=site, viewport=viewport, color_scheme=scheme, **{"locale": "en-GB", **options}
    )
    page = await context.new_page()
    found: list[str] = []

    def said(message: ConsoleMessage) -> None:
        if message.type == "error" and not any(each in message.text for each in expected):
            found.append(f"{page.url}: {message.text}")

    page.on("console", said)
    page.on("pageerror", lambda error: found.append(f"{page.url}: {error}"))
    page.on("request", lambda asked: None if asked.url.startswith(site) else found.append(f"asked {asked.url}"))
    await page.add_init_script(_REPORT)
    yield page
    await context.close()
    assert not found, "\n".join(found)


async def evaluated(page: Page, expression: str) -> Any:
    """What the expression comes to, run by the debugger: the page's policy stays as it is."""
    session = await page.context.new_cdp_session(page)
    asked = {"expression": expression, "awaitPromise": True, "returnByValue": True}
    answer = await session.send("Runtime.evaluate", asked)
    await session.detach()
    assert "exceptionDetails" not in answer, answer
    return answer["result"].get("value")


async def assert_accessible(page: Page, axe: str) -> None:
    """Insist that no rule of axe-core is broken, and that nothing is wider than the window."""
    await evaluated(page, f"{axe};undefined")
    options = f"{{runOnly: {{type: 'tag', values: {TAGS}}}}}"
    told = "`${each.id}: ${each.nodes.map(node => node.html.slice(0, 160)).join(' | ')}`"
    asked = f"axe.run(document, {options}).then(found => found.violations.map(each => {told}))"
    broken: list[str] = await evaluated(page, asked)
    if await evaluated(page, "document.documentElement.scrollWidth > innerWidth"):
        broken.append("wider than its window")
    assert not broken, f"{page.url}:\n" + "\n".join(broken)


async def picture(page: Page, name: str) -> None:
    """Keep a picture of the whole page, where a folder for them is named in the environment."""
    folder = os.environ.get(PICTURES)
    if folder:
        await page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)
