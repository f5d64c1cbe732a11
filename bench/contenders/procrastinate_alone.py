"""Procrastinate by itself, as its documentation has it: a task that does nothing, and a worker."""

import asyncio
import os
import sys
import time

import procrastinate


def application(url: str) -> procrastinate.App:
    """Return the application with its one task."""
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url))
    app.task(name="nothing")(nothing)
    return app


async def nothing() -> None:
    """Do nothing."""


async def prepare(url: str) -> None:
    """Make the tables."""
    app = application(url)
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


async def defer(url: str, count: int) -> None:
    """Defer this number of jobs in one statement."""
    app = application(url)
    async with app.open_async():
        await app.configure_task("nothing").batch_defer_async(*({} for _ in range(count)))


async def wait_for_jobs(url: str) -> None:
    """Wait until every job has succeeded."""
    app = application(url)
    async with app.open_async():
        deadline_s = time.monotonic() + 300
        while time.monotonic() < deadline_s:
            jobs = await app.job_manager.list_queues_async()
            if not sum(queue["todo"] + queue["doing"] for queue in jobs):
                return
            await asyncio.sleep(0.02)
        raise TimeoutError("the jobs did not end")


async def work(url: str) -> None:
    """Work until the process is asked to stop."""
    app = application(url)
    async with app.open_async():
        await app.run_worker_async(concurrency=1)


if __name__ == "__main__" and sys.argv[1:] == ["work"]:
    asyncio.run(work(os.environ["BENCH_DATABASE_URL"]))
