"""Reading an artifact in a process of its own, which holds an open file and nothing else."""

import os
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict
from pathlib import Path

import msgspec

from countersign.archives.limits import limits_of
from countersign.archives.refusals import ArchiveRefused, ArchiveUnknown
from countersign.distribution.processing import apart
from countersign.distribution.processing.apart import Apart, CpuTimeExceeded
from countersign.settings import Settings
from countersign.updates.ingest import records
from countersign.updates.ingest.records import Failed, Order, Record

PROGRAM = "countersign.updates.ingest.main"
MEBIBYTE = 1 << 20


class Reading:
    """An artifact that is being read: its records one by one, and the answers to what it asks."""

    def __init__(self, process: Apart, cpu_s: int) -> None:
        self._process = process
        self._cpu_s = cpu_s

    async def next(self) -> Record:
        """The next record.

        Raises:
            ArchiveRefused, ArchiveUnknown: the artifact was refused.
            WorkerDied: the process ended too early.
        """
        try:
            record = records.decode(await self._process.hear())
        except CpuTimeExceeded as error:
            # The same bytes would take as long again.
            raise ArchiveRefused("too-slow", f"reading takes more than {self._cpu_s} seconds of CPU time") from error
        if isinstance(record, Failed):
            if record.kind == "unknown":
                raise ArchiveUnknown(record.detail)
            raise ArchiveRefused(record.rule, record.detail, entry=record.entry, is_printable=True)
        return record

    async def answer(self, wanted: bytes) -> None:
        """Say which of the chunks that were asked for are wanted: a byte for each, 1 where they are."""
        await self._process.say(wanted)


@asynccontextmanager
async def reading(settings: Settings, path: Path, name: str, *, chunks: bool, plain: bool) -> AsyncGenerator[Reading]:
    """While the block lasts, the file is read; whatever is left of the process is ended with the block.

    `name` is what the artifact is called, a hint at its format; `plain` takes a file that is no archive as it is.
    """
    with _opened(path) as fd:
        async with apart.started(PROGRAM, takes_file=True) as process:
            process.hand_over(fd)
            order = Order(
                name=name,
                limits=asdict(limits_of(settings)),
                chunks=chunks,
                plain=plain,
                memory_bytes=settings.archive_memory_mib * MEBIBYTE,
                cpu_s=settings.archive_seconds,
            )
            await process.say(msgspec.msgpack.encode(order))
            yield Reading(process, order.cpu_s)


@contextmanager
def _opened(path: Path) -> Generator[int]:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)
