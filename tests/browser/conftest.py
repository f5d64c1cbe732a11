"""The rules of accessibility, and a store whose pages a browser looks at."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.peers.node import prepared
from tests.servers.countersign import Running, served


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
def axe() -> str:
    """The source of axe-core; skips where it cannot be had."""
    folder = prepared(Path(__file__).parent / "axe").folder
    return (folder / "node_modules/axe-core/axe.min.js").read_text()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A store without anybody in it."""
    with served(tmp_path / "data") as running:
        yield Site(running)
