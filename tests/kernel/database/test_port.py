"""The guarantees of the database port, on both engines."""

import asyncio
from contextlib import aclosing, suppress

import pytest

from countersign.kernel.database import port
from countersign.kernel.database.migrate import in_dialect
from countersign.kernel.database.open import open_database
from countersign.kernel.database.port import ConstraintViolation, Database, WrittenOutsideTransaction
from countersign.kernel.errors import Unavailable
from tests.kernel.database.probes import PUT, CancelAtWait, put, things

ENDLESS = """
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000000)
SELECT count(i) FROM n
"""


class Refusal(Exception):
    """The error with which tests leave a block."""


async def test_rows_are_read_as_they_were_written(database: Database) -> None:
    async with database.transaction() as transaction:
        await transaction.run(in_dialect("CREATE TABLE kind (a TEXT, b REAL, c BLOB)", database.dialect))
        await transaction.run("INSERT INTO kind (a, b, c) VALUES ($1, $2, $3)", "it's $1 \U0001f600", 0.5, b"\0\xff")
        await transaction.run("INSERT INTO kind (a, b, c) VALUES ($1, $2, $3)", None, None, None)

    first_row, second_row = await database.fetch("SELECT a, b, c FROM kind ORDER BY a IS NULL")
    same_row = await database.fetch_one("SELECT a, b, c FROM kind WHERE a = $1 AND a = $1", "it's $1 \U0001f600")

    text, number, blob = first_row
    assert (text, number, blob) == ("it's $1 \U0001f600", 0.5, b"\0\xff")
    assert same_row == first_row
    assert tuple(second_row) == (None, None, None)


async def test_a_missing_row_is_none(database: Database) -> None:
    assert await database.fetch_one("SELECT id FROM thing WHERE id = $1", 1) is None
    assert await database.fetch("SELECT id FROM thing WHERE id = $1", 1) == []


async def test_a_statement_shows_how_many_rows_it_changed(database: Database) -> None:
    await put(database, 1, 2, 3)

    async with database.transaction() as transaction:
        assert await transaction.run("UPDATE thing SET word = word WHERE id > $1", 1) == 2
        assert await transaction.run("UPDATE thing SET word = word WHERE id > $1", 9) == 0
        assert await transaction.run("CREATE TABLE other (id INTEGER)") == 0
        assert await transaction.run("DELETE FROM thing WHERE id = $1", 1) == 1
        assert await transaction.run("INSERT INTO other (id) SELECT id FROM thing") == 2


async def test_a_failing_transaction_rolls_back_only_its_own_changes(database: Database) -> None:
    async def fail() -> None:
        async with database.transaction() as transaction:
            await transaction.run(PUT, 2, "gone")
            raise Refusal

    outcomes = await asyncio.gather(put(database, 1), fail(), put(database, 3), return_exceptions=True)

    assert [type(outcome) for outcome in outcomes] == [type(None), Refusal, type(None)]
    assert await things(database) == [1, 3]


async def test_exactly_the_successful_of_64_concurrent_transactions_are_kept(database: Database) -> None:
    async def write(number: int) -> None:
        async with database.transaction() as transaction:
            await transaction.run(PUT, number, f"word {number}")
            if number % 3 == 0:
                raise Refusal
            if number % 3 == 1:
                await asyncio.sleep(0)

    outcomes = await asyncio.gather(*(write(number) for number in range(64)), return_exceptions=True)

    assert [isinstance(outcome, Refusal) for outcome in outcomes] == [number % 3 == 0 for number in range(64)]
    assert await things(database) == [number for number in range(64) if number % 3]


async def test_another_connection_sees_acknowledged_writes(database: Database, database_url: str) -> None:
    other_database = await open_database(database_url, schema="shop")

    for number in range(20):
        await put(database, number)
        assert await things(other_database) == list(range(number + 1))

    await other_database.close()


async def test_a_transaction_sees_its_own_writes_and_other_transactions_do_not(database: Database) -> None:
    async with database.transaction() as transaction:
        await transaction.run(PUT, 1, "a")

        assert await things(transaction) == [1]
        assert await transaction.fetch_one("SELECT word FROM thing WHERE id = $1", 1) == ("a",)
        assert await things(database) == []


async def test_a_savepoint_undoes_its_own_block(database: Database) -> None:
    actions_run: list[str] = []

    async with database.transaction() as transaction:
        await transaction.run(PUT, 1, "a")
        transaction.after_commit(lambda: actions_run.append("outer"))
        with suppress(ConstraintViolation):
            async with transaction.savepoint():
                transaction.after_commit(lambda: actions_run.append("undone"))
                await transaction.run(PUT, 2, "b")
                await transaction.run(PUT, 3, "a")
        async with transaction.savepoint():
            transaction.after_commit(lambda: actions_run.append("inner"))
            await transaction.run(PUT, 4, "d")
            with suppress(Refusal):
                async with transaction.savepoint():
                    await transaction.run(PUT, 5, "e")
                    raise Refusal

    assert await things(database) == [1, 4]
    assert actions_run == ["outer", "inner"]


