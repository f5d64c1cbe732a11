"""People delete records of tables of others, and agents propose it. A deletion has no effect that it does not name."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import msgspec
import psycopg
import pytest
from structlog.testing import capture_logs

from countersign.declare import Grant, Model, Module, Ref, Table, Text, where
from countersign.declare.registry import Registry
from countersign.kernel.errors import Refused
from countersign.records import base_models
from countersign.records.access.view import Caller
from countersign.records.adopted.store import AdoptedStore
from countersign.records.approvals import decisions, rights
from countersign.records.approvals.proposals import Proposal
from tests.adopted.shop import MARK, MODULE, SQLITE, Shop, make_postgres, make_sqlite, open_shop
from tests.declare.sample_modules import model
from tests.servers.postgres import Cluster

# Purchases go with their customer, visits forget the customer, and lines prevent the deletion of their order.
TABLES = """
ALTER TABLE "Orders" DROP CONSTRAINT "Orders_customer_id_fkey", ADD CONSTRAINT of_customer
    FOREIGN KEY (customer_id) REFERENCES customer ON DELETE CASCADE;
ALTER TABLE line DROP CONSTRAINT line_order_id_fkey, ADD CONSTRAINT of_order
    FOREIGN KEY (order_id) REFERENCES "Orders" ON DELETE CASCADE;
ALTER TABLE customer DROP CONSTRAINT customer_country_fkey, ADD CONSTRAINT of_country
    FOREIGN KEY (country) REFERENCES country ON DELETE SET NULL;
