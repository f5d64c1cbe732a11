"""Countersign and other applications change the same rows of connected tables concurrently. The applications use the
statements of common ORMs. No change is lost."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import pytest

from countersign.kernel.errors import Refused
from countersign.records.access.view import Caller
from countersign.records.approvals import decisions
from tests.adopted.shop import Shop, make_postgres, open_shop
from tests.adopted.writable import writable_registry
from tests.servers.postgres import Cluster

CUSTOMERS = (1, 2, 3)
CHANGES = 10
PEOPLE, AGENTS = 12, 8
Connection = Any


@pytest.fixture
async def shop(postgres_cluster: Cluster, postgres_url: str, tmp_path: Path) -> AsyncIterator[Shop]:
    """The service over a shop whose application counts the changes of a customer."""
    url = make_postgres(postgres_cluster, postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        name = postgres_url.rpartition("/")[2]
        connection.execute(b"ALTER TABLE customer ADD COLUMN version integer NOT NULL DEFAULT 1")
        connection.execute(b"UPDATE customer SET visits = 0")
        connection.execute(f"GRANT CREATE ON DATABASE {name} TO reader_{name}".encode())
        columns = "version, visits, first_name, note"
        statement = f"GRANT SELECT (version), INSERT ({columns}), UPDATE ({columns}) ON customer TO reader_{name}"
        connection.execute(statement.encode())
        connection.execute(f"GRANT USAGE ON SEQUENCE customer_customer_id_seq TO reader_{name}".encode())
        connection.execute(b"SELECT setval('customer_customer_id_seq', 3)")
    async with open_shop(url, tmp_path, writable_registry(version="version"), is_shared=True) as shop:
        yield shop


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


async def _write(url: str, change: Callable[[Connection, int], Awaitable[int]]) -> int:
    connection = await asyncpg.connect(url)
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
    service = shop.inside.service
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
        try:
            await decisions.approve(shop.inside.run(person), service.callers, plan_id)
        except Refused:
            continue
        return 1


async def test_no_change_is_lost_beside_four_writers_with_an_orm(shop: Shop) -> None:
    person = await shop.inside.member()
    headers = {"Authorization": f"Bearer {await shop.token_of(person)}"}
    name = shop.url.rpartition("/")[2]
    url = shop.url.replace(f"reader_{name}@", "postgres@")

    changes = (_change_optimistically, _change_under_lock, _change_all, _soft_delete)
    other_writers = [_write(url, change) for change in changes]
    writers = [_update(shop, person, number) for number in range(PEOPLE)]
    plans: set[str] = set()
    writers += [_propose(shop, person, headers, plans, number) for number in range(AGENTS)]
    counts = await asyncio.gather(*other_writers, *writers)

    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT sum(visits)::int, sum(version - 1)::int FROM customer").fetchall()
    assert rows == [(sum(counts), sum(counts))]
    query = "SELECT count(*) FROM audit_entry WHERE command = 'customer.update'"
    assert await shop.inside.rows(query) == [(PEOPLE + AGENTS,)]


async def test_a_new_row_has_the_first_version(shop: Shop) -> None:
    root = shop.inside.administrator()

    await shop.inside.value(root, "customer", "create", first_name="Mia")

    name = shop.url.rpartition("/")[2]
    with psycopg.connect(shop.url.replace(f"reader_{name}@", "postgres@")) as connection:
        rows = connection.execute("SELECT version FROM customer WHERE first_name = 'Mia'").fetchall()
    assert rows == [(1,)]
