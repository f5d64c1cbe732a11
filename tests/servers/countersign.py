"""A private Countersign for the tests, started as its users start it."""

import atexit
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import NamedTuple

from tests.servers.fork_server import is_forking
from tests.servers.memory import quick_folder
from tests.servers.process import answers, free_port, serving

SOURCE = Path(__file__).parents[2] / "src"
MASTER_KEY = "dGVzdCBtYXN0ZXIga2V5IG9mIDMyIGJ5dGVzIC0tIG8="
"""One that is given, as with PostgreSQL it must be."""
COMMAND = (sys.executable, "-m", "countersign.cli.main")


def environment(**more: str) -> dict[str, str]:
    """The environment of a command that knows nothing of the person who runs the tests."""
    foreign = ("COUNTERSIGN_", "XDG_")
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(foreign) and not name.lower().endswith("_proxy")
    }
    # Tests count the records of the demonstration, and their pages have no proposals but their own.
    return {**kept, "PYTHONPATH": str(SOURCE), "COUNTERSIGN_DEMO_ACTIVITY": "false", **more}


class Running(NamedTuple):
    """A served data directory."""

    data: Path
    port: int
    log: Path
    records_port: int = 0

    @property
    def url(self) -> str:
        """The root address."""
        return f"http://127.0.0.1:{self.port}"

    def token(self, email: str) -> str:
        """A bearer token of the person, with all that they hold."""
        command = [*COMMAND, "token", "issue", email, "--data", self.data, "--json"]
        done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True)
        token = json.loads(done.stdout)["access_token"]
        assert isinstance(token, str)
        return token


def is_plain_demonstration(options: Sequence[str], settings: Mapping[str, str] | None, program: Sequence[str]) -> bool:
    """Whether this start fills an empty directory with the demonstration as every other such start does."""
    names = {name for name in settings or {} if not name.startswith("COUNTERSIGN_RATE_")}
    return "--demo" in options and names <= {"COUNTERSIGN_JOB_WORKERS"} and tuple(program) == COMMAND


@cache
def demonstration(service: str) -> Path:
    """A directory that a start with --demo has filled, to be copied."""
    data = Path(mkdtemp(prefix="countersign-demo-", dir=quick_folder())) / "data"
    atexit.register(shutil.rmtree, data.parent, ignore_errors=True)
    data.mkdir()
    (data / "master.key").write_text(MASTER_KEY)
    (data / "master.key").chmod(0o600)
    with served(data, "--demo", service=service, copies=False):
        pass
    return data


def move_to_postgres(data: Path, settings: Mapping[str, str]) -> None:
    """Move the data directory to the empty PostgreSQL database, and to the bucket if there is one, of the settings.

    Moving the demonstration there takes a fifth of the time that seeding it there takes.
    """
    command: list[str | Path] = [*COMMAND, "db", "migrate", "--data", data]
    for option, name in (("--to", "COUNTERSIGN_DATABASE_URL"), ("--blobs-to", "COUNTERSIGN_BLOBS_URL")):
        if name in settings:
            command += [option, settings[name]]
    keys = {name: value for name, value in settings.items() if name.startswith(("AWS_", "COUNTERSIGN_MASTER_KEY"))}
    done = subprocess.run(command, env=environment(**keys), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)


@contextmanager
def served(
    data: Path,
    *options: str,
    service: str = "distribution",
    settings: Mapping[str, str] | None = None,
    program: Sequence[str] = COMMAND,
    copies: bool = True,
    ports: tuple[int, int] | None = None,
) -> Iterator[Running]:
    """Serve a service of the data directory on a free port until the block ends; "both" serves both.
    `ports` are those of an earlier start, which is then a restart.

    A new directory gets a copy of one demonstration, which takes less time than to seed it; with --full, and without
    `copies`, it is seeded.
    """
    if copies and is_forking() and not data.exists() and is_plain_demonstration(options, settings, program):
        shutil.copytree(demonstration(service), data)
    port, records_port = ports or (free_port(), free_port())
    command: list[str | Path] = [*program, "serve", *options, "--data", data]
    if service == "both":
        command += ["--distribution-port", str(port), "--records-port", str(records_port)]
    else:
        command += [service, "--port", str(port)]
    log = data.with_name(data.name + ".log")
    # Counters of requests would make tests depend on how fast they are.
    quotas = {f"COUNTERSIGN_RATE_{kind}": "1000000" for kind in ("ANONYMOUS", "PERSON", "TOKEN", "REGISTER")}
    # Workers take as long to start as the server; who tests jobs asks for them.
    # Tests count what the demonstration has without its activity.
    fixed = {"PYTHONPATH": str(SOURCE), "COUNTERSIGN_JOB_WORKERS": "0", "COUNTERSIGN_DEMO_ACTIVITY": "false"}
    variables = {**fixed, **quotas, **(settings or {})}
    with serving(
        ["env", *(f"{name}={value}" for name, value in variables.items()), *command],
        is_ready=lambda: answers(port) and "Stop with ctrl-C" in log.read_text(),
        log=log,
    ):
        yield Running(data, port, log, records_port)
