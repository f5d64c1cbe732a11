"""Processes that work on strangers' bytes: started without settings or secrets, ended with whoever waits for them."""

import asyncio
import fcntl
import os
import sys
from asyncio import StreamWriter
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from io import FileIO

from countersign.kernel.errors import Unavailable
from countersign.updates import framing

F_SETPIPE_SZ = 1031
PIPE_BYTES = 1 << 20
_HANDED_ON = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TZ")


class WorkerDied(Unavailable):
    """A process that worked on an artifact ended without a word, as it does when it takes too much memory or time."""


class Apart:
    """A running process, and the messages that go to and fro."""

    def __init__(self, process: Process, told: FileIO, asked: StreamWriter) -> None:
        self._process = process
        self._told = told
        self._asked = asked

    async def hear(self) -> bytes | bytearray:
        """The next message's payload.

        Raises:
            WorkerDied: the process ended too early.
        """
        try:
            return await asyncio.to_thread(framing.read_raw, self._told)
        except EOFError as error:
            code = await self._process.wait()
            raise WorkerDied(f"a process that worked on the artifact ended with {code} and no result") from error

    async def say(self, payload: bytes) -> None:
        """Send a message; nobody there to hear it is told by the next `hear`."""
        with suppress(ConnectionError):
            self._asked.write(framing.framed(payload))
            await self._asked.drain()


@asynccontextmanager
async def started(program: str, fds: Sequence[int] = ()) -> AsyncGenerator[Apart]:
    """While the block lasts, the module runs with these files open and no others; what is left of it is ended."""
    # Read by a thread from a pipe of our own: a stream of the event loop would copy a gigabyte several times.
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb", buffering=0) as told:
        try:
            fcntl.fcntl(writing, F_SETPIPE_SZ, PIPE_BYTES)
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", program, stdin=PIPE, stdout=writing, pass_fds=fds, env=_environment(), cwd="/"
            )
        finally:
            os.close(writing)
        try:
            if process.stdin is None:
                raise LookupError("a process was started without its pipe")
            yield Apart(process, told, process.stdin)
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


def _environment() -> dict[str, str]:
    """What the process may know: where its code is."""
    kept = {name: os.environ[name] for name in _HANDED_ON if name in os.environ}
    return {**kept, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry), "PYTHONDONTWRITEBYTECODE": "1"}
