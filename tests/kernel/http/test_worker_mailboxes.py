"""Questions between workers: the asked worker answers in time, or there is no answer."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from countersign.kernel.http.worker_ipc import WorkerMailboxes

PATIENCE_S = 0.2


def answering_with(answer_text: str) -> Callable[[str], Awaitable[bytes]]:
    """Return a function that answers with these words and the question."""

    async def answer(question: str) -> bytes:
        return (answer_text + question).encode()

    return answer


echoed = answering_with("")


@pytest.fixture
async def siblings() -> AsyncIterator[WorkerMailboxes]:
    """Three workers, none of which answers yet."""
    mailboxes = WorkerMailboxes(3)
    yield mailboxes
    mailboxes.close()


@pytest.fixture
async def single_worker() -> AsyncIterator[WorkerMailboxes]:
    """One worker, which does not answer yet."""
    mailboxes = WorkerMailboxes(1)
    yield mailboxes
    mailboxes.close()


async def test_each_worker_answers_for_itself_and_a_silent_worker_has_no_answer(siblings: WorkerMailboxes) -> None:
    async with (
        siblings.answering(0, answering_with("first: ")),
        siblings.answering(2, answering_with("third: ")),
    ):
        assert await siblings.ask("who?", PATIENCE_S) == [b"first: who?", None, b"third: who?"]


async def test_a_long_answer_arrives_whole(single_worker: WorkerMailboxes) -> None:
    long = bytes(range(256)) * 40_000

    async def answer(_: str) -> bytes:
        return long

    async with single_worker.answering(0, answer):
        assert await single_worker.ask("all", 10) == [long]


async def test_many_questions_at_once_are_all_answered(siblings: WorkerMailboxes) -> None:
    async with (
        siblings.answering(0, echoed),
        siblings.answering(1, echoed),
        siblings.answering(2, echoed),
    ):
        questions = [str(number) for number in range(5)]
        answers = await asyncio.gather(*(siblings.ask(question, 10) for question in questions))

    assert answers == [[question.encode()] * 3 for question in questions]


async def test_a_worker_that_never_reads_its_mailbox_delays_no_caller_for_long(siblings: WorkerMailboxes) -> None:
    answers = await asyncio.gather(*(siblings.ask("there?", PATIENCE_S) for _ in range(300)))

    assert answers == [[None] * 3] * 300


async def test_a_worker_that_starts_late_answers_later_questions(single_worker: WorkerMailboxes) -> None:
    await single_worker.ask("early", PATIENCE_S)

    async with single_worker.answering(0, echoed):
        assert await single_worker.ask("late", 10) == [b"late"]


async def test_a_send_to_a_full_mailbox_is_repeated_until_the_mailbox_has_space(single_worker: WorkerMailboxes) -> None:
    await asyncio.gather(*(single_worker.ask("early", PATIENCE_S) for _ in range(300)))
    questions = [str(number) for number in range(20)]

    async with single_worker.answering(0, echoed):
        assert await asyncio.gather(*(single_worker.ask(question, 10) for question in questions)) == [
            [question.encode()] for question in questions
        ]
