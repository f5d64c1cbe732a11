"""The lock of a data directory is released when the last process of a killed server has ended."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from countersign.cli.admin import lock
from countersign.cli.output import Failure

HOLD = """
import fcntl, sys
file = open(sys.argv[1])
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
input()
"""


@pytest.fixture
def worker(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """A process that holds the lock which another process announced."""
    (tmp_path / lock.FILE_NAME).write_text("{}")
    command = [sys.executable, "-c", HOLD, str(tmp_path / lock.FILE_NAME)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def announce(folder: Path, process: int) -> None:
    """Record which process serves the directory."""
    (folder / lock.FILE_NAME).write_text(json.dumps({"process": process, "keys": []}))


def test_the_lock_of_a_killed_server_is_waited_for(worker: "subprocess.Popen[str]", tmp_path: Path) -> None:
    ended_result = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    announce(tmp_path, int(ended_result.stdout))
    threading.Timer(0.3, worker.send_signal, [signal.SIGKILL]).start()

    with lock.acquire(tmp_path):
        assert worker.poll() is not None


def test_the_lock_of_a_server_that_runs_is_not_waited_for(worker: "subprocess.Popen[str]", tmp_path: Path) -> None:
    announce(tmp_path, os.getpid())
    began_s = time.monotonic()
    with pytest.raises(Failure) as refusal, lock.acquire(tmp_path):
        pass

    assert f"process {os.getpid()}" in refusal.value.why
    assert time.monotonic() - began_s < lock.SHUTDOWN_S
    assert worker.poll() is None
