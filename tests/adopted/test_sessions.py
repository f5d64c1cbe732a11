"""Row-level security policies of a database of others see the person who calls, in each statement and in no other."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from countersign.declare import DeclarationError, Grant
from countersign.kernel import clock
from countersign.kernel.database.open import open_database, open_existing
from countersign.kernel.database.port import ConnectedSession
from countersign.kernel.errors import InvalidRequest, Refused
from countersign.kernel.security.encryption import MemoryCipher
from countersign.records.access.view import Caller
from countersign.records.adopted import store
from countersign.records.approvals import decisions, rights
from countersign.records.approvals.proposals import Proposal
from countersign.records.audit.chain import ChainEntry
from countersign.records.commands import audit_history, comments
from countersign.records.commands.errors import BadInput
from countersign.records.dispatch import require_command
from tests.adopted.shop import MARK, Shop, make_postgres, make_sqlite, open_shop
from tests.adopted.test_token_attacks import is_unknown, resolve
from tests.adopted.writable import shop_registry
from tests.servers.postgres import Cluster

SESSION = {"app.tenant": "user.tenant", "app.account": "user.external_id"}
POLICIES = """
ALTER TABLE customer ADD COLUMN tenant integer NOT NULL DEFAULT current_setting('app.tenant')::integer;
ALTER TABLE customer ADD COLUMN account text DEFAULT current_setting('app.account');
ALTER TABLE customer ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON customer USING (tenant = current_setting('app.tenant')::integer);
"""
SHOWN = "SELECT coalesce(pg_catalog.current_setting('app.tenant', true), '')"


@pytest.fixture(params=["own tables in a file", "own tables in the same database"])
async def shop(
    request: pytest.FixtureRequest,
    postgres_cluster: Cluster,
    postgres_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Shop]:
    """The service over a shop of two tenants, which reads over one connection."""
    monkeypatch.setattr(store, "MAX_STATEMENTS", 1)
    url = make_postgres(postgres_cluster, postgres_url)
    name = postgres_url.rpartition("/")[2]
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(b"SET app.tenant = '1'; SET app.account = 'a'")
        connection.execute(POLICIES.encode())
        connection.execute(b"UPDATE customer SET tenant = 2 WHERE customer_id = 3")
        connection.execute(b"SELECT setval('customer_customer_id_seq', 3)")
        connection.execute(f"GRANT CREATE ON DATABASE {name} TO reader_{name}".encode())
        connection.execute(f"GRANT INSERT (first_name, visits), UPDATE (visits) ON customer TO reader_{name}".encode())
        connection.execute(f"GRANT USAGE ON SEQUENCE customer_customer_id_seq TO reader_{name}".encode())
    is_shared = request.param == "own tables in the same database"
    registry = shop_registry(is_writable=is_shared, session=SESSION)
    async with open_shop(url, tmp_path, registry, is_shared=is_shared) as opened:
        yield opened


def _of_tenant(shop: Shop, tenant: int) -> Caller:
    return replace(shop.inside.administrator(str(tenant) * 24), tenant=str(tenant), external_id=f"account {tenant}")


async def _names(shop: Shop, caller: Caller, **body: object) -> list[str]:
    return sorted(record["first_name"] for record in await shop.inside.value(caller, "customer", "list", **body))


NORTH, SOUTH = [f"Ada {MARK}", f"Bob {MARK}"], [f"Zoë {MARK}"]


async def test_each_caller_reads_the_rows_of_its_tenant(shop: Shop) -> None:
    north, south = _of_tenant(shop, 1), _of_tenant(shop, 2)

    assert await _names(shop, north) == NORTH
    assert await _names(shop, south) == SOUTH
    assert await shop.inside.value(south, "customer", "count_by", field="active") == [{"value": True, "count": 1}]
    condition = {"field": "first_name", "op": "contains", "value": "o"}
    assert await _names(shop, south, filter=[condition]) == SOUTH
    (zoe,) = await shop.inside.value(south, "customer", "list")
    with pytest.raises(Refused, match="no such record"):
        await shop.inside.value(north, "customer", "get", id=zoe["id"])


async def test_concurrent_callers_on_one_connection_do_not_see_rows_of_each_other(shop: Shop) -> None:
    callers = [_of_tenant(shop, 1), _of_tenant(shop, 2)] * 12

    names = await asyncio.gather(*(_names(shop, caller) for caller in callers))

    assert names == [NORTH, SOUTH] * 12


async def test_a_refused_statement_leaves_no_value_to_the_next_caller(shop: Shop) -> None:
    broken = replace(_of_tenant(shop, 1), tenant="no number")

    with pytest.raises(Refused):
        await _names(shop, broken)

    assert await _names(shop, _of_tenant(shop, 2)) == SOUTH


@pytest.mark.parametrize("shop", ["own tables in the same database"], indirect=True)
async def test_writes_have_the_values_of_the_caller(shop: Shop) -> None:
    north, south = _of_tenant(shop, 1), _of_tenant(shop, 2)
    (zoe,) = await shop.inside.value(south, "customer", "list")

    await asyncio.gather(
        *(shop.inside.value(each, "customer", "create", first_name=f"Mia {each.tenant}") for each in (north, south) * 4)
    )
    with pytest.raises(Refused, match="no such record"):
        await shop.inside.value(north, "customer", "update", id=zoe["id"], visits=1)

    assert (await shop.inside.value(south, "customer", "update", id=zoe["id"], visits=1))["visits"] == 1
    created = "SELECT DISTINCT first_name, tenant, account FROM customer WHERE customer_id > 3 ORDER BY 2"
    assert _rows(shop, created) == [("Mia 1", 1, "account 1"), ("Mia 2", 2, "account 2")]


@pytest.mark.parametrize("shop", ["own tables in the same database"], indirect=True)
async def test_what_is_kept_about_rows_that_a_policy_hides_is_hidden(shop: Shop) -> None:
    north, south = await _person(shop, 1), await _person(shop, 2)
    (zoe,) = await shop.inside.value(south, "customer", "list")
    await shop.inside.value(south, "customer", "update", id=zoe["id"], visits=41)
    about = {"model": "customer", "record": zoe["id"]}
    with pytest.raises(BadInput, match="are for people who see all its records"):
        await shop.inside.value(south, "comment", "create", **about, text="calls back")
    member, _ = await _proposed(shop, zoe["id"])
    member = _narrowed(shop, replace(member, tenant="2", external_id="account 2"))
    await shop.inside.value(member, "comment", "create", **about, text="calls back")

    entries = await shop.inside.value(north, "audit_entry", "list")
    assert [each["command"] for each in entries] == ["user.create"]
    assert await shop.inside.value(north, "comment", "list") == []
    assert await shop.inside.value(north, "plan", "list") == []
    (change,) = await shop.inside.value(south, "customer", "history", id=zoe["id"])
    assert change["changes"] == {"visits": [None, 41]}
    admin = _narrowed(shop, _of_tenant(shop, 1))
    entries = await shop.inside.value(admin, "audit_entry", "list")
    assert "customer.update" in [each["command"] for each in entries]


@pytest.mark.parametrize("shop", ["own tables in the same database"], indirect=True)
async def test_a_plan_about_a_row_that_a_policy_hides_from_the_approver_stays_pending(shop: Shop) -> None:
    inside = shop.inside
    (zoe,) = await inside.value(_of_tenant(shop, 2), "customer", "list")
    member, plan_id = await _proposed(shop, zoe["id"])
    north = inside.run(replace(member, tenant="1", external_id="account 1"))
    south = inside.run(replace(member, tenant="2", external_id="account 2"))

    with pytest.raises(BadInput, match="hides this customer from you"):
        await decisions.approve(north, inside.service.callers, plan_id)

    assert (await decisions.approve(south, inside.service.callers, plan_id)).state == "executed"


async def _proposed(shop: Shop, record_id: str) -> tuple[Caller, str]:
    """Let an agent of an administrator of the second tenant propose an update. Return the person and the plan's id."""
    inside = shop.inside
    member = await inside.member()
    await inside.value(inside.administrator(), "user", "update", id=member.user_id, tenant="2", external_id="account 2")
    agent = await inside.caller_of(await inside.issue_agent_token(member))
    view = require_command(agent, "customer", "update")
    outcome = await inside.service.dispatch.run(agent, view, "update", {"id": record_id, "visits": 42}, "request")
    assert isinstance(outcome.value, Proposal)
    return member, outcome.value.plan_id


