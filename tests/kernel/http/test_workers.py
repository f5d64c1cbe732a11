"""Workers: one port, each worker is replaced when it dies or stalls, none remains, and all are stopped together."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

from tests.kernel.http.server_process import (
    ServedProcess,
    parse_response,
    receive_all,
    request,
    run_server,
    start,
    wait_until,
)
from tests.servers.process import children, is_running

WORKERS = 3


def workers(server: ServedProcess) -> set[int]:
    """Return the worker processes."""
    return set(children(server.process.pid))


def logged_lines(server: ServedProcess, event: str) -> list[dict[str, object]]:
    """Return the log lines of this event."""
    lines = [json.loads(line) for line in server.log.read_text().splitlines() if line.startswith("{")]
    return [line for line in lines if line["event"] == event]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of the server's log."""
    if not Path("/proc/self/task").is_dir():
        pytest.skip("the tests look for processes in /proc")
    return tmp_path


def has_all(server: ServedProcess) -> bool:
    """Return whether every worker runs."""
    return len(workers(server)) == WORKERS


def test_workers_share_one_port(folder: Path) -> None:
    with run_server(folder, workers=WORKERS) as server:
        wait_until(lambda: has_all(server))
        pids_seen: set[int] = set()

        def all_answered() -> bool:
            # Keep the connection open for a moment, so that another worker gets the next one.
            connections = [server.connect() for _ in range(12)]
            for connection in connections:
                connection.sendall(request("GET", "/", "Connection: close"))
            pids_seen.update(int(parse_response(receive_all(connection))[1]) for connection in connections)
            for connection in connections:
                connection.close()
            return len(pids_seen) == WORKERS

        wait_until(all_answered)
        assert pids_seen == workers(server)


def test_a_worker_that_is_killed_is_replaced(folder: Path) -> None:
    with run_server(folder, workers=WORKERS) as server:
        wait_until(lambda: has_all(server))
        workers_before = workers(server)
        victim = server.worker()
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda: has_all(server) and victim not in workers(server))

        assert len(workers(server) - workers_before) == 1
        assert server.get()[0] == 200
    assert "a worker died and is replaced" in server.log.read_text()


def test_while_a_worker_is_replaced_the_other_workers_answer(folder: Path) -> None:
    with run_server(folder, workers=WORKERS) as server:
        wait_until(lambda: has_all(server))
        victims = sorted(workers(server))[:2]
        for victim in victims:
            os.kill(victim, signal.SIGKILL)
        wait_until(lambda: not any(is_running(victim) for victim in victims))
        statuses = [server.get()[0] for _ in range(50)]
        wait_until(lambda: has_all(server))

    assert statuses == [200] * 50


def test_a_worker_that_dies_while_another_is_replaced_is_also_replaced(folder: Path) -> None:
    with run_server(folder, workers=WORKERS) as server:
        wait_until(lambda: has_all(server))
        first_worker, second_worker = sorted(workers(server))[:2]
        os.kill(first_worker, signal.SIGKILL)
        wait_until(lambda: first_worker not in workers(server))
        os.kill(second_worker, signal.SIGKILL)

        wait_until(lambda: second_worker not in workers(server) and has_all(server))


def test_no_worker_survives_the_parent(folder: Path) -> None:
    with run_server(folder, workers=WORKERS) as server:
        wait_until(lambda: has_all(server))
        orphans = workers(server)
        server.process.kill()
        server.wait()

        wait_until(lambda: not any(is_running(pid) for pid in orphans))


def test_a_stop_waits_for_the_requests_of_every_worker(folder: Path) -> None:
    with run_server(folder, workers=WORKERS) as server:
        wait_until(lambda: has_all(server))
        connections = [server.connect() for _ in range(30)]
        for connection in connections:
            connection.sendall(request("GET", "/after/3.0"))
        # Wait until all are accepted. A response of each worker after they were sent would not prove this.
        time.sleep(1)
        server.process.terminate()
        answers = [parse_response(receive_all(connection)) for connection in connections]
        for connection in connections:
            connection.close()

        assert answers == [(200, b"late")] * 30
        assert server.wait() == 0


def test_a_stop_while_a_worker_is_being_replaced_ends_everything(folder: Path) -> None:
    with run_server(folder, workers=WORKERS) as server:
        wait_until(lambda: has_all(server))
        everyone = workers(server)
        os.kill(min(everyone), signal.SIGKILL)
        server.process.terminate()

        assert server.wait() == 0
        wait_until(lambda: not any(is_running(pid) for pid in everyone))


