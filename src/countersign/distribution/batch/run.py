"""The two ways to run the operations of a batch: several at once, or one after another in one transaction."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from countersign.distribution.auth.callers import StoreRequest
from countersign.distribution.batch.nested_transaction import NestedTransaction
from countersign.distribution.batch.schemas import BatchRequest
from countersign.distribution.context import VERSIONS, Store
from countersign.kernel import clock
from countersign.kernel.database.versions import Versions
from countersign.kernel.errors import Refused
from countersign.kernel.http.problems import problem
from countersign.kernel.http.request import ScopedContext, Subrequest
from countersign.kernel.http.response import Response
from countersign.kernel.http.routing import Nothing

AT_ONCE = 8
ATOMIC_S = 5.0
"""How long one transaction may last: on SQLite every other writer waits for it."""

BatchCall = StoreRequest[Nothing, BatchRequest]


class BatchRolledBack(Refused):
    """Another operation of an atomic batch failed, so that none of them has had an effect."""

    status = 424
    code = "batch_rolled_back"
    title = "Batch rolled back"
    resolution = "Look at the result that failed_index names, correct its operation, and send the whole batch again."


class _Undone(Exception):
    """Leaves the transaction's block, so that the batch's effects are taken back."""


async def parallel(call: BatchCall, requests: Sequence[Subrequest]) -> list[Response]:
    """The answers to requests that do not depend on each other; at most eight run at a time."""
    answers = [Response()] * len(requests)
    waiting = iter(enumerate(requests))

    async def work() -> None:
        for index, request in waiting:
            answers[index] = await call.send_subrequest(request)
            await asyncio.sleep(0)  # an answer from memory waits for nothing, and others are to be heard in between

    async with asyncio.TaskGroup() as group:
        for _ in range(min(AT_ONCE, len(requests))):
            group.create_task(work())
    return answers


async def in_order(
    call: BatchCall, requests: Sequence[Subrequest], within: ScopedContext[Store] | None = None
) -> tuple[list[Response], bool]:
    """The answers one after another, and whether all are good: after the first that is not, none is run, and all the
    others are told that they have had no effect."""
    answers: list[Response] = []
    for request in requests:
        answer = await call.send_subrequest(request, within)
        if answer.status >= 400:
            return _rolled_back(call.context, requests, len(answers), answer), False
        answers.append(answer)
        await asyncio.sleep(0)
    return answers, True


async def atomic(call: BatchCall, requests: Sequence[Subrequest]) -> list[Response]:
    """The answers in order, all in the call's transaction; of a batch that fails nothing is kept."""
    store, transaction = call.context, call.transaction
    nested = NestedTransaction(store.database.dialect, transaction, until_s=clock.monotonic_s() + ATOMIC_S)
    # Others wait for the transaction's end, so that it must not wait for somebody else's machine: rules alone answer.
    settings = replace(store.settings, ask_model_url="")
    context = replace(store, settings=settings, database=nested, versions=Versions(nested, VERSIONS).read)
    answers: list[Response] = []
    try:
        async with transaction.savepoint():
            answers, is_good = await in_order(call, requests, ScopedContext(context, nested))
            if not is_good:
                raise _Undone
    except _Undone:
        return answers
    return answers


def _rolled_back(store: Store, requests: Sequence[Subrequest], failed: int, answer: Response) -> list[Response]:
    told = f"operation {failed} was answered {answer.status}, so that nothing of the batch was kept"
    refused = BatchRolledBack(told, members={"failed_index": failed})
    return [
        answer if index == failed else problem(refused, store.problems_root, store.root_url + each.target)
        for index, each in enumerate(requests)
    ]
