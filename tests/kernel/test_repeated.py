"""Work beside an application goes on after a failure, and ends with the application."""

import asyncio

from countersign.kernel.repeated import repeated


async def test_a_failing_round_is_followed_by_the_next() -> None:
    rounds = asyncio.Semaphore(0)
    done: list[int] = []

    async def work() -> None:
        done.append(len(done))
        rounds.release()
        if len(done) == 1:
            raise RuntimeError("the first round fails")

    async with repeated(work, every_s=0), asyncio.timeout(10):
        for _ in range(3):
            await rounds.acquire()

    ended = len(done)
    await asyncio.sleep(0.01)
    assert len(done) == ended >= 3
