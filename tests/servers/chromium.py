"""A real browser for tests that look at pages."""

import os
import shutil
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Browser, async_playwright

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a Chromium; skips where there is none."""
    program = next((found for name in PROGRAMS if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip("no Chromium here (Debian: apt install chromium)")
    return program


@pytest.fixture
async def browser(chromium: str) -> AsyncIterator[Browser]:
    """A browser without a window, of the test's own."""
    async with launched(chromium) as started:
        yield started


@asynccontextmanager
async def launched(chromium: str) -> AsyncGenerator[Browser]:
    """A browser without a window, until the block ends."""
    # Chromium's own sandbox cannot be had as root, which containers run tests as.
    arguments = ["--disable-background-networking", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(executable_path=chromium, args=arguments)
        yield started
        await started.close()
