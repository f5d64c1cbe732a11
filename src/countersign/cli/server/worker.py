"""`countersign worker`: work on jobs beside a server, on its machine or on another one."""

import asyncio
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import replace

import click

from countersign.cli import configuration
from countersign.cli.admin import open_store
from countersign.cli.server import lifecycle
from countersign.kernel import telemetry
from countersign.settings import Settings
from countersign.store import app
from countersign.store.context import Store
from countersign.store.jobs import worker_process
from countersign.store.releases.processing import sandboxed_process

COMMAND = (sys.executable, "-m", "countersign.cli.server.worker")
PART, FAILURE = "worker", "cannot work on jobs"
MAX_PROCESSES = 256
MAX_CONNECTIONS = 4


@click.command()
@click.option("--data", metavar="DIR", help="Data directory. Default: COUNTERSIGN_DATA or ./data.")
@click.option(
    "--processes",
    type=click.IntRange(1, MAX_PROCESSES),
    help="Number of processes. Each runs one job at a time. Default: COUNTERSIGN_JOB_WORKERS.",
)
def worker(data: str | None, processes: int | None) -> None:
    """Run the jobs of a store until the command is stopped.

    `serve` starts workers of its own. This command adds more workers. They can run on other machines if the store uses
    PostgreSQL and its files are in S3. Any number of workers may run. A worker that is stopped returns its unfinished
    job to the queue.
    """

    settings = configuration.load(data=data)

    async def work(opened_store: Store) -> None:
        count = processes or opened_store.settings.job_workers or 1
        stop_event = asyncio.Event()

        def stop(number: signal.Signals) -> None:
            telemetry.logger(PART).info("stop", reason=number.name)
            stop_event.set()

        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop, number)
        async with worker_process.supervise_workers(opened_store, COMMAND, count):
            click.echo(f"{count} processes work on the jobs of {opened_store.settings.data}. Stop with ctrl-C.")
            lifecycle.log_ready(PART, processes=count)
            await stop_event.wait()

    with lifecycle.log_lifecycle(PART, settings, FAILURE):
        open_store.run(data, FAILURE, work, upgrades=True)


def background_workers(store: Store) -> AbstractAsyncContextManager[None]:
    """Run the job workers of a server while the block lasts."""
    return worker_process.supervise_workers(store, COMMAND, store.settings.job_workers)


@asynccontextmanager
async def _open_store(settings: Settings, root_url: str, is_loopback: bool) -> AsyncGenerator[Store]:
    """Open the store for a process that runs one job at a time, with fewer connections than a server needs.

    A spare process for reading artifacts is kept ready, except for data sets of the sandbox, whose workers are
    short-lived."""
    store_settings = replace(settings, database_pool=min(MAX_CONNECTIONS, settings.database_pool))
    process_context = (
        nullcontext() if settings.storage_mib else sandboxed_process.spare_process(sandboxed_process.PROGRAM)
    )
    async with app.open_store(store_settings, root_url, is_loopback=is_loopback) as store, process_context:
        yield store


if __name__ == "__main__":
    worker_process.run_worker_process(_open_store, app.JOB_TYPES)
