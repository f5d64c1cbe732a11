"""Slow clients are disconnected in time. Other clients are not, and no other request is affected."""

import asyncio
import gc
import socket
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from uvicorn.config import Config
from uvicorn.server import ServerState

from countersign.kernel.http.deadlines import DeadlineProtocol, Deadlines, open_connections, sweep_connections
from countersign.kernel.http.request import Receive, Send
from tests.kernel.http.server_process import (
    PATIENCE_S,
    ServedProcess,
    one_answer,
    parse_response,
    receive_all,
    request,
    run_server,
    wait_for_close,
)

# A connection is closed within SWEEP_S (0.5 s) after its deadline. The rest of the time is an allowance for the
# machine; it is below the deadlines that a server has by default.
LIMITS = {"header_s": 1.0, "idle_s": 1.0, "body_grace_s": 1.0, "body_bytes_s": 1000, "write_stall_s": 1.0}
LATEST_S = 1.0 + 0.5 + 3.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedProcess]:
    """A server with short deadlines."""
    with run_server(tmp_path_factory.mktemp("server"), deadlines=LIMITS) as running:
        yield running


def drip(connection: socket.socket, piece: bytes, every_s: float, stop: threading.Event) -> threading.Thread:
    """Send a piece again and again until the test ends it or the connection is cut."""

    def send() -> None:
        try:
            while not stop.wait(every_s):
                connection.sendall(piece)
        except OSError:
            stop.set()

    thread = threading.Thread(target=send)
    thread.start()
    return thread


def test_a_connection_that_never_sends_is_closed(server: ServedProcess) -> None:
    with server.connect() as connection:
        elapsed_s, received = wait_for_close(connection)

    assert 0.9 < elapsed_s < LATEST_S
    assert received == b""


@pytest.mark.parametrize("beginning", [b"G", request("GET", "/")[:-2]], ids=["a letter", "all but the end"])
def test_a_header_that_does_not_end_is_answered_408_and_closed(server: ServedProcess, beginning: bytes) -> None:
    with server.connect() as connection:
        connection.sendall(beginning)
        elapsed_s, received = wait_for_close(connection)

    assert 0.9 < elapsed_s < LATEST_S
    assert parse_response(received)[0] == 408


def test_a_slowly_sent_header_gets_no_more_time_than_a_missing_header(server: ServedProcess) -> None:
    stop = threading.Event()
    with server.connect() as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: test\r\nX-Slow: ")
        dripping = drip(connection, b"a", 0.1, stop)
        elapsed_s, received = wait_for_close(connection)
        stop.set()
        dripping.join()

    assert 0.9 < elapsed_s < LATEST_S
    assert received == b"" or parse_response(received)[0] == 408


def test_an_idle_connection_is_closed_without_a_response(server: ServedProcess) -> None:
    with server.connect() as connection:
        connection.sendall(request("GET", "/"))
        assert one_answer(connection)[0] == 200
        elapsed_s, received = wait_for_close(connection)

    assert 0.9 < elapsed_s < LATEST_S
    assert received == b""


def test_an_idle_connection_can_be_used_again_before_its_time_is_over(tmp_path: Path) -> None:
    with run_server(tmp_path, deadlines={**LIMITS, "idle_s": 5.0}) as server, server.connect() as connection:
        for _ in range(4):
            connection.sendall(request("GET", "/"))
            assert one_answer(connection)[0] == 200
            time.sleep(1.5)


def test_a_second_request_that_does_not_end_has_its_own_header_deadline(server: ServedProcess) -> None:
    with server.connect() as connection:
        connection.sendall(request("GET", "/"))
        assert one_answer(connection)[0] == 200
        connection.sendall(b"GET /")
        elapsed_s, received = wait_for_close(connection)

    assert elapsed_s < LATEST_S
    assert parse_response(received)[0] == 408


