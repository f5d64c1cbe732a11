"""Fixtures for browser tests: the source of axe-core, the browser, and an empty store."""

import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.browser.watched import ENOUGH_MS
from tests.peers.node import prepare_node
from tests.servers.chromium import launch_chromium
from tests.servers.countersign import Running, served

HERE = Path(__file__).parent

expect.set_options(timeout=ENOUGH_MS)
# The default is five seconds; a busy machine may need more.


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests of this folder on one event loop, that of the browser which they share.

    A test that fails runs once more, because a browser on a busy machine may lose a connection or a frame. The summary
    shows it as rerun.
    """
    for item in items:
        if HERE in item.path.parents and "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_browser(chromium: str) -> AsyncIterator[Browser]:
    """One browser for all tests of this folder, because a start takes a second of processor time."""
    async with launch_chromium(chromium) as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="session")
async def browser(shared_browser: Browser) -> AsyncIterator[Browser]:
    """The browser without pages of other tests; contexts share neither cookies nor storage."""
    yield shared_browser
    for context in shared_browser.contexts:
        await context.close()


@dataclass(frozen=True)
class Site:
    """A served store without any account."""

    running: Running

    @property
    def url(self) -> str:
        """The root address."""
        return self.running.url

    def set_up_link(self) -> str:
        """Return the one-time address that the start printed."""
        match = re.search(r"http\S+/auth/setup\?token=\w+", self.running.log.read_text())
        assert match is not None
        return match[0]


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core; the test is skipped when it is not available."""
    folder = prepare_node(Path(__file__).parent / "axe").folder
    return (folder / "node_modules/axe-core/axe.min.js").read_text()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A store without any account."""
    with served(tmp_path / "data") as running:
        yield Site(running)
