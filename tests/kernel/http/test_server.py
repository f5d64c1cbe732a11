"""The server listens on its ports, and completes running requests before it stops."""

import signal
import socket
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.kernel.http.server_process import (
    LONG_S,
    PATIENCE_S,
    ServedProcess,
    is_refused,
    one_answer,
    parse_response,
    receive_all,
    request,
    run_server,
    start,
    wait_until,
    whole_answer,
)


class KeepAliveClients:
    """Clients that send one request after the other on a keep-alive connection, until the server sends
    `Connection: close`."""

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


def test_running_requests_are_completed_after_a_stop_signal(tmp_path: Path) -> None:
    with run_server(tmp_path) as server, server.connect() as connection:
        connection.sendall(request("GET", "/after/1.0"))
        assert server.get()[0] == 200
        server.process.terminate()
        status, body = parse_response(receive_all(connection))

        assert (status, body) == (200, b"late")
        assert server.wait() == 0


def test_requests_sent_before_the_stop_signal_succeed(tmp_path: Path) -> None:
    with run_server(tmp_path) as server:
        connections = [server.connect() for _ in range(40)]
        for connection in connections:
            connection.sendall(request("GET", "/after/0.5"))
        # This response arrives only after the earlier requests of the same event loop have started.
        assert server.get("/after/0.1")[0] == 200
        server.process.terminate()
        responses = [parse_response(receive_all(connection)) for connection in connections]
        for connection in connections:
            connection.close()

        assert responses == [(200, b"late")] * 40
        assert server.wait() == 0


def test_a_stop_under_load_interrupts_no_response(tmp_path: Path) -> None:
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
    deadlines = {"header_s": LONG_S, "idle_s": LONG_S}
    with (
        run_server(tmp_path, grace_s=LONG_S, deadlines=deadlines) as server,
        server.connect() as unused,
        server.connect() as idle,
    ):
        idle.sendall(request("GET", "/"))
        assert one_answer(idle)[0] == 200
        began_s = time.monotonic()
        server.process.terminate()

        assert server.wait() == 0
        assert time.monotonic() - began_s < PATIENCE_S
        assert receive_all(unused) == receive_all(idle) == b""


def test_a_request_longer_than_the_grace_time_is_cut_off_and_logged(tmp_path: Path) -> None:
    with run_server(tmp_path, grace_s=0.5) as server, server.connect() as connection:
        connection.sendall(request("GET", "/after/60"))
        assert server.get()[0] == 200
        began_s = time.monotonic()
        server.process.terminate()
        received = receive_all(connection)

        assert server.wait() == 0
        # The request itself would take twice as long.
        assert time.monotonic() - began_s < 30
    assert b"late" not in received
    assert "requests were cut off at the stop" in server.log.read_text()


@pytest.mark.parametrize("workers", [1, 2])
def test_new_connections_are_refused_as_soon_as_a_stop_begins(tmp_path: Path, workers: int) -> None:
    with run_server(tmp_path, workers=workers, grace_s=LONG_S) as server, server.connect() as connection:
        connection.sendall(request("GET", "/after/5.0"))
        assert server.get("/after/0.1")[0] == 200
        began_s = time.monotonic()
        server.process.terminate()
        wait_until(lambda: is_refused(server))
        elapsed_s = time.monotonic() - began_s

        assert parse_response(receive_all(connection)) == (200, b"late")
        assert server.wait() == 0
    assert elapsed_s < 4


def test_two_listeners_are_served_and_stopped_in_parallel(tmp_path: Path) -> None:
    with (
        run_server(tmp_path, listeners=2, grace_s=4) as server,
        server.connect(0) as slow_0,
        server.connect(1) as slow_1,
        server.connect(0) as endless_0,
        server.connect(1) as endless_1,
    ):
        assert server.ports[0] != server.ports[1]
        for connection in (slow_0, slow_1):
            connection.sendall(request("GET", "/after/1.0"))
        for connection in (endless_0, endless_1):
            connection.sendall(request("GET", "/after/60"))
        assert server.get("/after/0.2")[0] == 200
        began_s = time.monotonic()
        server.process.terminate()

        assert [parse_response(receive_all(connection)) for connection in (slow_0, slow_1)] == [(200, b"late")] * 2
        assert server.wait() == 0
        # If the listeners stopped one after the other, the stop would take twice the grace time.
        assert time.monotonic() - began_s < 2 * 4


def test_a_stop_ends_an_endless_stream_with_a_final_event(tmp_path: Path) -> None:
    with run_server(tmp_path, grace_s=LONG_S) as server, server.connect() as connection:
        connection.sendall(request("GET", "/events"))
        received = b""
        while b"hello" not in received:
            received += connection.recv(1 << 16)
        began_s = time.monotonic()
        server.process.terminate()
        received += receive_all(connection)

        assert server.wait() == 0
    assert received.endswith(b"reconnect\n\r\n0\r\n\r\n")
    assert time.monotonic() - began_s < PATIENCE_S


def test_the_server_works_after_more_connections_than_it_may_open_files(tmp_path: Path) -> None:
    with run_server(tmp_path, files=64) as server:
        with ExitStack() as stack:
            for _ in range(200):
                stack.enter_context(server.connect())
        wait_until(lambda: is_answered(server))
        statuses = [server.get()[0] for _ in range(10)]

    assert statuses == [200] * 10


def test_a_port_in_use_is_reported(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with start(tmp_path / "log", port=port) as process:
            output, _ = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 1
    assert output == ""
    log = (tmp_path / "log").read_text()
    assert f"127.0.0.1:{port} cannot be listened on: Address already in use" in log


def test_a_port_can_be_used_again_at_once(tmp_path: Path) -> None:
    with run_server(tmp_path) as server, server.connect() as connection:
        connection.sendall(request("GET", "/", "Connection: close"))
        receive_all(connection)
        server.process.send_signal(signal.SIGTERM)
        server.wait()
    with run_server(tmp_path, port=server.port) as restarted:
        assert restarted.get()[0] == 200


def test_a_server_with_an_application_that_fails_to_start_listens_on_no_port(tmp_path: Path) -> None:
    with start(tmp_path / "log", failing=0) as process:
        output, _ = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 1
    assert output == ""
    assert "the store is not there" in (tmp_path / "log").read_text()
