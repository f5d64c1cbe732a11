"""A worker process: told by its parent what to open, it works on jobs until it is told to stop."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import TypeAlias

import msgspec
import uvloop

from countersign.distribution.context import Store
from countersign.distribution.jobs import worker
from countersign.distribution.jobs.kinds import AnyJobType
from countersign.kernel import telemetry
from countersign.kernel.concurrency import background
from countersign.kernel.jobs import processes
from countersign.settings import Settings

Opening: TypeAlias = Callable[[Settings, str, bool], AbstractAsyncContextManager[Store]]
"""Opens a store, given its settings, its root address, and whether it is reached from this machine alone."""


class Orders(msgspec.Struct):
    """What a worker process is told: whose jobs it works on."""

    settings: Settings
    root_url: str
    is_loopback: bool
    problems_url: str = ""


@asynccontextmanager
async def kept(store: Store, command: Sequence[str], count: int) -> AsyncGenerator[None]:
    """`count` processes of the command work on the store's jobs while the block lasts; see `work_as_told`."""
    async with processes.supervise(command, orders(store), count, grace_s=store.settings.grace_s):
        yield


def orders(store: Store) -> bytes:
    """What a worker process of the store is told, on one line. Settings hold secrets: they go through a pipe, where no
    list of processes shows them."""
    return msgspec.json.encode(Orders(store.settings, store.root_url, store.is_loopback, store.problems_url))


def work_as_told(opened: Opening, types: Sequence[AnyJobType]) -> None:
    """The whole life of a worker process, from its orders on standard input to its end.

    Raises:
        Refused, BadSetting: the store cannot be opened, or its engine not be reached; the parent starts another.
    """
    told = msgspec.json.decode(sys.stdin.buffer.readline(), type=Orders)
    settings = told.settings
    telemetry.configure(settings.log_level)
    processes.limit_process(nice=settings.job_nice, memory_mib=settings.job_memory_mib)
    processes.die_with_parent(sys.stdin.fileno())
    uvloop.run(_work(opened(settings, told.root_url, told.is_loopback), told.problems_url, types))


async def _work(opening: AbstractAsyncContextManager[Store], problems_url: str, types: Sequence[AnyJobType]) -> None:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    async with opening as store, _stopped_when_broken(store, stopping):
        if not await worker.work(replace(store, problems_url=problems_url), types, stopping):
            # Threads of a job that was left behind would hold up every other way out.
            os._exit(processes.RESTART_CODE)


@asynccontextmanager
async def _stopped_when_broken(store: Store, stopping: asyncio.Event) -> AsyncGenerator[None]:
    """While the block lasts: when the database can write no more, this process ends, and the parent starts another."""

    async def watch() -> None:
        await store.database.broken.wait()
        stopping.set()

    async with background(watch()):
        yield
