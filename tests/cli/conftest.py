"""Fixtures that run the command line, and scripted servers that give it wrong answers."""

import json
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.servers.countersign import COMMAND, MASTER_KEY, Running, environment, served

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Settings = dict[str, str]


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """The environment variables of a new user: empty configuration and cache directories."""
    return {"XDG_CONFIG_HOME": str(tmp_path / "config"), "XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.fixture
def run(home: dict[str, str], tmp_path: Path) -> Run:
    """Run the command line as users do, without a terminal, with `variables` added to its environment."""

    def run(*arguments: str | Path, stdin: str = "", **variables: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*COMMAND, *arguments],
            env=environment(**{**home, **variables}),
            cwd=tmp_path,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


@pytest.fixture(params=["sqlite", "postgres"])
def settings(request: pytest.FixtureRequest) -> Settings:
    """The settings of an empty database: once SQLite in the data directory, once PostgreSQL."""
    if request.param == "sqlite":
        return {}
    url: str = request.getfixturevalue("postgres_url")
    return {"COUNTERSIGN_DATABASE_URL": url, "COUNTERSIGN_MASTER_KEY": MASTER_KEY}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The path of a data directory that does not exist yet."""
    return tmp_path / "data"


@dataclass
class RecordedRequest:
    """A request that the scripted server received."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class ScriptedServer:
    """A server that gives the scripted answers in order and records each request.

    An answer has a status, headers and a body. The answer None closes the connection.
    """

    answers: list[tuple[int, dict[str, str], bytes] | None]
    seen: list[RecordedRequest] = field(default_factory=list[RecordedRequest])
    url: str = ""

    def say(self, status: int, value: object, **headers: str) -> None:
        """Append an answer to the script. Its body is the value as JSON."""
        self.answers.append((status, headers, json.dumps(value).encode()))


@pytest.fixture
def scripted() -> Iterator[Callable[[], ScriptedServer]]:
    """A factory of scripted servers, which are stopped at the end of the test."""
    servers: list[ThreadingHTTPServer] = []

    def make() -> ScriptedServer:
        script = ScriptedServer([])
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(script))
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        servers.append(server)
        script.url = f"http://127.0.0.1:{server.server_address[1]}"
        return script

    yield make
    for server in servers:
        server.shutdown()
        server.server_close()


def _handler(script: ScriptedServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Handle requests with the scripted answers."""

        def handle_any(self) -> None:
            """Read the request and send the next answer."""
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            headers = {name.lower(): ", ".join(self.headers.get_all(name, ())) for name in self.headers}
            script.seen.append(RecordedRequest(self.command, self.path, headers, body))
            answer = script.answers.pop(0)
            self.close_connection = True
            if answer is None:
                return
            status, extra_headers, content = answer
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **extra_headers}.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = handle_any

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    return Handler


@pytest.fixture(scope="session")
def demo_store() -> Iterator[Running]:
    """A store with the demonstration data, shared by the tests that only add to it."""
    with (
        tempfile.TemporaryDirectory(prefix="countersign-test-") as folder,
        served(Path(folder) / "data", "--demo", settings={"COUNTERSIGN_JOB_WORKERS": "1"}) as running,
    ):
        yield running
