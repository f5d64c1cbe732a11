"""Visits to pages: each page, light and dark, in a wide window and at 400 % zoom, must be accessible, log no errors to
the console, and send requests only to this machine.

A test takes one visitor through all pages. `make test` gives each page one visitor, one colour scheme, and axe-core in
one of two windows; --full takes all of them, in three windows, and counts.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from playwright.async_api import Browser, Page, Route

from countersign.web.site_config import PageRoutes
from tests.browser.rules import broken, settle
from tests.browser.watched import open_watched_page, picture
from tests.figures import ROOT, Figures

SCHEMES = ("light", "dark")
WINDOWS = ((1280, 1024), (320, 256))
"""A window of 1280 × 1024 at 400 % zoom has 320 × 256 (WCAG 2.2, 1.4.10)."""

FULL_WINDOWS = ((1440, 900), (390, 844), (320, 256))
"""The windows of --full: a desk, a phone, and 400 % zoom."""

LOADING = "main:not(:has(.swatches)) :is(.loading, .skeleton, [aria-busy=true])"
"""The elements that a page shows while it loads. The page /design always shows them."""

LOOK_S = 180
"""The maximum number of seconds for one page in all its schemes and windows. Normally a page takes one or two."""

UNAVAILABLE = json.dumps({"title": "Unavailable", "status": 503, "detail": "the database does not answer"})
REFUSALS = tuple(f"the server responded with a status of {status}" for status in (400, 401, 403, 404, 410))
"""What browsers log about any refusal. The page itself shows the refusal."""


@dataclass(frozen=True)
class Place:
    """A page in one of its states.

    name     what pictures of it are called
    path     its address; `{lead}` and the like are ids the test knows
    presses  what is pressed on it first, as far as the visitor has it
    """

    name: str
    path: str
    presses: tuple[str, ...] = ()

    @property
    def bare(self) -> str:
        """The address without its query."""
        return self.path.partition("?")[0]


@dataclass(frozen=True)
class Visitor:
    """Somebody in a certain situation.

    name    what pictures of their visits are called
    signs   the e-mail or user name they sign in with; empty for nobody
    api     what becomes of the calls of pages: they are answered, fail, or are never answered
    locale  their browser's
    """

    name: str
    signs: str = ""
    api: str = "answers"
    locale: str = "en-GB"


Chosen = Sequence[tuple[Place, tuple[str, ...]]]


def choose_places(places: Sequence[Place], visitors: Sequence[Visitor], visitor: Visitor, *, is_full: bool) -> Chosen:
    """Return the visitor's pages, with the colour schemes of each page. A sample has every page with one visitor and
    one scheme."""
    if is_full:
        return [(place, SCHEMES) for place in places]
    at = visitors.index(visitor)
    own_places = [number for number in range(len(places)) if number % len(visitors) == at]
    return [(places[number], (SCHEMES[number // len(visitors) % 2],)) for number in own_places]


@asynccontextmanager
async def visiting(browser: Browser, site: str, visitor: Visitor) -> AsyncIterator[Page]:
    """Provide a page of the visitor's browser, with reduced motion."""
    expected = (*REFUSALS, *(("503", "net::ERR_FAILED") if visitor.api == "fails" else ()))
    options: dict[str, Any] = {"locale": visitor.locale, "reduced_motion": "reduce"}
    async with open_watched_page(browser, site, expected=expected, **options) as page:
        yield page


async def spoil(page: Page, visitor: Visitor, *, but: str) -> None:
    """Let all later calls of the API fail or wait, except the calls that identify the visitor."""

    async def answer(route: Route) -> None:
        if route.request.url.endswith(but):
            await route.continue_()
        elif visitor.api == "fails":
            await route.fulfill(status=503, content_type="application/problem+json", body=UNAVAILABLE)

    if visitor.api != "answers":
        await page.context.route("**/api/**", answer)


async def check_pages(
    page: Page,
    axe: str,
    visitor: Visitor,
    pages: Chosen,
    ids: Mapping[str, str] | None = None,
    *,
    is_full: bool = False,
) -> tuple[int, list[str]]:
    """Check all of these pages. Return the number of pages in all their schemes, and the faults of the pages."""
    violations: list[str] = []
    for number, (place, schemes) in enumerate(pages):
        turns = tuple(enumerate(schemes, number))
        try:
            violations += await find_faults(page, axe, visitor, place, turns, ids or {}, is_full=is_full)
        except TimeoutError:
            # Once in hundreds of runs Chromium stopped answering for one page. If the page hangs in another tab too, it
            # is a fault.
            page = await page.context.new_page()
            violations += await find_faults(page, axe, visitor, place, turns, ids or {}, is_full=is_full)
    return sum(len(schemes) for _, schemes in pages), violations


async def find_faults(
    page: Page,
    axe: str,
    visitor: Visitor,
    place: Place,
    turns: Sequence[tuple[int, str]],
    ids: Mapping[str, str],
    *,
    is_full: bool,
) -> list[str]:
    """Return the faults of a page in these schemes, each with its turn.

    Raises:
        TimeoutError: the browser did not answer for LOOK_S seconds.
    """
    violations: list[str] = []
    async with asyncio.timeout(LOOK_S):
        await arrive(page, visitor, place, ids)
        for turn, scheme in turns:
            await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            for window, (width, height) in enumerate(FULL_WINDOWS if is_full else WINDOWS):
                await page.set_viewport_size({"width": width, "height": height})
                # A sample has axe-core once in every scheme, in alternating windows.
                has_axe = is_full or turn % len(WINDOWS) == window
                page_violations = await broken(page, axe if has_axe else "")
                violations += [
                    f"{visitor.name}, {place.name}, {scheme}, {width} px: {violation}" for violation in page_violations
                ]
                await picture(page, f"{place.name}-{visitor.name}-{scheme}-{width}")
    return violations


async def arrive(page: Page, visitor: Visitor, place: Place, ids: Mapping[str, str]) -> None:
    """Open the place, in its state."""
    path = place.path
    for name, value in ids.items():
        path = path.replace(f"{{{name}}}", value)
    await page.set_viewport_size({"width": WINDOWS[0][0], "height": WINDOWS[0][1]})
    # An image that never arrives keeps a page from being loaded.
    await page.goto(path, wait_until="domcontentloaded" if visitor.api == "waits" else "load")
    await page.wait_for_selector("main h1")
    await wait_until_loaded(page, visitor)
    for press in place.presses:
        await settle(page)
        if await page.locator(press).count():
            await page.click(press)
    await wait_until_loaded(page, visitor)


async def wait_until_loaded(page: Page, visitor: Visitor) -> None:
    """Wait until the page has finished loading."""
    if visitor.api != "waits":
        await page.wait_for_selector(LOADING, state="detached")


def record_figures(figures: Figures, cells: int, violations: Sequence[str], *, is_full: bool) -> None:
    """Record the figures, and require that there are no faults."""
    windows = FULL_WINDOWS if is_full else WINDOWS
    figures.update({"pages_and_schemes": cells, "windows_each": len(windows), "violations": len(violations)})
    assert not violations, "\n".join(violations)


def unvisited_addresses(entry: str, places: Sequence[Place]) -> list[str]:
    """Return the addresses of the pages of an entry that no place visits."""
    templates: list[str] = json.loads((ROOT / f"frontend/{entry}/paths.json").read_text())
    routes = PageRoutes(templates)
    visited = {matched[0] for place in places if (matched := routes.match(place.bare)) is not None}
    return sorted(set(templates) - visited)
