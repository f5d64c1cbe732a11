"""Limits on what one connection may accumulate, alone or behind running requests. A client within the limits gets its
complete response."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from countersign.kernel.http.deadlines import MAX_HEADER_BYTES, MAX_HEADERS, MAX_PIPELINED
from tests.kernel.http.server_process import (
    ServedProcess,
    one_answer,
    parse_response,
    receive_all,
    request,
    run_server,
    wait_until,
)
from tests.servers.fork_server import without_forking

LIMITS = {"header_s": 1.0, "idle_s": 1.0, "body_grace_s": 30.0}
LINE = b"X-A: " + b"a" * 60_000 + b"\r\n"
FLOOD = 2000
TINY = b"GET / HTTP/1.1\r\n\r\n"
POST = request("POST", "/size", "Content-Length: 60000") + bytes(60_000)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedProcess]:
    """A server with short deadlines."""
    # The test measures the memory of this server.
    with without_forking(), run_server(tmp_path_factory.mktemp("server"), deadlines=LIMITS) as running:
        yield running


def memory_mib(server: ServedProcess) -> int:
    """Return the highest memory use of the server."""
    status = Path(f"/proc/{server.worker()}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) >> 10


def read_until_cut(connection: socket.socket) -> None:
    """Read all responses."""
    with contextlib.suppress(ConnectionError):
        while connection.recv(1 << 16):
            pass


def in_two_reads(connection: socket.socket, server: ServedProcess, first_bytes: bytes, second_bytes: bytes) -> None:
    """Send the bytes so that the server reads the first part before the second part arrives."""
    connection.sendall(first_bytes)
    assert server.get("/after/0.1")[0] == 200
    connection.sendall(second_bytes)


@pytest.mark.parametrize("is_ended", [True, False])
def test_a_header_over_its_limit_is_answered_431(server: ServedProcess, is_ended: bool) -> None:
    head = request("GET", "/", f"X-Long: {'a' * (80 << 10)}")
    with server.connect() as connection:
        connection.sendall(head if is_ended else head[:-4])
        received = receive_all(connection)

    assert parse_response(received)[0] == 431


def test_a_header_over_its_limit_is_refused_also_in_two_reads(server: ServedProcess) -> None:
    head = request("GET", "/", f"X-Long: {'a' * (120 << 10)}")
    with server.connect() as connection:
        in_two_reads(connection, server, head[:60_000], head[60_000:])
        received = receive_all(connection)

    assert parse_response(received)[0] == 431


def test_a_header_just_within_its_limit_is_accepted(server: ServedProcess) -> None:
    bare_length = len(request("GET", "/", "Connection: close", "X-Long: "))
    head = request("GET", "/", "Connection: close", f"X-Long: {'a' * (MAX_HEADER_BYTES - 1 - bare_length)}")
    with server.connect() as connection:
        connection.sendall(head)
        received = receive_all(connection)

    assert parse_response(received)[0] == 200


def test_a_large_body_that_arrives_with_the_end_of_its_header_is_accepted(server: ServedProcess) -> None:
    size = 200_000
    head = request("POST", "/size", f"Content-Length: {size}", "Connection: close")
    with server.connect() as connection:
        in_two_reads(connection, server, head[:-1], head[-1:] + bytes(size))
        status, body = parse_response(receive_all(connection))

    assert (status, body) == (200, b"%d" % size)


@pytest.mark.parametrize(("lines", "expected"), [(MAX_HEADERS, 200), (MAX_HEADERS + 1, 431)])
def test_a_header_of_too_many_lines_is_answered_431(server: ServedProcess, lines: int, expected: int) -> None:
    head = request("GET", "/", "Connection: close", *(f"X-{number}: a" for number in range(lines - 2)))
    with server.connect() as connection:
        connection.sendall(head)
        received = receive_all(connection)

    assert parse_response(received)[0] == expected


@pytest.mark.parametrize(
    ("beginning", "piece"),
    [
        (b"GET / HTTP/1.1\r\n", LINE),
        (request("GET", "/after/3") + b"GET / HTTP/1.1\r\n", LINE),
        (request("POST", "/size", "Transfer-Encoding: chunked") + b"1\r\na\r\n0\r\n", LINE),
        (request("POST", "/size", "Transfer-Encoding: chunked") + b"1;x=", LINE.replace(b"\r\n", b"aa")),
    ],
    ids=["header", "header behind a slow request", "trailers", "chunk extension"],
)
def test_endless_bytes_outside_a_body_are_cut_off_and_not_stored(
    server: ServedProcess, beginning: bytes, piece: bytes
) -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("the test reads the server's memory from /proc")
    before_mib = memory_mib(server)
    with server.connect() as connection:
        connection.sendall(beginning)
        with pytest.raises(ConnectionError):
            connection.sendall(piece * FLOOD)

    assert memory_mib(server) - before_mib < 20
    assert server.get()[0] == 200


def test_trailers_do_not_pass_for_headers(server: ServedProcess) -> None:
    with server.connect() as connection:
        connection.sendall(request("POST", "/headers", "Transfer-Encoding: chunked", "Connection: close"))
        connection.sendall(b"1\r\na\r\n0\r\nAuthorization: Bearer a\r\n\r\n")
        status, names = parse_response(receive_all(connection))

    assert (status, names) == (200, b"host transfer-encoding connection")


@pytest.mark.parametrize("piece", [TINY * 10_000, POST * 4], ids=["without a body", "with bodies"])
def test_requests_sent_ahead_without_end_fill_no_memory(server: ServedProcess, piece: bytes) -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("the test reads the server's memory from /proc")
    before_mib = memory_mib(server)
    with server.connect() as connection:
        reader = threading.Thread(target=read_until_cut, args=(connection,))
        reader.start()
        with contextlib.suppress(ConnectionError):
            for _ in range((30 << 20) // len(piece)):
                connection.sendall(piece)
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
        reader.join()

    assert memory_mib(server) - before_mib < 20
    assert server.get()[0] == 200


def test_a_client_with_too_many_pipelined_requests_is_disconnected(server: ServedProcess) -> None:
    with server.connect() as connection:
        connection.sendall(request("GET", "/after/60") + TINY * (MAX_PIPELINED + 1))
        began_s = time.monotonic()
        read_until_cut(connection)

    # The first request takes longer.
    assert time.monotonic() - began_s < 45
    assert server.get()[0] == 200


def test_a_request_that_is_answered_learns_that_its_client_has_gone_though_another_waits(server: ServedProcess) -> None:
    with server.connect() as connection:
        connection.sendall(request("GET", "/until-gone/alone"))
        assert connection.recv(1 << 16)
    with server.connect() as connection:
        connection.sendall(request("GET", "/until-gone/followed") + request("GET", "/"))
        assert connection.recv(1 << 16)

    wait_until(lambda: server.get("/gone")[1] == b"/until-gone/alone /until-gone/followed")


def test_a_body_in_chunks_of_one_byte_is_accepted(server: ServedProcess) -> None:
    size = 40_000
    with server.connect() as connection:
        connection.sendall(request("POST", "/size", "Transfer-Encoding: chunked", "Connection: close"))
        connection.sendall(b"1\r\na\r\n" * size + b"0\r\n\r\n")
        status, body = parse_response(receive_all(connection))

    assert (status, body) == (200, b"%d" % size)


def test_a_slow_answer_to_a_request_sent_ahead_is_waited_for(server: ServedProcess) -> None:
    with server.connect() as connection:
        connection.sendall(request("GET", "/") + request("GET", "/after/2.6", "Connection: close"))
        received = receive_all(connection)

    assert received.count(b"HTTP/1.1 200") == 2
    assert received.endswith(b"late")


def test_a_pipelined_request_does_not_interrupt_the_previous_answer(server: ServedProcess) -> None:
    with server.connect() as connection:
        connection.sendall(request("GET", "/after/2.6") + b"GET / HTTP/1.1\r\n")
        assert one_answer(connection) == (200, b"late")
        connection.sendall(b"Host: test\r\nConnection: close\r\n\r\n")
        received = receive_all(connection)

    assert received.count(b"HTTP/1.1") == 1
    assert parse_response(received)[0] == 200


def test_the_deadline_of_a_pipelined_header_starts_after_the_previous_answer(server: ServedProcess) -> None:
    with server.connect() as connection:
        connection.sendall(request("GET", "/") + b"GET / HTTP/1.1\r\n")
        assert one_answer(connection)[0] == 200
        received = receive_all(connection)

    assert parse_response(received)[0] == 408


def test_many_requests_sent_ahead_are_answered_in_order(server: ServedProcess) -> None:
    with server.connect() as connection:
        requests = [request("POST", "/size", f"Content-Length: {number}") + bytes(number) for number in range(200)]
        connection.sendall(b"".join(requests) + request("GET", "/", "Connection: close"))
        received = receive_all(connection)

    bodies = [response.partition(b"\r\n\r\n")[2] for response in received.split(b"HTTP/1.1 200 OK\r\n")[1:]]
    assert bodies[:-1] == [b"%d" % number for number in range(200)]
    assert len(bodies) == 201
