"""A worker process like the one that `serve` starts, with the errands of the tests."""

import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from countersign.settings import Settings
from countersign.store import app
from countersign.store.context import Store
from countersign.store.jobs import worker_process
from tests.store.jobs.kinds import TYPES

ROOT = Path(__file__).parents[3]
COMMAND = (
    "env",
    f"PYTHONPATH={ROOT / 'src'}:{ROOT}",
    sys.executable,
    "-m",
    "tests.store.jobs.worker_process",
)


def main() -> None:
    """Run errands until a signal."""

    def open_store(settings: Settings, root_url: str, is_loopback: bool) -> AbstractAsyncContextManager[Store]:
        return app.open_store(settings, root_url, is_loopback=is_loopback)

    worker_process.run_worker_process(open_store, TYPES)


if __name__ == "__main__":
    main()
