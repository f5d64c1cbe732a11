"""The counters of several nodes with a real server, and while the server is not reachable."""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from socket import gaierror

import pytest
from redis.asyncio import Redis

from countersign.kernel import clock
from countersign.kernel.http import rate_limit_valkey
from countersign.kernel.http.rate_limit import Quota, SharedMemoryCounters
from countersign.kernel.http.rate_limit_valkey import ValkeyCounters
from tests.servers import process

_WINDOW_S = 3_600


@pytest.fixture
def warnings() -> list[str]:
    return []


@pytest.fixture
def long_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait long for responses, because a machine may be busy."""
    monkeypatch.setattr(rate_limit_valkey, "PATIENCE_S", 60.0)


@pytest.fixture
async def counters(redis_url: str, tmp_path: Path, warnings: list[str]) -> AsyncIterator[ValkeyCounters]:
    counters_opened = ValkeyCounters(
        redis_url.replace("redis", "valkey", 1), SharedMemoryCounters(tmp_path), warnings.append
    )
    yield counters_opened
    await counters_opened.close()


@pytest.mark.usefixtures("long_timeouts")
async def test_exactly_the_limit_is_allowed_and_each_answer_shows_the_remaining_quota(
    counters: ValkeyCounters, warnings: list[str]
) -> None:
    answers = [await counters.hit("k", 2, _WINDOW_S) for _ in range(3)]

    assert answers == [
        Quota(2, 1, _WINDOW_S, True),
        Quota(2, 0, _WINDOW_S, True),
        Quota(2, 0, _WINDOW_S, False),
    ]
    assert warnings == []


@pytest.mark.usefixtures("long_timeouts")
async def test_two_nodes_together_are_allowed_exactly_the_limit(
    counters: ValkeyCounters, redis_url: str, tmp_path: Path, warnings: list[str]
) -> None:
    (tmp_path / "other").mkdir()
    other_counters = ValkeyCounters(redis_url, SharedMemoryCounters(tmp_path / "other"), warnings.append)

    nodes = [counters, other_counters] * 100
    answers = [
        answer
        for start in range(0, len(nodes), 20)
        for answer in await asyncio.gather(*(node.hit("k", 70, _WINDOW_S) for node in nodes[start : start + 20]))
    ]
    await other_counters.close()

    assert sum(answer.allowed for answer in answers) == 70
    assert warnings == []


async def test_a_cost_that_does_not_fit_is_refused_whole(counters: ValkeyCounters) -> None:
    assert (await counters.hit("k", 10, _WINDOW_S, cost=7)).remaining == 3
    assert not (await counters.hit("k", 10, _WINDOW_S, cost=4)).allowed
    assert await counters.hit("k", 10, _WINDOW_S, cost=3) == Quota(10, 0, _WINDOW_S, True)


async def test_a_peek_counts_nothing(counters: ValkeyCounters) -> None:
    assert await counters.peek("k", 1, _WINDOW_S) == Quota(1, 1, _WINDOW_S, True)
    await counters.hit("k", 1, _WINDOW_S)
    assert await counters.peek("k", 1, _WINDOW_S) == Quota(1, 0, _WINDOW_S, False)


async def test_a_window_ends(counters: ValkeyCounters) -> None:
    assert (await counters.hit("k", 1, 1)).allowed
    assert not (await counters.hit("k", 1, 1)).allowed

    async with asyncio.timeout(60):
        while not (await counters.hit("k", 1, 1)).allowed:
            continue


async def test_a_key_that_would_never_end_or_too_late_is_put_right(counters: ValkeyCounters, redis_port: int) -> None:
    async with Redis(port=redis_port) as client:
        await client.set("countersign:quota:endless", 99)
        await client.set("countersign:quota:late", 99, px=10**9)

        endless = await counters.hit("endless", 5, 60)
        late_quota = await counters.hit("late", 5, 60)

        assert endless == Quota(5, 4, 60, True)
        assert late_quota == Quota(5, 0, 60, False)
        assert 0 < await client.pttl("countersign:quota:late") <= 60_000


async def test_the_script_is_sent_again_to_a_server_that_forgot_the_script(
    counters: ValkeyCounters, redis_port: int
) -> None:
    await counters.hit("k", 5, _WINDOW_S)
    async with Redis(port=redis_port) as client:
        await client.script_flush()

    assert (await counters.hit("k", 5, _WINDOW_S)).remaining == 3


async def test_without_the_server_each_node_counts_separately_and_warns_once_a_minute(
    tmp_path: Path, warnings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = [1_000.0]
    monkeypatch.setattr(clock, "monotonic_s", lambda: now_s[0])
    url = f"redis://:the-password@127.0.0.1:{process.free_port()}/0"
    counters = ValkeyCounters(url, SharedMemoryCounters(tmp_path), warnings.append)

    allowed_hits: list[bool] = []
    for _ in range(4):
        allowed_hits.append((await counters.hit("k", 3, _WINDOW_S)).allowed)
        now_s[0] += 10
    assert allowed_hits == [True, True, True, False]
    assert not (await counters.peek("k", 3, _WINDOW_S)).allowed
    assert len(warnings) == 1
    now_s[0] += 30
    await counters.hit("k", 3, _WINDOW_S)
    await counters.close()

    assert len(warnings) == 2
    assert "counts alone" in warnings[0]
    assert "the-password" not in warnings[0]


async def test_a_hanging_server_delays_one_request_by_a_quarter_second_and_is_tried_again(
    tmp_path: Path, warnings: list[str]
) -> None:
    port = process.free_port()
    program = process.installed_program("redis-server", "redis-server")
    log = tmp_path / "log"
    with process.run_until_ready(
        [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", tmp_path, "--pidfile", "pid"],
        is_ready=lambda: process.answers(port),
        log=log,
    ):
        # It responds before it has created the file of its id, and creates the file before it writes the id.
        pid_file = tmp_path / "pid"
        while not (pid_file.exists() and pid_file.read_text()):
            await asyncio.sleep(0.01)
        server = int(pid_file.read_text())
        counters = ValkeyCounters(f"redis://127.0.0.1:{port}/0", SharedMemoryCounters(tmp_path), warnings.append)
        assert (await counters.hit("k", 1_000, _WINDOW_S)).remaining == 999

        os.kill(server, signal.SIGSTOP)
        try:
            began_s = clock.monotonic_s()
            hanging = [await counters.hit("k", 1_000, _WINDOW_S) for _ in range(50)]
            elapsed_s = clock.monotonic_s() - began_s
        finally:
            os.kill(server, signal.SIGCONT)

        assert hanging[-1].remaining == 950
        # If each of them waited, they would take 12.5 s.
        assert elapsed_s < 9
        async with asyncio.timeout(60):
            while (await counters.peek("k", 1_000, _WINDOW_S)).remaining < 998:
                await asyncio.sleep(0)
        assert len(warnings) == 1
        await counters.close()


@pytest.mark.parametrize(
    "login", ["u:pa/SecretTail", "u:6379/SecretTail", ":pa#SecretTail", ":pa?SecretTail", ":[SecretTail"]
)
def test_an_address_whose_password_is_cut_is_refused_without_showing_it(
    login: str, tmp_path: Path, warnings: list[str]
) -> None:
    with pytest.raises(ValueError, match=r"^COUNTERSIGN_COUNTERS_URL .*percent-encode") as refusal:
        ValkeyCounters(f"redis://{login}@127.0.0.1/0", SharedMemoryCounters(tmp_path), warnings.append)
    assert "Secret" not in str(refusal.value)


@pytest.mark.parametrize("url", ["http://127.0.0.1/", "127.0.0.1:6379", ""])
def test_an_address_of_another_kind_is_an_error(url: str, tmp_path: Path, warnings: list[str]) -> None:
    with pytest.raises(ValueError, match="scheme"):
        ValkeyCounters(url, SharedMemoryCounters(tmp_path), warnings.append)


@pytest.fixture
def guarded_server(redis_port: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The host and the port of the server, with the user `counter`, who has the privileges for counting, and the user
    `reader`."""
    monkeypatch.setattr(rate_limit_valkey, "PATIENCE_S", 30)
    with socket.create_connection(("127.0.0.1", redis_port), timeout=30) as server, server.makefile("rw") as lines:

        def run(command: str) -> None:
            lines.write(command + "\r\n")
            lines.flush()
            assert lines.readline()[0] in "+:"

        run(f"ACL SETUSER counter reset on >right {rate_limit_valkey.RIGHTS}")
        run("ACL SETUSER reader reset on >right ~* +get")
        yield f"127.0.0.1:{redis_port}"
        run("ACL DELUSER counter reader")


