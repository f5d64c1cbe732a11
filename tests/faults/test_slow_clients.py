"""Many slow clients: each is disconnected in the end, well-behaved clients are answered, and no resource leaks."""

import asyncio
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median

import pytest

from tests.faults.lives import RestartableService
from tests.faults.wire import call
from tests.figures import Figures

ANSWERED = {"distribution": ("/api/v1/products", 200), "records": ("/api/meta", 401)}
"""The path that a well-behaved client requests from each service, and the expected answer."""

DEADLINES_S = {"header": 5.0, "body": 10.0, "idle": 15.0, "reader": 30.0}
"""The deadline for each kind of client in docs/explanation/request.md and in the defaults of `Deadlines`."""

SAMPLE, CROWD = 50, 1000
ROUNDS = 5
POLITE = 200
SLACK_S = 30
"""A busy machine may close a connection late, but the service must close it."""

QUIET_S = 0.25
KEPT_FILES = 5
KEPT_KIB = 20 << 10


def files(lives: RestartableService) -> int:
    """Return the number of files and sockets that the service has open."""
    return len(list(Path(f"/proc/{lives.pid}/fd").iterdir()))


async def slow(lives: RestartableService, kind: str, path: str, all_begun: asyncio.Barrier) -> float:
    """Be slow in one way until the service closes the connection, and return the seconds until then.

    Raises:
        TimeoutError: the service did not close the connection.
    """
    connection = socket.socket()
    connection.setblocking(False)
    if kind == "reader":
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    loop = asyncio.get_running_loop()
    with connection:
        await loop.sock_connect(connection, ("127.0.0.1", lives.port))
        head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        request_beginnings = {
            "header": head,
            "idle": f"{head}\r\n",
            "body": "POST /api/auth/login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 90000\r\n\r\n{",
            "reader": "GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 20,
        }[kind]
        began_s = time.monotonic()
        await loop.sock_sendall(connection, request_beginnings.encode())
        await all_begun.wait()
        if kind == "reader":
            await asyncio.sleep(DEADLINES_S[kind])
        async with asyncio.timeout(DEADLINES_S[kind] + SLACK_S):
            with suppress(ConnectionError):
                while await loop.sock_recv(connection, 65536):
                    pass
        return time.monotonic() - began_s


async def wait_until_idle(lives: RestartableService) -> None:
    """Wait until the service is idle: the answers to the clients are ready and wait to be read.

    Raises:
        TimeoutError: the service is not idle in time.
    """
    async with asyncio.timeout(DEADLINES_S["header"]):
        before_s = lives.cpu_s()
        while True:
            await asyncio.sleep(QUIET_S)
            after_s = lives.cpu_s()
            if after_s - before_s <= QUIET_S / 5:
                return
            before_s = after_s


async def polite(lives: RestartableService, path: str, expected: int, count: int) -> float:
    """Send one request after the other, and return the 99th percentile of their milliseconds."""
    waits_ms: list[float] = []
    for _ in range(count):
        began_s = time.monotonic()
        answer = await call(lives.port, "GET", path)
        waits_ms.append((time.monotonic() - began_s) * 1000)
        assert answer.status == expected
    return sorted(waits_ms)[count * 99 // 100]


async def measure_with_slow_clients(
    lives: RestartableService, path: str, expected: int, crowd: Sequence[str]
) -> tuple[float, list[float]]:
    """Return the result of `polite` while a slow client of each of these kinds is connected, and after how many seconds
    each was disconnected."""
    # The measured client starts after the slow ones are connected, because connecting them and preparing their answers
    # takes processor time.
    all_begun = asyncio.Barrier(len(crowd) + 1)
    async with asyncio.TaskGroup() as group:
        slow_clients = [group.create_task(slow(lives, kind, path, all_begun)) for kind in crowd]
        await all_begun.wait()
        await wait_until_idle(lives)
        p99_ms = await polite(lives, path, expected, POLITE)
    return p99_ms, [task.result() for task in slow_clients]


@pytest.mark.usefixtures("no_forking")
@pytest.mark.parametrize("service", ANSWERED)
async def test_slow_clients_are_disconnected_and_delay_no_other_client(
    service: str, tmp_path: Path, is_full: bool, figures: Figures
) -> None:
    path, expected = ANSWERED[service]
    kinds = ["header", "body", "idle", *(["reader"] if is_full and service == "distribution" else [])]
    lives = RestartableService(tmp_path / "data", service)
    lives.start()
    try:
        await polite(lives, path, expected, POLITE)
        if "reader" in kinds:
            # Created at the first request, and cached.
            await call(lives.port, "GET", "/openapi.json")
        files_before, kib_before = files(lives), lives.rss_kib()
        alone_ms, crowded_ms, closed_s = list[float](), list[float](), dict[str, float]()
        crowd = [kinds[number % len(kinds)] for number in range(CROWD if is_full else SAMPLE)]
        for _ in range(ROUNDS if is_full else 1):
            alone_ms.append(await polite(lives, path, expected, POLITE))
            p99_ms, ended_s = await measure_with_slow_clients(lives, path, expected, crowd)
            crowded_ms.append(p99_ms)
            for kind, each_s in zip(crowd, ended_s, strict=True):
                closed_s[kind] = max(closed_s.get(kind, 0.0), each_s)
        await polite(lives, path, expected, 1)

        assert files(lives) <= files_before + KEPT_FILES
        assert lives.rss_kib() <= kib_before + KEPT_KIB
        figures |= {
            "slow_clients": len(crowd),
            "rounds": len(alone_ms),
            "polite_p99_alone_ms": round(median(alone_ms), 2),
            "polite_p99_in_the_crowd_ms": round(median(crowded_ms), 2),
            **{f"longest_{kind}_s": round(value, 1) for kind, value in closed_s.items()},
        }
    finally:
        lives.kill()
