"""Behaviour of SQLite only: groups that share a commit, one writer, several processes, a full volume."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path

import apsw
import pytest

from countersign.kernel.database import sqlite_connection
from countersign.kernel.database.port import Row, Value
from countersign.kernel.database.sqlite import THREAD_CALLS, SqliteDatabase, open_sqlite
from countersign.kernel.errors import StorageFull, Unavailable
from tests.kernel.database.conftest import TABLE
from tests.kernel.database.probes import PUT, put, things

FAR = 10**18


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of the file."""
    return tmp_path / "test.db"


@pytest.fixture
async def database(path: Path) -> AsyncIterator[SqliteDatabase]:
    """The file with the empty table `thing`."""
    database = await open_sqlite(path, reserve_bytes=0, busy_timeout_ms=300)
    async with database.transaction() as transaction:
        await transaction.run(TABLE)
    yield database
    await database.close()


def _log_commits(path: Path) -> int:
    """Count the frames of the log that end a commit: bytes 4 to 8 of their headers are not zero (file format 4.1)."""
    data = path.with_name(path.name + "-wal").read_bytes()
    page = int.from_bytes(data[8:12], "big")
    salt = data[16:24]
    frames = (data[start : start + 24] for start in range(32, len(data), page + 24))
    return sum(frame[4:8] != b"\0\0\0\0" for frame in frames if frame[8:16] == salt)


async def test_transactions_that_wait_together_share_a_commit(database: SqliteDatabase, path: Path) -> None:
    commits_before = _log_commits(path)

    await asyncio.gather(*(put(database, number) for number in range(64)))

    assert await things(database) == list(range(64))
    assert _log_commits(path) - commits_before == 1


async def test_a_transaction_that_only_reads_writes_no_log(database: SqliteDatabase, path: Path) -> None:
    commits_before = _log_commits(path)

    async with database.transaction() as transaction:
        assert await things(transaction) == []

    assert _log_commits(path) == commits_before


async def test_no_caller_is_acknowledged_before_the_commit(database: SqliteDatabase, path: Path) -> None:
    other_database = await open_sqlite(path)
    visible_at_return: list[bool] = []

    async def write(number: int) -> None:
        await put(database, number)
        visible_at_return.append(number in await things(other_database))

    await asyncio.gather(*(write(number) for number in range(50)))

    assert visible_at_return == [True] * 50
    await other_database.close()


async def test_when_the_file_may_not_grow_the_whole_group_is_refused_and_later_works(database: SqliteDatabase) -> None:
    async with database.transaction() as transaction:
        ((pages,),) = await transaction.fetch("PRAGMA page_count")
        await transaction.fetch(f"PRAGMA max_page_count = {pages + 3}")

    async def write(number: int) -> None:
        async with database.transaction() as transaction:
            await transaction.run(PUT, number, "x" * 3000 + str(number))

    outcomes = await asyncio.gather(*(write(number) for number in range(16)), return_exceptions=True)
    refused_numbers = [number for number, outcome in enumerate(outcomes) if isinstance(outcome, StorageFull)]

    assert refused_numbers
    assert await things(database) == [number for number in range(16) if number not in refused_numbers]
    assert {type(outcome) for outcome in outcomes} <= {StorageFull, type(None)}

    async with database.transaction() as transaction:
        await transaction.fetch("PRAGMA max_page_count = 100000")
    await put(database, 100)
    assert (await things(database))[-1] == 100


async def test_a_transaction_ended_by_the_engine_fails_for_all_members_and_runs_no_further_statement(
    database: SqliteDatabase,
) -> None:
    actions_run: list[str] = []

    async def put_first() -> None:
        async with database.transaction() as transaction:
            await transaction.run(PUT, 1, "early")
            transaction.after_commit(lambda: actions_run.append("early"))

    async def culprit() -> None:
        async with database.transaction() as transaction:
            await transaction.run(PUT, 2, "a")
            # SQLite does this itself when a write fails badly.
            await transaction.run("ROLLBACK")
            with pytest.raises(Unavailable):
                await transaction.run(PUT, 3, "b")

    outcomes = await asyncio.gather(put_first(), culprit(), put(database, 4), return_exceptions=True)

    assert [type(outcome) for outcome in outcomes] == [Unavailable, Unavailable, type(None)]
    assert await things(database) == [4]
    assert actions_run == []


