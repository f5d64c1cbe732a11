"""Requests that are too large in some way, on real connections to both services: each is refused with a status, and
none of it is stored."""

import gzip
import socket
from contextlib import suppress
from pathlib import Path

import pytest

from tests.faults.lives import RestartableService
from tests.figures import Figures

TAKES_JSON = {"distribution": "/api/v1/ask", "records": "/api/auth/login"}
"""A path that accepts JSON from anonymous callers."""

GROWTH_KIB = 20 << 10
PATIENCE_S = 120
SENT_AT_MOST = 64 << 20
WARM, ROUNDS, MANY = 20, 2, 50
EXPECTED = {
    "10 GB announced": "413",
    "endless chunks": "413",
    "a header of 1 MB": "431",
    "a path of 1 MB": "431",
    "100,000 parameters": "431",
}
"""The expected statuses. All other bombs are not valid JSON of the expected form, so that their status is 400."""


def bombs(path: str) -> dict[str, tuple[bytes, bytes]]:
    """Map each bomb's name to a request, and to the bytes that are repeated after it while the service reads."""

    def post(*headers: str, body: bytes = b"") -> bytes:
        lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json", *headers]
        return "\r\n".join([*lines, "", ""]).encode() + body

    def complete_body(body: bytes, *headers: str) -> tuple[bytes, bytes]:
        return post(f"Content-Length: {len(body)}", *headers, body=body), b""

    names = "&".join(f"q{number}=1" for number in range(100_000))
    return {
        "10 GB announced": (post("Content-Length: 10000000000"), b" " * 65536),
        "endless chunks": (post("Transfer-Encoding: chunked"), b"10000\r\n" + b" " * 65536 + b"\r\n"),
        "nested 10,000 deep": complete_body(b'{"question":' + b"[" * 10_000 + b"]" * 10_000 + b"}"),
        "nested objects": complete_body(b'{"a":' * 10_000 + b"1" + b"}" * 10_000),
        "1e400": complete_body(b'{"question": 1e400, "username": 1e400, "password": 1e400}'),
        "a long number": complete_body(b'{"question": ' + b"9" * 100_000 + b"}"),
        "NaN": complete_body(b'{"question": NaN, "username": NaN}'),
        "a member twice": complete_body(
            b'{"username": "a", "username": "b", "password": "c", "question": "d", "question": 1}'
        ),
        "a gzip bomb": complete_body(gzip.compress(b" " * (50 << 20)), "Content-Encoding: gzip"),
        "a header of 1 MB": (post("X-Long: " + "a" * (1 << 20)), b""),
        "a path of 1 MB": (f"GET /{'a' * (1 << 20)} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode(), b""),
        "100,000 parameters": (f"GET {path}?{names} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode(), b""),
    }


def answer_to(lives: RestartableService, bomb: tuple[bytes, bytes]) -> str:
    """Return the status of the answer, after sending as much as the service reads."""
    opening_bytes, repeated_bytes = bomb
    received = b""
    with socket.create_connection(("127.0.0.1", lives.port), timeout=PATIENCE_S) as connection:
        with suppress(ConnectionError):
            connection.sendall(opening_bytes)
            sent_bytes = len(opening_bytes)
            while repeated_bytes and sent_bytes < SENT_AT_MOST and not _is_answered(connection):
                connection.sendall(repeated_bytes)
                sent_bytes += len(repeated_bytes)
        with suppress(ConnectionError):
            while b"\r\n\r\n" not in received and (piece := connection.recv(65536)):
                received += piece
    return received.split(b" ", 2)[1].decode() if received else ""


def _is_answered(connection: socket.socket) -> bool:
    """Return whether the connection has data to read. The data is not consumed."""
    connection.setblocking(False)
    try:
        connection.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    finally:
        connection.settimeout(PATIENCE_S)
    return True


@pytest.mark.usefixtures("no_forking")
@pytest.mark.parametrize("service", TAKES_JSON)
def test_an_archive_bomb_is_refused_and_not_stored(
    service: str, tmp_path: Path, is_full: bool, figures: Figures
) -> None:
    lives = RestartableService(tmp_path / "data", service)
    lives.start()
    try:
        bombs_by_name = bombs(TAKES_JSON[service])
        for _ in range(WARM):
            answer_to(lives, bombs_by_name["NaN"])
        before_kib = lives.rss_kib("VmHWM")
        answers = {name: answer_to(lives, bomb) for name, bomb in bombs_by_name.items()}
        for _ in range(MANY if is_full else ROUNDS):
            for name, bomb in bombs_by_name.items():
                assert answer_to(lives, bomb) == answers[name], name
        grown_kib = lives.rss_kib("VmHWM") - before_kib

        assert answers == {name: EXPECTED.get(name, "400") for name in bombs_by_name}
        assert grown_kib <= GROWTH_KIB
        lives.require_alive()
        figures |= {
            "kinds": len(bombs_by_name),
            "requests": len(bombs_by_name) * (MANY if is_full else ROUNDS),
            "grown_kib": grown_kib,
        }
    finally:
        lives.kill()
