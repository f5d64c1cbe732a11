"""People create and update records of tables of others, in one transaction with the audit entry."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import msgspec
import psycopg
import pytest
from structlog.testing import capture_logs

from countersign.declare import Bool, Date, Grant, Model, Module, Moment, Money, Ref, Table, Text
from countersign.declare.registry import Registry
from countersign.kernel.database.port import ConnectedSession
from countersign.kernel.errors import Refused
from countersign.records import base_models
from countersign.records.access.view import Caller
from countersign.records.adopted.store import AdoptedStore
from countersign.records.approvals import decisions
from tests.adopted.shop import MARK, MODULE, SQLITE, Shop, make_postgres, open_shop
from tests.adopted.writable import make_writable, shop_registry
from tests.servers.postgres import Cluster

KEY = "6f1f0b9e-6d0c-4c5e-9d57-3f0f6b0d2a11"
TRIGGERS = f"""
UPDATE customer SET email = 'zoe{MARK}@example.com' WHERE customer_id = 3;
ALTER TABLE customer ADD CONSTRAINT email_is_unique UNIQUE (email);
ALTER TABLE customer ADD CONSTRAINT visits_are_few CHECK (visits < 1000);
CREATE TABLE log (text text);
CREATE FUNCTION note_change() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
    'BEGIN INSERT INTO log VALUES (new.first_name); new.visits := new.visits + 1; RETURN new; END';
CREATE TRIGGER note_change BEFORE UPDATE OF visits ON customer FOR EACH ROW EXECUTE FUNCTION note_change();
"""


SQLITE_TRIGGERS = f"""
UPDATE customer SET email = 'zoe{MARK}@example.com' WHERE customer_id = 3;
CREATE UNIQUE INDEX email_is_unique ON customer (email);
CREATE TABLE log (text text);
CREATE TRIGGER note_change AFTER UPDATE OF visits ON customer BEGIN
    INSERT INTO log VALUES (new.first_name);
    UPDATE customer SET visits = new.visits + 1 WHERE customer_id = new.customer_id;
