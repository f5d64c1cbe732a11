"""After Ctrl-C in a server's terminal the processes that read artifacts end without output."""

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from countersign.store.releases.processing.sandboxed_process import PROGRAM
from tests.kernel.http.server_process import wait_until

pytestmark = pytest.mark.process


def is_ready_for_sigint(pid: int) -> bool:
    """Return whether the reader has imported all that it needs, and neither catches nor ignores SIGINT."""
    folder = Path("/proc") / str(pid)
    lines = (line.partition(":\t") for line in (folder / "status").read_text().splitlines())
    status = {name: value for name, _, value in lines}
    handled = int(status["SigCgt"], 16) | int(status["SigIgn"], 16)
    return "msgspec" in (folder / "maps").read_text() and not handled & 1 << (signal.SIGINT - 1)


def test_an_idle_reader_ends_without_a_traceback() -> None:
    our_end, child_end = socket.socketpair()
    command = [sys.executable, "-m", PROGRAM, str(child_end.fileno())]
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    with our_end, child_end, subprocess.Popen(command, pass_fds=[child_end.fileno()], **pipes) as reader:
        try:
            wait_until(lambda: is_ready_for_sigint(reader.pid))
            reader.send_signal(signal.SIGINT)
            _, error_output = reader.communicate(timeout=60)
        finally:
            reader.kill()

    assert (reader.returncode, error_output) == (-signal.SIGINT, b"")