async def test_less_than_the_reserve_free_refuses_writes_and_not_reads(database: SqliteDatabase, path: Path) -> None:
    await put(database, 1)
    careful = await open_sqlite(path, reserve_bytes=FAR)

    with pytest.raises(StorageFull, match="MiB are free"):
        await put(careful, 2)

    assert await things(careful) == [1]
    await careful.close()


async def test_another_process_that_holds_the_lock_too_long_makes_writes_unavailable(
    database: SqliteDatabase, path: Path
) -> None:
    other_connection = apsw.Connection(str(path))
    other_connection.execute("BEGIN IMMEDIATE")

    with pytest.raises(Unavailable, match="locked"):
        await put(database, 1)
    assert await things(database) == []

    waiting_write = asyncio.create_task(put(database, 2))
    finished_tasks, _ = await asyncio.wait([waiting_write], timeout=0.1)
    assert not finished_tasks
    other_connection.execute("COMMIT")
    await waiting_write
    assert await things(database) == [2]
    other_connection.close()


async def test_all_who_wait_for_another_process_give_up_together(database: SqliteDatabase, path: Path) -> None:
    other_connection = apsw.Connection(str(path))
    other_connection.execute("BEGIN IMMEDIATE")
    loop = asyncio.get_running_loop()
    started_s = loop.time()

    outcomes = await asyncio.gather(*(put(database, number) for number in range(40)), return_exceptions=True)

    assert {type(outcome) for outcome in outcomes} == {Unavailable}
    # One after the other, they would take 40 times the 0.3 seconds of one.
    assert loop.time() - started_s < 10
    other_connection.close()


async def test_a_transaction_that_delays_other_transactions_makes_them_unavailable(database: SqliteDatabase) -> None:
    entered_event, may_go = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        async with database.transaction() as transaction:
            await transaction.run(PUT, 1, "a")
            entered_event.set()
            await may_go.wait()

    holding_task = asyncio.create_task(hold())
    await entered_event.wait()

    with pytest.raises(Unavailable, match="busy with other writes"):
        await asyncio.wait_for(put(database, 2), 60)
    may_go.set()
    await holding_task
    assert await things(database) == [1]


async def test_cancelled_while_many_rows_are_written_waits_for_the_thread(database: SqliteDatabase) -> None:
    is_reading, may_go = threading.Event(), threading.Event()

    def rows() -> Iterator[tuple[int, str]]:
        is_reading.set()
        yield 1, "a"
        may_go.wait(10)
        yield 2, "b"

    async def write() -> None:
        async with database.transaction() as transaction:
            await transaction.run_many(PUT, rows())

    writing_task = asyncio.create_task(write())
    await asyncio.to_thread(is_reading.wait, 10)
    writing_task.cancel()
    neighbour = asyncio.create_task(put(database, 3))
    finished_tasks, _ = await asyncio.wait([writing_task, neighbour], timeout=0.1)
    assert not finished_tasks
    may_go.set()

    with pytest.raises(asyncio.CancelledError):
        await writing_task
    await neighbour
    assert await things(database) == [3]


async def test_a_transaction_inside_a_transaction_is_a_mistake_and_no_deadlock(database: SqliteDatabase) -> None:
    with pytest.raises(RuntimeError, match="in a transaction"):
        async with database.transaction():
            await put(database, 1)

    await put(database, 2)
    assert await things(database) == [2]


