"""How visits handle pages that hang."""

import pytest
from playwright.async_api import Browser, Page, Route

from tests.browser import visits
from tests.browser.visits import Place, Visitor, check_pages, visiting

SITE = "http://127.0.0.1:9"
FINE = "<!doctype html><html lang=en><title>Fine</title><main><h1>Fine</h1></main></html>"
DEFAULT_LOOK_S = visits.LOOK_S
HANGING = FINE + "<script>Promise.all = () => new Promise(() => undefined)</script>"


async def answer(page: Page, *bodies: str) -> None:
    """Answer each visit with the next of the bodies, without a server. If one of them is the page that does not hang,
    restore the default time limit after the first answer."""
    remaining_bodies = iter(bodies)

    async def fulfil(route: Route) -> None:
        await route.fulfill(content_type="text/html", body=next(remaining_bodies))
        if FINE in bodies:
            visits.LOOK_S = DEFAULT_LOOK_S

    await page.context.route(f"{SITE}/*", fulfil)


async def check_page(browser: Browser, *bodies: str) -> tuple[int, list[str]]:
    """Check one page, whose visits are answered with the bodies. Return the number of checked pages and the faults."""
    visitor = Visitor("nobody")
    async with visiting(browser, SITE, visitor) as page:
        await answer(page, *bodies)
        return await check_pages(page, "", visitor, [(Place("fine", "/fine"), ("light",))])


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visits, "LOOK_S", 15)


async def test_a_page_that_hangs_is_checked_once_more(browser: Browser) -> None:
    assert await check_page(browser, HANGING, FINE) == (1, [])


async def test_a_page_that_hangs_twice_fails(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visits, "LOOK_S", 2)

    with pytest.raises(TimeoutError):
        await check_page(browser, HANGING, HANGING)
