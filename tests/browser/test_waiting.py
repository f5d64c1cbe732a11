"""The functions of `waiting` wait for a value on a page. If it does not appear, the error names both values."""

import pytest
from playwright.async_api import Browser

from tests.browser import waiting
from tests.browser.waiting import box, eventually, until_equal

LATE = "<p id=late>before</p><script>setTimeout(() => { late.textContent = 'after'; }, 1000)</script>"
TEXT = "document.querySelector('#late').textContent"


async def test_a_value_that_comes_late_is_waited_for(browser: Browser) -> None:
    page = await browser.new_page()
    await page.set_content(LATE)

    await until_equal(page, TEXT, "after")

    assert await page.inner_text("#late") == "after"


async def test_an_element_that_appears_late_is_measured(browser: Browser) -> None:
    page = await browser.new_page()
    await page.set_content("<p id=late hidden style='width: 90px'>x</p>")
    await page.evaluate("setTimeout(() => { document.querySelector('#late').hidden = false; }, 1000)")

    async def width() -> float:
        return (await box(page.locator("#late")))["width"]

    assert await eventually(width) == 90


async def test_a_value_that_never_comes_fails_with_both_values(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "ENOUGH_S", 0.5)
    page = await browser.new_page()
    await page.set_content("<p id=late>before</p>")

    with pytest.raises(AssertionError, match="'before' instead of 'after'"):
        await until_equal(page, TEXT, "after")
