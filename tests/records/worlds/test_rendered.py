"""What a browser shows depends only on what its person may see: two worlds that differ only in hidden data look the
same."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
import uvicorn
from playwright.async_api import Browser, Page

from countersign.kernel import clock
from countersign.kernel.http.request import Receive, Send
from countersign.records import app
from countersign.web import work_site
from countersign.web.assets import Assets
from countersign.web.origin import PublicAddress
from countersign.web.site import Site
from tests.records.office import ROOT_URL
from tests.records.worlds.building import PASSWORD, STARTED, Audience, OpenWorld, made_id
from tests.records.worlds.comparing import TokenRenaming
from tests.records.worlds.conftest import WorldPairs

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
SAMPLE: dict[Audience, tuple[str, ...]] = {
    "dan": PAGES[::2],
    # For dan, the list of leads contains few kinds of tokens. The list of parties contains more.
    "bob": (*(page for page in PAGES[1::2] if "/ticket" not in page), "/models/party"),
}
"""Maps each person to the pages that the person visits: three lists for one, two records for the other. With --full,
both visit all pages."""
CALLS = ("/api/", "/session")
"""The prefixes of requests that pages send themselves. The pages count these requests."""
NOTHING = "There is nothing here"
_SHOWN = """() => JSON.stringify([
  document.title,
  (() => {
    // People read the comments on a record in clear, whatever they see of its fields.
    const body = document.body.cloneNode(true)
    body.querySelectorAll('.comment-text').forEach(each => each.replaceChildren())
    return body.outerHTML
  })(),
  [...document.querySelectorAll('input, textarea, select')].map(each => [each.name, each.value]),
  {...localStorage}, {...sessionStorage},
])"""
_COUNT_REQUESTS = """
window.requestsUnderWay = 0
const send = window.fetch
window.fetch = (address, options) => {
  const answer = send(address, options)
  // The long poll for new plans is always under way.
  if (!/"wait_s":[1-9]/.test(options?.body ?? '')) {
    window.requestsUnderWay += 1
    const end = () => setTimeout(() => { window.requestsUnderWay -= 1 }, 0)
    answer.then(response => response.clone().arrayBuffer()).then(end, end)
  }
  return answer
}"""
_IS_IDLE = """() => new Promise(done => {
  const isBusy = () => window.requestsUnderWay > 0 || document.querySelector('[aria-busy=true]')
  let timer
  const later = () => {
    clearTimeout(timer)
    timer = setTimeout(() => isBusy() ? later() : done(), 300)
  }
  new MutationObserver(later).observe(document, {subtree: true, childList: true, attributes: true, characterData: true})
  later()
})"""
"""Resolves when the page waits for no response and has not changed for a moment. Both are measured in the page itself,
so a slow machine extends the moment and does not end it early."""
_HAS_COUNTS = """() => [...document.querySelectorAll('.side-nav a[href^="/models/"]')]
  .every(each => each.querySelector('.side-count'))
  && [...document.querySelectorAll('.list-page .views > a')].every(each => each.querySelector('.count-of'))"""
"""The sidebar and the tabs of views count the records a while after the page is there: whether they already have the
numbers is no difference."""


class RequestCounter:
    """A site that counts the requests that it is handling, other than the requests that pages send themselves."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.being_answered = 0

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Handle one request (ASGI 3)."""
        is_counted = not scope["path"].startswith(CALLS)
        self.being_answered += is_counted
        try:
            await self._site(scope, receive, send)
        finally:
            self.being_answered -= is_counted


class PageRequest(NamedTuple):
    """A page of a site at the address, in which the person is signed in."""

    page: Page
    site: RequestCounter
    address: str

    async def rendered_page(self, path: str) -> str:
        """Return the whole content of the page at the path when it is complete, with its address replaced by
        ROOT_URL."""
        await self.page.goto(path)
        await self.page.wait_for_selector("main h1")
        await self.page.wait_for_function(_HAS_COUNTS)
        await self.page.evaluate(_IS_IDLE)
        while self.site.being_answered:
            await asyncio.sleep(0.01)
            await self.page.evaluate(_IS_IDLE)
        shown_text: str = await self.page.evaluate(_SHOWN)
        return shown_text.replace(self.address, ROOT_URL)


@asynccontextmanager
async def visited(browser: Browser, world: OpenWorld, who: str) -> AsyncGenerator[PageRequest]:
    """Open a page of the world's work app in which the person is signed in. This process serves the site."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        home = PublicAddress(address, is_loopback=True)
        api = app.create(world.service)
        site = RequestCounter(
            Site(work_site.site_config(home, "COUNTERSIGN_RECORDS_URL"), api, home, Assets.of_package())
        )
        server = uvicorn.Server(uvicorn.Config(site, lifespan="off", log_config=None))
        serving_task = asyncio.create_task(server.serve([listening]))
        context = await browser.new_context(base_url=address, locale="en-GB", timezone_id="UTC")
        context.set_default_timeout(120_000)
        await context.add_init_script(_COUNT_REQUESTS)
        page = await context.new_page()
        await page.clock.set_fixed_time(LOOKED_AT / 1_000_000)
        # Keep this for the whole visit: a page sends several requests at the same time and until it is closed.
        with clock.fixed(LOOKED_AT):
            await page.goto("/signin")
            await page.fill("#username", who)
            await page.fill("#password", PASSWORD)
            await page.press("#password", "Enter")
            await page.wait_for_url(lambda url: urlsplit(url).path == "/")
            yield PageRequest(page, site, address)
        await context.close()
        # The server would wait for the response to the long poll, for which no client waits any more.
        server.should_exit = server.force_exit = True
        await serving_task


@pytest.mark.parametrize("audience", SAMPLE)
async def test_two_worlds_look_the_same(
    browser: Browser, sqlite_worlds: WorldPairs, audience: Audience, is_full: bool
) -> None:
    if Assets.of_package().entry_assets("work") is None:
        pytest.skip("the pages are not built here (make setup, with Node and npm's registry)")
    async with (
        sqlite_worlds.copy_pair(audience) as (first, second),
        visited(browser, first, audience) as here,
        visited(browser, second, audience) as there,
    ):
        renaming = TokenRenaming(sorted(first.service.records.registry.labels))
        for path in PAGES if is_full else SAMPLE[audience]:
            seen = await asyncio.gather(here.rendered_page(path), there.rendered_page(path))

            assert NOTHING not in seen[0], path
            assert renaming.match(seen[0], seen[1], ""), (path, *_differing(*seen))

        assert len(renaming.pairs) > 20


def _differing(first: str, second: str) -> tuple[str, str]:
    """Return the texts from the first difference on."""
    place = next((at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), 0)
    return first[max(0, place - 200) : place + 200], second[max(0, place - 200) : place + 200]
