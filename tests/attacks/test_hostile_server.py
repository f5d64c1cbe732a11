"""Attacks on the command line: by a hostile server, and by other users who write to the same folder."""

import hashlib
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from countersign.cli.client import api_models, connection, transport
from countersign.cli.client.transport import Request, Unreachable
from countersign.cli.output import Failure
from tests.cli.conftest import Run, ScriptedServer, home, run, scripted

__all__ = ["home", "run", "scripted"]

CONTENT = b"hello"
ARTIFACT: dict[str, object] = {
    "id": "1",
    "filename": "game.bin",
    "size": len(CONTENT),
    "sha256": hashlib.sha256(CONTENT).hexdigest(),
}


PRODUCT: dict[str, object] = {
    "id": "p",
    "slug": "game",
    "title": "Game",
    "kind": "game",
    "platforms": [],
    "org": "north",
}


def shop(script: ScriptedServer) -> None:
    """Answer the requests that `download` sends before it requests the bytes."""
    script.say(200, PRODUCT)
    script.say(200, [{"version": "1.0.0", "channel": "stable", "published_at": "x", "artifacts": [ARTIFACT]}])


NO_ADDRESSES = [
    *("file:///etc/hostname", "ftp://127.0.0.1/game.bin", "http://[::1", "gopher://x", "http://127.0.0.1:99999/"),
    *(f"http://{'a' * 70}.example/", "http://a..b/", "http://127.0.0.1/ü", "http://127.0.0.1/a b"),
]


@pytest.mark.parametrize("location", NO_ADDRESSES)
def test_a_redirect_leads_to_no_other_protocol(
    run: Run, scripted: Callable[[], ScriptedServer], tmp_path: Path, location: str
) -> None:
    script = scripted()
    shop(script)
    script.say(302, {}, Location=location)

    ended_result = run("download", "north/game", "--server", script.url, COUNTERSIGN_TOKEN="token")

    assert ended_result.returncode == 1
    assert "Traceback" not in ended_result.stderr
    assert "redirect" in ended_result.stderr
    assert not (tmp_path / "game.bin").exists()


def test_a_download_does_not_write_through_a_planted_link(
    run: Run, scripted: Callable[[], ScriptedServer], tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    (tmp_path / "game.bin.part").symlink_to(victim)
    script = scripted()
    shop(script)
    script.answers += [(200, {}, CONTENT)] * 3

    ended_result = run("download", "north/game", "--server", script.url, COUNTERSIGN_TOKEN="token")

    assert victim.read_bytes() == b"mine"
    assert ended_result.returncode == 1
    assert not (tmp_path / "game.bin").exists()


def test_a_retry_time_of_thousands_of_digits_causes_no_traceback(
    run: Run, scripted: Callable[[], ScriptedServer]
) -> None:
    script = scripted()
    script.say(503, {}, Retry_After="9" * 5_000)

    ended_result = run("download", "north/game", "--server", script.url, COUNTERSIGN_TOKEN="token")

    assert ended_result.returncode == 6
    assert "Traceback" not in ended_result.stderr


@pytest.mark.parametrize("size", [-5, 1 << 63, 10**400])
def test_a_size_that_no_file_has_is_not_understood(run: Run, scripted: Callable[[], ScriptedServer], size: int) -> None:
    script = scripted()
    script.answers.append((200, {}, msgspec.json.encode(PRODUCT)))
    release = {"version": "1.0.0", "channel": "stable", "published_at": "x", "artifacts": [{**ARTIFACT, "size": 12345}]}
    script.answers.append((200, {}, msgspec.json.encode([release]).replace(b"12345", b"%d" % size)))

    ended_result = run("download", "north/game", "--server", script.url, COUNTERSIGN_TOKEN="token")

    assert ended_result.returncode == 1
    assert "not understood" in ended_result.stderr
    assert "Traceback" not in ended_result.stderr


@pytest.mark.parametrize("interval", [-1, 10**30])
def test_an_impossible_pause_is_ignored(interval: int) -> None:
    claim = {"user_code": "a", "verification_uri": "b", "expires_in": 600, "interval": interval}
    reply = connection.Reply(200, {}, msgspec.json.encode({"claim_token": "c", "claim": claim}))

    with pytest.raises(Failure, match="cannot sign in"):
        connection.decode(reply, api_models.Registration, "cannot sign in")


def test_a_server_that_demands_no_pause_is_not_polled_for_ever(
    run: Run, scripted: Callable[[], ScriptedServer]
) -> None:
    script = scripted()
    claim = {"user_code": "a", "verification_uri": "b", "expires_in": 3, "interval": 0}
    script.say(200, {"claim_token": "c", "claim": claim})
    script.answers += [(200, {}, b'{"sub": "x", "status": "pending"}')] * 50

    ended_result = run("login", "--email", "a@example.com", "--server", script.url)

    assert ended_result.returncode == 4
    assert "in time" in ended_result.stderr
    assert len(script.seen) < 10


SENT_AT_MOST = 64 << 20


def test_a_chunk_of_length_minus_one_does_not_lift_the_answer_limit() -> None:
    """A command limits the length of an answer, although the server states another length."""
    sent_sizes: list[int] = []

    def answer(listening: socket.socket) -> None:
        connected, _ = listening.accept()
        with connected:
            connected.recv(1 << 16)
            try:
                connected.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n")
                while sum(sent_sizes) < SENT_AT_MOST:
                    sent_sizes.append(connected.send(bytes(1 << 20)))
            except ConnectionError:
                return

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=answer, args=(listening,))
        thread.start()
        response = transport.send(Request("GET", f"http://127.0.0.1:{listening.getsockname()[1]}/"))
        with pytest.raises(Unreachable):
            connection.read_reply(response)
        thread.join()

    assert sum(sent_sizes) < SENT_AT_MOST