async def test_actions_run_after_the_commit_and_before_the_caller_continues(database: Database) -> None:
    actions_run: list[str] = []

    async with database.transaction() as transaction:
        await transaction.run(PUT, 1, "a")
        transaction.after_commit(lambda: actions_run.append("first"))
        transaction.after_commit(lambda: actions_run.append("second"))
        assert actions_run == []

    assert actions_run == ["first", "second"]


async def test_actions_of_a_transaction_that_failed_never_run(database: Database) -> None:
    actions_run: list[str] = []

    with suppress(Refusal):
        async with database.transaction() as transaction:
            transaction.after_commit(lambda: actions_run.append("never"))
            raise Refusal
    await put(database, 1)

    assert actions_run == []


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO thing (id, word) VALUES (2, 'word 1')",
        "INSERT INTO thing (id, word) VALUES (2, NULL)",
        "INSERT INTO part (thing_id) VALUES (7)",
        "INSERT INTO part (thing_id, size) VALUES (1, -1)",
    ],
)
async def test_a_broken_rule_of_the_schema_is_a_constraint_violation(database: Database, statement: str) -> None:
    await put(database, 1)
    async with database.transaction() as transaction:
        await transaction.run("CREATE TABLE part (thing_id BIGINT REFERENCES thing (id), size BIGINT CHECK (size > 0))")

    async def offend() -> None:
        async with database.transaction() as transaction:
            await transaction.run(PUT, 5, "five")
            await transaction.run(statement)

    with pytest.raises(ConstraintViolation):
        await offend()

    assert await things(database) == [1]


async def test_a_reader_cannot_write(database: Database) -> None:
    for read_statement in (database.fetch, database.fetch_one, database.scan):
        with pytest.raises(WrittenOutsideTransaction):
            await read_statement("INSERT INTO thing (id, word) VALUES (1, 'a') RETURNING id")

    assert await things(database) == []


async def test_a_cancelled_transaction_has_no_effect_at_any_point_of_waiting(database: Database) -> None:
    async def write(number: int) -> None:
        async with database.transaction() as transaction:
            await transaction.run(PUT, number, f"{number}")
            async with transaction.savepoint():
                await transaction.run(PUT, number + 1, f"{number + 1}")
            await transaction.run_many(PUT, [(number + 2, f"{number + 2}")])

    outcomes: list[object] = []
    is_finished = False
    while not is_finished:
        first_number = len(outcomes) * 10
        work = CancelAtWait(write(first_number), len(outcomes))
        neighbours = [
            asyncio.create_task(put(database, first_number + 5)),
            asyncio.create_task(put(database, first_number + 6)),
        ]
        await asyncio.sleep(0)
        (outcome,) = await asyncio.gather(_await_all(work), return_exceptions=True)
        await asyncio.gather(*neighbours)
        await asyncio.wait_for(put(database, first_number + 7), 60)

        written_numbers = [number - first_number for number in await things(database) if number >= first_number]
        allowed_numbers = [[0, 1, 2, 5, 6, 7]] if outcome is None else [[0, 1, 2, 5, 6, 7], [5, 6, 7]]
        assert written_numbers in allowed_numbers
        is_finished = work.waited <= len(outcomes)
        outcomes.append(outcome)

    assert len(outcomes) > 3
    assert outcomes[-1] is None


async def _await_all(work: CancelAtWait) -> None:
    await work


@pytest.mark.parametrize("is_late", [False, True])
async def test_a_read_that_is_cancelled_leaves_its_connection_fit_to_write(database_url: str, is_late: bool) -> None:
    database = await open_database(database_url, schema="shop", pool=1, reserve_bytes=0)

    async def read_rows(number: int) -> None:
        # A statement that was never run before is prepared first, which is one more wait.
        await database.fetch(f"SELECT {number} + (SELECT count(*) FROM (SELECT 1) AS one)")

    for at in range(100):
        work = CancelAtWait(read_rows(at), at, is_late=is_late)
        await asyncio.gather(_await_all(work), return_exceptions=True)
        async with database.transaction() as transaction:
            assert len(await transaction.fetch("SELECT 1")) == 1
        if work.waited <= at:
            break

    await database.close()


async def test_actions_run_even_when_the_caller_was_cancelled_during_the_commit(database: Database) -> None:
    for at in range(100):
        numbers_seen: list[int] = []

        async def write(number: int, numbers_seen: list[int]) -> None:
            async with database.transaction() as transaction:
                await transaction.run(PUT, number, f"{number}")
                transaction.after_commit(lambda: numbers_seen.append(number))

        work = CancelAtWait(write(at, numbers_seen), at)
        await asyncio.gather(_await_all(work), return_exceptions=True)
        await put(database, 1000 + at)

        assert (at in await things(database)) == bool(numbers_seen)
        if work.waited <= at:
            break


