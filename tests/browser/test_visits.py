"""How visits handle pages that hang."""

import pytest
from playwright.async_api import Browser, Page, Route

from tests.browser import visits
from tests.browser.visits import Place, Visitor, check_pages, visiting

SITE = "http://127.0.0.1:9"
FINE = "<!doctype html><html lang=en><title>Fine</title><main><h1>Fine</h1></main></html>"
LONG_S = visits.LOOK_S
STILL = FINE + "<script>Promise.all = () => new Promise(() => undefined)</script>"


async def answer(page: Page, *bodies: str) -> None:
    """Answer each visit with the next of the bodies, without a server. The page that does not hang may take long."""
    remaining_bodies = iter(bodies)

    async def fulfil(route: Route) -> None:
        await route.fulfill(content_type="text/html", body=next(remaining_bodies))
        if FINE in bodies:
            visits.LOOK_S = LONG_S

    await page.context.route(f"{SITE}/*", fulfil)


async def walk_page(browser: Browser, *bodies: str) -> tuple[int, list[str]]:
    """Walk to one page with these answers, and return the result."""
    visitor = Visitor("nobody")
    async with visiting(browser, SITE, visitor) as page:
        await answer(page, *bodies)
        return await check_pages(page, "", visitor, [(Place("fine", "/fine"), ("light",))])


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visits, "LOOK_S", 15)


async def test_a_page_that_does_not_change_is_checked_once_more(browser: Browser) -> None:
    assert await walk_page(browser, STILL, FINE) == (1, [])


async def test_a_page_that_twice_does_not_change_fails(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visits, "LOOK_S", 2)

    with pytest.raises(TimeoutError):
        await walk_page(browser, STILL, STILL)
