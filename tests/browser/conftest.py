"""A real browser, the rules of accessibility, and a store whose pages it looks at."""

import os
import re
import shutil
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.async_api import Browser, async_playwright

from tests.peers.node import prepared
from tests.servers.countersign import Running, served

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


@dataclass(frozen=True)
class Site:
    """A served store that nobody has set up yet."""

    running: Running

    @property
    def url(self) -> str:
        """The root address."""
        return self.running.url

    def set_up_link(self) -> str:
        """The one-time address that the start printed."""
        found = re.search(r"http\S+/auth/setup\?token=\w+", self.running.log.read_text())
        assert found is not None
        return found[0]


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a Chromium; skips where there is none."""
    program = next((found for name in PROGRAMS if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip("no Chromium here (Debian: apt install chromium)")
    return program


@pytest.fixture
async def browser(chromium: str) -> AsyncIterator[Browser]:
    """A browser without a window."""
    # Chromium's own sandbox cannot be had as root, which containers run tests as.
    arguments = ["--disable-background-networking", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(executable_path=chromium, args=arguments)
        yield started
        await started.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core; skips where it cannot be had."""
    folder = prepared(Path(__file__).parent / "axe").folder
    return (folder / "node_modules/axe-core/axe.min.js").read_text()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A store without anybody in it."""
    with served(tmp_path / "data") as running:
        yield Site(running)