async def test_a_scan_ends_at_the_deadline(database: Database, database_url: str) -> None:
    hurried_database = await open_database(database_url, schema="shop", pool=1, read_deadline_s=1, reserve_bytes=0)
    with pytest.raises(Unavailable):
        await hurried_database.scan(ENDLESS)
    await hurried_database.close()

    await put(database, 1)
    assert [tuple(row) for row in await database.scan("SELECT id FROM thing WHERE id < $1", 2)] == [(1,)]


async def test_a_scan_that_no_caller_waits_for_any_more_ends_at_once(database_url: str) -> None:
    database = await open_database(database_url, schema="shop", pool=1, read_deadline_s=600)
    scan = asyncio.create_task(database.scan(ENDLESS))
    finished_tasks, _ = await asyncio.wait([scan], timeout=0.2)
    assert not finished_tasks

    scan.cancel()

    with pytest.raises(asyncio.CancelledError):
        await scan
    assert [tuple(row) for row in await asyncio.wait_for(database.scan("SELECT 1"), 60)] == [(1,)]
    await asyncio.wait_for(database.close(), 60)


async def _filled(database: Database, count: int) -> None:
    async with database.transaction() as transaction:
        await transaction.run_many(PUT, ((number, f"{number}") for number in range(count)))


async def test_a_stream_yields_batches_of_one_snapshot(database: Database) -> None:
    await _filled(database, 1234)

    numbers_seen: list[int] = []
    sizes: list[int] = []
    async for batch in database.stream("SELECT id FROM thing WHERE id >= $1 ORDER BY id", 34):
        sizes.append(len(batch))
        numbers_seen += [row[0] for row in batch]
        async with database.transaction() as transaction:
            await transaction.run("DELETE FROM thing")
            await transaction.run(PUT, 100_000 + len(sizes), f"late {len(sizes)}")

    assert numbers_seen == list(range(34, 1234))
    assert len(sizes) > 2
    assert max(sizes) <= port.MAX_ROWS


async def test_a_batch_of_a_stream_is_bounded_in_bytes(database: Database) -> None:
    text, count = "é" * 100_000, 12
    await _filled(database, 40 + count)
    statement = "SELECT id, CASE WHEN id < 40 THEN word ELSE repeat('é', 100000) END FROM thing ORDER BY id"
    if database.dialect == "sqlite":
        statement = statement.replace("repeat('é', 100000)", "replace(hex(zeroblob(50000)), '0', 'é')")

    long = [sum(row[1] == text for row in batch) async for batch in database.stream(statement)]

    assert sum(long) == count
    assert max(long) <= port.MAX_BYTES // len(text) + 1


async def test_a_stream_may_be_left_early(database: Database) -> None:
    await _filled(database, 2000)

    for _ in range(30):
        async with aclosing(database.stream("SELECT id FROM thing")) as stream:
            assert await anext(stream)

    await put(database, 5000)


async def test_many_rows_are_written_while_the_loop_continues(database: Database) -> None:
    ticks = 0
    is_over = False

    async def tick() -> None:
        nonlocal ticks
        while not is_over:
            ticks += 1
            await asyncio.sleep(0)

    ticking_task = asyncio.create_task(tick())
    await _filled(database, 200_000)
    is_over = True
    await ticking_task

    assert ticks > 100
    assert await database.fetch_one("SELECT count(id), max(id) FROM thing") == (200_000, 199_999)


async def test_closing_waits_for_transactions_under_way(database_url: str) -> None:
    database = await open_database(database_url, schema="shop")
    async with database.transaction() as transaction:
        await transaction.run("CREATE TABLE thing (id INTEGER, word TEXT)")
    entered_event, may_go = asyncio.Event(), asyncio.Event()

    async def write() -> None:
        async with database.transaction() as transaction:
            await transaction.run(PUT, 1, "a")
            entered_event.set()
            await may_go.wait()

    writing_task = asyncio.create_task(write())
    await entered_event.wait()
    closing_task = asyncio.create_task(database.close())
    finished_tasks, _ = await asyncio.wait([closing_task], timeout=0.1)
    assert not finished_tasks
    may_go.set()
    await asyncio.gather(writing_task, closing_task)

    reopened_database = await open_database(database_url, schema="shop")
    assert await things(reopened_database) == [1]
    await reopened_database.close()


async def test_a_closed_database_is_unavailable(database_url: str) -> None:
    database = await open_database(database_url, schema="shop")
    await database.close()

    with pytest.raises(Unavailable):
        async with database.transaction():
            pass
    with pytest.raises(Unavailable):
        await database.scan("SELECT 1")
    with pytest.raises(Unavailable):
        await database.fetch("SELECT 1")