async def _person(shop: Shop, tenant: int) -> Caller:
    models = ("customer", "audit_entry", "comment", "plan")
    grants = [Grant(model=name, commands="*", clear="*", write="*") for name in models]
    names = {"username": f"person{tenant}", "name": f"Person {tenant}"}
    user = await shop.inside.value(shop.inside.administrator(), "user", "create", **names)
    person = await shop.inside.person(*grants, user_id=user["id"])
    return _narrowed(shop, replace(person, tenant=str(tenant), external_id=f"account {tenant}"))


def _narrowed(shop: Shop, caller: Caller) -> Caller:
    """Return the caller as authentication would return it."""
    engine = shop.inside.service.engine
    adopted = engine.adopted["customer"]
    assert isinstance(adopted, store.AdoptedStore)
    caller = comments.with_comments(adopted.narrowed(caller), engine.dialect)
    return audit_history.with_audit(rights.with_plans(caller, engine.dialect), engine.dialect)


def _rows(shop: Shop, statement: str) -> list[tuple[Any, ...]]:
    name = shop.url.rpartition("/")[2]
    with psycopg.connect(shop.url.replace(f"reader_{name}@", "postgres@")) as connection:
        return connection.execute(statement.encode()).fetchall()


async def test_a_person_without_a_value_is_refused_until_an_administrator_sets_it(shop: Shop) -> None:
    person = await shop.inside.member()
    headers = {"Authorization": f"Bearer {await shop.token_of(person)}"}

    async def customers() -> tuple[int, Any]:
        answer = await shop.http.post("/api/customer/list", json={}, headers=headers)
        return answer.status_code, answer.json()

    async def set_values(**values: str | None) -> None:
        await shop.inside.value(shop.inside.administrator(), "user", "update", id=person.user_id, **values)

    missing = "the policies of the connected database need {}, which is empty: an administrator sets it for ada"
    assert await customers() == (400, {"error": missing.format("user.tenant and user.external_id")})
    await set_values(tenant="2")
    assert await customers() == (400, {"error": missing.format("user.external_id")})
    assert (await shop.http.post("/api/user/list", json={}, headers=headers)).status_code == 200

    await set_values(external_id="account 2")
    status, answer = await customers()
    assert status == 200
    assert len(answer["value"]) == 1

    await set_values(tenant=None)
    assert (await customers())[0] == 400