@pytest.mark.parametrize(
    "framing", ["Content-Length: 1000000", "Transfer-Encoding: chunked"], ids=["announced", "chunked"]
)
def test_a_body_below_the_least_rate_is_answered_408_and_closed(server: ServedProcess, framing: str) -> None:
    stop = threading.Event()
    piece = b"1\r\na\r\n" if "chunked" in framing else b"a"
    with server.connect() as connection:
        connection.sendall(request("POST", "/size", framing))
        dripping = drip(connection, piece, 0.1, stop)
        elapsed_s, received = wait_for_close(connection)
        stop.set()
        dripping.join()

    assert 0.9 < elapsed_s < LATEST_S
    assert received == b"" or parse_response(received)[0] == 408


def test_a_slow_body_above_the_least_rate_arrives(server: ServedProcess) -> None:
    with server.connect() as connection:
        connection.sendall(request("POST", "/size", "Content-Length: 80000", "Connection: close"))
        for _ in range(20):
            connection.sendall(b"a" * 4000)
            time.sleep(0.2)
        status, body = parse_response(receive_all(connection))

    assert (status, body) == (200, b"80000")


def test_a_reader_that_receives_nothing_is_disconnected(server: ServedProcess) -> None:
    with server.connect() as connection:
        connection.sendall(request("GET", "/large"))
        # Nothing tells the client of the cut before it reads.
        time.sleep(5)
        received = receive_all(connection)

    assert len(received) < 64 << 20


def test_a_slow_reader_gets_the_whole_response(server: ServedProcess) -> None:
    with server.connect() as connection:
        connection.sendall(request("GET", "/large", "Connection: close"))
        received = 0
        # The kernel reports space to the server only when there is much of it. The client reads large parts, so that a
        # busy machine reads one within each second.
        for _ in range(40):
            received += len(connection.recv(2 << 20))
            time.sleep(0.05)
        received += len(receive_all(connection))

    assert received > 64 << 20