"""
ON_POSTGRES = pytest.mark.parametrize("shop", ["postgres"], indirect=True)
OTHER = Grant(model="customer", clear="*", commands=("get", "list", "delete"))
COLUMNS = "first_name, email, note, born, activebool, country, balance, rating, status, visits, seen"


def _registry(*, deletable: frozenset[str] = frozenset({"country", "customer", "order", "line"})) -> Registry:
    models = [
        model(
            each.__name__,
            each.declared.fields,
            table=replace(each.declared.table, writable=True, deletes=each.declared.name in deletable),
        )
        for each in MODULE.models
        if each.declared.table is not None
    ]
    return Registry(
        [base_models.MODULE, Module("shop", version="1.0.0", models=tuple(models), search_path=("public",))]
    )


def _prepared(cluster: Cluster, url: str) -> str:
    """Create the shop with a role that may write and delete its rows."""
    role_url = make_postgres(cluster, url)
    name = url.rpartition("/")[2]
    role = f"reader_{name}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(TABLES.encode())
        connection.execute(f"GRANT CREATE ON DATABASE {name} TO {role}".encode())
        connection.execute(f"GRANT INSERT ({COLUMNS}), UPDATE ({COLUMNS}), DELETE ON customer TO {role}".encode())
        connection.execute(f'GRANT INSERT, UPDATE, DELETE ON country, "Orders", line TO {role}'.encode())
    return role_url


def _prepared_sqlite(path: Path) -> str:
    """Create the shop with the same foreign keys in a SQLite file."""
    tables = SQLITE
    for plain, action in (
        ("REFERENCES country", "SET NULL"),
        ("REFERENCES customer", "CASCADE"),
        ("order_id TEXT NOT NULL", 'CASCADE'),
    ):
        target = plain if plain.startswith("REFERENCES") else f'{plain} REFERENCES "Orders"'
        tables = tables.replace(plain, f"{target} ON DELETE {action}")
    return make_sqlite(path, tables)


@pytest.fixture(params=["sqlite", "postgres"])
async def shop(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Shop]:
    """The service over a shop whose rows it may delete."""
    if request.param == "sqlite":
        url = _prepared_sqlite(tmp_path / "theirs.sqlite")
    else:
        url = _prepared(request.getfixturevalue("postgres_cluster"), request.getfixturevalue("postgres_url"))
    async with open_shop(url, tmp_path, _registry(), is_shared=True) as opened:
        yield opened


def _counts(shop: Shop) -> dict[str, int]:
    tables = {"country": "country", "customer": "customer", "order": '"Orders"', "line": "line"}
    return {name: shop.rows(f"SELECT count(*) FROM {table}")[0][0] for name, table in tables.items()}


ALL = {"country": 2, "customer": 3, "order": 2, "line": 3}


async def _record(shop: Shop, person: Caller, model: str, **fields: object) -> dict[str, Any]:
    for record in await shop.inside.value(person, model, "list"):
        if all(record[name] == value for name, value in fields.items()):
            return dict(record)
    raise LookupError(fields)


async def _refusal(shop: Shop, person: Caller, model: str, command: str, **body: object) -> str:
    with pytest.raises(Refused) as caught:
        await shop.inside.value(person, model, command, **body)
    return caught.value.detail


async def _entries(shop: Shop) -> list[tuple[str, str, Mapping[str, list[Any]]]]:
    statement = "SELECT command, model, changes FROM audit_entry WHERE model <> 'plan' ORDER BY number"
    rows = await shop.inside.rows(statement)
    return [(row[0], row[1], msgspec.json.decode(row[2])) for row in rows]


async def test_a_person_deletes_a_row_with_an_audit_entry_of_its_values(shop: Shop) -> None:
    root = shop.inside.administrator()
    zoe = await _record(shop, root, "customer", first_name=f"Zoë {MARK}")

    assert await shop.inside.value(root, "customer", "delete", id=zoe["id"], revision=zoe["revision"]) == {
        "id": zoe["id"]
    }

    assert _counts(shop) == {**ALL, "customer": 2}
    ((command, name, changes),) = await _entries(shop)
    assert (command, name, changes["active"], changes["born"]) == (
        "customer.delete", "customer", [1, None], ["2000-02-29", None],
    )  # fmt: skip
    assert {*changes["first_name"][0]} == {"value", "sealed"}
    assert changes["first_name"][1] is None
    assert MARK not in str(changes)


async def test_the_keys_of_personal_values_of_a_deleted_row_alone_are_deleted(shop: Shop) -> None:
    root = shop.inside.administrator()
    zoe = await _record(shop, root, "customer", first_name=f"Zoë {MARK}")
    await shop.inside.value(root, "customer", "update", id=zoe["id"], note=f"other {MARK}")

    await shop.inside.value(root, "customer", "delete", id=zoe["id"])

    changes = [each[2] for each in await _entries(shop)]
    notes = {copy["value"] for each in changes for copy in each["note"] if copy is not None}
    assert len(notes) == 2
    places = ", ".join(map(str, notes))
    assert await shop.inside.rows(f"SELECT id FROM pii_value WHERE id IN ({places})") == []
    # Another customer has the same address, and its field is linked.
    address = changes[-1]["email"][0]["value"]
    assert len(await shop.inside.rows(f"SELECT id FROM pii_value WHERE id = {address}")) == 1


async def test_the_keys_of_values_from_before_a_field_was_renamed_are_deleted(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = shop.inside.administrator()
    zoe = await _record(shop, root, "customer", first_name=f"Zoë {MARK}")
    await shop.inside.value(root, "customer", "update", id=zoe["id"], note=f"other {MARK}")
    ((_, _, changes),) = await _entries(shop)
    async with shop.inside.service.records.database.transaction() as transaction:
        await transaction.run("""UPDATE audit_entry SET changes = replace(changes, '"note":', '"remark":')""")
    monkeypatch.setattr(shop.inside.models["customer"].fields["note"], "former_name", "remark")

    await shop.inside.value(root, "customer", "delete", id=zoe["id"])

    assert await shop.inside.rows(f"SELECT id FROM pii_value WHERE id = {changes['note'][0]['value']}") == []


async def test_the_keys_of_values_that_only_an_ended_plan_has_are_deleted(shop: Shop, agent: "Agent") -> None:
    plan_id = await agent.propose(cascade=True)
    person = shop.narrowed(agent.person)
    shop.change("UPDATE customer SET note = 'later' WHERE customer_id = 1")
    await shop.inside.value(person, "plan", "reject", id=plan_id, reason="no")
    before = await shop.inside.value(person, "plan", "get", id=plan_id)
    ada = await _record(shop, agent.person, "customer", first_name=f"Ada {MARK}")

    await shop.inside.value(agent.person, "customer", "delete", id=ada["id"], cascade=True)

    after = await shop.inside.value(person, "plan", "get", id=plan_id)
    shown = [{each["field"]: each["before"] for each in plan["diff"]} for plan in (before, after)]
    assert [each["note"] for each in shown] == [f"calls {MARK}", "[erased]"]
    # Another customer has the same address, and its field is linked.
    assert [each["email"] for each in shown] == [f"ada{MARK}@example.com"] * 2


@ON_POSTGRES
async def test_a_deletion_is_in_no_deadlock_with_another_application_that_refers_to_the_row(shop: Shop) -> None:
    root = shop.inside.administrator()
    zoe = await _record(shop, root, "customer", first_name=f"Zoë {MARK}")
    name = shop.url.rpartition("/")[2]
    with psycopg.connect(shop.url.replace(f"reader_{name}@", "postgres@")) as connection:
        connection.execute(b"INSERT INTO \"Orders\" VALUES ('5b0c0b52-3a3e-4a0a-8f0e-000000000009', 3, 'new')")
        deletion = asyncio.create_task(shop.inside.value(root, "customer", "delete", id=zoe["id"], cascade=True))
        while not shop.rows("SELECT 1 FROM pg_locks WHERE NOT granted"):
            await asyncio.sleep(0.01)
        await asyncio.to_thread(connection.execute, b"UPDATE customer SET visits = 8 WHERE customer_id = 3")

    assert await deletion == {"id": zoe["id"]}
    assert _counts(shop) == {**ALL, "customer": 2}


async def test_a_row_that_was_deleted_and_inserted_again_has_an_audit_that_can_be_read(shop: Shop) -> None:
    root = shop.inside.administrator()
    zoe = await _record(shop, root, "customer", first_name=f"Zoë {MARK}")
    (row,) = shop.rows("SELECT note FROM customer WHERE customer_id = 3")
    await shop.inside.value(root, "customer", "delete", id=zoe["id"])
    shop.change(f"INSERT INTO customer (customer_id, first_name, note) VALUES (3, 'Zoë', '{row[0]}')")
    await shop.inside.value(root, "customer", "list")

    await shop.inside.value(root, "customer", "update", id=zoe["id"], note="later")

    history = await shop.inside.value(root, "customer", "history", id=zoe["id"])
    (changes,) = (each["changes"] for each in history if each["command"] == "customer.update")
    assert changes == {"note": [f"Äpfel {MARK}", "later"]}


async def test_a_deletion_with_an_old_revision_is_refused(shop: Shop) -> None:
    root = shop.inside.administrator()
    zoe = await _record(shop, root, "customer", first_name=f"Zoë {MARK}")
    shop.change("UPDATE customer SET visits = 1 WHERE customer_id = 3")

    detail = await _refusal(shop, root, "customer", "delete", id=zoe["id"], revision=zoe["revision"])

    assert detail == "record has changed"
    assert _counts(shop) == ALL


async def test_two_people_who_delete_one_record_delete_it_once(shop: Shop) -> None:
    root = shop.inside.administrator()
    zoe = await _record(shop, root, "customer", first_name=f"Zoë {MARK}")

    async def delete() -> str:
        try:
            await shop.inside.value(root, "customer", "delete", id=zoe["id"])
        except Refused as refused:
            return refused.detail
        return "deleted"

    outcomes = await asyncio.gather(*(delete() for _ in range(6)))

    assert sorted(outcomes) == ["deleted"] + ["no such record"] * 5
    assert len(await _entries(shop)) == 1


async def test_nothing_is_deleted_without_its_audit_entry(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    root = shop.inside.administrator()
    ada = await _record(shop, root, "customer", first_name=f"Ada {MARK}")

    async def refuse(*_: object) -> None:
        raise RuntimeError("the disk of the audit is gone")

    monkeypatch.setattr(type(shop.inside.service.engine.chain), "append", refuse)
    with pytest.raises(RuntimeError):
        await shop.inside.value(root, "customer", "delete", id=ada["id"], cascade=True)

    assert _counts(shop) == ALL


async def test_rows_that_the_database_would_delete_prevent_the_deletion_without_cascade(shop: Shop) -> None:
    root = shop.inside.administrator()
    ada = await _record(shop, root, "customer", first_name=f"Ada {MARK}")

    assert await _refusal(shop, root, "customer", "delete", id=ada["id"]) == "another record refers to this one"
    assert _counts(shop) == ALL


async def test_a_cascade_deletes_each_record_with_an_audit_entry_of_its_own(shop: Shop) -> None:
    root = shop.inside.administrator()
    ada = await _record(shop, root, "customer", first_name=f"Ada {MARK}")

    await shop.inside.value(root, "customer", "delete", id=ada["id"], cascade=True)

    assert _counts(shop) == {**ALL, "customer": 2, "order": 1, "line": 1}
    assert [each[:2] for each in await _entries(shop)] == [
        *[("customer.delete", "line")] * 2, ("customer.delete", "order"), ("customer.delete", "customer"),
    ]  # fmt: skip


async def test_a_ref_that_the_database_sets_to_null_is_emptied_with_an_audit_entry(shop: Shop) -> None:
    root = shop.inside.administrator()
    austria = await _record(shop, root, "country", title="Austria")

    await shop.inside.value(root, "country", "delete", id=austria["id"], cascade=True)

    assert shop.rows("SELECT country FROM customer WHERE customer_id = 1") == [(None,)]
    first, last = await _entries(shop)
    assert first == ("country.delete", "customer", {"country": [austria["id"], None]})
    assert last[:2] == ("country.delete", "country")


@ON_POSTGRES
async def test_a_foreign_key_without_an_action_prevents_the_deletion_also_with_cascade(shop: Shop) -> None:
    root = shop.inside.administrator()
    ada = await _record(shop, root, "customer", first_name=f"Ada {MARK}")
    shop.change("ALTER TABLE line DROP CONSTRAINT of_order")
    shop.change('ALTER TABLE line ADD CONSTRAINT of_order FOREIGN KEY (order_id) REFERENCES "Orders"')

    detail = await _refusal(shop, root, "customer", "delete", id=ada["id"], cascade=True)

    assert detail == "another record refers to this one"
    assert _counts(shop) == ALL


@pytest.mark.parametrize("action", ["CASCADE", "SET NULL", "SET DEFAULT"])
async def test_a_table_that_is_not_connected_and_would_lose_rows_prevents_every_deletion(
    shop: Shop, action: str
) -> None:
    root, member = shop.inside.administrator(), await shop.inside.person(OTHER)
    zoe = await _record(shop, root, "customer", first_name=f"Zoë {MARK}")
    shop.change(f"CREATE TABLE visit (customer int REFERENCES customer ON DELETE {action})")

    detail = await _refusal(shop, root, "customer", "delete", id=zoe["id"], cascade=True)
    other = await _refusal(shop, member, "customer", "delete", id=zoe["id"])

    table = "visit" if shop.is_sqlite else "public.visit"
    assert f"rows of the table {table}, which is not connected: declare it in the module text" in detail
    assert "visit" not in other
    assert _counts(shop) == ALL


@ON_POSTGRES
async def test_a_table_that_is_not_connected_and_refers_to_the_row_is_named_to_administrators(shop: Shop) -> None:
    root, member = shop.inside.administrator(), await shop.inside.person(OTHER)
    zoe = await _record(shop, root, "customer", first_name=f"Zoë {MARK}")
    shop.change("CREATE TABLE visit (customer int REFERENCES customer)")
    shop.change("INSERT INTO visit VALUES (3)")

    with capture_logs() as logs:
        detail = await _refusal(shop, root, "customer", "delete", id=zoe["id"])
        other = await _refusal(shop, member, "customer", "delete", id=zoe["id"])

    assert detail == (
        "rows of the table public.visit refer to this record: delete them, or change what they refer to, first"
    )
    assert other == "other rows refer to this record: delete them, or change what they refer to, first"
    assert "visit" not in str(logs)
    assert _counts(shop) == ALL


@ON_POSTGRES
async def test_rows_that_a_policy_hides_are_not_deleted_by_a_cascade(shop: Shop) -> None:
    root = shop.inside.administrator()
    bob = await _record(shop, root, "customer", first_name=f"Bob {MARK}")
    shop.change('ALTER TABLE "Orders" ENABLE ROW LEVEL SECURITY')
    shop.change('CREATE POLICY few ON "Orders" USING (false)')

    detail = await _refusal(shop, root, "customer", "delete", id=bob["id"], cascade=True)

    assert "row-level security" in detail
    assert _counts(shop) == ALL


@pytest.mark.parametrize(
    ("shop", "change"),
    [
        ("sqlite", "CREATE TRIGGER keep BEFORE DELETE ON customer BEGIN SELECT RAISE(IGNORE); END"),
        ("postgres", "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; "
        "CREATE TRIGGER keep BEFORE DELETE ON customer FOR EACH ROW EXECUTE FUNCTION keep()"),
        ("postgres", "ALTER TABLE customer ENABLE ROW LEVEL SECURITY; CREATE POLICY a ON customer FOR SELECT USING "
        "(true); CREATE POLICY b ON customer FOR UPDATE USING (true)"),
    ],
    indirect=["shop"],
)  # fmt: skip
async def test_a_row_that_a_trigger_or_a_policy_keeps_is_not_said_to_be_deleted(shop: Shop, change: str) -> None:
    root = shop.inside.administrator()
    zoe = await _record(shop, root, "customer", first_name=f"Zoë {MARK}")
    shop.change(change)

    detail = await _refusal(shop, root, "customer", "delete", id=zoe["id"])

    assert detail.startswith("the connected database kept the row")
    assert (_counts(shop), await _entries(shop)) == (ALL, [])


async def test_a_row_that_a_trigger_adds_is_not_deleted_unnoticed(shop: Shop) -> None:
    root = shop.inside.administrator()
    ada = await _record(shop, root, "customer", first_name=f"Ada {MARK}")
    shop.change(
        "CREATE TRIGGER again AFTER DELETE ON line WHEN old.number < 10 BEGIN INSERT INTO line VALUES (old.order_id, "
        "old.number + 10, 'again'); END"
        if shop.is_sqlite
        else "CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN INSERT INTO "
        "public.line VALUES (old.order_id, old.number + 10, 'again'); RETURN old; END $$; "
        "CREATE TRIGGER again AFTER DELETE ON line FOR EACH ROW EXECUTE FUNCTION again()"
    )

    detail = await _refusal(shop, root, "customer", "delete", id=ada["id"], cascade=True)

    assert detail.startswith("the connected database kept the row")
    assert (_counts(shop), await _entries(shop)) == (ALL, [])


@ON_POSTGRES
async def test_no_row_that_refers_to_a_row_is_inserted_while_it_is_deleted(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = shop.inside.administrator()
    ada = await _record(shop, root, "customer", first_name=f"Ada {MARK}")
    chain = type(shop.inside.service.engine.chain)
    append, outcomes = chain.append, list[str]()

    async def insert_first(*arguments: Any) -> None:
        statement = "INSERT INTO \"Orders\" VALUES ('5b0c0b52-3a3e-4a0a-8f0e-000000000009', 1, 'new')"
        try:
            await asyncio.to_thread(shop.change, f"SET lock_timeout = 200; {statement}")
        except psycopg.errors.LockNotAvailable:
            outcomes.append("waits")
        await append(*arguments)

    monkeypatch.setattr(chain, "append", insert_first)
    await shop.inside.value(root, "customer", "delete", id=ada["id"], cascade=True)

    assert set(outcomes) == {"waits"}
    assert _counts(shop)["order"] == 1


class Node(Model, table=Table("node", key="id", writable=True, deletes=True)):
    """A row with a row above it."""

    title = Text()
    above = Ref("node", columns="above")


async def test_a_row_is_deleted_that_refers_to_itself_but_not_rows_that_refer_to_each_other(
    postgres_cluster: Cluster, postgres_url: str, tmp_path: Path
) -> None:
    url = _prepared(postgres_cluster, postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            b"CREATE TABLE node (id int PRIMARY KEY, title text, above int REFERENCES node ON DELETE CASCADE); "
            b"INSERT INTO node VALUES (1, 'self', 1), (3, 'b', NULL), (2, 'a', 3), (4, 'leaf', 1); "
            b"UPDATE node SET above = 2 WHERE id = 3"
        )
        connection.execute(f"GRANT ALL ON node TO reader_{postgres_url.rpartition('/')[2]}".encode())
    registry = Registry([base_models.MODULE, Module("nodes", version="1.0.0", models=(Node,))])
    async with open_shop(url, tmp_path, registry, is_shared=True) as shop:
        root = shop.inside.administrator()
        own, circular = [await _record(shop, root, "node", title=each) for each in ("self", "a")]

        blocked = await _refusal(shop, root, "node", "delete", id=own["id"])
        await shop.inside.value(root, "node", "delete", id=own["id"], cascade=True)
        detail = await _refusal(shop, root, "node", "delete", id=circular["id"], cascade=True)

        assert blocked == "another record refers to this one"
        assert "in a circle" in detail
        assert shop.rows("SELECT id FROM node ORDER BY id") == [(2,), (3,)]


class Parcel(Model, table=Table("parcel", key=("tenant", "number"), writable=True, deletes=True)):
    """A parcel, whose key contains its tenant."""

    title = Text()


class Stop(Model, table=Table("stop", key="id", writable=True, deletes=True)):
    """A stop of a parcel."""

    title = Text()
    parcel = Ref("parcel", columns=("tenant", "parcel_number"))


class Scan(Model, table=Table("scan", key="id")):
    """A scan of a parcel, which is only read and has no foreign key."""

    title = Text()
    parcel = Ref("parcel", columns=("tenant", "parcel_number"), on_delete="cascade")


@pytest.mark.parametrize("kept", ["stop", "scan"])
async def test_a_deletion_does_nothing_that_neither_the_foreign_key_nor_the_module_text_allows(
    postgres_cluster: Cluster, postgres_url: str, tmp_path: Path, kept: str
) -> None:
    url = _prepared(postgres_cluster, postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            b"CREATE TABLE parcel (tenant int, number int, title text, PRIMARY KEY (tenant, number)); "
            b"CREATE TABLE stop (id int, title text, tenant int, parcel_number int, "
            b"FOREIGN KEY (tenant, parcel_number) REFERENCES parcel ON DELETE SET NULL (parcel_number)); "
            b"CREATE TABLE scan (id int, title text, tenant int, parcel_number int); INSERT INTO parcel VALUES (1, 2)"
        )
        connection.execute(f"INSERT INTO {kept} VALUES (1, 'a', 1, 2)".encode())
        connection.execute(f"GRANT ALL ON parcel, stop, scan TO reader_{postgres_url.rpartition('/')[2]}".encode())
    registry = Registry([base_models.MODULE, Module("parcels", version="1.0.0", models=(Parcel, Stop, Scan))])
    async with open_shop(url, tmp_path, registry, is_shared=True) as shop:
        root = shop.inside.administrator()
        parcel = await _record(shop, root, "parcel")

        detail = await _refusal(shop, root, "parcel", "delete", id=parcel["id"], cascade=True)

        assert detail == "another record refers to this one"
        assert shop.rows(f"SELECT tenant, parcel_number FROM {kept}") == [(1, 2)]


@pytest.mark.parametrize("deletable", [frozenset({"customer"}), frozenset({"customer", "line"})])
async def test_records_of_a_model_that_cannot_be_deleted_prevent_a_cascade(
    postgres_cluster: Cluster, postgres_url: str, tmp_path: Path, deletable: frozenset[str]
) -> None:
    url = _prepared(postgres_cluster, postgres_url)
    async with open_shop(url, tmp_path, _registry(deletable=deletable), is_shared=True) as shop:
        root = shop.inside.administrator()
        ada = await _record(shop, root, "customer", first_name=f"Ada {MARK}")

        detail = await _refusal(shop, root, "customer", "delete", id=ada["id"], cascade=True)

        assert detail == "another record refers to this one"
        assert "delete" not in shop.inside.models["order"].commands
        assert _counts(shop) == ALL


@ON_POSTGRES
async def test_a_missing_privilege_names_the_command_that_prints_it(shop: Shop) -> None:
    root = shop.inside.administrator()
    zoe = await _record(shop, root, "customer", first_name=f"Zoë {MARK}")
    shop.change(f"REVOKE DELETE ON customer FROM reader_{shop.url.rpartition('/')[2]}")

    assert "`countersign connect rights`" in await _refusal(shop, root, "customer", "delete", id=zoe["id"])


async def test_a_cascade_deletes_no_record_that_the_person_may_not_delete(shop: Shop) -> None:
    owner = await shop.inside.member()
    person = await shop.inside.person(
        Grant(model="customer", clear="*", commands="*"),
        Grant(model="order", clear="*", commands=("get", "list")),
        Grant(model="order", clear="*", commands=("delete",), rows=(where("state", eq="paid"),)),
        Grant(model="line", clear="*", commands="*"),
        user_id=owner.user_id,
    )
    ada = await _record(shop, person, "customer", first_name=f"Ada {MARK}")

    outcome = await shop.inside.service.dispatch.run(
        person, person.view.models["customer"], "delete", {"id": ada["id"], "cascade": True}, "request"
    )

    assert isinstance(outcome.value, Proposal)
    assert _counts(shop) == ALL


@ON_POSTGRES
async def test_a_cascade_locks_the_records_before_it_checks_the_rights_to_them(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = await shop.inside.person(Grant(model="customer", clear="*", commands="*"))
    zoe = await _record(shop, person, "customer", first_name=f"Zoë {MARK}")
    missing_right, outcomes = rights.missing_cascade_right, list[str]()

    async def insert_after(*arguments: Any, **options: Any) -> str | None:
        right = await missing_right(*arguments, **options)
        statement = "INSERT INTO \"Orders\" VALUES ('5b0c0b52-3a3e-4a0a-8f0e-000000000009', 3, 'new')"
        try:
            await asyncio.to_thread(shop.change, f"SET lock_timeout = 200; {statement}")
        except psycopg.errors.LockNotAvailable:
            outcomes.append("waits")
        return right

    monkeypatch.setattr(rights, "missing_cascade_right", insert_after)
    await shop.inside.value(person, "customer", "delete", id=zoe["id"], cascade=True)

    assert outcomes == ["waits"]
    assert _counts(shop) == {**ALL, "customer": 2}


class Agent:
    """An agent of an administrator, which sees placeholder tokens, and calls over HTTP."""

    def __init__(self, shop: Shop, person: Caller, token: str) -> None:
        self.shop = shop
        self.person = person
        self._headers = {"Authorization": f"Bearer {token}"}

    async def call(self, address: str, **body: object) -> httpx.Response:
        """Call an address as the agent."""
        return await self.shop.http.post(f"/api/{address}", json=body, headers=self._headers)

    async def propose(self, **body: object) -> str:
        """Propose to delete the first customer, and return the id of the plan."""
        record = (await self.call("customer/list", limit=1)).json()["value"][0]
        answer = await self.call("customer/delete", id=record["id"], **body)
        assert answer.status_code == 202, answer.text
        return msgspec.convert(answer.json(), Proposal, strict=False).plan_id

    async def approve(self, plan_id: str) -> decisions.Decision:
        """Approve a plan as the administrator."""
        service = self.shop.inside.service
        return await decisions.approve(self.shop.inside.run(self.person), service.callers, plan_id)


@pytest.fixture
async def agent(shop: Shop) -> Agent:
    """An agent of an administrator."""
    person = await shop.inside.member()
    return Agent(shop, person, await shop.token_of(person))


async def test_an_agent_proposes_a_deletion_and_the_plan_says_what_else_goes(shop: Shop, agent: Agent) -> None:
    plan_id = await agent.propose(cascade=True)
    assert _counts(shop) == ALL

    plan = (await agent.call("plan/get", id=plan_id)).json()["value"]
    for_person = await shop.inside.value(shop.narrowed(agent.person), "plan", "get", id=plan_id)
    approved = await agent.approve(plan_id)

    assert plan["effects"] == ["1 order deleted", "2 lines deleted"]
    assert for_person["effects"] == plan["effects"]
    assert MARK not in str(plan)
    shown = {each["field"]: each["before"] for each in for_person["diff"]}
    assert (shown["first_name"], shown["visits"]) == (f"Ada {MARK}", 7)
    assert approved.state == "executed"
    assert _counts(shop) == {**ALL, "customer": 2, "order": 1, "line": 1}


async def test_a_plan_names_the_triggers_that_run_and_no_others(shop: Shop, agent: Agent) -> None:
    in_sqlite = (
        "CREATE TRIGGER on_delete BEFORE DELETE ON customer BEGIN SELECT 1; END; "
        "CREATE TRIGGER on_all AFTER DELETE ON line BEGIN SELECT 1; END; "
        "CREATE TRIGGER second AFTER DELETE ON line BEGIN SELECT 1; END; "
        "CREATE TRIGGER on_update AFTER UPDATE ON customer BEGIN SELECT 1; END"
    )
    shop.change(
        in_sqlite
        if shop.is_sqlite
        else "CREATE FUNCTION idle() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN old; END'; "
        "CREATE TRIGGER on_delete BEFORE DELETE ON customer FOR EACH ROW EXECUTE FUNCTION idle(); "
        "CREATE TRIGGER on_all AFTER INSERT OR DELETE ON line FOR EACH ROW EXECUTE FUNCTION idle(); "
        "CREATE TRIGGER second AFTER DELETE ON line FOR EACH STATEMENT EXECUTE FUNCTION idle(); "
        "CREATE TRIGGER on_update AFTER UPDATE ON customer FOR EACH ROW EXECUTE FUNCTION idle(); "
        "CREATE TRIGGER off AFTER DELETE ON customer FOR EACH ROW EXECUTE FUNCTION idle(); "
        "ALTER TABLE customer DISABLE TRIGGER off"
    )
    plan_id = await agent.propose(cascade=True)

    for_agent = (await agent.call("plan/get", id=plan_id)).json()["value"]
    for_person = await shop.inside.value(shop.narrowed(agent.person), "plan", "get", id=plan_id)

    assert for_person["effects"][2:] == [
        "the database itself does more: 1 trigger of customer (on_delete)",
        "the database itself does more: 2 triggers of line (on_all, second)",
    ]
    assert for_agent["effects"][2:] == [
        "the database itself does more: 1 trigger of customer",
        "the database itself does more: 2 triggers of line",
    ]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE customer SET note = 'other' WHERE customer_id = 1",
        "UPDATE line SET title = 'Coffee' WHERE number = 2",
        "INSERT INTO \"Orders\" VALUES ('5b0c0b52-3a3e-4a0a-8f0e-000000000009', 1, 'new')",
        "DELETE FROM line WHERE number = 2",
    ],
)
async def test_a_plan_is_stale_when_a_row_that_would_go_has_changed(shop: Shop, agent: Agent, change: str) -> None:
    plan_id = await agent.propose(cascade=True)
    shop.change(change)
    counts = _counts(shop)

    with pytest.raises(decisions.NotPending, match="stale"):
        await agent.approve(plan_id)

    assert _counts(shop) == counts


async def test_people_who_see_tokens_have_no_delete_command(shop: Shop) -> None:
    store = shop.inside.service.engine.adopted["customer"]
    assert isinstance(store, AdoptedStore)
    masked = await shop.inside.person(Grant(model="customer", masked="*", commands=("get", "list", "delete")))

    assert "delete" in store.narrowed(await shop.inside.person(OTHER)).view.models["customer"].commands
    assert "delete" not in store.narrowed(masked).view.models["customer"].commands