async def warning(url: str, folder: Path) -> str:
    """Return the warning when the server at the address is used for counting, or an empty text if it works."""
    warnings: list[str] = []
    counters = ValkeyCounters(url, SharedMemoryCounters(folder), warnings.append)
    await counters.hit("k", 2, _WINDOW_S)
    await counters.close()
    return "".join(warnings)


async def test_connection_errors_are_distinguished_without_showing_the_password(
    guarded_server: str, tmp_path: Path
) -> None:
    async def reported_warning(login: str, url_end: str = "", *, at: str = guarded_server) -> str:
        warning_text = await warning(f"redis://{login}@{at}{url_end}", tmp_path)
        assert "wr0ng" not in warning_text
        return warning_text

    assert await reported_warning("counter:right") == ""
    assert "correct them in COUNTERSIGN_COUNTERS_URL" in await reported_warning("counter:wr0ng")
    assert "~countersign:* +evalsha" in await reported_warning("reader:right")
    assert "the database's number" in await reported_warning(":wr0ng", "/9999")
    assert "does not listen" in await reported_warning(":wr0ng", at=f"127.0.0.1:{process.free_port()}")


def test_a_name_that_is_not_known_and_a_silent_server_are_distinguished() -> None:
    error = ConnectionError()
    error.__cause__ = gaierror(-2, "Name or service not known")

    assert "correct the host" in rate_limit_valkey.failure_reason(error)
    assert "TLS (rediss://)" in rate_limit_valkey.failure_reason(TimeoutError())