END;
"""
ON_SQLITE = pytest.mark.parametrize("shop", ["sqlite"], indirect=True)
ON_POSTGRES = pytest.mark.parametrize("shop", ["postgres"], indirect=True)


@pytest.fixture(params=["sqlite", "postgres"])
async def shop(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Shop]:
    """The service over a shop that it may write."""
    columns = "first_name, email, note, born, activebool, country, balance, rating, status, visits, seen"
    grants = (
        f"INSERT ({columns}), UPDATE ({columns}) ON customer",
        "USAGE ON SEQUENCE customer_customer_id_seq",
        'INSERT, UPDATE ON "Orders", line',
    )
    checked = "visits INTEGER CONSTRAINT visits_are_few CHECK (visits < 1000)"
    url = make_writable(
        request,
        tmp_path,
        grants=grants,
        sqlite=SQLITE.replace("visits INTEGER", checked),
        changes=TRIGGERS,
        sqlite_changes=SQLITE_TRIGGERS,
    )
    async with open_shop(url, tmp_path, shop_registry(), is_shared=True) as opened:
        yield opened


def _row(shop: Shop, statement: str) -> tuple[Any, ...]:
    return shop.rows(statement)[0]


async def _customer(shop: Shop, person: Caller, first_name: str = f"Ada {MARK}") -> dict[str, Any]:
    condition = {"field": "first_name", "op": "eq", "value": first_name}
    (record,) = await shop.inside.value(person, "customer", "list", filter=[condition])
    return record


async def _refusal(shop: Shop, person: Caller, model: str, command: str, **body: object) -> str:
    with pytest.raises(Refused) as caught:
        await shop.inside.value(person, model, command, **body)
    return caught.value.detail


async def _entries(shop: Shop) -> list[tuple[Any, ...]]:
    return await shop.inside.rows(
        "SELECT command, model, record_id, changes FROM audit_entry WHERE model = $1 ORDER BY at, number", "customer"
    )


async def test_an_update_changes_the_row_and_returns_the_record_after_it(shop: Shop) -> None:
    root = shop.inside.administrator()
    record = await _customer(shop, root)

    changed = await shop.inside.value(
        root, "customer", "update", id=record["id"], revision=record["revision"], balance_minor=-7, rating="2.25",
        status="blocked", seen="2026-11-30T06:00:00.123Z", born="2001-02-03", active=False, note="Grüße",
    )  # fmt: skip

    assert changed["revision"] != record["revision"]
    assert changed == await _customer(shop, root)
    names = ("balance", "rating", "seen", "born")
    texts = ", ".join(f"CAST({name} AS text)" for name in names)
    assert _row(shop, f"SELECT {texts}, status, activebool, note, password FROM customer WHERE customer_id = 1") == (
        "-0.07",
        "2.25" if shop.is_sqlite else "2.2500",
        # SQLite keeps the format of the value before.
        "2026-11-30T06:00:00.123Z" if shop.is_sqlite else "2026-11-30 06:00:00.123+00",
        "2001-02-03", 1, False, "Grüße", f"secret {MARK}",
    )  # fmt: skip


async def test_the_audit_entry_has_what_a_trigger_has_changed_and_personal_values_encrypted(shop: Shop) -> None:
    root = shop.inside.administrator()
    record = await _customer(shop, root)

    changed = await shop.inside.value(root, "customer", "update", id=record["id"], visits=8, first_name=f"Eve {MARK}")

    assert changed["visits"] == 9
    assert _row(shop, "SELECT text FROM log") == (f"Eve {MARK}",)
    (entry,) = await _entries(shop)
    changes = msgspec.json.decode(entry[3])
    assert entry[:3] == ("customer.update", "customer", record["id"])
    assert changes["visits"] == [7, 9]
    assert {*changes["first_name"][0]} == {"value", "sealed"}
    assert MARK not in entry[3]


async def test_nothing_is_written_without_its_audit_entry(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    root = shop.inside.administrator()
    record = await _customer(shop, root)

    async def refuse(*_: object) -> None:
        raise RuntimeError("the disk of the audit is gone")

    monkeypatch.setattr(type(shop.inside.service.engine.chain), "append", refuse)
    with pytest.raises(RuntimeError):
        await shop.inside.value(root, "customer", "update", id=record["id"], visits=8)

    assert _row(shop, "SELECT visits FROM customer WHERE customer_id = 1") == (7,)
    assert await _entries(shop) == []


async def test_an_update_with_an_old_revision_is_refused(shop: Shop) -> None:
    root = shop.inside.administrator()
    record = await _customer(shop, root)
    shop.change("UPDATE customer SET balance = 1 WHERE customer_id = 1")

    detail = await _refusal(shop, root, "customer", "update", id=record["id"], revision=record["revision"], visits=8)

    assert detail == "record has changed"
    assert _row(shop, "SELECT visits FROM customer WHERE customer_id = 1") == (7,)


async def test_two_people_who_update_one_revision_do_not_lose_a_change(shop: Shop) -> None:
    root = shop.inside.administrator()
    record = await _customer(shop, root)

    async def update(visits: int) -> str:
        try:
            body = {"id": record["id"], "revision": record["revision"], "visits": visits}
            await shop.inside.value(root, "customer", "update", **body)
        except Refused as refused:
            return refused.detail
        return "updated"

    outcomes = await asyncio.gather(*(update(20 + number) for number in range(8)))

    assert sorted(outcomes) == ["record has changed"] * 7 + ["updated"]
    assert len(await _entries(shop)) == 1


@ON_POSTGRES
async def test_an_update_of_a_row_that_others_have_locked_is_refused_after_a_time(shop: Shop) -> None:
    root = shop.inside.administrator()
    record = await _customer(shop, root)
    name = shop.url.rpartition("/")[2]

    with psycopg.connect(shop.url.replace(f"reader_{name}@", "postgres@")) as connection:
        connection.execute(b"SELECT 1 FROM customer WHERE customer_id = 1 FOR UPDATE")
        detail = await _refusal(shop, root, "customer", "update", id=record["id"], visits=8)

    assert detail == "The connected database cannot be reached now; try again."


@ON_POSTGRES
async def test_an_update_does_not_block_others_who_insert_rows_that_refer_to_the_row(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = shop.inside.administrator()
    record = await _customer(shop, root)
    chain = type(shop.inside.service.engine.chain)
    append = chain.append

    async def insert_order_first(*arguments: Any) -> None:
        # The row is locked now.
        statement = "INSERT INTO \"Orders\" VALUES ('5b0c0b52-3a3e-4a0a-8f0e-000000000009', 1, 'new')"
        await asyncio.to_thread(shop.change, f"SET lock_timeout = 1000; {statement}")
        await append(*arguments)

    monkeypatch.setattr(chain, "append", insert_order_first)
    await shop.inside.value(root, "customer", "update", id=record["id"], visits=8)

    assert _row(shop, 'SELECT count(*) FROM "Orders" WHERE customer_id = 1') == (2,)
    assert _row(shop, "SELECT visits FROM customer WHERE customer_id = 1") == (9,)


@ON_POSTGRES
async def test_statements_on_our_tables_after_an_update_find_our_schema(shop: Shop) -> None:
    root = shop.inside.administrator()
    record = await _customer(shop, root)
    database = shop.inside.service.records.database
    async with database.transaction() as transaction:
        await transaction.fetch_connected(ConnectedSession(("public",)), "SELECT 1 FROM customer")
        path = await transaction.fetch("SHOW search_path")
        timeout = await transaction.fetch("SHOW lock_timeout")
    await shop.inside.value(root, "customer", "update", id=record["id"], visits=8)

    assert [tuple(row) for row in (*path, *timeout)] == [('"records", pg_temp',), ("10s",)]
    assert len(await _entries(shop)) == 1


async def test_people_see_the_history_of_a_record_that_they_have_changed(shop: Shop) -> None:
    root = shop.inside.administrator()
    record = await _customer(shop, root)
    await shop.inside.value(root, "customer", "update", id=record["id"], note="later", visits=8)

    (entry,) = await shop.inside.value(root, "customer", "history", id=record["id"])

    assert entry["changes"] == {"note": [f"calls {MARK}", "later"], "visits": [7, 9]}


async def test_create_returns_the_record_with_the_key_that_the_database_made(shop: Shop) -> None:
    root = shop.inside.administrator()
    (country,) = (each for each in await shop.inside.value(root, "country", "list") if each["title"] == "Austria")

    created = await shop.inside.value(
        root, "customer", "create", first_name="Mia", email="mia@example.com", country=country["id"], visits=1
    )

    assert (created["country"], created["active"], created["status"]) == (country["id"], True, "new")
    assert created == await _customer(shop, root, "Mia")
    assert _row(shop, "SELECT customer_id, country FROM customer WHERE first_name = 'Mia'") == (4, "AT")
    (entry,) = await _entries(shop)
    assert entry[:3] == ("customer.create", "customer", created["id"])


async def test_a_repeated_call_with_a_key_writes_once(shop: Shop) -> None:
    person = await shop.inside.member()
    view = shop.narrowed(person).view.models["customer"]
    outcomes = [
        await shop.inside.service.dispatch.run(
            person, view, "create", {"first_name": "Mia", "visits": 1}, "request", key=KEY
        )
        for _ in range(2)
    ]

    assert [each.is_replayed for each in outcomes] == [False, True]
    assert _row(shop, "SELECT count(*) FROM customer WHERE first_name = 'Mia'") == (1,)


@pytest.mark.parametrize(
    ("fields", "detail"),
    [
        ({"email": f"bob{MARK}@example.com"}, "customer.email must be unique: another record has this value"),
        ({"visits": 5000}, "customer: the rule visits_are_few of the connected database refuses this"),
        ({"balance_minor": 10**15}, "a value is too long or out of range for its column in the connected database"),
        ({"first_name": "x" * 46}, "a value is too long or out of range for its column in the connected database"),
        ({"first_name": None}, "customer.first_name is required"),
        ({"rating": "0.12345"}, "customer.rating must have 4 decimals at most"),
        ({"status": "other"}, "customer.status cannot be set to other: it stands for all other values of the "
            "connected database"),
        ({"country": "0" * 64}, "customer.country must be the id of a country record"),
    ],
)  # fmt: skip
@ON_POSTGRES
async def test_what_the_database_refuses_is_told_in_words_without_its_values(
    shop: Shop, fields: dict[str, object], detail: str
) -> None:
    root = shop.inside.administrator()
    record = await _customer(shop, root)

    with capture_logs() as logs:
        assert await _refusal(shop, root, "customer", "update", id=record["id"], **fields) == detail

    assert "bob" not in str(logs)
    assert await _customer(shop, root) == record
    assert await _entries(shop) == []


async def test_a_field_of_the_key_is_not_changed(shop: Shop) -> None:
    root = shop.inside.administrator()
    line = (await shop.inside.value(root, "line", "list"))[0]

    assert await _refusal(shop, root, "line", "update", id=line["id"], number=9) == (
        "line.number is part of the key of its table and cannot be changed"
    )


@ON_POSTGRES
async def test_a_missing_privilege_names_the_command_that_prints_it(shop: Shop) -> None:
    root = shop.inside.administrator()
    country = (await shop.inside.value(root, "country", "list"))[0]

    detail = await _refusal(shop, root, "country", "update", id=country["id"], title="Elsewhere")

    assert "`countersign connect rights`" in detail
    assert (await shop.http.get("/healthz")).status_code == 200
    assert len(await shop.inside.value(root, "country", "list")) == 2


MASKED = Grant(model="customer", masked="*", commands=("get", "list", "search", "update", "create"))


@dataclass
class Proposer:
    """An agent that calls over HTTP, and the administrator for whom it works."""

    shop: Shop
    person: Caller
    headers: dict[str, str]

    async def call(self, address: str, **body: object) -> httpx.Response:
        """Call an address as the agent."""
        return await self.shop.http.post(f"/api/{address}", json=body, headers=self.headers)

    async def propose(self, **fields: object) -> str:
        """Propose an update of the first customer, and return the id of the plan."""
        record = (await self.call("customer/list", limit=1)).json()["value"][0]
        answer = await self.call("customer/update", id=record["id"], **fields)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["plan_id"])

    async def approve(self, plan_id: str) -> decisions.Decision:
        """Approve a plan as the administrator."""
        service = self.shop.inside.service
        return await decisions.approve(self.shop.inside.run(self.person), service.callers, plan_id)


@pytest.fixture
async def proposer(shop: Shop) -> Proposer:
    """An agent of an administrator. It sees placeholder tokens."""
    person = await shop.inside.member()
    return Proposer(shop, person, {"Authorization": f"Bearer {await shop.token_of(person)}"})


async def test_an_agent_proposes_and_a_person_approves(shop: Shop, proposer: Proposer) -> None:
    plan_id = await proposer.propose(visits=70, status="blocked")

    assert _row(shop, "SELECT visits, status FROM customer WHERE customer_id = 1") == (7, 0)
    approved = await proposer.approve(plan_id)

    assert approved.state == "executed"
    assert _row(shop, "SELECT visits, status FROM customer WHERE customer_id = 1") == (71, 1)
    (entry,) = await _entries(shop)
    assert entry[0] == "customer.update"
    assert MARK not in str(approved.result)


async def test_the_plan_shows_a_person_the_values_and_the_agent_none_of_the_personal_ones(
    shop: Shop, proposer: Proposer
) -> None:
    plan_id = await proposer.propose(visits=70)

    plan = (await proposer.call("plan/get", id=plan_id)).json()["value"]
    seen_by_person = await shop.inside.value(shop.narrowed(proposer.person), "plan", "get", id=plan_id)

    assert [(each["field"], each["before"], each["after"]) for each in plan["diff"]] == [("visits", 7, 70)]
    assert MARK not in str(plan)
    assert seen_by_person["diff"] == plan["diff"]


async def test_a_plan_is_stale_when_others_have_changed_the_row(shop: Shop, proposer: Proposer) -> None:
    plan_id = await proposer.propose(visits=70)
    shop.change("UPDATE customer SET first_name = 'another' WHERE customer_id = 1")

    with pytest.raises(decisions.NotPending, match="stale"):
        await proposer.approve(plan_id)

    assert _row(shop, "SELECT visits FROM customer WHERE customer_id = 1") == (7,)


async def test_a_plan_that_the_database_refuses_fails_and_changes_nothing(shop: Shop, proposer: Proposer) -> None:
    plan_id = await proposer.propose(visits=5000)

    with pytest.raises(decisions.NotPending, match="failed"):
        await proposer.approve(plan_id)
    plan = (await proposer.call("plan/get", id=plan_id)).json()["value"]

    assert plan["state"] == "failed"
    assert _row(shop, "SELECT visits FROM customer WHERE customer_id = 1") == (7,)
    assert await _entries(shop) == []


@ON_POSTGRES
async def test_a_plan_of_several_steps_creates_a_record_and_one_that_refers_to_it(
    shop: Shop, proposer: Proposer
) -> None:
    order = {"customer": (await proposer.call("customer/list", limit=1)).json()["value"][0]["id"], "state": "paid"}
    name = shop.url.rpartition("/")[2]
    with psycopg.connect(shop.url.replace(f"reader_{name}@", "postgres@"), autocommit=True) as connection:
        connection.execute(b'ALTER TABLE "Orders" ALTER COLUMN id SET DEFAULT gen_random_uuid()')

    answer = await proposer.call(
        "plan/propose", why="a new order", steps=[{"command": "order.create", "input": order}]
    )
    await proposer.approve(answer.json()["plan_id"])

    assert _row(shop, """SELECT count(*) FROM "Orders" WHERE customer_id = 1 AND state = 'paid'""") == (1,)


async def test_people_who_see_tokens_have_no_writing_commands(shop: Shop) -> None:
    store = next(iter(shop.inside.service.engine.adopted.values()))
    assert isinstance(store, AdoptedStore)
    person, masked = await shop.inside.member(), await shop.inside.person(MASKED)

    assert {"create", "update"} <= store.narrowed(person).view.models["customer"].commands
    assert not {"create", "update"} & store.narrowed(masked).view.models["customer"].commands


def test_the_module_has_writable_models_only_if_its_tables_say_so() -> None:
    assert all("update" not in each.declared.commands for each in MODULE.models)


AWKWARD = """
CREATE TABLE tenant (tenant int, n int, title text, PRIMARY KEY (tenant, n));
INSERT INTO tenant VALUES (1, 1, 'one'), (1, 2, 'two'), (2, 1, 'other');
CREATE TABLE deal (
    id serial PRIMARY KEY, tenant int, a int, b int, whole numeric(10, 0), second timestamptz(0), day timestamp,
    small smallint, word varchar(5), FOREIGN KEY (tenant, a) REFERENCES tenant,
    FOREIGN KEY (tenant, b) REFERENCES tenant
);
INSERT INTO deal (tenant, a, b, whole, second, day, small, word)
VALUES (1, 1, 2, 5, '2026-01-01T00:00:00Z', '2026-01-02 10:11:12', 1, 'Y');
"""


class Tenant(Model, table=Table("tenant", key=("tenant", "n"), writable=True)):
    """One of two things of a tenant."""

    title = Text()


class Deal(Model, table=Table("deal", key="id", writable=True)):
    """A row with columns that cannot have every value of their fields, and with two refs that share a column."""

    first = Ref("tenant", columns=("tenant", "a"))
    second_ref = Ref("tenant", columns=("tenant", "b"))
    amount_minor = Money(column="whole")
    at = Moment(column="second")
    day = Date()
    small = Bool()
    word = Bool()


@pytest.fixture
async def deals(postgres_cluster: Cluster, postgres_url: str, tmp_path: Path) -> AsyncIterator[Shop]:
    """The service over the table of deals."""
    url = make_postgres(postgres_cluster, postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        name = postgres_url.rpartition("/")[2]
        connection.execute(AWKWARD.encode())
        connection.execute(f"GRANT CREATE ON DATABASE {name} TO reader_{name}".encode())
        connection.execute(f"GRANT SELECT, INSERT, UPDATE ON tenant, deal TO reader_{name}".encode())
    registry = Registry([base_models.MODULE, Module("deals", version="1.0.0", models=(Tenant, Deal))])
    async with open_shop(url, tmp_path, registry, is_shared=True) as opened:
        yield opened


@pytest.mark.parametrize(
    ("fields", "detail"),
    [
        ({"first": None}, None),
        ({"amount_minor": 149}, "deal.amount_minor cannot have exactly this value"),
        ({"at": "2026-01-01T00:00:00.700Z"}, "deal.at cannot have exactly this value"),
        ({"day": "2026-05-06"}, "deal.day cannot be set: its column has a time of day"),
        ({"word": False}, "deal.word cannot be set: its column has texts"),
        ({"small": False, "amount_minor": 100}, None),
    ],
)
async def test_a_value_is_written_exactly_or_refused(deals: Shop, fields: dict[str, Any], detail: str | None) -> None:
    root = deals.inside.administrator()
    deal = (await deals.inside.value(root, "deal", "list"))[0]

    if detail is None:
        changed = await deals.inside.value(root, "deal", "update", id=deal["id"], **fields)
        assert changed == {**deal, **fields, "revision": changed["revision"]}
    else:
        assert (await _refusal(deals, root, "deal", "update", id=deal["id"], **fields)).startswith(detail)
        assert (await deals.inside.value(root, "deal", "list"))[0] == deal


async def test_a_ref_does_not_change_a_column_of_another_ref(deals: Shop) -> None:
    root = deals.inside.administrator()
    deal = (await deals.inside.value(root, "deal", "list"))[0]
    things = {each["title"]: each["id"] for each in await deals.inside.value(root, "tenant", "list")}

    detail = await _refusal(deals, root, "deal", "update", id=deal["id"], first=things["other"])
    both = await deals.inside.value(
        root, "deal", "update", id=deal["id"], first=things["other"], second_ref=things["other"]
    )

    assert detail == "deal.first shares a column with another field, which would change as well"
    assert (both["first"], both["second_ref"]) == (things["other"], things["other"])


@ON_POSTGRES
async def test_settings_that_a_trigger_changes_do_not_stay_on_the_connection(shop: Shop) -> None:
    root = shop.inside.administrator()
    record = await _customer(shop, root)
    shop.change(
        "CREATE OR REPLACE FUNCTION note_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN "
        "PERFORM set_config(''search_path'', ''public'', false); PERFORM set_config(''lock_timeout'', ''1'', false); "
        "RETURN new; END'"
    )
    await shop.inside.value(root, "customer", "update", id=record["id"], visits=8)

    database = shop.inside.service.records.database
    paths = {(await database.fetch("SHOW search_path"))[0][0] for _ in range(20)}
    timeouts = {(await database.fetch("SHOW lock_timeout"))[0][0] for _ in range(20)}

    assert (paths, timeouts) == ({'"records", pg_temp'}, {"10s"})


@ON_POSTGRES
async def test_a_plan_whose_approval_lacks_a_privilege_is_refused_in_words(shop: Shop, proposer: Proposer) -> None:
    plan_id = await proposer.propose(visits=70)
    role = f"reader_{shop.url.rpartition('/')[2]}"
    shop.change(f"REVOKE ALL ON customer FROM {role}")
    shop.change(f"GRANT SELECT ON customer TO {role}")

    with pytest.raises(Refused, match="connect rights"):
        await proposer.approve(plan_id)

    assert _row(shop, "SELECT visits FROM customer WHERE customer_id = 1") == (7,)
