"""Processes that work on strangers' bytes: started without settings or secrets, and ended with whoever waits for them."""

import asyncio
import os
import sys
from asyncio import StreamReader, StreamWriter
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from countersign.kernel.errors import Unavailable
from countersign.updates import framing

_BUFFER = 16 << 20
_HANDED_ON = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TZ")


class WorkerDied(Unavailable):
    """A process that worked on an artifact ended without a word, as it does when it takes too much memory or time."""


class Apart:
    """A running process, and the messages that go to and fro."""

    def __init__(self, process: Process, told: StreamReader, asked: StreamWriter) -> None:
        self._process = process
        self._told = told
        self._asked = asked

    async def hear(self) -> bytes:
        """The next message's payload.

        Raises:
            WorkerDied: the process ended too early.
        """
        try:
            return await self._told.readexactly(int.from_bytes(await self._told.readexactly(4), "big"))
        except asyncio.IncompleteReadError as error:
            code = await self._process.wait()
            raise WorkerDied(f"a process that worked on the artifact ended with {code} and no result") from error

    async def say(self, payload: bytes) -> None:
        """Send a message."""
        self._asked.write(framing.framed(payload))
        await self._asked.drain()


@asynccontextmanager
async def started(program: str, fds: Sequence[int] = ()) -> AsyncGenerator[Apart]:
    """While the block lasts, the module runs with these files open and no others; what is left of it is ended."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", program, stdin=PIPE, stdout=PIPE, pass_fds=fds, env=_environment(), cwd="/", limit=_BUFFER
    )
    try:
        if process.stdout is None or process.stdin is None:
            raise LookupError("a process was started without its pipes")
        yield Apart(process, process.stdout, process.stdin)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def _environment() -> dict[str, str]:
    """What the process may know: where its code is."""
    kept = {name: os.environ[name] for name in _HANDED_ON if name in os.environ}
    return {**kept, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry), "PYTHONDONTWRITEBYTECODE": "1"}
