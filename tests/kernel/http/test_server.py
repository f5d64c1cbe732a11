"""Listening, and a shutdown that does not affect running requests."""

import signal
import socket
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.kernel.http.served import (
    LONG_S,
    PATIENCE_S,
    ServedProcess,
    is_refused,
    one_answer,
    parsed,
    receive_all,
    request,
    run_server,
    start,
    wait_until,
    whole_answer,
)


class KeepAliveClients:
    """Clients that send one request after the other on keep-alive connections, until a response announces the end."""

    def __init__(self, server: ServedProcess, clients: int) -> None:
        self.server = server
        self.answered = 0
        self.broken: list[str] = []
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._work) for _ in range(clients)]
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        """Wait until every client has ended."""
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        is_last = False
        with self.server.connect() as connection:
            while not is_last:
                try:
                    connection.sendall(request("GET", "/"))
                    answer = whole_answer(connection)
                except OSError as error:
                    answer, is_last = repr(error).encode(), True
                is_last = is_last or b"connection: close" in answer
                with self._lock:
                    self.answered += 1
                    if not answer.startswith(b"HTTP/1.1 200"):
                        self.broken.append(answer.decode())


def is_answered(server: ServedProcess) -> bool:
    """Return whether a new connection gets a response."""
    with suppress(ConnectionError), server.connect() as connection:
        connection.sendall(request("GET", "/", "Connection: close"))
        return receive_all(connection).startswith(b"HTTP/1.1 200")
    return False


def test_a_stop_lets_running_requests_end(tmp_path: Path) -> None:
    with run_server(tmp_path) as server, server.connect() as connection:
        connection.sendall(request("GET", "/after/1.0"))
        assert server.get()[0] == 200
        server.process.terminate()
        status, body = parsed(receive_all(connection))

        assert (status, body) == (200, b"late")
        assert server.wait() == 0


def test_no_request_that_was_sent_before_the_stop_fails(tmp_path: Path) -> None:
    with run_server(tmp_path) as server:
        connections = [server.connect() for _ in range(40)]
        for connection in connections:
            connection.sendall(request("GET", "/after/0.5"))
        # The response comes after the earlier requests on the same loop have started, so these are running.
        assert server.get("/after/0.1")[0] == 200
        server.process.terminate()
        answers = [parsed(receive_all(connection)) for connection in connections]
        for connection in connections:
            connection.close()

        assert answers == [(200, b"late")] * 40
        assert server.wait() == 0


def test_under_load_a_stop_breaks_no_answer_off(tmp_path: Path) -> None:
    with run_server(tmp_path, grace_s=LONG_S) as server:
        load = KeepAliveClients(server, clients=16)
        while load.answered < 1000:
            time.sleep(0.01)
        began_s = time.monotonic()
        server.process.terminate()
        load.join()

        assert server.wait() == 0
        assert time.monotonic() - began_s < PATIENCE_S
    assert not load.broken


def test_idle_connections_do_not_delay_a_stop(tmp_path: Path) -> None:
    limits = {"header_s": LONG_S, "idle_s": LONG_S}
    with (
        run_server(tmp_path, grace_s=LONG_S, deadlines=limits) as server,
        server.connect() as silent,
        server.connect() as idle,
    ):
        idle.sendall(request("GET", "/"))
        assert one_answer(idle)[0] == 200
        began_s = time.monotonic()
        server.process.terminate()

        assert server.wait() == 0
        assert time.monotonic() - began_s < PATIENCE_S
        assert receive_all(silent) == receive_all(idle) == b""


def test_a_request_longer_than_the_grace_time_is_cut_off_and_logged(tmp_path: Path) -> None:
    with run_server(tmp_path, grace_s=0.5) as server, server.connect() as connection:
        connection.sendall(request("GET", "/after/60"))
        assert server.get()[0] == 200
        began_s = time.monotonic()
        server.process.terminate()
        said = receive_all(connection)

        assert server.wait() == 0
        # The request itself would take twice as long.
        assert time.monotonic() - began_s < 30
    assert b"late" not in said
    assert "requests were cut off at the stop" in server.log.read_text()


@pytest.mark.parametrize("workers", [1, 2])
def test_after_a_stop_has_begun_new_connections_are_refused_at_once(tmp_path: Path, workers: int) -> None:
    with run_server(tmp_path, workers=workers, grace_s=LONG_S) as server, server.connect() as connection:
        connection.sendall(request("GET", "/after/5.0"))
        assert server.get("/after/0.1")[0] == 200
        began_s = time.monotonic()
        server.process.terminate()
        wait_until(lambda: is_refused(server))
        elapsed_s = time.monotonic() - began_s

        assert parsed(receive_all(connection)) == (200, b"late")
        assert server.wait() == 0
    assert elapsed_s < 4


def test_listeners_are_served_side_by_side_and_stopped_together(tmp_path: Path) -> None:
    with (
        run_server(tmp_path, listeners=2, grace_s=4) as server,
        server.connect(0) as first,
        server.connect(1) as second,
        server.connect(0) as endless,
        server.connect(1) as endless_too,
    ):
        assert server.ports[0] != server.ports[1]
        for connection in (first, second):
            connection.sendall(request("GET", "/after/1.0"))
        for connection in (endless, endless_too):
            connection.sendall(request("GET", "/after/60"))
        assert server.get("/after/0.2")[0] == 200
        began_s = time.monotonic()
        server.process.terminate()

        assert [parsed(receive_all(each)) for each in (first, second)] == [(200, b"late")] * 2
        assert server.wait() == 0
        # One after the other, they would take twice the time of one.
        assert time.monotonic() - began_s < 2 * 4


def test_an_endless_stream_is_informed_of_the_stop_and_ends_whole(tmp_path: Path) -> None:
    with run_server(tmp_path, grace_s=LONG_S) as server, server.connect() as connection:
        connection.sendall(request("GET", "/events"))
        said = b""
        while b"hello" not in said:
            said += connection.recv(1 << 16)
        began_s = time.monotonic()
        server.process.terminate()
        said += receive_all(connection)

        assert server.wait() == 0
    assert said.endswith(b"reconnect\n\r\n0\r\n\r\n")
    assert time.monotonic() - began_s < PATIENCE_S


def test_a_flood_of_connections_beyond_the_open_files_is_survived(tmp_path: Path) -> None:
    with run_server(tmp_path, files=64) as server:
        with ExitStack() as stack:
            for _ in range(200):
                stack.enter_context(server.connect())
        wait_until(lambda: is_answered(server))
        statuses = [server.get()[0] for _ in range(10)]

    assert statuses == [200] * 10


def test_a_port_that_is_taken_is_reported(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with start(tmp_path / "log", port=port) as process:
            said, _ = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 1
    assert said == ""
    words = (tmp_path / "log").read_text()
    assert f"127.0.0.1:{port} cannot be listened on: Address already in use" in words


def test_a_port_can_be_used_again_at_once(tmp_path: Path) -> None:
    with run_server(tmp_path) as server, server.connect() as connection:
        connection.sendall(request("GET", "/", "Connection: close"))
        receive_all(connection)
        server.process.send_signal(signal.SIGTERM)
        server.wait()
    with run_server(tmp_path, port=server.port) as again:
        assert again.get()[0] == 200


def test_no_caller_can_connect_before_the_application_is_ready(tmp_path: Path) -> None:
    with start(tmp_path / "log", failing=0) as process:
        said, _ = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 1
    assert said == ""
    assert "the store is not there" in (tmp_path / "log").read_text()
