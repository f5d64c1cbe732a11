"""Starts Chromium for tests of pages."""

import os
import shutil
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Browser, async_playwright

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def chromium() -> str:
    """Return the path of Chromium, or skip the test if Chromium is not installed."""
    program = next((path for name in PROGRAMS if (path := shutil.which(name))), None)
    if program is None:
        pytest.skip("no Chromium here (Debian: apt install chromium)")
    return program


@pytest.fixture
async def browser(chromium: str) -> AsyncIterator[Browser]:
    """Start a browser without a window for this test."""
    async with launch_chromium(chromium) as browser:
        yield browser


@asynccontextmanager
async def launch_chromium(chromium: str) -> AsyncGenerator[Browser]:
    """Run a browser without a window until the block ends."""
    # Chromium's sandbox does not work for root, the user of tests in containers.
    arguments = ["--disable-background-networking", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=arguments)
        yield browser
        await browser.close()