async def test_values_are_gone_after_each_statement(postgres_url: str) -> None:
    """Read with one connection, so that each statement follows another on it."""
    existing = await open_existing(postgres_url, pool=1, read_deadline_s=5.0, new_cipher=MemoryCipher)
    odd = "o'B\\rien\" $1 \u2028"
    try:
        assert await existing.scan(SHOWN, settings={"app.tenant": odd}) == [(odd,)]
        assert await existing.scan(SHOWN) == [("",)]
        async with aclosing(existing.stream(SHOWN, settings={"app.tenant": "2"})) as batches:
            assert [row async for batch in batches for row in batch] == [("2",)]
        assert await existing.scan(SHOWN) == [("",)]
        with pytest.raises(InvalidRequest):
            await existing.scan("SELECT 'x'::integer", settings={"app.tenant": "3"})
        assert await existing.scan(SHOWN) == [("",)]
    finally:
        await existing.close()


async def test_our_own_statements_of_a_write_and_the_next_transaction_do_not_have_the_values(postgres_url: str) -> None:
    database = await open_database(postgres_url, schema="records", pool=1)
    session = ConnectedSession(("public",), {"app.tenant": "1"})
    try:
        async with database.transaction() as transaction:
            assert await transaction.fetch_connected(session, SHOWN) == [("1",)]
            assert await transaction.fetch(SHOWN) == [("",)]
        with suppress(ZeroDivisionError):
            async with database.transaction() as transaction:
                await transaction.fetch_connected(session, SHOWN)
                raise ZeroDivisionError
        async with database.transaction() as transaction:
            assert await transaction.fetch_connected(ConnectedSession(("public",)), SHOWN) == [("",)]
    finally:
        await database.close()


async def test_a_transaction_that_has_locks_of_others_ends_soon_if_this_process_stops(postgres_url: str) -> None:
    database = await open_database(postgres_url, schema="records", pool=1)
    shown = "SELECT pg_catalog.current_setting('idle_in_transaction_session_timeout')"
    try:
        async with database.transaction() as transaction:
            await transaction.fetch_connected(ConnectedSession(("public",)), "SELECT 1")
            assert await transaction.fetch(shown) == [("15s",)]
        async with database.transaction() as transaction:
            assert await transaction.fetch(shown) == [("1min",)]
    finally:
        await database.close()


async def test_a_sqlite_file_has_no_session(tmp_path: Path) -> None:
    registry = shop_registry(is_writable=False, session=SESSION)

    with pytest.raises(DeclarationError, match="take session out"):
        async with open_shop(make_sqlite(tmp_path / "theirs.sqlite"), tmp_path, registry):
            raise AssertionError


