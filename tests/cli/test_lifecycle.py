"""`serve` and `worker` log start, migrations, ready and stop as JSON events; SIGHUP ends neither."""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import httpx
import pytest

from countersign import __version__
from countersign.cli.output import Exit
from countersign.cli.server import lifecycle
from countersign.settings import Settings
from tests.cli.conftest import Run
from tests.servers.countersign import COMMAND, environment, served

WITHIN_S = 60


def events(log: Path) -> list[dict[str, Any]]:
    """Return the JSON lines of the log."""
    return [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]


def events_named(name: str, log: Path) -> list[dict[str, Any]]:
    """Return the events with that name."""
    return [event for event in events(log) if event["event"] == name]


def processes(root: int) -> list[int]:
    """Return the process and its descendants."""
    process_list = subprocess.run(["ps", "-e", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    parents = {int(pid): int(parent) for pid, parent in map(str.split, process_list.splitlines())}
    pids = [root]
    for line in pids:
        pids += [pid for pid, parent in parents.items() if parent == line]
    return pids


def all_ignore(root: int) -> bool:
    """Return whether the process has a child and all its processes ignore SIGHUP."""
    pids = processes(root)
    masks = [re.findall(r"^SigIgn:\s*(\w+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE) for pid in pids]
    return len(pids) > 1 and all(int(mask, 16) & 1 << (signal.SIGHUP - 1) for [mask] in masks)


def hang_up(pids: Iterable[int]) -> None:
    """Send SIGHUP to each process."""
    for pid in pids:
        os.kill(pid, signal.SIGHUP)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_server_logs_its_start_and_stop_and_a_hangup_ends_none_of_its_processes(tmp_path: Path, workers: str) -> None:
    data = tmp_path / "data"
    with served(data, "--workers", workers, service="both", settings={"COUNTERSIGN_JOB_WORKERS": "0"}) as server:
        pids = processes(json.loads((data / "serve.lock").read_text())["process"])
        hang_up(pids)
        health = [httpx.get(f"{server.url}/api/v1/health").status_code for _ in range(5)]
        assert set(pids) <= set(processes(pids[0]))

    [start], [ready_event], [stop] = (events_named(name, server.log) for name in ("start", "ready", "stop"))
    migrations = events_named("migration", server.log)
    assert health == [200] * 5
    assert (start["version"], start["data"], start["database"]["kind"]) == (__version__, str(data), "sqlite")
    assert ready_event["addresses"] == {
        "distribution": server.url,
        "records": f"http://127.0.0.1:{server.records_port}",
    }
    assert stop["reason"] == "SIGTERM"
    assert {migration["service"] for migration in migrations} == {"distribution", "records"}
    assert migrations[0]["name"] == "0001_initial"
    assert all(migration["elapsed_ms"] > 0 for migration in migrations)
    assert events(server.log)[0] == start
    assert {line["part"] for line in (start, ready_event, stop)} == {"serve"}


def test_a_worker_logs_its_start_and_stop_and_a_hangup_ends_none_of_its_processes(run: Run, tmp_path: Path) -> None:
    data, log = tmp_path / "data", tmp_path / "worker.log"
    assert run("org", "create", "acme", "--name", "Acme", "--data", data).returncode == Exit.OK
    command = [*COMMAND, "worker", "--processes", "1", "--data", data]
    with log.open("w") as file, subprocess.Popen(command, env=environment(), stdout=file, stderr=file) as worker:
        try:
            until_s = time.monotonic() + WITHIN_S
            while not (events_named("ready", log) and all_ignore(worker.pid)) and time.monotonic() < until_s:
                time.sleep(0.02)
            hang_up(processes(worker.pid))
        finally:
            worker.send_signal(signal.SIGTERM)
        code = worker.wait(WITHIN_S)

    assert code == Exit.OK
    assert [event["event"] for event in events(log)] == ["start", "ready", "stop"]
    assert [event.get("reason") for event in events(log)] == [None, None, "SIGTERM"]


def test_a_start_that_fails_is_logged_with_its_reason(run: Run, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "distribution.sqlite").write_bytes(b"no database at all" * 1000)

    result = run("serve", "distribution", "--port", "0", "--data", tmp_path / "data")

    lines = [json.loads(line) for line in result.stderr.splitlines() if line.startswith("{")]
    assert [line["event"] for line in lines] == ["start", "stop"]
    assert (lines[1]["reason"], lines[1]["exit_code"]) == ("failure", result.returncode)
    assert lines[1]["why"]


def test_no_password_of_the_database_is_logged() -> None:
    description = lifecycle.describe_database(Settings(database_url="postgresql://countersign:hush@db.example/store"))

    assert description == {"kind": "postgresql", "name": "countersign@db.example:5432/store"}
    malformed = lifecycle.describe_database(Settings(database_url="postgresql://a:hush@[d/db"))
    assert malformed == {"kind": "postgresql", "name": ""}


def test_a_command_other_than_a_server_logs_nothing_on_standard_output(run: Run, tmp_path: Path) -> None:
    result = run("org", "create", "acme", "--name", "Acme", "--json", "--data", tmp_path / "data")

    assert json.loads(result.stdout)
    assert "migration" not in result.stdout + result.stderr
