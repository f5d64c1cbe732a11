"""Several workers: one port, each replaced when it dies, none left over, all stopped together."""

import os
import signal
import time
from pathlib import Path

import pytest

from tests.kernel.http.served import (
    Served,
    everything,
    is_running,
    parsed,
    request,
    served,
    start,
    wait_until,
)

WORKERS = 3


def workers(server: Served) -> set[int]:
    """The worker processes."""
    children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
    return {int(pid) for pid in children.read_text().split()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the server's log goes."""
    if not Path("/proc/self/task").is_dir():
        pytest.skip("the tests look for processes in /proc")
    return tmp_path


def has_all(server: Served) -> bool:
    """Whether every worker is there."""
    return len(workers(server)) == WORKERS


def test_workers_share_one_port(folder: Path) -> None:
    with served(folder, workers=WORKERS) as server:
        wait_until(lambda: has_all(server))
        seen: set[int] = set()

        def all_answered() -> bool:
            # Held for a moment, so that the next connection goes to somebody else.
            held = [server.connect() for _ in range(12)]
            for connection in held:
                connection.sendall(request("GET", "/", "Connection: close"))
            seen.update(int(parsed(everything(connection))[1]) for connection in held)
            for connection in held:
                connection.close()
            return len(seen) == WORKERS

        wait_until(all_answered)
        assert seen == workers(server)


def test_a_worker_that_is_killed_is_replaced(folder: Path) -> None:
    with served(folder, workers=WORKERS) as server:
        wait_until(lambda: has_all(server))
        before = workers(server)
        victim = server.worker()
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda: has_all(server) and victim not in workers(server))

        assert len(workers(server) - before) == 1
        assert server.get()[0] == 200
    assert "a worker died and is replaced" in server.log.read_text()


def test_while_a_worker_is_replaced_the_others_answer(folder: Path) -> None:
    with served(folder, workers=WORKERS) as server:
        wait_until(lambda: has_all(server))
        victims = sorted(workers(server))[:2]
        for victim in victims:
            os.kill(victim, signal.SIGKILL)
        wait_until(lambda: not any(is_running(victim) for victim in victims))
        statuses = [server.get()[0] for _ in range(50)]
        wait_until(lambda: has_all(server))

    assert statuses == [200] * 50


def test_a_worker_that_dies_while_another_is_replaced_is_replaced_as_well(folder: Path) -> None:
    with served(folder, workers=WORKERS) as server:
        wait_until(lambda: has_all(server))
        first, second = sorted(workers(server))[:2]
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: first not in workers(server))
        os.kill(second, signal.SIGKILL)

        wait_until(lambda: second not in workers(server) and has_all(server))


def test_no_worker_survives_the_parent(folder: Path) -> None:
    with served(folder, workers=WORKERS) as server:
        wait_until(lambda: has_all(server))
        orphans = workers(server)
        server.process.kill()
        server.wait()

        wait_until(lambda: not any(is_running(pid) for pid in orphans))


def test_a_stop_lets_the_requests_of_every_worker_end(folder: Path) -> None:
    with served(folder, workers=WORKERS) as server:
        wait_until(lambda: has_all(server))
        connections = [server.connect() for _ in range(30)]
        for connection in connections:
            connection.sendall(request("GET", "/after/1.0"))
        # Until all are accepted: one answer of each worker after they were sent would not show that.
        time.sleep(0.3)
        server.process.terminate()
        answers = [parsed(everything(connection)) for connection in connections]
        for connection in connections:
            connection.close()

        assert answers == [(200, b"late")] * 30
        assert server.wait() == 0


def test_a_stop_while_a_worker_is_being_replaced_ends_everything(folder: Path) -> None:
    with served(folder, workers=WORKERS) as server:
        wait_until(lambda: has_all(server))
        everyone = workers(server)
        os.kill(min(everyone), signal.SIGKILL)
        server.process.terminate()

        assert server.wait() == 0
        wait_until(lambda: not any(is_running(pid) for pid in everyone))


@pytest.mark.parametrize("slow", [0, 1])
def test_a_stop_while_a_worker_is_starting_leaves_nobody_behind(folder: Path, slow: int) -> None:
    with start(folder / "log", workers=2, slow=slow) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        wait_until(lambda: len(children.read_text().split()) == slow + 1)
        everyone = [int(pid) for pid in children.read_text().split()]
        time.sleep(0.3)
        began_s = time.monotonic()
        process.terminate()
        process.communicate(timeout=20)

    assert process.returncode == 0
    assert not any(is_running(pid) for pid in everyone)
    assert time.monotonic() - began_s < 2


def test_a_worker_that_is_stuck_is_killed_after_the_grace_time(folder: Path) -> None:
    with served(folder, workers=2, grace_s=0.2) as server, server.connect() as connection:
        wait_until(lambda: len(workers(server)) == 2)
        everyone = workers(server)
        connection.sendall(request("GET", "/stuck"))
        time.sleep(0.3)
        server.process.terminate()

        assert server.wait() == 0
        assert not any(is_running(pid) for pid in everyone)
    assert "a worker did not stop in time and was killed" in server.log.read_text()


@pytest.mark.parametrize("failing", [0, 2])
def test_a_worker_that_cannot_start_ends_all_with_its_words(folder: Path, failing: int) -> None:
    with start(folder / "log", workers=WORKERS, failing=failing) as process:
        said, _ = process.communicate(timeout=20)

    assert process.returncode == 1
    assert (said != "") == (failing > 0)
    assert "WorkerFailed: the store is not there" in (folder / "log").read_text()
