"""Starts servers for tests, and ensures that they end with the tests."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

START_S = 180


_USED_PORTS: set[int] = set()


def free_port() -> int:
    """Return a loopback port on which no process listens now and that this function has not returned before."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
        if port not in _USED_PORTS:
            _USED_PORTS.add(port)
            return port


def answers(port: int) -> bool:
    """Return whether a process accepts connections on the loopback port."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def children(pid: int) -> list[int]:
    """Return the child processes of this process, the oldest first. The result is empty if the process has ended."""
    try:
        return sorted(int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    except FileNotFoundError:
        return []


def is_running(pid: int) -> bool:
    """Return whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def plain_user() -> str | None:
    """Return the user for servers that refuse to run as root, or None if this process does not run as root."""
    if os.geteuid() != 0:
        return None
    user_names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in user_names else "nobody"


def installed_program(program: str, package: str, folders: Sequence[Path] = ()) -> Path:
    """Return the path of the program. If it is missing and this process is root, install its Debian package. If it is
    still missing, skip the test."""
    program_path = _find(program, folders)
    if program_path is None and os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run(
            ["apt-get", "install", "-y", "--no-install-recommends", package],
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            capture_output=True,
            timeout=600,
            check=False,
        )
        program_path = _find(program, folders)
    if program_path is None:
        pytest.skip(f"{program} is not on this machine: install {package} to run this test")
    return program_path


def _find(program: str, folders: Sequence[Path]) -> Path | None:
    path = os.pathsep.join([*map(str, folders), os.environ.get("PATH", "")])
    program_path = shutil.which(program, path=path)
    return Path(program_path) if program_path else None


@contextmanager
def run_until_ready(
    command: Sequence[str | Path],
    *,
    is_ready: Callable[[], bool],
    log: Path,
    user: str | None = None,
    stop: signal.Signals = signal.SIGTERM,
    within_s: float = START_S,
) -> Iterator[None]:
    """Run the server until the block ends. On Linux, the server also gets the signal `stop` if this process dies.

    Raises:
        RuntimeError: the server ended or was not ready in time. The text contains its log.
    """
    setpriv = shutil.which("setpriv")
    wrapped: list[str | Path] = [*command]
    if setpriv:
        drop = [f"--reuid={user}", f"--regid={user_group(user)}", "--clear-groups"] if user else []
        wrapped = [setpriv, *drop, f"--pdeathsig={stop.name[3:]}", "--", *command]
    with log.open("wb") as output:
        process = subprocess.Popen(
            wrapped,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            user=None if setpriv else user,
            start_new_session=True,
        )
    try:
        _wait(process, is_ready, log, within_s)
        yield
    finally:
        process.send_signal(stop)
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def user_group(user: str) -> int:
    """Return the number of the user's primary group."""
    return pwd.getpwnam(user).pw_gid


def _wait(process: subprocess.Popen[bytes], is_ready: Callable[[], bool], log: Path, within_s: float) -> None:
    deadline = time.monotonic() + within_s
    while not is_ready():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{process.args!r} does not serve:\n{log.read_text(errors='replace')[-4000:]}")
        time.sleep(0.02)
