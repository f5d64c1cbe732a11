"""Waits until a page is as a test expects, because a page on a busy machine changes later than its test reads it."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from playwright.async_api import Error, FloatRect, Locator, Page

from tests.browser.rules import evaluate, settle

Value = TypeVar("Value")

ENOUGH_S = 60
POLL_S = 0.1


async def eventually(check: Callable[[], Awaitable[Value]]) -> Value:
    """Run the check again and again until all its assertions pass, and return its result.

    Raises:
        AssertionError: an assertion still fails after ENOUGH_S seconds.
        Error: the page still cannot be read after ENOUGH_S seconds.
    """
    until = time.monotonic() + ENOUGH_S
    while True:
        try:
            return await check()
        except (AssertionError, Error):
            if time.monotonic() > until:
                raise
        await asyncio.sleep(POLL_S)


async def until_equal(page: Page, script: str, expected: object) -> None:
    """Wait until the value of the script is the expected one.

    Raises:
        AssertionError: the value is still another one after ENOUGH_S seconds. The text has both values.
    """

    async def is_equal() -> None:
        value: Any = await evaluate(page, script)
        if value != expected:
            raise AssertionError(f"{value!r} instead of {expected!r}: {script}")

    await eventually(is_equal)


async def box(locator: Locator) -> FloatRect:
    """Return the position and the size of a visible element."""
    bounds = await locator.bounding_box()
    if bounds is None:
        raise AssertionError(f"{locator} is not visible")
    return bounds


async def press(page: Page, *keys: str) -> None:
    """Press keys of a page that is shown. A page listens for its shortcuts only after it is painted."""
    await settle(page)
    for key in keys:
        await page.keyboard.press(key)


async def press_together(page: Page, *keys: str) -> None:
    """Press the keys of one shortcut without a pause, because a page forgets the first key after a moment."""
    await settle(page)
    await asyncio.gather(*(page.keyboard.press(key) for key in keys))


async def clipboard_text(page: Page) -> str:
    """Return the text in the clipboard."""
    return str(await page.evaluate("navigator.clipboard.readText()"))
