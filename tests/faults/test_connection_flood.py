"""More connections than the service may open files: it survives them, and answers again as soon as they are closed."""

import asyncio
import resource
import socket
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.faults.lives import RestartableService
from tests.faults.wire import call
from tests.figures import Figures

ANSWERED = {"distribution": ("/api/v1/products", 200), "records": ("/api/meta", 401)}
"""The path that a well-behaved client requests from each service, and the expected answer."""

SAMPLE = (256, 400)
FLOOD = (4096, 5000)
"""The service's limit of open files, and the count of connections."""

POLITE = 10
PATIENCE_S = 60


@pytest.mark.parametrize("service", ANSWERED)
def test_a_flood_of_connections_is_outlived(service: str, tmp_path: Path, is_full: bool, figures: Figures) -> None:
    limit, count = FLOOD if is_full else SAMPLE
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < count + 200:
        pytest.skip(f"this shell may not open {count} connections: raise ulimit -n to run this test")
    path, expected = ANSWERED[service]
    lives = RestartableService(tmp_path / "data", service)
    lives.start()
    try:
        resource.prlimit(lives.pid, resource.RLIMIT_NOFILE, (limit, limit))
        with ExitStack() as stack:
            for _ in range(count):
                connection = stack.enter_context(socket.socket())
                connection.setblocking(False)
                connection.connect_ex(("127.0.0.1", lives.port))
            _wait_for_the_last_file(lives, limit)
            lives.require_alive()
        began_s = time.monotonic()
        statuses = [asyncio.run(_patient(lives, path))]
        resumed_s = time.monotonic() - began_s
        waits_ms: list[float] = []
        for _ in range(POLITE):
            began_s = time.monotonic()
            statuses.append(asyncio.run(call(lives.port, "GET", path)).status)
            waits_ms.append((time.monotonic() - began_s) * 1000)

        assert statuses == [expected] * (POLITE + 1)
        lives.require_alive()
        figures |= {
            "connects": count,
            "files": limit,
            "resumed_s": round(resumed_s, 3),
            "polite_slowest_ms": round(max(waits_ms), 1),
        }
    finally:
        lives.kill()


def _wait_for_the_last_file(lives: RestartableService, limit: int) -> None:
    """Wait until the service cannot open another file, so that it cannot accept the next connection."""
    deadline_s = time.monotonic() + PATIENCE_S
    while len(list(Path(f"/proc/{lives.pid}/fd").iterdir())) < limit - 1:
        lives.require_alive()
        assert time.monotonic() < deadline_s, "the service never ran out of files"
        time.sleep(0.01)


async def _patient(lives: RestartableService, path: str) -> int:
    """Return the status of a request that is repeated until it is answered."""
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            return (await call(lives.port, "GET", path)).status
        except (OSError, EOFError):
            assert time.monotonic() < deadline_s, "nothing is accepted any more"
            await asyncio.sleep(0.01)
