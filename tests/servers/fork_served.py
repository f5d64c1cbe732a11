"""A program that imports the product and forks a process for each order from a socket (see `fork_server`).

A forked process runs `python -m MODULE ARGUMENTS` to its end, as if it had been started with this command. The only
difference is that password hashing is cheap.
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
LATE_IMPORTS = (
    *("apsw", "asyncpg", "httptools", "uvicorn.lifespan.on", "uvicorn.protocols.http.httptools_impl", "uvloop"),
)
"""The modules that the product imports only when it serves."""
SET_DEATH_SIGNAL = 1
END_OF_ARGUMENTS = 47
"""The position in /proc/self/stat after the start and end addresses of the command line. Positions are counted from the
field after the name of the program."""
MAX_FILES = 16
"""The maximum number of open files in one order: the standard streams, files to pass on, and the pipe for the exit
status."""
IMPORT_PATHS = [folder for folder in sys.path if folder not in os.environ["PYTHONPATH"].split(os.pathsep)]


def load() -> None:
    """Import every module of the product and LATE_IMPORTS.

    Raises:
        RuntimeError: an import has started a thread. Forked processes would not have this thread.
    """
    for module in pkgutil.walk_packages(countersign.__path__, "countersign."):
        importlib.import_module(module.name)
    for name in LATE_IMPORTS:
        importlib.import_module(name)
    make_passwords_cheap()
    if len(os.listdir("/proc/self/task")) != 1:
        raise RuntimeError("an import has started a thread, which forked processes would not have")
    gc.collect()
    gc.freeze()


def make_passwords_cheap() -> None:
    """Make hashing of passwords and of passphrases of backups cheap, as in the process of the tests."""
    passwords._hasher = argon2.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    passwords._DUMMY_HASH = passwords._dummy_hash()
    # An encrypted backup contains the cost of its passphrase, so every process can decrypt it.
    age.AgeEncryptor.__init__.__kwdefaults__["work"] = 4


class ForkedProcesses:
    """Forks a process for each order, and reports the exit status of each process."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._wake_reader, self._wake_writer = os.pipe()
        self._statuses: dict[int, int] = {}
        for end in (self._wake_reader, self._wake_writer):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(self._wake_writer)

    def next(self) -> dict[str, Any]:
        """Fork processes until the socket is closed, then end this process. In a forked process, return its order."""
        while True:
            readable = select.select([self._control, self._wake_reader], [], [])[0]
            if self._wake_reader in readable:
                os.read(self._wake_reader, 4096)
                self._reap()
            if self._control in readable:
                message, files, _, _ = socket.recv_fds(self._control, 1 << 20, MAX_FILES)
                if not message:
                    os._exit(0)
                order = json.loads(message)
                status_pipe = files.pop() if len(files) > len(order["descriptors"]) else None
                pid = os.fork() if status_pipe is not None else fork_orphan()
                if pid == 0:
                    self._leave()
                    become(order, files)
                    return order
                if status_pipe is not None:
                    self._statuses[pid] = status_pipe
                for file in files:
                    os.close(file)
                self._control.send(str(pid).encode())

    def _reap(self) -> None:
        while self._statuses:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            status_pipe = self._statuses.pop(pid)
            # The process that ordered the fork may no longer read the pipe.
            with contextlib.suppress(BrokenPipeError):
                os.write(status_pipe, STATUS.pack(status))
            os.close(status_pipe)

    def _leave(self) -> None:
        """Undo the set-up of the forking process in a forked process. `become` closes its open files."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._control.close()


def fork_orphan() -> int:
    """Fork a process that is not a child of this process. Its parent is the process that adopts orphans. Return its id,
    or 0 in the new process."""
    reading, writing = os.pipe()
    middle = os.fork()
    if middle == 0:
        middle_pid = os.getpid()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            os.close(writing)
            while os.getppid() == middle_pid:
                time.sleep(0.0002)
            return 0
        os.write(writing, STATUS.pack(pid))
        os._exit(0)
    os.waitpid(middle, 0)
    pid = STATUS.unpack(os.read(reading, STATUS.size))[0]
    os.close(reading)
    os.close(writing)
    return int(pid)


def become(order: dict[str, Any], files: list[int]) -> None:
    """Set up this process with the open files, environment, working directory and import path of the order."""
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
    sys.path[:] = [os.getcwd(), *os.environ["PYTHONPATH"].split(os.pathsep), *IMPORT_PATHS]
    sys.argv = ["-m", *order["command"][3:]]
    sys.dont_write_bytecode = bool(order["variables"].get("PYTHONDONTWRITEBYTECODE"))
    importlib.invalidate_caches()
    sys.stdin = sys.__stdin__ = _text(0, "r")
    sys.stdout = sys.__stdout__ = _text(1, "w")
    sys.stderr = sys.__stderr__ = _text(2, "w", "backslashreplace")


def show_command(command: list[str]) -> None:
    """Let /proc show this command as the command line of this process. A long command is cut off."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = map(int, fields[END_OF_ARGUMENTS - 2 : END_OF_ARGUMENTS])
    command_bytes = b"".join(os.fsencode(argument) + b"\0" for argument in command)
    ctypes.memset(start, 0, end - start)
    ctypes.memmove(start, command_bytes, min(len(command_bytes), end - start - 1))


def take_files(files: list[int], descriptors: list[int]) -> None:
    """Give the open files these numbers, and close all other files."""
    above = max(*files, *descriptors) + 1
    moved_files = [fcntl.fcntl(file, fcntl.F_DUPFD, above) for file in files]
    for file, number in zip(moved_files, descriptors, strict=True):
        os.dup2(file, number)
    for number in map(int, os.listdir("/proc/self/fd")):
        if number not in descriptors:
            # The list contains the file of the listed folder, which is closed already.
            with contextlib.suppress(OSError):
                os.close(number)


def _text(number: int, mode: str, errors: str = "strict") -> io.TextIOWrapper:
    """Create a standard stream as the interpreter does."""
    raw = io.FileIO(number, mode, closefd=False)
    buffer = io.BufferedReader(raw) if mode == "r" else io.BufferedWriter(raw)
    is_line = number == 2 or os.isatty(number)
    encoding = "utf-8" if sys.flags.utf8_mode else None
    return io.TextIOWrapper(buffer, encoding, errors, line_buffering=is_line)


def run(arguments: list[str]) -> int:
    """Run the module to its end and return the exit code."""
    # In a process that is started in the usual way, the module has not been imported before it runs.
    sys.modules.pop(arguments[0], None)
    try:
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    except SystemExit as system_exit:
        if system_exit.code is None or isinstance(system_exit.code, int):
            return system_exit.code or 0
        print(system_exit.code, file=sys.stderr)
        return 1
    return 0


def leave(code: int) -> None:
    """End the process as the interpreter does, but without clearing the modules. That would copy memory pages, which
    takes a tenth of a second.

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
    order = ForkedProcesses(socket.socket(fileno=int(sys.argv[1]))).next()
    code = run(order["command"][2:])
    try:
        leave(code)
    except OSError:
        sys.exit(code)  # The interpreter reports the output that cannot be written.