async def test_a_token_of_a_row_that_a_policy_hides_now_is_unknown(shop: Shop) -> None:
    agent = await shop.inside.agent("scout", user_id="1" * 24)
    north, south = [replace(agent, tenant=each, external_id="a") for each in ("1", "2")]
    bob = (await shop.inside.value(north, "customer", "list"))[1]
    assert await resolve(shop, north, bob["email"]) == f"bob{MARK}@example.com"

    assert await is_unknown(shop, south, bob["email"])
    shop.change("UPDATE customer SET tenant = 2 WHERE customer_id = 2")
    assert await is_unknown(shop, north, bob["email"])


@pytest.mark.parametrize("shop", ["own tables in the same database"], indirect=True)
async def test_values_are_kept_if_the_person_who_wrote_them_is_deleted(shop: Shop) -> None:
    north = _of_tenant(shop, 1)
    await shop.inside.value(north, "customer", "create", first_name="Mia")
    values = await shop.inside.rows("SELECT id FROM pii_value")
    sweep = shop.inside.service.value_sweep
    assert sweep is not None

    await sweep.run(1)
    await sweep.run(40)

    assert values
    assert await shop.inside.rows("SELECT id FROM pii_value") == values


@pytest.mark.parametrize("shop", ["own tables in the same database"], indirect=True)
async def test_a_value_of_a_person_that_a_policy_refuses_does_not_stop_the_erasure_of_others(shop: Shop) -> None:
    inside = shop.inside
    member = await inside.member()
    root = inside.administrator()
    north = replace(member, tenant="1", external_id="a")
    await inside.value(root, "user", "update", id=member.user_id, tenant="1", external_id="a")
    await inside.value(north, "customer", "create", first_name="Mia")
    await inside.value(root, "user", "update", id=member.user_id, tenant="no number")
    sweep = inside.service.value_sweep
    assert sweep is not None

    await sweep.run(1)

    assert await inside.rows("SELECT id FROM pii_value WHERE gone_day IS NOT NULL") == []


async def _mia_by_a_member(shop: Shop) -> Caller:
    """Let a person of the first tenant create a customer, and return the person."""
    person = await shop.inside.member()
    root = shop.inside.administrator()
    await shop.inside.value(root, "user", "update", id=person.user_id, tenant="1", external_id="a")
    north = replace(person, tenant="1", external_id="a")
    await shop.inside.value(north, "customer", "create", first_name="Mia")
    return north


async def _gone_labels(shop: Shop) -> list[tuple[str]]:
    assert shop.inside.service.value_sweep is not None
    await shop.inside.service.value_sweep.run(1)
    return await shop.inside.rows("SELECT label FROM pii_value WHERE gone_day IS NOT NULL")


@pytest.mark.parametrize("shop", ["own tables in the same database"], indirect=True)
async def test_values_are_kept_if_the_person_who_wrote_them_moves_to_another_tenant(shop: Shop) -> None:
    north = await _mia_by_a_member(shop)

    await shop.inside.value(shop.inside.administrator(), "user", "update", id=north.user_id, tenant="2")

    assert await _gone_labels(shop) == []


@pytest.mark.parametrize("shop", ["own tables in the same database"], indirect=True)
async def test_a_value_that_a_visible_record_no_longer_has_is_gone(shop: Shop) -> None:
    await _mia_by_a_member(shop)

    shop.change("UPDATE customer SET first_name = 'Zed' WHERE first_name = 'Mia'")

    assert await _gone_labels(shop) == [("PERSON",)]


@pytest.mark.parametrize("shop", ["own tables in the same database"], indirect=True)
async def test_a_value_is_gone_if_the_database_has_recorded_that_its_row_was_deleted(shop: Shop) -> None:
    await _mia_by_a_member(shop)
    ((record_id,),) = await shop.inside.rows("SELECT record_id FROM audit_entry WHERE command = 'customer.create'")
    shop.change("DELETE FROM customer WHERE first_name = 'Mia'")
    before = await _gone_labels(shop)

    entry = ChainEntry(
        at=clock.later(clock.now(), seconds=1),
        user_id="role:shop",
        agent_token=None,
        agent=None,
        command="outside.delete",
        model="customer",
        record_id=record_id,
        fields="",
        changes="{}",
        plan_id=None,
        request_id="",
    )
    async with shop.inside.service.records.database.transaction() as transaction:
        await shop.inside.service.engine.chain.append(transaction, entry)

    assert before == []
    assert await _gone_labels(shop) == [("PERSON",)]
