"""The ask box: an answer as it comes, where it is from, a refusal that leads on, and an end to it."""

import pytest
from playwright.async_api import Browser, Route, expect

from tests.browser.watched import assert_accessible, picture, watched
from tests.servers.countersign import Running


async def test_an_answer_names_where_it_is_from(browser: Browser, demo_store: Running, axe: str) -> None:
    async with watched(browser, demo_store.url) as page:
        await page.goto("/questions")
        await page.fill("#query", "free games on linux")
        await page.keyboard.press("Enter")

        await expect(page.locator(".answer")).to_contain_text("Brightwater Rally")
        await expect(page.locator("a[href='/products/brightwater-rally']")).to_be_visible()
        assert "query=free+games+on+linux" in page.url
        await assert_accessible(page, axe)


@pytest.mark.full
async def test_a_refusal_is_shown_as_one_and_offers_what_can_be_asked(
    browser: Browser, demo_store: Running, axe: str
) -> None:
    async with watched(browser, demo_store.url, width=360, scheme="dark") as page:
        await page.goto("/questions?query=What+is+new+in+Auroro+Fright")
        await page.wait_for_selector(".answer")
        await page.fill("#query", "Sing a song about rain")
        await page.keyboard.press("Enter")
        await page.wait_for_selector(".answer.refused >> text=Not answered")
        await assert_accessible(page, axe)
        await picture(page, "ask-refused-360-dark")

        await page.click("button:text('Which tools are free?')")
        await expect(page.locator(".answer")).not_to_have_class("answer refused")
        assert await page.input_value("#query") == "Which tools are free?"


@pytest.mark.full
async def test_an_answer_that_takes_long_is_stopped(browser: Browser, demo_store: Running) -> None:
    async def never(route: Route) -> None:
        """Leave the question without an answer."""

    async with watched(browser, demo_store.url) as page:
        await page.route("**/api/v1/ask?stream=true", never)
        await page.goto("/questions?query=games")
        await page.click("text=Stop")

        await page.wait_for_selector(".answer >> text=Stopped")
        await expect(page.locator("text='Stop'")).to_have_count(0)