async def test_a_dead_reader_of_a_stream_that_continues_is_cut_off() -> None:
    async def chatter(scope: dict[str, Any], receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while True:
            await send({"type": "http.response.body", "body": bytes(50), "more_body": True})
            await asyncio.sleep(0.01)

    loop, state = asyncio.get_running_loop(), ServerState()
    config = Config(chatter, ws="none", lifespan="off", log_config=None)
    watcher = asyncio.create_task(sweep_connections(state))
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    accepting = await loop.create_server(
        lambda: DeadlineProtocol(config, state, {}, loop, Deadlines(write_stall_s=1.0)), sock=listening
    )
    with socket.socket() as dead:
        dead.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        dead.connect(listening.getsockname())
        dead.sendall(request("GET", "/"))
        async with asyncio.timeout(PATIENCE_S):
            while not state.tasks:
                await asyncio.sleep(0.01)
            while state.connections:
                await asyncio.sleep(0.01)

    accepting.close()
    ended_tasks = [watcher, *state.tasks]
    for task in ended_tasks:
        task.cancel()
    await asyncio.gather(*ended_tasks, return_exceptions=True)


async def test_a_connection_that_is_cut_off_is_gone_without_the_collector() -> None:
    async def patient(scope: dict[str, Any], receive: Receive, send: Send) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    def connection() -> DeadlineProtocol:
        protocol = DeadlineProtocol(config, state, {}, loop, Deadlines())
        protocol_refs.append(weakref.ref(protocol))
        return protocol

    def cut_all() -> None:
        for open_connection in open_connections(state):
            open_connection.transport.abort()

    loop, state = asyncio.get_running_loop(), ServerState()
    config = Config(patient, ws="none", lifespan="off", log_config=None)
    protocol_refs: list[weakref.ref[DeadlineProtocol]] = []
    accepting = await loop.create_server(connection, "127.0.0.1", 0)
    gc.collect()
    gc.disable()
    try:
        async with asyncio.timeout(PATIENCE_S):
            _, writer = await asyncio.open_connection(*accepting.sockets[0].getsockname())
            writer.write(request("GET", "/") * 3)
            while not state.tasks:
                await asyncio.sleep(0.01)
            cut_all()
            while protocol_refs[0]() is not None:
                await asyncio.sleep(0.01)
        writer.close()
    finally:
        gc.enable()
        accepting.close()


def test_a_stream_longer_than_every_deadline_is_sent_completely(server: ServedProcess) -> None:
    with server.connect() as connection:
        began_s = time.monotonic()
        connection.sendall(request("GET", "/stream", "Connection: close"))
        status, body = parse_response(receive_all(connection))

    assert status == 200
    assert body.count(b"event") == 15
    assert time.monotonic() - began_s > 2.9


def test_a_handler_that_takes_its_time_is_not_the_clients_fault(server: ServedProcess) -> None:
    assert server.get("/after/2.5") == (200, b"late")


@pytest.mark.parametrize("size", [4, 4 << 20], ids=["that we did not ask for yet", "that we stopped reading"])
def test_a_body_does_not_run_out_of_time_while_we_do_not_read(server: ServedProcess, size: int) -> None:
    expect = "Expect: 100-continue" if size == 4 else "X-Nothing: to expect"
    with server.connect() as connection:
        connection.sendall(request("POST", "/size/after/2.6", f"Content-Length: {size}", expect, "Connection: close"))
        if size == 4:
            assert connection.recv(1 << 10).startswith(b"HTTP/1.1 100 ")
        connection.sendall(bytes(size))
        status, body = parse_response(receive_all(connection))

    assert (status, body) == (200, b"%d" % size)


def test_a_normal_client_is_served_beside_many_slow_clients(server: ServedProcess) -> None:
    beginnings = [b"", b"GET / HTTP/1.1\r\nX-", request("POST", "/size", "Content-Length: 9") + b"a"]
    with ExitStack() as stack:
        slow_connections = [stack.enter_context(server.connect()) for _ in range(300)]
        for number, connection in enumerate(slow_connections):
            connection.sendall(beginnings[number % 3])
        waits_s: list[float] = []
        for _ in range(50):
            began_s = time.monotonic()
            assert server.get()[0] == 200
            waits_s.append(time.monotonic() - began_s)
        # Twenty times what it takes on a machine without other work.
        assert sorted(waits_s)[47] < 5
        began_s = time.monotonic()
        for connection in slow_connections:
            receive_all(connection)
        assert time.monotonic() - began_s < 2 * LATEST_S
    assert server.get()[0] == 200


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64),
        b"hello\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon here\r\n\r\n",
        b"POST /size HTTP/1.1\r\nContent-Length: nine\r\n\r\n",
        b"POST /size HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
    ],
    ids=["TLS", "words", "version", "header", "length", "chunk"],
)
def test_garbage_is_answered_400_and_closed(server: ServedProcess, garbage: bytes) -> None:
    with server.connect() as connection:
        connection.sendall(garbage)
        elapsed_s, received = wait_for_close(connection)

    assert elapsed_s < LATEST_S
    assert parse_response(received)[0] == 400
    assert server.get()[0] == 200


@pytest.mark.parametrize(
    "ambiguous_request",
    [
        request("POST", "/size", "Content-Length: 3", "Content-Length: 4") + b"abcd",
        request("POST", "/size", "Content-Length: 3", "Transfer-Encoding: chunked") + b"0\r\n\r\n",
    ],
    ids=["two lengths", "length and chunks"],
)
def test_a_body_with_an_ambiguous_end_is_refused(server: ServedProcess, ambiguous_request: bytes) -> None:
    with server.connect() as connection:
        connection.sendall(ambiguous_request)
        received = receive_all(connection)

    assert received.count(b"HTTP/1.1") == 1
    assert parse_response(received)[0] == 400


def test_a_client_can_read_the_refusal_while_still_sending_the_body(server: ServedProcess) -> None:
    size = 16 << 20
    with server.connect() as connection:
        connection.sendall(request("POST", "/refused", f"Content-Length: {size}"))
        connection.sendall(bytes(size))
        status, body = parse_response(receive_all(connection))

    assert (status, body) == (413, b"too large")


def test_a_client_that_never_ends_a_refused_body_is_closed(server: ServedProcess) -> None:
    with server.connect() as connection:
        connection.sendall(request("POST", "/refused", "Content-Length: 1000000"))
        elapsed_s, received = wait_for_close(connection)

    assert parse_response(received)[0] == 413
    assert elapsed_s < 2.0 + 0.5 + 20.0


def test_slow_clients_cause_no_log_lines(server: ServedProcess) -> None:
    assert Path(server.log).read_text() == ""
