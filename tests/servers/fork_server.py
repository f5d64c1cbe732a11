"""Processes of `python -m MODULE` that are forked from one which has imported the product: a start without the imports.

A forked process is one like any other: it has its own id, environment, working directory and streams, and it is killed
and waited for in the same way. With --full every process is started anew, and so is each one that this module cannot
give what it asks for: another interpreter, other settings of Python's own, a function to call before it begins.
"""

import ctypes
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).parents[2] / "src"
SERVED = Path(__file__).with_name("fork_served.py")
READ_AT_START = ("PYTHON", "LANG", "LC_", "LD_", "SSL_", "OPENSSL_", "MALLOC_")
"""What an interpreter reads as it begins: a forked one has read it already."""
SETTABLE = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "SSL_CERT_DIR", "SSL_CERT_FILE")
"""Those of them that a forked one can still be given."""
SET_CHILD_SUBREAPER = 36
COMMAND_BYTES = 4096
"""How much of its command a forked process shows in /proc."""
ORDINARY: Mapping[str, object] = {
    "preexec_fn": None, "close_fds": True, "restore_signals": True, "process_group": -1,
    "gid": None, "gids": None, "uid": None, "umask": -1, "executable": None, "shell": False,
}  # fmt: skip
"""What a forked process has; one for which any of it is another is started anew."""
STATUS = struct.Struct("i")

_Popen = subprocess.Popen
_EXECUTE = signature(getattr(_Popen, "_execute_child", lambda self: None))


class ForkServer:
    """The process that has imported the product, started by the first who asks. It begins with the `environment` of
    the run's begin, whatever a test changes until then. A test that gives its process mounts of its own
    (`unshare`) gets a further one, which sees them; the one before goes on with what it forked."""

    def __init__(self) -> None:
        self.environment: dict[str, str] = {}
        self._lock = threading.Lock()
        self._control: socket.socket | None = None
        self._owner = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._mounts = 0
        self._earlier: list[tuple[socket.socket, subprocess.Popen[bytes]]] = []

    def fork(self, order: Mapping[str, object], streams: Sequence[int]) -> tuple[int, int]:
        """A new process with these open files, of which the first three are its standard streams; its id, and a pipe
        that its exit status comes through."""
        ends, ended = os.pipe()
        try:
            answer = self._answer(order, [*streams, ended])
        except BaseException:
            os.close(ends)
            raise
        finally:
            os.close(ended)
        return answer, ends

    def fork_child(self, order: Mapping[str, object], streams: Sequence[int]) -> int:
        """The same, but the new process is a child of this one, which waits for it by itself."""
        return self._answer({**order, "is_child": True}, streams)

    def _answer(self, order: Mapping[str, object], files: Sequence[int]) -> int:
        with self._lock:
            control = self._started()
            _adopts(bool(order.get("is_child")))
            try:
                socket.send_fds(control, [json.dumps(order).encode()], files)
                answer = control.recv(64)
            finally:
                _adopts(False)
        if not answer:
            raise RuntimeError("the process that forks is gone")
        return int(answer)

    def stop(self) -> None:
        """End it, and with it what it forked."""
        if self._control is not None and self._process is not None and self._owner == os.getpid():
            for control, process in [*self._earlier, (self._control, self._process)]:
                control.close()
                process.wait()
        self._control = None
        self._earlier.clear()

    def _started(self) -> socket.socket:
        mounts = os.stat("/proc/self/ns/mnt").st_ino
        if self._control is None or (self._owner, self._mounts) != (os.getpid(), mounts):
            if self._control is not None and self._process is not None and self._owner == os.getpid():
                self._earlier.append((self._control, self._process))
            self._mounts = mounts
            self._control, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._control.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
            self._owner = os.getpid()
            command = [sys.executable, "-P", str(SERVED), str(other.fileno()), " " * COMMAND_BYTES]
            self._process = _Popen(command, env=self.environment, pass_fds=[other.fileno()], stdin=subprocess.DEVNULL)
            other.close()
        return self._control


def _adopts(is_adopting: bool) -> None:
    """Whether this process becomes the parent of what its children leave behind."""
    ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, int(is_adopting))


_server = ForkServer()


