"""One question takes a bounded number of steps, however it is put, and the event loop goes on while it is read."""

import asyncio

import pytest

from countersign.distribution.ask import answered, budget
from countersign.distribution.ask.budget import Budget, TooInvolved
from countersign.distribution.ask.fuzzy import distance
from countersign.distribution.context import Store
from countersign.kernel import clock
from countersign.kernel.errors import Unavailable
from tests.distribution.world import World


def test_work_beyond_the_steps_is_refused() -> None:
    held = Budget(max_steps=10)
    held.spend(10)

    with pytest.raises(TooInvolved):
        held.spend()


def test_work_beyond_the_cpu_time_is_refused_though_steps_are_left() -> None:
    held = Budget(max_steps=1 << 62, max_cpu_s=0.005)

    def endless() -> None:
        while True:
            held.spend()

    with pytest.raises(TooInvolved):
        held.measured(endless)


def test_distances_between_words_are_paid_for_by_their_letters() -> None:
    with budget.of_question() as held:
        held.spend(budget.MAX_STEPS - 100)
        with pytest.raises(TooInvolved):
            distance("a" * 100, "b" * 100, 100)


async def test_too_many_waiting_questions_are_refused_for_now() -> None:
    begun = asyncio.Event()
    release = asyncio.Event()
    loop = asyncio.get_running_loop()

    def busy() -> None:
        loop.call_soon_threadsafe(begun.set)
        asyncio.run_coroutine_threadsafe(release.wait(), loop).result()

    waiting = [asyncio.create_task(Budget().run(busy)) for _ in range(budget.MAX_WAITING)]
    await begun.wait()

    with pytest.raises(Unavailable) as refused:
        await Budget().run(lambda: None)

    release.set()
    await asyncio.gather(*waiting)
    assert refused.value.headers["Retry-After"] == "1"
    assert await Budget().run(lambda: 1) == 1


async def test_the_event_loop_goes_on_while_a_question_is_read(shelf: Store) -> None:
    turns = 0

    async def turn() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0.001)

    turning = asyncio.create_task(turn())
    found = await answered.answered(shelf, "games and " * 25, clock.now())
    turning.cancel()

    assert "too involved" in found.text
    assert turns >= 3


@pytest.mark.parametrize("path", ["/ask", "http://127.0.0.1:8480/ask"])
async def test_a_question_that_is_too_involved_is_answered_with_how_to_ask(world: World, path: str) -> None:
    answer = await world.call("POST", path, json={"query": "games and " * 25})

    assert answer.status_code == 200, answer.text
    assert answer.json()["query"] is None
    assert "too involved" in answer.json()["answer"]
    assert "Which free games run on Linux?" in answer.json()["answer"]


@pytest.mark.parametrize("text", ["w " * 61, "x" * 300, "in the last 9999 years what was released", "(" * 60])
async def test_questions_out_of_proportion_are_answered_that_they_cannot_be(world: World, text: str) -> None:
    answer = await world.call("POST", "/ask", json={"query": text})

    assert answer.status_code == 200, answer.text
    assert answer.json()["answer"].startswith("I cannot tell")
