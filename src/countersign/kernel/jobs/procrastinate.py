"""Procrastinate as the job engine on PostgreSQL. Workers run on any number of machines; NOTIFY wakes them.

Each deferred job of Procrastinate wakes a worker that polls our own job table, where leases assign jobs. Therefore a
redundant wake-up is harmless, and the periodic poll compensates for a wake-up that is lost with its worker.
Procrastinate's tables are in our schema, since its functions find them by the search path of the caller.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from importlib import resources
from typing import Any

import procrastinate
from procrastinate.exceptions import ConnectorException
from procrastinate.worker import Worker

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Database, Reader, Transaction
from countersign.kernel.errors import Refused, Unavailable
from countersign.kernel.jobs.engine import TakeJob, pause
from countersign.kernel.telemetry import ThrottledErrorLog

QUEUE, TASK = "countersign", "take"
LOOK_EVERY_S = 5.0
FETCH_EVERY_S = 1.0
"""The interval of polls by Procrastinate's worker. A starting worker is not notified of jobs that were deferred before
it listens."""

DEFER = """
    SELECT procrastinate_defer_jobs_v1(ARRAY[
        ROW('countersign', 'take', 0, NULL, NULL, '{}', to_timestamp($1::double precision))
    ]::procrastinate_job_to_defer_v1[])
"""
_ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtext('procrastinate.' || current_schema()))"
_LEDGER = """
    CREATE TABLE IF NOT EXISTS procrastinate_migration (
        name TEXT COLLATE "C" PRIMARY KEY,
        applied_at BIGINT NOT NULL
    )
"""
_HAS_LEDGER = "SELECT 1 WHERE to_regclass('procrastinate_migration') IS NOT NULL"
_APPLIED = "SELECT name FROM procrastinate_migration"
_APPLY = "INSERT INTO procrastinate_migration (name, applied_at) VALUES ($1, $2)"


class ProcrastinateEngine:
    """Defers jobs in the caller's transaction, and serves them with Procrastinate's worker."""

    def __init__(self, url: str, schema: str, *, lease_s: int) -> None:
        self._url = url
        self._schema = schema
        self._lease_s = lease_s

    async def install(self, database: Database) -> None:
        """Create Procrastinate's tables, or migrate them to the installed version; concurrent callers do this once.

        Raises:
            Unavailable: PostgreSQL cannot be reached.
        """
        migrations = _migrations()
        if await database.fetch_one(_HAS_LEDGER) is not None and not await _missing_migrations(database, migrations):
            return
        while await self._apply_next_migration(database, migrations):
            continue

    async def _apply_next_migration(self, database: Database, migrations: list[str]) -> bool:
        """Apply one migration; returns whether there may be another."""
        async with database.transaction() as transaction:
            await transaction.run("SET LOCAL lock_timeout = 0")
            await transaction.fetch(_ONE_AT_A_TIME)
            await transaction.run("SET LOCAL client_min_messages = warning")
            # Acquire the lock before the check, so that the check sees the tables that other processes have created.
            await transaction.run(_LEDGER)
            missing_migrations = await _missing_migrations(transaction, migrations)
            if missing_migrations == migrations:
                await transaction.run(_text("schema.sql"))
                await transaction.run_many(_APPLY, [(name, clock.now()) for name in migrations])
                return False
            # Apply one migration in each transaction, since a value added to an enum cannot be used before the commit.
            if missing_migrations:
                await transaction.run(_text(f"migrations/{missing_migrations[0]}"))
                await transaction.run(_APPLY, missing_migrations[0], clock.now())
            return bool(missing_migrations)

    async def defer(self, transaction: Transaction, run_after: Instant | None = None) -> None:
        """Wake a worker by Procrastinate's own function, in our transaction."""
        await transaction.fetch(DEFER, None if run_after is None else run_after / clock.SECOND)

    async def serve(self, take: TakeJob, stop_event: asyncio.Event) -> None:
        """Run jobs whenever Procrastinate wakes us, and poll every few seconds for jobs of dead workers.

        Raises:
            Unavailable: PostgreSQL cannot be reached.
        """
        one_at_a_time = asyncio.Lock()
        failures = ThrottledErrorLog("jobs", "no job could be taken")

        async def drain() -> None:
            async with one_at_a_time:
                try:
                    while not stop_event.is_set() and await take():
                        continue
                except Refused as refused:
                    failures.failed(refused)
                else:
                    failures.over()

        app = self._app(drain)
        try:
            async with app.open_async():
                await self._serve_until_stopped(app, drain, stop_event)
        except ConnectorException as error:
            raise Unavailable("Procrastinate cannot reach PostgreSQL; check that it runs and can be reached") from error

    def _app(self, drain: Callable[[], Coroutine[Any, Any, None]]) -> procrastinate.App:
        # Fetching and ending wake-ups need not be durable, since the leases are durable.
        options = f"-c search_path={self._schema} -c synchronous_commit=off -c jit=off"
        connector = procrastinate.PsycopgConnector(
            conninfo=self._url, kwargs={"options": options}, min_size=1, max_size=3
        )
        app = procrastinate.App(connector=connector)
        app.task(name=TASK, queue=QUEUE)(drain)
        return app

    async def _serve_until_stopped(
        self, app: procrastinate.App, drain: Callable[[], Coroutine[Any, Any, None]], stop_event: asyncio.Event
    ) -> None:
        worker = Worker(
            app,
            queues=[QUEUE],
            concurrency=1,
            install_signal_handlers=False,
            delete_jobs="always",
            fetch_job_polling_interval=FETCH_EVERY_S,
            update_heartbeat_interval=self._lease_s / 5,
            stalled_worker_timeout=float(self._lease_s),
        )
        worker_task = asyncio.create_task(worker.run())
        poll_task = asyncio.create_task(self._poll(app, drain, stop_event))
        stop = asyncio.create_task(stop_event.wait())
        await asyncio.wait({worker_task, poll_task, stop}, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        worker.stop()
        if not stop_event.is_set():
            # One of the two tasks failed: cancel the other task. The process then restarts.
            poll_task.cancel()
        await asyncio.wait({worker_task, poll_task})
        for task in (worker_task, poll_task):
            if not task.cancelled():
                task.result()

    async def _poll(
        self, app: procrastinate.App, drain: Callable[[], Coroutine[Any, Any, None]], stop_event: asyncio.Event
    ) -> None:
        """Periodically reassign wake-ups of dead workers, and run jobs without a wake-up."""
        while not stop_event.is_set():
            stalled_jobs = await app.job_manager.get_stalled_jobs(queue=QUEUE, seconds_since_heartbeat=self._lease_s)
            for job in stalled_jobs:
                # Ignore the error: another worker may have reassigned the job already.
                with suppress(ConnectorException):
                    await app.job_manager.retry_job(job)
            await drain()
            await pause(stop_event, LOOK_EVERY_S)


async def _missing_migrations(reader: Reader, migrations: list[str]) -> list[str]:
    applied_names = {row[0] for row in await reader.fetch(_APPLIED)}
    return [name for name in migrations if name not in applied_names]


def _migrations() -> list[str]:
    folder = resources.files("procrastinate.sql").joinpath("migrations")
    return sorted(file.name for file in folder.iterdir() if file.name.endswith(".sql"))


def _text(name: str) -> str:
    return resources.files("procrastinate.sql").joinpath(name).read_text(encoding="utf-8")