class Process(subprocess.Popen[Any]):
    """A process as `subprocess` starts it, or forked where that is the same."""

    _status: int | None = None

    def __init__(self, args: Any, *positional: Any, **options: Any) -> None:
        # asyncio waits for its processes by itself, which only a child of this process lets it.
        self._is_asyncio = options.get("universal_newlines") is False
        super().__init__(args, *positional, **options)

    def _execute_child(self, *arguments: Any) -> None:
        given = _EXECUTE.bind(self, *arguments).arguments
        order = _order(given)
        if order is None:
            super()._execute_child(*arguments)  # type: ignore[misc]
            return
        sys.audit("subprocess.Popen", order["command"][2:], given["args"], given["cwd"], given["env"])
        pipes = [given[name] for name in ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")]
        chosen = (pipes[0], pipes[3], pipes[5])
        streams = [number if end == -1 else end for number, end in enumerate(chosen)]
        files = [*streams, *given["pass_fds"]]
        if self._is_asyncio:
            self.pid = _server.fork_child(order, files)
        else:
            self.pid, self._status = _server.fork(order, files)
        self._child_created = True
        self._close_pipe_fds(*pipes)

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        if self._status is None:
            return super()._try_wait(wait_flags)  # type: ignore[misc]
        if wait_flags & os.WNOHANG and not select.select([self._status], [], [], 0)[0]:
            return 0, 0
        said = os.read(self._status, STATUS.size)
        os.close(self._status)
        self._status = None
        # Without a word the process that forks is gone, and has taken its own with it.
        return self.pid, STATUS.unpack(said)[0] if said else signal.SIGKILL

    def _internal_poll(self, _deadstate: int | None = None, **_: Any) -> int | None:
        if self._status is None:
            return super()._internal_poll(_deadstate)
        if self.returncode is None and self._waitpid_lock.acquire(False):
            try:
                if self.returncode is None:
                    pid, status = self._try_wait(os.WNOHANG)
                    if pid:
                        self._handle_exitstatus(status)
            finally:
                self._waitpid_lock.release()
        return self.returncode


def _order(given: Mapping[str, Any]) -> dict[str, object] | None:
    """What to fork; None where the process has to be started anew."""
    arguments = given["args"]
    unable = any(given.get(name, value) != value for name, value in ORDINARY.items())
    if unable or isinstance(arguments, str | bytes | os.PathLike):
        return None
    environment = os.environ if given["env"] is None else given["env"]
    command, variables, death = _unwrapped([os.fsdecode(each) for each in arguments], dict(environment))
    if command[:2] != [sys.executable, "-m"] or variables.get("PYTHONPATH", "").split(os.pathsep)[0] != str(SOURCE):
        return None
    if _read_at_start(variables) != _read_at_start(_server.environment):
        return None
    return {
        "command": command,
        "variables": variables,
        "folder": os.path.join(os.getcwd(), os.fsdecode(given["cwd"] or "")),
        "new_session": bool(given["start_new_session"]),
        "death": death,
        "descriptors": [0, 1, 2, *given["pass_fds"]],
    }


def _unwrapped(command: list[str], variables: dict[str, str]) -> tuple[list[str], dict[str, str], int]:
    """The command, its environment, and the signal it gets when its parent dies, without `setpriv` and `env` before."""
    death = int(signal.SIGKILL)
    if Path(command[0]).name == "setpriv" and command[1].startswith("--pdeathsig=") and command[2] == "--":
        death = signal.Signals["SIG" + command[1].partition("=")[2]]
        command = command[3:]
    if command[0] == "env":
        command = command[1:]
        while "=" in command[0]:
            name, _, value = command.pop(0).partition("=")
            variables[name] = value
    return command, variables, death


def _read_at_start(variables: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in variables.items()
        if name.startswith(READ_AT_START) and name not in SETTABLE
    }


def is_forking() -> bool:
    """Whether processes are forked at present."""
    return subprocess.Popen is Process


@contextmanager
def started_anew() -> Iterator[None]:
    """Until the block ends every process is started anew, for tests of what a start or its memory costs."""
    forking, subprocess.Popen = subprocess.Popen, _Popen  # type: ignore[misc]
    try:
        yield
    finally:
        subprocess.Popen = forking  # type: ignore[misc]


@pytest.fixture
def starts_anew() -> Iterator[None]:
    """Processes of this test are started anew; see `started_anew`."""
    with started_anew():
        yield


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Have processes forked where that is the same; Linux alone has the calls."""
    if sys.platform == "linux" and not config.getoption("--full"):
        # tests/conftest.py has removed the settings that no installation has.
        _server.environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
        subprocess.Popen = Process  # type: ignore[misc]


def pytest_unconfigure() -> None:
    """End what forks."""
    subprocess.Popen = _Popen  # type: ignore[misc]
    _server.stop()
