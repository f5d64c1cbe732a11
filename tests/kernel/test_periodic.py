"""Background work continues after a failure, and ends with the application."""

import asyncio
from pathlib import Path

from structlog.testing import capture_logs

from countersign.kernel.concurrency import periodic
from countersign.kernel.database.open import open_database


async def test_a_failing_round_is_followed_by_the_next() -> None:
    rounds = asyncio.Semaphore(0)
    rounds_begun: list[int] = []

    async def work() -> None:
        rounds_begun.append(len(rounds_begun))
        rounds.release()
        if len(rounds_begun) == 1:
            raise RuntimeError("the first round fails")

    async with periodic(work, every_s=0), asyncio.timeout(60):
        for _ in range(3):
            await rounds.acquire()

    ended_count = len(rounds_begun)
    await asyncio.sleep(0.01)
    assert len(rounds_begun) == ended_count >= 3


async def test_many_rounds_on_a_full_disk_are_logged_in_one_line(tmp_path: Path) -> None:
    database = await open_database(f"sqlite:///{tmp_path}/full.db", schema="", reserve_bytes=1 << 60)
    rounds = asyncio.Semaphore(0)

    async def work() -> None:
        rounds.release()
        async with database.transaction() as transaction:
            await transaction.run("CREATE TABLE t (n INTEGER)")

    with capture_logs() as lines:
        async with periodic(work, every_s=0), asyncio.timeout(30):
            for _ in range(50):
                await rounds.acquire()
    await database.close()

    (line,) = lines
    assert (line["log_level"], line["event"]) == ("warning", "tending failed")
    assert "are free on the volume" in line["reason"]
    assert "exc_info" not in line
