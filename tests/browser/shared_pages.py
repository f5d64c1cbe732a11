"""Pages that tests take one after the other. A page that is loaded in a warm process costs a third of one in a new
context, whose scripts are compiled anew; so a context is kept, with nothing in it of the test before."""

from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from playwright.async_api import Browser, BrowserContext, Page, Route

EMPTY = "/nothing-is-here"
"""The address that a page waits at: of the same site, so that it stays in its process, and answered by no server."""
TIMEOUT_MS = 30_000
"""How long a page waits for what a test expects, as Playwright has it."""
_REPORT = """
addEventListener("securitypolicyviolation", event =>
  console.error(`policy: ${event.violatedDirective} refused ${event.blockedURI} ${event.sample}`))
"""

_waiting: defaultdict[str, list[Page]] = defaultdict(list)
"""Pages that no test has, by the options of their contexts."""


@asynccontextmanager
async def fresh_page(browser: Browser, site: str, **options: Any) -> AsyncIterator[Page]:
    """A page of a context with these options, without cookies, storage or cached answers. After a test that fails, its
    context is closed, and no other gets it."""
    kind = repr((id(browser), sorted(options.items())))
    page = _waiting[kind].pop() if _waiting[kind] else await _new(browser, options)
    yield page
    await _clear(page, site)
    await _dress(page, options)
    _waiting[kind].append(page)


def is_waiting(context: BrowserContext) -> bool:
    """Whether the context is kept for another test."""
    return any(page.context is context for pages in _waiting.values() for page in pages)


async def _new(browser: Browser, options: dict[str, Any]) -> Page:
    context = await browser.new_context(**options)
    page = await context.new_page()
    await page.add_init_script(_REPORT)
    return page


async def _clear(page: Page, site: str) -> None:
    context = page.context
    for other in context.pages:
        if other is not page:
            await other.close()
    await context.unroute_all(behavior="ignoreErrors")
    await page.unroute_all(behavior="ignoreErrors")
    await page.route(f"{site}{EMPTY}", _nothing)
    await page.goto(f"{site}{EMPTY}")
    await page.unroute_all()
    session = await context.new_cdp_session(page)
    await session.send("Runtime.evaluate", {"expression": "sessionStorage.clear()"})
    await session.send("Storage.clearDataForOrigin", {"origin": site, "storageTypes": "all"})
    await session.send("Network.clearBrowserCache")
    await session.send("Page.resetNavigationHistory")
    await session.detach()
    await context.clear_cookies()


async def _dress(page: Page, options: dict[str, Any]) -> None:
    """Give the page the looks back that its context began with."""
    await page.set_viewport_size(options.get("viewport", {"width": 1280, "height": 720}))
    await page.emulate_media(
        color_scheme=options.get("color_scheme", "light"), reduced_motion=options.get("reduced_motion", "no-preference")
    )
    page.set_default_timeout(TIMEOUT_MS)


async def _nothing(route: Route) -> None:
    await route.fulfill(body="")
