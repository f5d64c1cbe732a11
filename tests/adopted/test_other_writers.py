"""Countersign and other applications change the same rows of connected tables concurrently. The applications use the
statements of common ORMs. No change is lost."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import apsw
import asyncpg
import psycopg
import pytest

from countersign.kernel.errors import Refused, Unavailable
from countersign.records.access.view import Caller
from countersign.records.approvals import decisions
from tests.adopted.shop import Shop, make_postgres, make_sqlite, open_shop, run_sqlite
from tests.adopted.writable import shop_registry
from tests.servers.postgres import Cluster

CUSTOMERS = (1, 2, 3)
CHANGES = 10
PEOPLE, AGENTS = 12, 8
WRITER_BUSY_MS = 20_000
VERSIONS = "ALTER TABLE customer ADD COLUMN version integer NOT NULL DEFAULT 1; UPDATE customer SET visits = 0"
Connection = Any


@pytest.fixture(params=["sqlite", "postgres"])
async def shop(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Shop]:
    """The service over a shop whose application counts the changes of a customer."""
    if request.param == "sqlite":
        url = make_sqlite(tmp_path / "theirs.sqlite")
        run_sqlite(tmp_path / "theirs.sqlite", VERSIONS)
    else:
        url = _prepared(request.getfixturevalue("postgres_cluster"), request.getfixturevalue("postgres_url"))
    async with open_shop(url, tmp_path, shop_registry(version="version"), is_shared=True) as shop:
        yield shop


def _prepared(postgres_cluster: Cluster, postgres_url: str) -> str:
    """Create the shop with a role that may write its customers."""
    url = make_postgres(postgres_cluster, postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        name = postgres_url.rpartition("/")[2]
        connection.execute(VERSIONS.encode())
        connection.execute(f"GRANT CREATE ON DATABASE {name} TO reader_{name}".encode())
        columns = "version, visits, first_name, note"
        statement = f"GRANT SELECT (version), INSERT ({columns}), UPDATE ({columns}) ON customer TO reader_{name}"
        connection.execute(statement.encode())
        connection.execute(f"GRANT USAGE ON SEQUENCE customer_customer_id_seq TO reader_{name}".encode())
        connection.execute(b"SELECT setval('customer_customer_id_seq', 3)")
    return url


class SqliteConnection:
    """A connection to a SQLite file with the methods of asyncpg that the writers use."""

    def __init__(self, path: Path) -> None:
        self._connection = apsw.Connection(str(path))
        self._connection.set_busy_timeout(WRITER_BUSY_MS)

    async def fetchrow(self, statement: str, *values: int) -> tuple[Any, ...]:
        """Return the first row."""
        rows = await asyncio.to_thread(self._run, statement.removesuffix(" FOR UPDATE"), values)
        return rows[0]

    async def execute(self, statement: str, *values: int) -> str:
        """Return how many rows were changed."""
        await asyncio.to_thread(self._run, statement, values)
        return f"UPDATE {self._connection.changes()}"

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[None]:
        """Commit at the end of the block."""
        await self.execute("BEGIN IMMEDIATE")
        yield
        await self.execute("COMMIT")

    def _run(self, statement: str, values: Sequence[int]) -> list[tuple[Any, ...]]:
        named = {str(number): value for number, value in enumerate(values, 1)}
        return list(self._connection.execute(statement, named).fetchall())

    async def close(self) -> None:
        """Close the connection."""
        self._connection.close()


async def _change_optimistically(connection: Connection, customer: int) -> int:
    """Change a row if it still has the version that was read, as Hibernate, SQLAlchemy and Rails do."""
    while True:
        visits, version = await connection.fetchrow(
            "SELECT visits, version FROM customer WHERE customer_id = $1", customer
        )
        tag = await connection.execute(
            "UPDATE customer SET visits = $1, version = $2 WHERE customer_id = $3 AND version = $4",
            visits + 1, version + 1, customer, version,
        )  # fmt: skip
        if tag == "UPDATE 1":
            return 1


async def _change_under_lock(connection: Connection, customer: int) -> int:
    async with connection.transaction():
        visits, version = await connection.fetchrow(
            "SELECT visits, version FROM customer WHERE customer_id = $1 FOR UPDATE", customer
        )
        await connection.execute(
            "UPDATE customer SET visits = $1, version = $2 WHERE customer_id = $3", visits + 1, version + 1, customer
        )
    return 1


async def _change_all(connection: Connection, _: int) -> int:
    await connection.execute("UPDATE customer SET visits = visits + 1, version = version + 1")
    return len(CUSTOMERS)


async def _soft_delete(connection: Connection, customer: int) -> int:
    await connection.execute(
        "UPDATE customer SET activebool = NOT activebool, visits = visits + 1, version = version + 1 "
        "WHERE customer_id = $1",
        customer,
    )
    return 1


async def _write(shop: Shop, change: Callable[[Connection, int], Awaitable[int]]) -> int:
    url = shop.url.replace(f"reader_{shop.url.rpartition('/')[2]}@", "postgres@")
    connection = SqliteConnection(shop.path) if shop.is_sqlite else await asyncpg.connect(url)
    try:
        return sum([await change(connection, CUSTOMERS[number % 3]) for number in range(3 * CHANGES)])
    finally:
        await connection.close()


async def _update(shop: Shop, person: Caller, number: int) -> int:
    """Add one to the visits of a customer as a person, and try again after each refusal."""
    while True:
        record = (await shop.inside.value(person, "customer", "list"))[number % 3]
        body = {"id": record["id"], "revision": record["revision"], "visits": record["visits"] + 1}
        try:
            await shop.inside.value(person, "customer", "update", **body)
        except Refused:
            continue
        return 1


async def _propose(shop: Shop, person: Caller, headers: dict[str, str], plans: set[str], number: int) -> int:
    """Propose to add one to the visits of a customer, and approve the plan. Try again if the plan is stale. Equal
    proposals of an agent are one plan, which is added to `plans` and counts once."""
    while True:
        response = await shop.http.post("/api/customer/list", json={}, headers=headers)
        record = response.json()["value"][number % 3]
        body = {"id": record["id"], "revision": record["revision"], "visits": record["visits"] + 1}
        answer = await shop.http.post("/api/customer/update", json=body, headers=headers)
        if answer.status_code != 202:
            assert answer.json()["error"] == "record has changed"
            continue
        plan_id = answer.json()["plan_id"]
        if plan_id in plans:
            continue
        plans.add(plan_id)
        if await _approve(shop, person, plan_id):
            return 1


async def _approve(shop: Shop, person: Caller, plan_id: str) -> bool:
    """Approve a plan, and try again if the database was locked for too long. Return whether it was executed."""
    while True:
        try:
            await decisions.approve(shop.inside.run(person), shop.inside.service.callers, plan_id)
        except Unavailable:
            continue
        except Refused:
            return False
        return True


async def test_no_change_is_lost_beside_four_writers_with_an_orm(shop: Shop) -> None:
    person = await shop.inside.member()
    headers = {"Authorization": f"Bearer {await shop.token_of(person)}"}
    changes = (_change_optimistically, _change_under_lock, _change_all, _soft_delete)
    other_writers = [_write(shop, change) for change in changes]
    writers = [_update(shop, person, number) for number in range(PEOPLE)]
    plans: set[str] = set()
    writers += [_propose(shop, person, headers, plans, number) for number in range(AGENTS)]
    counts = await asyncio.gather(*other_writers, *writers)

    assert shop.rows("SELECT sum(visits), sum(version - 1) FROM customer") == [(sum(counts), sum(counts))]
    query = "SELECT count(*) FROM audit_entry WHERE command = 'customer.update'"
    assert await shop.inside.rows(query) == [(PEOPLE + AGENTS,)]


async def test_a_new_row_has_the_first_version(shop: Shop) -> None:
    root = shop.inside.administrator()

    await shop.inside.value(root, "customer", "create", first_name="Mia")

    assert shop.rows("SELECT version FROM customer WHERE first_name = 'Mia'") == [(1,)]
