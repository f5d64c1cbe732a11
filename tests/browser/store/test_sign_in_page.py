"""The sign-in page beside the covers of the store's products."""

import httpx
import pytest
from playwright.async_api import Browser, Page, Request, expect

from tests.browser.rules import evaluate
from tests.browser.store.products import create_draft_product, create_free_product
from tests.browser.waiting import eventually, until_equal
from tests.browser.watched import assert_accessible, open_watched_page, picture
from tests.servers.countersign import Running

LOADED = "[...document.querySelectorAll('.pictures img')].filter((each) => each.complete && each.naturalWidth).length"
FORM = "document.querySelector('main').getBoundingClientRect()"
SHOWN = 9


async def covers_are_there(page: Page) -> None:
    """Wait until covers are shown."""

    async def are_loaded() -> None:
        assert await evaluate(page, LOADED) >= SHOWN

    await eventually(are_loaded)


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_form_is_beside_covers_that_are_loaded(
    browser: Browser, demo_store: Running, axe: str, scheme: str
) -> None:
    async with open_watched_page(browser, demo_store.url, scheme=scheme) as page:
        await page.goto("/auth/signin")
        await covers_are_there(page)
        is_beside = f"{FORM}.right <= document.querySelector('.pictures').getBoundingClientRect().left"
        await until_equal(page, is_beside, expected=True)
        await expect(page.locator("#email")).to_be_focused()
        await assert_accessible(page, axe)
        await picture(page, f"sign-in-1440-{scheme}")


async def test_on_a_phone_only_the_form_is_shown_and_no_cover_is_loaded(
    browser: Browser, demo_store: Running, axe: str
) -> None:
    requested_urls: list[str] = []

    def note(request: Request) -> None:
        requested_urls.append(request.url)

    async with open_watched_page(browser, demo_store.url, width=390) as page:
        page.on("request", note)
        await page.goto("/auth/signin", wait_until="networkidle")
        await until_equal(page, f"{FORM}.top < 200", expected=True)
        assert not [url for url in requested_urls if "cover" in url]
        await assert_accessible(page, axe)


@pytest.mark.parametrize("address", ["/auth/signup", "/auth/reset"])
async def test_the_other_forms_have_covers_too(browser: Browser, demo_store: Running, address: str) -> None:
    async with open_watched_page(browser, demo_store.url) as page:
        await page.goto(address)
        await covers_are_there(page)


def test_the_cover_of_a_draft_is_not_shown(demo_store: Running) -> None:
    public, draft = create_free_product(demo_store), create_draft_product(demo_store)
    page = httpx.get(f"{demo_store.url}/auth/signin", timeout=60).text

    assert f"/products/{public}/cover.svg" in page
    assert f"/products/{draft}/cover.svg" not in page
