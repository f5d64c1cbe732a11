"""Behaviour of PostgreSQL only: broken connections, conflicting transactions, several schemas."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import asyncpg
import pytest

from countersign.kernel.database import postgres
from countersign.kernel.database.open import open_database
from countersign.kernel.database.port import ConstraintViolation, Database
from countersign.kernel.errors import InvalidRequest, StorageFull, Unavailable
from tests.kernel.database.probes import PUT, put, things
from tests.servers.process import free_port

END_OTHERS = """
SELECT count(pg_terminate_backend(pid))
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


@pytest.fixture
async def shop(postgres_url: str) -> AsyncIterator[Database]:
    """A database with the empty table `thing`."""
    database = await open_database(postgres_url, schema="shop", pool=4)
    async with database.transaction() as transaction:
        await transaction.run("CREATE TABLE thing (id BIGINT PRIMARY KEY, word TEXT NOT NULL UNIQUE)")
    yield database
    await database.close()


async def _end_connections(url: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.fetch(END_OTHERS)
    await connection.close()


async def test_an_opened_database_has_one_connection_until_concurrent_work_needs_more(shop: Database) -> None:
    count_connections = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    assert await shop.fetch(count_connections) == [(1,)]

    await asyncio.gather(*(shop.fetch("SELECT pg_sleep(0.05)") for _ in range(4)))
    assert await shop.fetch(count_connections) == [(4,)]


async def test_connections_that_died_idle_fail_no_request(shop: Database, postgres_url: str) -> None:
    for number in range(5):
        await asyncio.gather(*(shop.fetch("SELECT pg_sleep(0.01)") for _ in range(4)))
        await _end_connections(postgres_url)

        if number % 2:
            assert len(await things(shop)) == number
        await put(shop, number)

    outcomes = await asyncio.gather(*(things(shop) for _ in range(8)))
    assert outcomes == [[0, 1, 2, 3, 4]] * 8


async def test_a_connection_lost_in_a_transaction_is_reported_as_unavailable(shop: Database, postgres_url: str) -> None:
    async def write() -> None:
        async with shop.transaction() as transaction:
            await transaction.run(PUT, 1, "a")
            await _end_connections(postgres_url)
            await transaction.run(PUT, 2, "b")

    with pytest.raises(Unavailable):
        await write()

    assert await things(shop) == []
    await put(shop, 3)
    assert await things(shop) == [3]


async def test_an_unreachable_server_is_reported_as_unavailable_without_its_address() -> None:
    with pytest.raises(Unavailable) as refusal:
        await open_database(f"postgresql://me:secret@127.0.0.1:{free_port()}/a", schema="shop")

    assert "secret" not in refusal.value.detail


async def test_transactions_that_block_each_other_are_unavailable_and_can_be_tried_again(shop: Database) -> None:
    await put(shop, 1, 2)
    both_hold = asyncio.Barrier(2)

    async def swap(first_id: int, second_id: int) -> None:
        async with shop.transaction() as transaction:
            await transaction.run("UPDATE thing SET word = word WHERE id = $1", first_id)
            await both_hold.wait()
            await transaction.run("UPDATE thing SET word = word WHERE id = $1", second_id)

    outcomes = await asyncio.gather(swap(1, 2), swap(2, 1), return_exceptions=True)

    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["NoneType", "Unavailable"]


async def test_a_transaction_with_an_ignored_failed_statement_is_not_committed(shop: Database) -> None:
    async def overlook() -> None:
        async with shop.transaction() as transaction:
            await transaction.run(PUT, 1, "a")
            with suppress(ConstraintViolation):
                await transaction.run(PUT, 1, "a")

    with pytest.raises(ConstraintViolation):
        await overlook()

    assert await things(shop) == []


async def test_a_failed_transaction_ends_before_its_connection_returns_to_the_pool(shop: Database) -> None:
    reported: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))

    async def fail() -> None:
        async with shop.transaction() as transaction:
            await transaction.run(PUT, 1, "a")
            raise LookupError

    with pytest.raises(LookupError):
        await fail()

    assert reported == []
    assert await things(shop) == []


async def test_schemas_do_not_see_each_other(shop: Database, postgres_url: str) -> None:
    await put(shop, 1)
    other_database = await open_database(postgres_url, schema='of"fice')

    assert await other_database.fetch_one("SELECT to_regclass('thing') IS NULL, current_schema()") == (True, 'of"fice')
    await other_database.close()


async def test_one_of_several_concurrent_openers_creates_the_schema_for_all(postgres_url: str) -> None:
    opened_databases = await asyncio.gather(*(open_database(postgres_url, schema="new", pool=1) for _ in range(8)))

    schemas = {
        await opened_database.fetch_one("SELECT oid, nspname FROM pg_namespace WHERE nspname = 'new'")
        for opened_database in opened_databases
    }
    assert len(schemas) == 1
    assert [await opened_database.fetch_one("SELECT current_schema()") for opened_database in opened_databases] == [
        ("new",)
    ] * 8
    await asyncio.gather(*(database.close() for database in opened_databases))


async def test_more_callers_than_connections_wait_for_their_turn(shop: Database) -> None:
    await asyncio.gather(*(put(shop, number) for number in range(100)))

    assert await things(shop) == list(range(100))


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (asyncpg.DiskFullError, StorageFull),
        (asyncpg.ProgramLimitExceededError, InvalidRequest),
        (asyncpg.StatementTooComplexError, type(None)),
        (asyncpg.TooManyConnectionsError, Unavailable),
        (asyncpg.AdminShutdownError, Unavailable),
        (asyncpg.CannotConnectNowError, Unavailable),
        (asyncpg.SerializationError, Unavailable),
        (asyncpg.LockNotAvailableError, Unavailable),
        (asyncpg.ConnectionDoesNotExistError, Unavailable),
        (asyncpg.InvalidPasswordError, Unavailable),
        (ConnectionResetError, Unavailable),
        (asyncpg.UndefinedTableError, type(None)),
        (asyncpg.DataError, type(None)),
    ],
)
def test_the_servers_errors_have_a_meaning(error: type[Exception], meaning: type) -> None:
    assert type(postgres.refusal(error("the closed thing"))) is meaning
