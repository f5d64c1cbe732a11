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
"""Resolves when the page waits for no answer and has not changed for a moment. Both are counted in the page itself:
a slow machine delays the moment, and does not end it early."""


class Visit:
    """A page that is signed in, and how many of its requests for other files are being answered."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.being_answered = 0

    async def shown(self, path: str) -> str:
        """Everything that the page at the path contains once it is complete."""
        await self.page.goto(path)
        await self.page.wait_for_selector("main h1")
        await self.page.evaluate(_IS_IDLE)
        while self.being_answered:
            await asyncio.sleep(0.01)
            await self.page.evaluate(_IS_IDLE)
        found: str = await self.page.evaluate(_SHOWN)
        return found


@asynccontextmanager
async def visited(browser: Browser, world: World, who: str) -> AsyncGenerator[Visit]:
    """A page of the world's work app, signed in. Whatever the browser asks for is answered in this process."""
    home = Home(ROOT_URL, is_loopback=True)
    site = Site(work.entry(home, "COUNTERSIGN_RECORDS_URL"), app.create(world.service), home, Assets.of_package())
    context = await browser.new_context(base_url=ROOT_URL, locale="en-GB", timezone_id="UTC")
    async with httpx.AsyncClient(transport=httpx.ASGITransport(site), base_url=ROOT_URL) as http:

        async def answer(route: Route) -> None:
            asked = route.request
            is_counted = asked.resource_type != "fetch"
            visit.being_answered += is_counted
            sent = await asked.all_headers()
            sent.setdefault("sec-fetch-site", "same-origin")
            got = await http.request(
                asked.method, asked.url.removeprefix(ROOT_URL), content=asked.post_data_buffer, headers=sent
            )
            headers = {name: value for name, value in got.headers.items() if name != "content-encoding"}
            await route.fulfill(status=got.status_code, headers=headers, body=got.content)
            visit.being_answered -= is_counted

        await context.route("**/*", answer)
        await context.add_init_script(_COUNT_REQUESTS)
        page = await context.new_page()
        visit = Visit(page)
        await page.clock.set_fixed_time(LOOKED_AT / 1000)
        # For all of the visit: a page asks for several things at once, and for what happens until it is left.
        with clock.fixed(LOOKED_AT):
            await page.goto("/signin")
            await page.fill("#username", who)
            await page.fill("#password", PASSWORD)
            await page.press("#password", "Enter")
            await page.wait_for_url(lambda url: urlsplit(url).path == "/")
            yield visit
    await context.close()


@pytest.mark.parametrize("audience", ["dan", "bob"])
async def test_two_worlds_look_the_same(browser: Browser, sqlite_worlds: Pairs, audience: Audience) -> None:
    if Assets.of_package().parts("work") is None:
        pytest.skip("the pages are not built here (make setup, with Node and npm's registry)")
    async with (
        sqlite_worlds.copied(audience) as (first, second),
        visited(browser, first, audience) as here,
        visited(browser, second, audience) as there,
    ):
        renaming = Renaming(sorted(first.service.records.registry.labels))
        for path in PAGES:
            seen = await asyncio.gather(here.shown(path), there.shown(path))

            assert NOTHING not in seen[0], path
            assert renaming.match(seen[0], seen[1], ""), (path, *_differing(*seen))

        assert len(renaming.pairs) > 20


def _differing(first: str, second: str) -> tuple[str, str]:
    """Where two texts part."""
    place = next((at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), 0)
    return first[max(0, place - 200) : place + 200], second[max(0, place - 200) : place + 200]