@pytest.mark.parametrize("start_delay_s", [0, 1])
def test_a_stop_while_a_worker_is_starting_leaves_no_process_behind(folder: Path, start_delay_s: int) -> None:
    with start(folder / "log", workers=2, slow=start_delay_s) as process:
        wait_until(lambda: len(children(process.pid)) == start_delay_s + 1)
        everyone = children(process.pid)
        time.sleep(0.3)
        began_s = time.monotonic()
        process.terminate()
        process.communicate(timeout=60)

    assert process.returncode == 0
    assert not any(is_running(pid) for pid in everyone)
    # The slow worker would take twice as long.
    assert time.monotonic() - began_s < 30


STALLED = "a worker stalled and is killed"


@pytest.mark.parametrize(("path", "function"), [("/stuck", "app"), ("/spin", "spin")])
def test_a_worker_with_a_blocked_event_loop_is_replaced_and_its_stack_logged(
    folder: Path, path: str, function: str
) -> None:
    with run_server(folder, watchdog_s=1) as server, server.connect() as connection:
        worker_before = server.worker()
        connection.sendall(request("GET", path))
        wait_until(lambda: not is_running(worker_before))

        assert server.worker() != worker_before
        (line,) = logged_lines(server, STALLED)
        assert line["service"] == "test 0"
        assert f" in {function}" in str(line["stack"])


def test_a_program_that_hangs_stops_no_other_and_a_stop_ends_both_after_the_grace_time(folder: Path) -> None:
    with run_server(folder, listeners=2, watchdog_s=0, grace_s=0.5) as server, server.connect(0) as connection:
        everyone = workers(server)
        connection.sendall(request("GET", "/spin"))
        answers = 0
        while answers < 20:
            with server.connect(1) as other_connection:
                other_connection.sendall(request("GET", "/", "Connection: close"))
                answers += parse_response(receive_all(other_connection))[0] == 200
        server.process.terminate()

        assert server.wait() == 0
        assert not any(is_running(pid) for pid in everyone)
    (line,) = logged_lines(server, STALLED)
    assert line["why"] == "it did not stop within the grace time"
    assert " in spin" in str(line["stack"])


@pytest.mark.parametrize("stops_all", [False, True])
def test_time_in_which_a_worker_or_the_whole_server_was_stopped_is_no_stall(folder: Path, stops_all: bool) -> None:
    with run_server(folder, watchdog_s=1) as server:
        worker_before = server.worker()
        stopped = [worker_before, *([server.process.pid] if stops_all else [])]
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        # There is nothing to wait for, because nothing happens in this time.
        time.sleep(3)
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)

        assert server.worker() == worker_before
        time.sleep(0.6)
        assert server.worker() == worker_before
    assert not logged_lines(server, STALLED)


def test_a_worker_that_hangs_does_not_survive_the_parent(folder: Path) -> None:
    with run_server(folder) as server, server.connect() as connection:
        orphan = server.worker()
        connection.sendall(request("GET", "/spin"))
        server.process.kill()
        server.wait()

        wait_until(lambda: not is_running(orphan))


def test_a_second_ctrl_c_ends_the_workers_at_once(folder: Path) -> None:
    with run_server(folder, grace_s=60) as server, server.connect() as connection:
        everyone = workers(server)
        connection.sendall(request("GET", "/after/50"))
        assert server.get()[0] == 200
        server.process.send_signal(signal.SIGINT)
        wait_until(lambda: not accepts(server))
        server.process.send_signal(signal.SIGINT)

        assert server.wait() == 0
        assert not any(is_running(pid) for pid in everyone)


def accepts(server: ServedProcess) -> bool:
    """Return whether a new connection is accepted."""
    try:
        server.connect().close()
    except ConnectionError:
        return False
    return True


def test_a_worker_that_cannot_start_again_is_tried_again_after_growing_pauses(folder: Path) -> None:
    broken = folder / "broken"
    with run_server(folder, broken=str(broken)) as server:
        broken.touch()
        os.kill(server.worker(), signal.SIGKILL)
        wait_until(lambda: len(logged_lines(server, "a worker failed")) == 3)
        broken.unlink()

        assert server.get()[0] == 200
        assert server.process.poll() is None
    died = logged_lines(server, "a worker died and is replaced")
    assert [record["why"] for record in died] == ["", *["the store is not there"] * 3]
    moments = [float(str(record["pause_s"])) for record in died]
    assert moments == [0.5, 1.0, 2.0, 4.0]


@pytest.mark.parametrize("failing", [0, 2])
def test_a_worker_that_cannot_start_ends_the_server_with_its_message(folder: Path, failing: int) -> None:
    with start(folder / "log", workers=WORKERS, failing=failing) as process:
        output, _ = process.communicate(timeout=60)

    assert process.returncode == 1
    assert (output != "") == (failing > 0)
    assert "WorkerFailed: the store is not there" in (folder / "log").read_text()
