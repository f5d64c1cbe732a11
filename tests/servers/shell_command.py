"""Provides a command `countersign` for shells whose processes are forked (see `fork_server`), so that it starts faster.

The shell starts a small program, which sends its arguments, environment, working directory and standard streams to the
process of the tests. The process of the tests starts the command with them. The small program forwards signals to the
command and ends with the same status. If the small program is killed, the command is killed too.
"""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

PROGRAM = """\
#!{python} -IS
import json, os, signal, socket, sys

tests = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
tests.connect({address!r})
socket.send_fds(tests, [json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()], [0, 1, 2])
pid = int(tests.recv(64))
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(number) is not signal.SIG_IGN:
        signal.signal(number, lambda number, frame: os.kill(pid, number))
status = int(tests.recv(64))
if status < 0:
    signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
sys.exit(status)
"""
MESSAGE_BYTES = 1 << 20


@contextmanager
def fork_countersign() -> Iterator[Path]:
    """Provide a folder with the program `countersign` until the block ends. The folder must be the first in the PATH of
    the shell."""
    with (
        TemporaryDirectory(prefix="countersign-command-") as name,
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening,
    ):
        folder = Path(name)
        address = str(folder / "tests")
        listening.bind(address)
        listening.listen(16)
        program = folder / "countersign"
        program.write_text(PROGRAM.format(python=sys.executable, address=address))
        program.chmod(0o755)
        accepting_thread = threading.Thread(target=_accept, args=(listening,))
        accepting_thread.start()
        try:
            yield folder
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            accepting_thread.join()


def _accept(listening: socket.socket) -> None:
    """Start a command for each small program that connects. After the socket is shut down, wait for all commands."""
    running: list[threading.Thread] = []
    with suppress(OSError):
        while True:
            connection, _ = listening.accept()
            running.append(threading.Thread(target=_run, args=(connection,)))
            running[-1].start()
    for process in running:
        process.join()


def _run(connection: socket.socket) -> None:
    with connection:
        message, streams, _, _ = socket.recv_fds(connection, MESSAGE_BYTES, 3)
        if not message:
            return
        arguments, folder, variables = json.loads(message)
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", "countersign.cli.main", *arguments],
                cwd=folder,
                env=variables,
                stdin=streams[0],
                stdout=streams[1],
                stderr=streams[2],
            )
        finally:
            for stream in streams:
                os.close(stream)
        with suppress(OSError):
            connection.send(str(process.pid).encode())
        threading.Thread(target=_kill_with, args=(connection.dup(), process)).start()
        status = process.wait()
        with suppress(OSError):
            connection.send(str(status).encode())
            connection.shutdown(socket.SHUT_RDWR)


def _kill_with(connection: socket.socket, process: subprocess.Popen[bytes]) -> None:
    """Kill the command when the small program has ended."""
    with connection, suppress(OSError):
        connection.recv(1)
        if process.poll() is None:
            process.kill()
