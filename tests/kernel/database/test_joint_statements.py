"""Statements that are joined into one on PostgreSQL write the same rows as one after the other."""

from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from countersign.kernel.database.joint_statements import Write, run_writes, with_writes
from countersign.kernel.database.open import open_database
from countersign.kernel.database.port import ConstraintViolation, Database, Transaction
from tests.kernel.database.conftest import TABLE

INSERT = "INSERT INTO thing (id, word) VALUES ($1, $2)"
UPDATE = "UPDATE thing SET word = $2 WHERE id = $1"
ALL = "SELECT id, word FROM thing ORDER BY id"


class CountingTransaction:
    """A transaction that counts its statements."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self.statements = 0

    def __getattr__(self, name: str) -> Any:
        self.statements += name in ("run", "fetch", "fetch_one", "run_many")
        return getattr(self._transaction, name)


@pytest.fixture
async def postgres(postgres_url: str) -> AsyncIterator[Database]:
    """An open PostgreSQL database with the empty table `thing (id, word)`."""
    database = await open_database(postgres_url, schema="shop", read_deadline_s=60, reserve_bytes=0)
    async with database.transaction() as transaction:
        await transaction.run(TABLE)
    yield database
    await database.close()


async def _run(database: Database, writes: list[Write]) -> int:
    """Run the writes in a transaction, and return the number of statements."""
    async with database.transaction() as transaction:
        counting = CountingTransaction(transaction)
        await run_writes(cast("Transaction", counting), database.dialect, writes)
    return counting.statements


async def test_writes_are_one_statement_on_postgres_and_several_on_sqlite(database: Database) -> None:
    await _run(database, [(INSERT, (1, "a"))])

    count = await _run(database, [(UPDATE, (1, "$1")), (INSERT, (2, "b")), (INSERT, [3, "c"])])

    assert count == (1 if database.dialect == "postgres" else 3)
    assert await database.fetch(ALL) == [(1, "$1"), (2, "b"), (3, "c")]
    assert await _run(database, []) == 0


async def test_a_write_that_violates_a_constraint_leaves_none(database: Database) -> None:
    await _run(database, [(INSERT, (1, "a"))])

    with pytest.raises(ConstraintViolation):
        await _run(database, [(INSERT, (2, "b")), (INSERT, (3, "a"))])

    assert await database.fetch(ALL) == [(1, "a")]


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO thing (id, word) SELECT $1, $2",
        "\nWITH other AS (SELECT $1::bigint, $2::text)\nINSERT INTO thing (id, word) SELECT * FROM other\n",
    ],
)
async def test_the_number_of_rows_is_that_of_the_statement_itself(postgres: Database, statement: str) -> None:
    database = postgres
    text, values = with_writes(statement, (1, "a"), [(INSERT, (2, "b")), (INSERT, (3, "c"))])

    async with database.transaction() as transaction:
        assert await transaction.run(text, *values) == 1

    assert await database.fetch(ALL) == [(1, "a"), (2, "b"), (3, "c")]