async def test_a_transaction_that_is_over_cannot_be_used(database: SqliteDatabase) -> None:
    async with database.transaction() as transaction:
        await transaction.run(PUT, 1, "a")

    with pytest.raises(RuntimeError, match="over"):
        await transaction.run(PUT, 2, "b")
    assert await things(database) == [1]


async def test_an_error_in_an_action_does_not_reach_the_caller_or_its_neighbours(database: SqliteDatabase) -> None:
    reported: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["exception"]))

    def fail() -> None:
        raise ValueError("in an action")

    async with database.transaction() as transaction:
        await transaction.run(PUT, 1, "a")
        transaction.after_commit(fail)

    assert await things(database) == [1]
    assert [str(error) for error in reported] == ["in an action"]


async def test_a_long_stream_does_not_use_up_the_threads_of_scans(path: Path) -> None:
    database = await open_sqlite(path, readers=1, reserve_bytes=0)
    async with database.transaction() as transaction:
        await transaction.run(TABLE)
        await transaction.run_many(PUT, ((number, f"{number}") for number in range(1500)))

    async for batch in database.stream("SELECT id FROM thing ORDER BY id"):
        assert (await database.scan("SELECT count(id) FROM thing")) == [(1500,)]
        assert len(batch) == 500

    await database.close()


async def test_opening_a_new_file_waits_for_another_process_that_just_made_it(path: Path) -> None:
    other_connection = apsw.Connection(str(path))
    other_connection.execute("BEGIN IMMEDIATE")

    opening_task = asyncio.create_task(open_sqlite(path))
    finished_tasks, _ = await asyncio.wait([opening_task], timeout=0.2)
    assert not finished_tasks
    other_connection.execute("COMMIT")
    other_connection.close()

    await (await opening_task).close()


async def test_a_slow_statement_runs_in_a_thread_until_the_next_attempt_on_the_event_loop(
    database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    direct_statements: list[str] = []
    within = sqlite_connection.fetch_within

    def fetch_recorded(
        connection: sqlite_connection.Connection,
        statement: str,
        values: Sequence[Value],
        is_over: Callable[[], bool],
        steps: int,
    ) -> list[Row] | None:
        direct_statements.append(statement)
        return within(connection, statement, values, is_over, steps)

    monkeypatch.setattr(sqlite_connection, "fetch_within", fetch_recorded)
    count = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1) SELECT count(*) FROM n"
    for _ in range(THREAD_CALLS + 1):
        assert await database.scan(count, 50_000) == [(50_000,)]
    assert len(direct_statements) == 1

    for _ in range(3):
        assert await database.scan(count, 5) == [(5,)]
    assert len(direct_statements) == 4


def test_a_connection_that_was_closed_meanwhile_is_a_service_that_stops(path: Path) -> None:
    connection = sqlite_connection.connect(path, use="write")
    connection.close()

    with pytest.raises(Unavailable, match="is stopping"):
        sqlite_connection.fetch(connection, "SELECT 1", ())


async def test_a_log_is_copied_to_the_file_and_begun_again_at_its_limit(database: SqliteDatabase, path: Path) -> None:
    log = path.with_name(path.name + "-wal")
    page = "x" * sqlite_connection.PAGE_BYTES
    async with database.transaction() as transaction:
        await transaction.run("CREATE TABLE page (text TEXT)")
    sizes: list[int] = []
    for _ in range(12):
        async with database.transaction() as transaction:
            await transaction.run_many("INSERT INTO page (text) VALUES ($1)", [(page,)] * 1_000)
        sizes.append(log.stat().st_size // sqlite_connection.PAGE_BYTES)

    # Each commit adds more than a thousand pages, until one passes the limit.
    assert sizes[1] < sqlite_connection.CHECKPOINT_PAGES
    assert sqlite_connection.CHECKPOINT_PAGES <= max(sizes) < 2 * sqlite_connection.CHECKPOINT_PAGES
    assert await database.fetch_one("SELECT count(1) FROM page") == (12_000,)
