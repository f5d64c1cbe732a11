"""Imports the product, and forks a process for each order that comes through the socket it is given; see fork_server.

A forked process runs `python -m MODULE ARGUMENTS` to its end, as if it had been started so, except that passwords cost
next to nothing there.
"""

import atexit
import contextlib
import ctypes
import fcntl
import gc
import importlib
import io
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import struct
import sys
import threading
import time
from pathlib import Path
from typing import Any

import argon2

import countersign
from countersign.kernel.security import age, passwords

STATUS = struct.Struct("i")
LATER = ("apsw", "asyncpg", "httptools", "uvicorn.lifespan.on", "uvicorn.protocols.http.httptools_impl", "uvloop")
"""What the product imports when it serves."""
SET_DEATH_SIGNAL = 1
ARGUMENTS = 47
"""Where in /proc/self/stat the addresses of the command end, counted from the field after the name."""
MAX_FILES = 16
"""What one order may bring: the standard streams, what is handed on, and the pipe for the exit status."""
BASE = [each for each in sys.path if each not in os.environ["PYTHONPATH"].split(os.pathsep)]


def load() -> None:
    """Import every module of the product, and what it imports when it serves.

    Raises:
        RuntimeError: an import has started a thread, which what is forked would not have.
    """
    for module in pkgutil.walk_packages(countersign.__path__, "countersign."):
        importlib.import_module(module.name)
    for name in LATER:
        importlib.import_module(name)
    cheapen()
    if len(os.listdir("/proc/self/task")) != 1:
        raise RuntimeError("a thread was started by an import: what is forked would not have it")
    gc.collect()
    gc.freeze()


def cheapen() -> None:
    """Have passwords and the passphrases of backups cost next to nothing, as passwords do in the tests' own process."""
    passwords._hasher = argon2.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    passwords._DUMMY_HASH = passwords._dummy_hash()
    # What is sealed says how much its passphrase costs.
    age.AgeEncryptor.__init__.__kwdefaults__["work"] = 4


class Forks:
    """Forks what is ordered, and says how each process ended."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._waking, waker = os.pipe()
        self._statuses: dict[int, int] = {}
        for end in (self._waking, waker):
            os.set_blocking(end, False)
        self._waker = waker
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(waker)

    def next(self) -> dict[str, Any]:
        """Serve in the process that forks, which ends here; the order, in the process that was forked for it."""
        while True:
            ready = select.select([self._control, self._waking], [], [])[0]
            if self._waking in ready:
                os.read(self._waking, 4096)
                self._reap()
            if self._control in ready:
                message, files, _, _ = socket.recv_fds(self._control, 1 << 20, MAX_FILES)
                if not message:
                    os._exit(0)
                order = json.loads(message)
                ended = files.pop() if len(files) > len(order["descriptors"]) else None
                pid = os.fork() if ended is not None else fork_aside()
                if pid == 0:
                    self._leave()
                    become(order, files)
                    return order
                if ended is not None:
                    self._statuses[pid] = ended
                for file in files:
                    os.close(file)
                self._control.send(str(pid).encode())

    def _reap(self) -> None:
        while self._statuses:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            ended = self._statuses.pop(pid)
            # The process that started it may wait no more.
            with contextlib.suppress(BrokenPipeError):
                os.write(ended, STATUS.pack(status))
            os.close(ended)

    def _leave(self) -> None:
        """Be without what is the forking process's own; its other open files are closed by `become`."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._control.close()


def fork_aside() -> int:
    """As `os.fork`, but the new process is no child of this one: who adopts orphans is its parent."""
    reading, writing = os.pipe()
    between = os.fork()
    if between == 0:
        orphaned = os.getpid()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            os.close(writing)
            while os.getppid() == orphaned:
                time.sleep(0.0002)
            return 0
        os.write(writing, STATUS.pack(pid))
        os._exit(0)
    os.waitpid(between, 0)
    pid = STATUS.unpack(os.read(reading, STATUS.size))[0]
    os.close(reading)
    os.close(writing)
    return int(pid)


def become(order: dict[str, Any], files: list[int]) -> None:
    """Take the order's open files, environment, working directory and path of modules."""
    parent = os.getppid()
    ctypes.CDLL(None).prctl(SET_DEATH_SIGNAL, order["death"])
    if os.getppid() != parent:
        os._exit(1)
    if order["new_session"]:
        os.setsid()
    take_files(files, order["descriptors"])
    show_command(order["command"])
    os.environ.clear()
    os.environ.update(order["variables"])
    time.tzset()
    os.chdir(order["folder"])
    sys.path[:] = [os.getcwd(), *os.environ["PYTHONPATH"].split(os.pathsep), *BASE]
    sys.argv = ["-m", *order["command"][3:]]
    sys.dont_write_bytecode = bool(order["variables"].get("PYTHONDONTWRITEBYTECODE"))
    importlib.invalidate_caches()
    sys.stdin = sys.__stdin__ = _text(0, "r")
    sys.stdout = sys.__stdout__ = _text(1, "w")
    sys.stderr = sys.__stderr__ = _text(2, "w", "backslashreplace")


def show_command(command: list[str]) -> None:
    """Have /proc show this command, as far as there is room."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = map(int, fields[ARGUMENTS - 2 : ARGUMENTS])
    shown = b"".join(os.fsencode(each) + b"\0" for each in command)
    ctypes.memset(start, 0, end - start)
    ctypes.memmove(start, shown, min(len(shown), end - start - 1))


def take_files(files: list[int], descriptors: list[int]) -> None:
    """Have these files open under these numbers, and no other one."""
    above = max(*files, *descriptors) + 1
    moved = [fcntl.fcntl(file, fcntl.F_DUPFD, above) for file in files]
    for file, number in zip(moved, descriptors, strict=True):
        os.dup2(file, number)
    for number in map(int, os.listdir("/proc/self/fd")):
        if number not in descriptors:
            # Among them is the folder that is listed, which is closed already.
            with contextlib.suppress(OSError):
                os.close(number)


def _text(number: int, mode: str, errors: str = "strict") -> io.TextIOWrapper:
    """A standard stream as the interpreter makes it."""
    raw = io.FileIO(number, mode, closefd=False)
    buffer = io.BufferedReader(raw) if mode == "r" else io.BufferedWriter(raw)
    is_line = number == 2 or os.isatty(number)
    encoding = "utf-8" if sys.flags.utf8_mode else None
    return io.TextIOWrapper(buffer, encoding, errors, line_buffering=is_line)


def run(arguments: list[str]) -> int:
    """Run the module to its end; the exit code."""
    # As it would be missing where it has not been imported yet.
    sys.modules.pop(arguments[0], None)
    try:
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        print(ended.code, file=sys.stderr)
        return 1
    return 0


def leave(code: int) -> None:
    """End as the interpreter does, but for taking the modules apart: what it copies for that takes a tenth of a second.

    Raises:
        OSError: the last output could not be written.
    """
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code & 0xFF)


if __name__ == "__main__":
    load()
    order = Forks(socket.socket(fileno=int(sys.argv[1]))).next()
    code = run(order["command"][2:])
    try:
        leave(code)
    except OSError:
        sys.exit(code)  # and the interpreter says at its end what cannot be written
