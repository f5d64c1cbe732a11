"""Reading an artifact in a process of its own, which holds an open file and nothing else."""

import asyncio
import os
import sys
from asyncio import StreamReader, StreamWriter
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict
from pathlib import Path

import msgspec

from countersign.archives.limits import limits_of
from countersign.archives.refusals import ArchiveRefused, ArchiveUnknown
from countersign.kernel.errors import Unavailable
from countersign.settings import Settings
from countersign.updates.ingest import records
from countersign.updates.ingest.records import Failed, Order, Record

PROGRAM = "countersign.updates.ingest.main"
MEBIBYTE = 1 << 20
_BUFFER = 16 * MEBIBYTE
_HANDED_ON = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TZ")


class ReaderDied(Unavailable):
    """The process that reads the artifact ended without a word, as it does when it takes too much memory or time."""


class Reading:
    """An artifact that is being read: its records one by one, and the answers to what it asks."""

    def __init__(self, process: Process, told: StreamReader, answers: StreamWriter) -> None:
        self._process = process
        self._told = told
        self._answers = answers

    async def next(self) -> Record:
        """The next record.

        Raises:
            ArchiveRefused, ArchiveUnknown: the artifact was refused.
            ReaderDied: the process ended too early.
        """
        record = records.decode(await self._payload())
        if isinstance(record, Failed):
            if record.kind == "unknown":
                raise ArchiveUnknown(record.detail)
            raise ArchiveRefused(record.rule, record.detail, entry=record.entry, is_printable=True)
        return record

    def answer(self, payload: bytes) -> None:
        """Answer what was asked; for chunks a byte for each, 1 where the contents are wanted."""
        self._answers.write(len(payload).to_bytes(4, "big") + payload)

    async def _payload(self) -> bytes:
        try:
            return await self._told.readexactly(int.from_bytes(await self._told.readexactly(4), "big"))
        except asyncio.IncompleteReadError as error:
            code = await self._process.wait()
            raise ReaderDied(f"the process that reads the artifact ended with {code} and no result") from error


@asynccontextmanager
async def reading(settings: Settings, path: Path, name: str, *, chunks: bool, plain: bool) -> AsyncGenerator[Reading]:
    """While the block lasts, the file is read; whatever is left of the process is ended with the block.

    `name` is what the artifact is called, a hint at its format; `plain` takes a file that is no archive as it is.
    """
    with _opened(path) as fd:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            PROGRAM,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            pass_fds=(fd,),
            env=_environment(),
            cwd="/",
            limit=_BUFFER,
        )
        try:
            order = Order(
                fd=fd,
                name=name,
                limits=asdict(limits_of(settings)),
                chunks=chunks,
                plain=plain,
                memory_bytes=settings.archive_memory_mib * MEBIBYTE,
                cpu_s=settings.archive_seconds,
            )
            if process.stdout is None or process.stdin is None:
                raise LookupError("a process was started without its pipes")
            running = Reading(process, process.stdout, process.stdin)
            running.answer(msgspec.msgpack.encode(order))
            yield running
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


@contextmanager
def _opened(path: Path) -> Generator[int]:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


def _environment() -> dict[str, str]:
    """What the process may know: where its code is. No setting and no secret."""
    kept = {name: os.environ[name] for name in _HANDED_ON if name in os.environ}
    return {**kept, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry), "PYTHONDONTWRITEBYTECODE": "1"}
