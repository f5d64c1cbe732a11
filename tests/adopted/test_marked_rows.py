"""Rows that other applications mark as deleted do not exist for callers, and deleting a record marks its row."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from countersign.declare import Module, Table
from countersign.declare.registry import Registry
from countersign.kernel.errors import Refused
from countersign.records import base_models
from countersign.records.access.view import Caller
from countersign.records.adopted.store import AdoptedStore
from countersign.records.approvals import decisions
from tests.adopted.shop import MARK, MODULE, Shop, make_postgres, make_sqlite, open_shop
from tests.declare.sample_modules import model
from tests.servers.postgres import Cluster

MARKS = {
    "deleted_at timestamptz": "'2026-01-02T03:04:05Z'",
    "archived_at timestamp": "'2026-01-02T03:04:05'",
    "deleted_at date": "'2026-01-02'",
    "is_deleted boolean": "'1'",
    "is_deleted boolean NOT NULL DEFAULT '0'": "'1'",
}


def _registry(deleted: str, *, is_written: bool = False, version: str = "") -> Registry:
    models = []
    for each in MODULE.models:
        table = each.declared.table
        assert isinstance(table, Table)
        table = replace(table, writable=is_written, deletes=is_written)
        if each.declared.name == "customer":
            table = replace(table, deleted=deleted, version=version)
        models.append(model(each.__name__, each.declared.fields, table=table))
    module = Module("shop", version="1.0.0", models=tuple(models), search_path=("public",))
    return Registry([base_models.MODULE, module])


@pytest.fixture(params=[*(("sqlite", each) for each in MARKS), *(("postgres", each) for each in MARKS)], ids=" ".join)
async def marked(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Shop]:
    """The service over a shop whose other application marks deleted customers, among them the second one."""
    engine, column = request.param
    statements = (
        f"ALTER TABLE customer ADD COLUMN {column}",
        f"UPDATE customer SET {column.split()[0]} = {MARKS[column]} WHERE customer_id = 2",
    )
    if engine == "sqlite":
        url = make_sqlite(tmp_path / "theirs.sqlite")
        for statement in statements:
            Shop(None, None, url).change(statement)  # type: ignore[arg-type]
    else:
        own_url = request.getfixturevalue("postgres_url")
        url = make_postgres(request.getfixturevalue("postgres_cluster"), own_url)
        with psycopg.connect(own_url, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())
            connection.execute(f"GRANT SELECT ON customer TO reader_{own_url.rpartition('/')[2]}".encode())
    async with open_shop(url, tmp_path, _registry(column.split()[0])) as opened:
        yield opened


async def test_marked_rows_do_not_exist_for_callers(marked: Shop) -> None:
    root = marked.inside.administrator()
    customers = await marked.inside.value(root, "customer", "list")
    found = await marked.inside.value(root, "customer", "search")
    orders = await marked.inside.value(root, "order", "list")
    groups = await marked.inside.value(root, "order", "count_by", field="customer")
    condition = {"field": "customer", "op": "is_null", "value": True}
    without = await marked.inside.value(root, "order", "list", filter=[condition])

    assert [each["first_name"] for each in customers] == [f"Ada {MARK}", f"Zoë {MARK}"]
    assert found["total"] == 2
    assert [each["customer"] for each in orders] == [customers[0]["id"], None]
    assert sorted(each["count"] for each in groups) == [1, 1]
    assert {each["value"] for each in groups} == {customers[0]["id"], None}
    assert [each["id"] for each in without] == [orders[1]["id"]]
    assert "deleted_at" not in customers[0]


@pytest.fixture
async def shop(postgres_cluster: Cluster, postgres_url: str, tmp_path: Path) -> AsyncIterator[Shop]:
    """The service over a shop whose deleted customers are marked, and whose changes are counted."""
    url = make_postgres(postgres_cluster, postgres_url)
    name = postgres_url.rpartition("/")[2]
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(b"ALTER TABLE customer ADD deleted_at timestamptz, ADD lock_version int NOT NULL DEFAULT 0")
        connection.execute(f"GRANT CREATE ON DATABASE {name} TO reader_{name}".encode())
        connection.execute(f"GRANT SELECT, INSERT, UPDATE ON customer TO reader_{name}".encode())
        connection.execute(f'GRANT INSERT, UPDATE, DELETE ON country, "Orders", line TO reader_{name}'.encode())
    registry = _registry("deleted_at", is_written=True, version="lock_version")
    async with open_shop(url, tmp_path, registry, is_shared=True) as opened:
        yield opened


def _rows(shop: Shop, statement: str) -> list[tuple[Any, ...]]:
    name = shop.url.rpartition("/")[2]
    with psycopg.connect(shop.url.replace(f"reader_{name}@", "postgres@")) as connection:
        return connection.execute(statement.encode()).fetchall()


async def _first(shop: Shop, caller: Caller) -> dict[str, Any]:
    return dict((await shop.inside.value(caller, "customer", "list"))[0])


async def _refusal(shop: Shop, caller: Caller, model: str, command: str, **body: object) -> str:
    with pytest.raises(Refused) as caught:
        await shop.inside.value(caller, model, command, **body)
    return caught.value.detail


MARKED = "SELECT customer_id, deleted_at > now() - interval '1 minute', lock_version FROM customer ORDER BY 1"


async def test_deleting_a_record_marks_its_row(shop: Shop) -> None:
    root = shop.inside.administrator()
    ada = await _first(shop, root)

    assert await shop.inside.value(root, "customer", "delete", id=ada["id"], revision=ada["revision"]) == {
        "id": ada["id"]
    }

    assert _rows(shop, MARKED) == [(1, True, 1), (2, None, 0), (3, None, 0)]
    assert await _refusal(shop, root, "customer", "get", id=ada["id"]) == "no such record"
    assert await _refusal(shop, root, "customer", "delete", id=ada["id"]) == "no such record"
    # The order still refers to the row.
    assert _rows(shop, 'SELECT customer_id FROM "Orders" ORDER BY 1') == [(1,), (2,)]
    orders = await shop.inside.value(root, "order", "list")
    assert [each["customer"] for each in orders].count(None) == 1
    condition = {"field": "model", "op": "eq", "value": "customer"}
    (entry,) = await shop.inside.value(root, "audit_entry", "list", filter=[condition])
    assert entry["command"] == "customer.delete"
    # The value is still in the table, so its copy can still be read.
    assert entry["changes"]["note"] == [f"calls {MARK}", None]


async def test_a_ref_cannot_be_set_to_a_marked_row(shop: Shop) -> None:
    root = shop.inside.administrator()
    ada = await _first(shop, root)
    (order, _) = await shop.inside.value(root, "order", "list")
    await shop.inside.value(root, "customer", "delete", id=ada["id"])

    detail = await _refusal(shop, root, "order", "update", id=order["id"], customer=ada["id"])

    assert detail == "order.customer must be the id of a customer record"


async def test_a_row_whose_mark_a_trigger_takes_away_is_not_said_to_be_deleted(shop: Shop) -> None:
    root = shop.inside.administrator()
    ada = await _first(shop, root)
    shop.change(
        "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN new.deleted_at := NULL; RETURN new; END'"
    )
    shop.change("CREATE TRIGGER keep BEFORE UPDATE ON customer FOR EACH ROW EXECUTE FUNCTION keep()")

    detail = await _refusal(shop, root, "customer", "delete", id=ada["id"])

    assert detail.startswith("the connected database kept the row")
    assert _rows(shop, MARKED)[0] == (1, None, 0)
    assert await shop.inside.rows("SELECT id FROM audit_entry WHERE model = $1", "customer") == []


async def test_a_deletion_does_not_delete_rows_that_would_only_be_marked(shop: Shop) -> None:
    root = shop.inside.administrator()
    shop.change("ALTER TABLE customer DROP CONSTRAINT customer_country_fkey")
    shop.change("ALTER TABLE customer ADD FOREIGN KEY (country) REFERENCES country ON DELETE CASCADE")
    shop.change("UPDATE customer SET deleted_at = now() WHERE customer_id = 2")
    austria, japan = await shop.inside.value(root, "country", "list")

    details = [
        await _refusal(shop, root, "country", "delete", id=each["id"], cascade=True) for each in (austria, japan)
    ]

    assert details[0] == "another record refers to this one"
    assert details[1].startswith("the connected database kept the row")
    assert len(_rows(shop, MARKED)) == 3


async def test_a_plan_is_stale_when_its_row_is_marked_and_marks_it_when_it_is_approved(shop: Shop) -> None:
    person = await shop.inside.member()
    headers = {"Authorization": f"Bearer {await shop.token_of(person)}"}
    customers = (await shop.http.post("/api/customer/list", json={}, headers=headers)).json()["value"]
    plans = [
        (await shop.http.post("/api/customer/delete", json={"id": each["id"]}, headers=headers)).json()["plan_id"]
        for each in customers[:2]
    ]
    shop.change("UPDATE customer SET deleted_at = now() WHERE customer_id = 2")
    plan = (await shop.http.post("/api/plan/get", json={"id": plans[0]}, headers=headers)).json()["value"]

    async def approve(plan_id: str) -> decisions.Decision:
        return await decisions.approve(shop.inside.run(person), shop.inside.service.callers, plan_id)

    assert plan["effects"] == ["the row of the customer stays in its table, marked as deleted"]
    assert (await approve(plans[0])).state == "executed"
    with pytest.raises(decisions.NotPending, match="stale"):
        await approve(plans[1])

    assert [each[1] for each in _rows(shop, MARKED)] == [True, True, None]


async def test_a_column_that_cannot_mark_rows_hides_the_model(
    postgres_cluster: Cluster, postgres_url: str, tmp_path: Path
) -> None:
    url = make_postgres(postgres_cluster, postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(b"ALTER TABLE customer ADD gone integer")
        connection.execute(f"GRANT SELECT ON customer TO reader_{postgres_url.rpartition('/')[2]}".encode())
    async with open_shop(url, tmp_path, _registry("gone")) as shop:
        store = shop.inside.service.engine.adopted["customer"]

        assert isinstance(store, AdoptedStore)
        assert "the column gone is no time, day or boolean: take deleted out" in store.suspensions.reasons["customer"]


async def test_a_new_row_is_not_marked_if_the_column_must_have_a_value(
    postgres_cluster: Cluster, postgres_url: str, tmp_path: Path
) -> None:
    url = make_postgres(postgres_cluster, postgres_url)
    name = postgres_url.rpartition("/")[2]
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(b"ALTER TABLE customer ADD is_deleted boolean NOT NULL DEFAULT false")
        connection.execute(b"ALTER TABLE customer ALTER is_deleted DROP DEFAULT")
        connection.execute(b"SELECT setval('customer_customer_id_seq', 3)")
        connection.execute(f"GRANT CREATE ON DATABASE {name} TO reader_{name}".encode())
        connection.execute(f"GRANT SELECT ON customer TO reader_{name}".encode())
        connection.execute(f"GRANT INSERT (first_name, is_deleted) ON customer TO reader_{name}".encode())
        connection.execute(f"GRANT USAGE ON SEQUENCE customer_customer_id_seq TO reader_{name}".encode())
    async with open_shop(url, tmp_path, _registry("is_deleted", is_written=True), is_shared=True) as shop:
        root = shop.inside.administrator()

        await shop.inside.value(root, "customer", "create", first_name="Mia")

        assert _rows(shop, "SELECT is_deleted FROM customer WHERE first_name = 'Mia'") == [(False,)]
        assert len(await shop.inside.value(root, "customer", "list")) == 4
