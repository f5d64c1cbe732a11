"""What a browser shows depends only on what its person may see: two worlds that differ in nothing else look alike."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.async_api import Browser, Page, Route

from countersign.kernel import clock
from countersign.records import app
from countersign.web import work
from countersign.web.assets import Assets
from countersign.web.origin import Home
from countersign.web.site import Site
from tests.records.office import ROOT_URL
from tests.records.worlds.building import PASSWORD, STARTED, Audience, World, made_id
from tests.records.worlds.comparing import Renaming
from tests.records.worlds.conftest import Pairs

LOOKED_AT = clock.later(STARTED, seconds=60)
PAGES = (
    "/",
    "/models/lead",
    "/models/lead?order=-title",
    "/models/lead/board",
    "/models/party",
    "/models/ticket",
    "/models/activity/new",
    f"/models/party/records/{made_id('party', 1)}",
    f"/models/lead/records/{made_id('lead', 1)}",
    f"/models/ticket/records/{made_id('ticket', 1)}",
    "/dashboard",
    "/approvals",
)
NOTHING = "There is nothing here"
_SHOWN = """() => JSON.stringify([
  document.title,
  document.body.outerHTML,
  [...document.querySelectorAll('input, textarea, select')].map(each => [each.name, each.value]),
  {...localStorage}, {...sessionStorage},
])"""
_SETTLED = """() => new Promise(settled => {
  let timer
  const later = () => {
    clearTimeout(timer)
    timer = setTimeout(() => document.querySelector('[aria-busy=true]') ? later() : settled(), 300)
  }
  new MutationObserver(later).observe(document, {subtree: true, childList: true, attributes: true, characterData: true})
  later()
})"""
"""Nothing has changed for a moment, and nothing says that it is still loading."""


@asynccontextmanager
async def visited(browser: Browser, world: World, who: str) -> AsyncGenerator[Page]:
    """A page of the world's work app, signed in. Whatever the browser asks for is answered in this process."""
    home = Home(ROOT_URL, is_loopback=True)
    site = Site(work.entry(home, "COUNTERSIGN_RECORDS_URL"), app.create(world.service), home, Assets.of_package())
    context = await browser.new_context(base_url=ROOT_URL, locale="en-GB", timezone_id="UTC")
    async with httpx.AsyncClient(transport=httpx.ASGITransport(site), base_url=ROOT_URL) as http:

        async def answer(route: Route) -> None:
            asked = route.request
            sent = await asked.all_headers()
            sent.setdefault("sec-fetch-site", "same-origin")
            got = await http.request(
                asked.method, asked.url.removeprefix(ROOT_URL), content=asked.post_data_buffer, headers=sent
            )
            headers = {name: value for name, value in got.headers.items() if name != "content-encoding"}
            await route.fulfill(status=got.status_code, headers=headers, body=got.content)

        await context.route("**/*", answer)
        page = await context.new_page()
        await page.clock.set_fixed_time(LOOKED_AT / 1000)
        # For all of the visit: a page asks for several things at once, and for what happens until it is left.
        with clock.fixed(LOOKED_AT):
            await page.goto("/signin")
            await page.fill("#username", who)
            await page.fill("#password", PASSWORD)
            await page.press("#password", "Enter")
            await page.wait_for_url(lambda url: urlsplit(url).path == "/")
            yield page
    await context.close()


async def shown(page: Page, path: str) -> str:
    """Everything that the page holds once it is there."""
    await page.goto(path)
    await page.wait_for_selector("main h1")
    await page.evaluate(_SETTLED)
    found: str = await page.evaluate(_SHOWN)
    return found


@pytest.mark.parametrize("audience", ["dan", "bob"])
async def test_two_worlds_look_the_same(browser: Browser, sqlite_worlds: Pairs, audience: Audience) -> None:
    if Assets.of_package().parts("work") is None:
        pytest.skip("the pages are not built here (make setup, with Node and npm's registry)")
    async with (
        sqlite_worlds(audience) as (first, second),
        visited(browser, first, audience) as here,
        visited(browser, second, audience) as there,
    ):
        renaming = Renaming(sorted(first.service.records.registry.labels))
        for path in PAGES:
            seen = await asyncio.gather(shown(here, path), shown(there, path))

            assert NOTHING not in seen[0], path
            assert renaming.match(seen[0], seen[1], ""), (path, *_differing(*seen))

        assert len(renaming.pairs) > 20


def _differing(first: str, second: str) -> tuple[str, str]:
    """Where two texts part."""
    place = next((at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), 0)
    return first[max(0, place - 200) : place + 200], second[max(0, place - 200) : place + 200]
