"""Finds write transactions that wait for anything other than their own statements.

The transactions of requests must not wait at all. The transactions of jobs and of garbage collection must not call the
blob store. Such a wait delays every other writer, because SQLite permits only one writer and PostgreSQL keeps the locks
of the transaction. `asyncio.sleep(0)` does not count as a wait.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from functools import wraps
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from countersign.kernel.blobs.local import LocalBlobs
from countersign.kernel.blobs.s3 import S3Blobs
from countersign.kernel.database.postgres import PostgresDatabase, PostgresTransaction
from countersign.kernel.database.sqlite import SqliteDatabase
from countersign.kernel.database.sqlite_writer import SqliteTransaction
from countersign.kernel.http.app import App
from countersign.kernel.http.rate_limit import SharedMemoryCounters

STATEMENTS = ("fetch", "fetch_one", "run", "run_many")
BLOB_CALLS = ("stage", "seal", "put", "discard", "size", "file", "delete")
SOURCE = f"{Path('src', 'countersign')}/"


class TransactionWaits:
    """Watches the requests to applications in this process. `found` lists each wait with its route and the waiting
    functions."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.found: list[str] = []
        self._allowed: tuple[str, ...] = ()
        self._open: set[asyncio.Task[Any]] = set()
        self._in_statement: dict[asyncio.Task[Any], int] = {}
        for database in (SqliteDatabase, PostgresDatabase):
            monkeypatch.setattr(database, "transaction", self._transaction(database.transaction))
        for transaction in (SqliteTransaction, PostgresTransaction):
            for name in STATEMENTS:
                monkeypatch.setattr(transaction, name, self._statement(getattr(transaction, name)))
            monkeypatch.setattr(transaction, "savepoint", self._savepoint(transaction.savepoint))
        for store in (LocalBlobs, S3Blobs):
            for name in BLOB_CALLS:
                monkeypatch.setattr(store, name, self._blob_call(getattr(store, name)))
        for name in ("hit", "peek"):
            monkeypatch.setattr(SharedMemoryCounters, name, _remote(getattr(SharedMemoryCounters, name)))
        for name in ("_serve", "answer_subrequest"):
            monkeypatch.setattr(App, name, self._request(getattr(App, name)))

    def allow(self, *function_names: str) -> None:
        """Ignore waits in these functions, which a test causes on purpose."""
        self._allowed += function_names

    def assert_none(self) -> None:
        """Fail if a transaction waited."""
        assert not self.found, "\n".join(dict.fromkeys(self.found))

    def check(self, coroutine: Coroutine[Any, Any, Any], route: str) -> None:
        """Record a wait of the request's task if a transaction is open and no statement runs."""
        task = _task()
        if task in self._open and not self._in_statement.get(task):
            wait_place = _place(coroutine)
            if not any(name in wait_place for name in self._allowed):
                self.found.append(f"{route}: the transaction waits in {wait_place}")

    def _transaction(self, original: Callable[[Any], AbstractAsyncContextManager[Any]]) -> Callable[[Any], Any]:
        @asynccontextmanager
        async def watched(database: Any) -> AsyncGenerator[Any]:
            async with original(database) as transaction:
                task = _task()
                self._open.add(task)
                try:
                    yield transaction
                finally:
                    self._open.discard(task)

        return watched

    def _statement(self, original: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Any]:
        @wraps(original)
        async def watched(*arguments: Any) -> Any:
            with self._counted():
                return await original(*arguments)

        return watched

    def _blob_call(self, original: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Any]:
        @wraps(original)
        async def watched(*arguments: Any, **options: Any) -> Any:
            if _task() in self._open:
                self.found.append(f"a transaction calls the blob store: {original.__name__}")
            return await original(*arguments, **options)

        return watched

    def _savepoint(self, original: Callable[[Any], AbstractAsyncContextManager[None]]) -> Callable[[Any], Any]:
        @asynccontextmanager
        async def watched(transaction: Any) -> AsyncGenerator[None]:
            block = original(transaction)
            with self._counted():
                await block.__aenter__()
            try:
                yield
            except BaseException:
                with self._counted():
                    await block.__aexit__(*sys.exc_info())
                raise
            with self._counted():
                await block.__aexit__(None, None, None)

        return watched

    def _request(self, original: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Any]:
        @wraps(original)
        async def watched(app: Any, *arguments: Any) -> Any:
            first_argument = arguments[0]
            route = (
                f"{first_argument.method} {first_argument.target}"
                if hasattr(first_argument, "method")
                else arguments[1].target
            )
            return await _Watched(original(app, *arguments), self, route)

        return watched

    @contextmanager
    def _counted(self) -> Iterator[None]:
        task = _task()
        self._in_statement[task] = self._in_statement.get(task, 0) + 1
        try:
            yield
        finally:
            self._in_statement[task] -= 1


class _Watched:
    """Runs a coroutine and reports each of its waits."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], waits: TransactionWaits, route: str) -> None:
        self._coroutine = coroutine
        self._waits = waits
        self._route = route

    def __await__(self) -> Generator[Any, Any, Any]:
        resume: Callable[[], Any] = lambda: self._coroutine.send(None)  # noqa: E731
        while True:
            try:
                awaited = resume()
            except StopIteration as stop:
                return stop.value
            if awaited is not None:
                self._waits.check(self._coroutine, self._route)
            try:
                sent_value = yield awaited
            except BaseException as error:  # a cancellation must reach the coroutine
                thrown = error
                resume = lambda: self._coroutine.throw(thrown)  # noqa: B023, E731
            else:
                resume = lambda: self._coroutine.send(sent_value)  # noqa: B023, E731


def _remote(original: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Any]:
    """Make a function of the local counters wait, as the functions of remote counters do."""

    @wraps(original)
    async def await_remote(*arguments: Any) -> Any:
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        loop.call_soon(turn.set_result, None)
        await turn
        return await original(*arguments)

    return await_remote


def _task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None
    return task


def _place(coroutine: Any) -> str:
    """Return the four innermost functions of the product in which the coroutine waits, the outermost first."""
    call_stack: list[str] = []
    while coroutine is not None:
        code: CodeType | None = next(
            (getattr(coroutine, name) for name in ("cr_code", "gi_code", "ag_code") if hasattr(coroutine, name)), None
        )
        if code is not None and SOURCE in code.co_filename:
            call_stack.append(f"{code.co_filename.rpartition(SOURCE)[2]}:{code.co_name}")
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "gi_yieldfrom", None)
    return " > ".join(call_stack[-4:]) or "a function outside of the product"


@pytest.fixture
def transaction_waits(monkeypatch: pytest.MonkeyPatch) -> Iterator[TransactionWaits]:
    """Fail the test if the transaction of a request waits for anything other than its statements."""
    waits = TransactionWaits(monkeypatch)
    yield waits
    waits.assert_none()
