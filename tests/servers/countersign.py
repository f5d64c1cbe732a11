"""Starts Countersign services for tests, with the commands that users run."""

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
from tests.servers.memory import memory_folder
from tests.servers.process import answers, free_port, run_until_ready

SOURCE = Path(__file__).parents[2] / "src"
MASTER_KEY = "dGVzdCBtYXN0ZXIga2V5IG9mIDMyIGJ5dGVzIC0tIG8="
"""The master key of test services. Services on PostgreSQL need an explicit master key."""
COMMAND = (sys.executable, "-m", "countersign.cli.main")


def environment(**settings: str) -> dict[str, str]:
    """Return the environment for a command, without the settings of the person who runs the tests."""
    foreign = ("COUNTERSIGN_", "XDG_")
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(foreign) and not name.lower().endswith("_proxy")
    }
    # Tests count the demonstration records and expect no proposals other than their own.
    return {**inherited, "PYTHONPATH": str(SOURCE), "COUNTERSIGN_DEMO_ACTIVITY": "false", **settings}


class Running(NamedTuple):
    """A running service with its data directory."""

    data: Path
    port: int
    log: Path
    records_port: int = 0

    @property
    def url(self) -> str:
        """The root address of the service."""
        return f"http://127.0.0.1:{self.port}"

    def token(self, email: str) -> str:
        """Issue a bearer token for the person, with all rights of the person."""
        command = [*COMMAND, "token", "issue", email, "--data", self.data, "--json"]
        result = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True)
        token = json.loads(result.stdout)["access_token"]
        assert isinstance(token, str)
        return token


def is_plain_demonstration(options: Sequence[str], settings: Mapping[str, str] | None, program: Sequence[str]) -> bool:
    """Return whether the start can use a copy of the demonstration data: it seeds this data with the usual command, and
    sets nothing but rate limits and the number of job workers, which do not change the data."""
    names = {name for name in settings or {} if not name.startswith("COUNTERSIGN_RATE_")}
    return "--demo" in options and names <= {"COUNTERSIGN_JOB_WORKERS"} and tuple(program) == COMMAND


@cache
def demonstration(service: str) -> Path:
    """Return a directory with demonstration data that `served` can copy. It is created once in a process."""
    data = Path(mkdtemp(prefix="countersign-demo-", dir=memory_folder())) / "data"
    atexit.register(shutil.rmtree, data.parent, ignore_errors=True)
    data.mkdir()
    (data / "master.key").write_text(MASTER_KEY)
    (data / "master.key").chmod(0o600)
    with served(data, "--demo", service=service, copies_demonstration=False):
        pass
    return data


def move_to_postgres(data: Path, settings: Mapping[str, str]) -> None:
    """Move the data directory to the empty PostgreSQL database in the settings, and the blobs to the bucket if the
    settings have one.

    This takes a fifth of the time that it takes to seed the demonstration data there.
    """
    command: list[str | Path] = [*COMMAND, "db", "migrate", "--data", data]
    for option, name in (("--to", "COUNTERSIGN_DATABASE_URL"), ("--blobs-to", "COUNTERSIGN_BLOBS_URL")):
        if name in settings:
            command += [option, settings[name]]
    credentials = {
        name: value for name, value in settings.items() if name.startswith(("AWS_", "COUNTERSIGN_MASTER_KEY"))
    }
    result = subprocess.run(command, env=environment(**credentials), capture_output=True, text=True, check=False)
    if result.returncode:
        raise RuntimeError(result.stderr)


@contextmanager
def served(
    data: Path,
    *options: str,
    service: str = "distribution",
    settings: Mapping[str, str] | None = None,
    program: Sequence[str] = COMMAND,
    copies_demonstration: bool = True,
    ports: tuple[int, int] | None = None,
) -> Iterator[Running]:
    """Run a service, or "both" services, with this data directory until the block ends.

    The ports are free ports, or `ports` to restart on the ports of an earlier start. With --demo, a new directory gets
    a copy of demonstration data, which is faster than seeding. The data is seeded instead if `copies_demonstration` is
    false or the run has the option --full.
    """
    if (
        copies_demonstration
        and is_forking()
        and not data.exists()
        and is_plain_demonstration(options, settings, program)
    ):
        shutil.copytree(demonstration(service), data)
    port, records_port = ports or (free_port(), free_port())
    command: list[str | Path] = [*program, "serve", *options, "--data", data]
    if service == "both":
        command += ["--distribution-port", str(port), "--records-port", str(records_port)]
    else:
        command += [service, "--port", str(port)]
    log = data.with_name(data.name + ".log")
    # With rate limits, the result of a test would depend on its speed.
    quotas = {f"COUNTERSIGN_RATE_{kind}": "1000000" for kind in ("ANONYMOUS", "PERSON", "TOKEN", "REGISTER")}
    # A job worker takes as long to start as the server, so only tests of jobs start workers.
    # Tests count the demonstration records, which DEMO_ACTIVITY would add to.
    defaults = {"PYTHONPATH": str(SOURCE), "COUNTERSIGN_JOB_WORKERS": "0", "COUNTERSIGN_DEMO_ACTIVITY": "false"}
    variables = {**defaults, **quotas, **(settings or {})}
    with run_until_ready(
        ["env", *(f"{name}={value}" for name, value in variables.items()), *command],
        is_ready=lambda: answers(port) and "Stop with ctrl-C" in log.read_text(),
        log=log,
    ):
        yield Running(data, port, log, records_port)
