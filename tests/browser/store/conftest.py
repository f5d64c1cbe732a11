"""A store with the demonstration catalog and its people, as `serve --demo` starts it, and its built pages."""

from collections.abc import Iterator

import pytest

from countersign.web.assets import Assets
from tests.servers.countersign import Running, served


def require_pages() -> None:
    """Skip the test if the pages of the store are not built."""
    if Assets.of_package().entry_assets("store") is None:
        pytest.skip("the pages are not built here (make setup, with Node and npm's registry)")


@pytest.fixture(scope="session")
def demo_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The store, with a worker for its jobs."""
    require_pages()
    data = tmp_path_factory.mktemp("store") / "data"
    with served(data, "--demo", settings={"COUNTERSIGN_JOB_WORKERS": "1", "COUNTERSIGN_RATE_KEYS": "10000"}) as running:
        yield running
