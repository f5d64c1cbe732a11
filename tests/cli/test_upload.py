"""An upload while the server restarts, with a simulated clock."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from countersign.cli.client import connection, push, upload
from countersign.cli.client.connection import Server
from countersign.cli.client.push import PushTarget
from countersign.cli.client.transport import Request, Unreachable
from countersign.cli.client.upload import Content, UploadSession
from countersign.cli.options import ProductName
from countersign.cli.output import Exit, Failure
from countersign.kernel import clock

PART, SIZE = 1_000, 10_000
URL = "http://store.example/api/v1/artifacts/uploads/u"


class ScriptedResponse(io.BytesIO):
    """A complete answer."""

    def __init__(self, status: int, value: object) -> None:
        super().__init__(json.dumps(value).encode())
        self.status, self.length = status, 0

    def getheaders(self) -> list[tuple[str, str]]:
        """Return no headers."""
        return []


class RestartingServer:
    """A store that keeps complete parts, and is unavailable for `away_s` seconds from the middle of a part on."""

    def __init__(self, away_s: float) -> None:
        self.now_s = 0.0
        self.away_s = away_s
        self.goes_s: float | None = None
        self.parts: list[tuple[int, int]] = []
        self.sent = 0

    def wait(self, seconds: float) -> None:
        """Advance the simulated clock. Only this function advances it."""
        self.now_s += seconds

    def send(self, request: Request) -> Any:
        """Answer one request."""
        if self.goes_s is not None and self.now_s < self.goes_s + self.away_s:
            raise Unreachable("connection refused")
        if request.method == "GET":
            return ScriptedResponse(200, {"received": [[start, stop - 1] for start, stop in self.parts], "size": SIZE})
        start = int(request.headers["Content-Range"].split()[1].partition("-")[0])
        assert not isinstance(request.body, bytes)
        for piece in request.body:
            self.sent += len(piece)
            if self.goes_s is None and self.sent > SIZE / 2:
                self.goes_s = self.now_s
                raise Unreachable("the connection was closed before the answer")
        self.parts.append((start, start + PART))
        if sum(stop - begin for begin, stop in self.parts) < SIZE:
            return ScriptedResponse(204, None)
        return ScriptedResponse(201, {"id": "a", "filename": "f", "size": SIZE})


class NoMeter:
    """A progress meter that shows nothing."""

    def at(self, sent_bytes: int) -> None:
        """Ignore the progress."""


def sending(store: RestartingServer, monkeypatch: pytest.MonkeyPatch) -> UploadSession:
    """Return an upload to the store, as `push` does it."""
    monkeypatch.setattr(upload, "MIN_PART_BYTES", PART)
    monkeypatch.setattr(upload, "PIECE_BYTES", PART // 4)
    monkeypatch.setattr(clock, "monotonic_s", lambda: store.now_s)
    monkeypatch.setattr(connection, "wait", store.wait)
    for module in (upload, connection):
        monkeypatch.setattr(module, "send", store.send)
    server = Server("http://store.example")
    server.use_no_token()
    server.patience_s = push.PATIENCE_S
    return UploadSession(server, URL, Content(io.BytesIO(bytes(SIZE)), "f", SIZE, ""), "cannot push")


def test_a_push_survives_a_server_restart_of_a_minute_and_repeats_at_most_one_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = RestartingServer(60)

    artifact = sending(store, monkeypatch).run([(0, SIZE)], NoMeter())

    assert artifact is not None
    assert sorted(store.parts) == [(start, start + PART) for start in range(0, SIZE, PART)]
    assert SIZE < store.sent <= SIZE + PART


def test_a_push_fails_if_the_server_does_not_return(monkeypatch: pytest.MonkeyPatch) -> None:
    store = RestartingServer(1e9)

    with pytest.raises(Failure) as failure:
        sending(store, monkeypatch).run([(0, SIZE)], NoMeter())

    assert failure.value.exit_code == Exit.UNREACHABLE
    assert push.PATIENCE_S <= store.now_s < 10 * push.PATIENCE_S


def test_a_packed_directory_has_no_name_that_a_killed_push_would_leave(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    temporary_folder, folder = tmp_path / "tmp", tmp_path / "dist"
    temporary_folder.mkdir()
    folder.mkdir()
    (folder / "a.txt").write_text("a")
    monkeypatch.setattr("tempfile.tempdir", str(temporary_folder))
    push_target = PushTarget(
        Server("http://store.example"), ProductName("north", "game"), "1.0", "stable", "linux", None
    )

    with push._open_content(folder, push_target, None) as (file, name):  # pyright: ignore[reportPrivateUsage]
        assert upload.read_content(file, name).size > 100
        assert list(temporary_folder.iterdir()) == []
