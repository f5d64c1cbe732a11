"""Makes processes of `python -m MODULE` start faster: they are forked from a process that has imported the product.

A forked process has its own id, environment, working directory and streams, and tests kill it and wait for it like any
other process. A process is started as usual with the option --full, or if forking cannot provide what the test
requests, such as another interpreter, other settings of Python or a function to call before the start.
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
"""The prefixes of environment variables that an interpreter reads when it starts. A forked process cannot change
them."""
SETTABLE = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "SSL_CERT_DIR", "SSL_CERT_FILE")
"""The variables among them that a forked process can still change."""
SET_CHILD_SUBREAPER = 36
COMMAND_BYTES = 4096
"""The maximum length of the command that /proc shows for a forked process."""
FORK_OPTIONS: Mapping[str, object] = {
    "preexec_fn": None, "close_fds": True, "restore_signals": True, "process_group": -1,
    "gid": None, "gids": None, "uid": None, "umask": -1, "executable": None, "shell": False,
}  # fmt: skip
"""The options of `Popen` that forking supports only with these values. With other values, a process is started as
usual."""
STATUS = struct.Struct("i")

_Popen = subprocess.Popen
_EXECUTE = signature(getattr(_Popen, "_execute_child", lambda self: None))


class ForkServer:
    """Starts and controls the process that has imported the product, which this class calls the forking process.

    The forking process starts with the first order, with the `environment` that the test run had at its beginning. A
    test may give itself other mounts (`unshare`). It then gets a new forking process, which sees these mounts, and the
    earlier one continues for the processes that it has forked.
    """

    def __init__(self) -> None:
        self.environment: dict[str, str] = {}
        self._lock = threading.Lock()
        self._owner = 0
        self._by_mounts: dict[int, tuple[socket.socket, subprocess.Popen[bytes]]] = {}

    def fork(self, order: Mapping[str, object], streams: Sequence[int]) -> tuple[int, int]:
        """Fork a process with these open files. The first three are its standard streams. Return its id, and a pipe
        from which its exit status can be read."""
        status_reader, status_writer = os.pipe()
        try:
            pid = self._send(order, [*streams, status_writer])
        except BaseException:
            os.close(status_reader)
            raise
        finally:
            os.close(status_writer)
        return pid, status_reader

    def fork_child(self, order: Mapping[str, object], streams: Sequence[int]) -> int:
        """Fork a process that becomes a child of this process, which can then wait for it. Return its id."""
        return self._send({**order, "is_child": True}, streams)

    def _send(self, order: Mapping[str, object], files: Sequence[int]) -> int:
        with self._lock:
            control = self._connect()
            _set_adopts_orphans(bool(order.get("is_child")))
            try:
                socket.send_fds(control, [json.dumps(order).encode()], files)
                pid = control.recv(64)
            finally:
                _set_adopts_orphans(False)
        if not pid:
            raise RuntimeError("the forking process has ended")
        return int(pid)

    def stop(self) -> None:
        """End the forking processes and the processes that they forked."""
        if self._owner == os.getpid():
            for control, process in self._by_mounts.values():
                control.close()
                process.wait()
        self._by_mounts.clear()

    def _connect(self) -> socket.socket:
        if self._owner != os.getpid():
            self._by_mounts.clear()
            self._owner = os.getpid()
        # `unshare` changes the mounts of one thread. The threads that were there before it keep theirs.
        mounts = os.stat("/proc/thread-self/ns/mnt").st_ino
        if mounts not in self._by_mounts:
            control, far_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            control.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
            command = [sys.executable, "-P", str(SERVED), str(far_end.fileno()), " " * COMMAND_BYTES]
            process = _Popen(command, env=self.environment, pass_fds=[far_end.fileno()], stdin=subprocess.DEVNULL)
            far_end.close()
            self._by_mounts[mounts] = (control, process)
        return self._by_mounts[mounts][0]


def _set_adopts_orphans(is_adopting: bool) -> None:
    """Set whether this process becomes the parent of processes that its children leave behind."""
    ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, int(is_adopting))


_server = ForkServer()


class ForkedProcess(subprocess.Popen[Any]):
    """Replaces `subprocess.Popen`. The process is forked if this makes no difference, and started as usual
    otherwise."""

    _status: int | None = None

    def __init__(self, args: Any, *positional: Any, **options: Any) -> None:
        # asyncio waits for its processes itself, so they must be children of this process.
        self._is_asyncio = options.get("universal_newlines") is False
        super().__init__(args, *positional, **options)

    def _execute_child(self, *arguments: Any) -> None:
        bound_arguments = _EXECUTE.bind(self, *arguments).arguments
        order = _order(bound_arguments)
        if order is None:
            super()._execute_child(*arguments)  # type: ignore[misc]
            return
        sys.audit(
            "subprocess.Popen",
            order["command"][2:],
            bound_arguments["args"],
            bound_arguments["cwd"],
            bound_arguments["env"],
        )
        pipes = [
            bound_arguments[name] for name in ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        ]
        child_ends = (pipes[0], pipes[3], pipes[5])
        streams = [number if end == -1 else end for number, end in enumerate(child_ends)]
        files = [*streams, *bound_arguments["pass_fds"]]
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
        status = os.read(self._status, STATUS.size)
        os.close(self._status)
        self._status = None
        # If the pipe is empty, the forking process has ended, and its forked processes were killed with it.
        return self.pid, STATUS.unpack(status)[0] if status else signal.SIGKILL

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


def _order(bound_arguments: Mapping[str, Any]) -> dict[str, object] | None:
    """Return the order to fork this process, or None if the process must be started as usual."""
    arguments = bound_arguments["args"]
    is_unsupported = any(bound_arguments.get(name, value) != value for name, value in FORK_OPTIONS.items())
    if is_unsupported or isinstance(arguments, str | bytes | os.PathLike):
        return None
    environment = os.environ if bound_arguments["env"] is None else bound_arguments["env"]
    command, variables, death = _unwrap([os.fsdecode(argument) for argument in arguments], dict(environment))
    if command[:2] != [sys.executable, "-m"] or variables.get("PYTHONPATH", "").split(os.pathsep)[0] != str(SOURCE):
        return None
    if _read_at_start(variables) != _read_at_start(_server.environment):
        return None
    return {
        "command": command,
        "variables": variables,
        "folder": os.path.join(os.getcwd(), os.fsdecode(bound_arguments["cwd"] or "")),
        "new_session": bool(bound_arguments["start_new_session"]),
        "death": death,
        "descriptors": [0, 1, 2, *bound_arguments["pass_fds"]],
    }


def _unwrap(command: list[str], variables: dict[str, str]) -> tuple[list[str], dict[str, str], int]:
    """Return the command without a leading `setpriv` and `env`, its environment, and the signal that the process gets
    when its parent dies."""
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
    return {name: value for name, value in variables.items() if name.startswith(READ_AT_START) and name not in SETTABLE}


def is_forking() -> bool:
    """Return whether new processes are forked."""
    return subprocess.Popen is ForkedProcess


@contextmanager
def without_forking() -> Iterator[None]:
    """Start every process as usual until the block ends, for tests that measure a start or its memory."""
    forking, subprocess.Popen = subprocess.Popen, _Popen  # type: ignore[misc]
    try:
        yield
    finally:
        subprocess.Popen = forking  # type: ignore[misc]


@pytest.fixture
def no_forking() -> Iterator[None]:
    """Start the processes of this test as usual (see `without_forking`)."""
    with without_forking():
        yield


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Replace `subprocess.Popen`, so that processes are forked. Only Linux has the necessary system calls."""
    if sys.platform == "linux" and not config.getoption("--full"):
        # tests/conftest.py has removed the Python settings that an installation does not have.
        _server.environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
        subprocess.Popen = ForkedProcess  # type: ignore[misc]


def pytest_unconfigure() -> None:
    """End the forking processes."""
    subprocess.Popen = _Popen  # type: ignore[misc]
    _server.stop()
