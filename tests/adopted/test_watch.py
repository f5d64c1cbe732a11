"""Triggers of the connected database record what other applications change, and each change has one audit entry."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from countersign.connect import rights, watch
from countersign.declare import Grant
from countersign.kernel.database import postgres_watch
from countersign.records.adopted.watch import OutsideChangeReader
from countersign.records.commands import audit_history, limits, outside_changes
from countersign.records.commands.errors import BadInput
from tests.adopted.shop import MARK, Shop, make_postgres, open_shop
from tests.adopted.writable import shop_registry
from tests.servers.countersign import SOURCE, environment
from tests.servers.postgres import Cluster

REGISTRY = shop_registry()
MODELS = [each for each in REGISTRY.models.values() if each.table is not None]
ENTRIES = """
SELECT command, model, record_id IS NOT NULL, user_id, fields
FROM audit_entry WHERE command LIKE 'outside.%' AND command NOT LIKE '%watched' ORDER BY at, number
"""
WATCH_ENTRIES = """
SELECT command, model FROM audit_entry WHERE command LIKE 'outside.%watched' ORDER BY model, at, number
"""
ALL_FIELDS = ",".join(REGISTRY.models["customer"].fields)


@pytest.fixture
async def shop(postgres_cluster: Cluster, postgres_url: str, tmp_path: Path) -> AsyncIterator[Shop]:
    """The service over a shop whose database records what others change."""
    url = make_postgres(postgres_cluster, postgres_url)
    name = postgres_url.rpartition("/")[2]
    role = f"reader_{name}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"GRANT CREATE ON DATABASE {name} TO {role}".encode())
        connection.execute(f'GRANT INSERT, UPDATE, DELETE ON customer, "Orders", line TO {role}'.encode())
        connection.execute(f"GRANT USAGE ON SEQUENCE customer_customer_id_seq TO {role}".encode())
        connection.execute(b"SELECT setval('customer_customer_id_seq', 10)")
    postgres_cluster.sql(watch.script(MODELS, role, "shop.py"), database=name)
    async with open_shop(url, tmp_path, REGISTRY, is_shared=True) as opened:
        yield opened


def _reader(shop: Shop) -> OutsideChangeReader:
    reader = shop.inside.service.outside_changes
    assert reader is not None
    return reader


def _database(shop: Shop) -> str:
    return shop.url.rpartition("/")[2]


def _as(shop: Shop, role: str) -> str:
    return shop.url.replace(f"reader_{_database(shop)}@", f"{role}@")


def _connect(shop: Shop, role: str = "postgres", **options: Any) -> psycopg.Connection[tuple[Any, ...]]:
    return psycopg.connect(_as(shop, role), autocommit=True, application_name="their app", **options)


def _run(shop: Shop, *statements: str) -> None:
    with _connect(shop) as connection:
        for statement in statements:
            connection.execute(statement.encode())


async def _entries(shop: Shop) -> list[tuple[Any, ...]]:
    await _reader(shop).read()
    return await shop.inside.rows(ENTRIES)


async def _customer(shop: Shop) -> str:
    records = await shop.inside.value(shop.inside.administrator(), "customer", "list")
    return next(each["id"] for each in records if each["first_name"] == f"Zoë {MARK}")


async def test_each_changed_row_has_an_entry_with_the_role_and_the_fields(shop: Shop) -> None:
    _run(
        shop,
        "UPDATE customer SET visits = 3, note = 'other', password = 'secret' WHERE customer_id = 3",
        "UPDATE customer SET password = 'hidden', visits = visits",
        "INSERT INTO customer (customer_id, first_name) VALUES (4, 'Mia')",
        "INSERT INTO customer (customer_id, first_name) VALUES (4, 'Max') ON CONFLICT (customer_id) DO UPDATE "
        "SET activebool = false, first_name = 'Max'",
        "DELETE FROM customer WHERE customer_id = 4",
        "UPDATE customer SET customer_id = 5 WHERE customer_id = 3",
    )

    entries = await _entries(shop)

    changes = [(command.removeprefix("outside."), fields) for command, _, _, _, fields in entries]
    assert sorted(changes) == sorted(
        [
            ("change", "note,visits"), ("create", ALL_FIELDS), ("change", "first_name,active"),
            ("delete", ALL_FIELDS), ("create", ALL_FIELDS), ("delete", ALL_FIELDS),
        ]
    )  # fmt: skip
    assert {each[1:4] for each in entries} == {("customer", True, "role:postgres")}
    (record_id,) = {row[0] for row in await shop.inside.rows(
        "SELECT record_id FROM audit_entry WHERE fields = $1", "note,visits"
    )}  # fmt: skip
    with _connect(shop) as connection:
        connection.execute("UPDATE customer SET customer_id = 3 WHERE customer_id = 5")
    assert record_id == await _customer(shop)


async def test_rows_of_copy_and_of_large_statements_and_truncation_are_recorded(shop: Shop) -> None:
    with _connect(shop) as connection:
        with connection.cursor().copy("COPY country FROM STDIN") as copy:
            copy.write_row(("NO", "Norway"))
            copy.write_row(("SE", "Sweden"))
        connection.execute("INSERT INTO country SELECT 'X' || n, 'Land' FROM generate_series(1, 1001) AS n")
        connection.execute('TRUNCATE line, "Orders"')

    assert [each[:3] for each in await _entries(shop)] == [
        ("outside.create", "country", True),
        ("outside.create", "country", True),
        ("outside.create", "country", False),
        ("outside.delete", "line", False),
        ("outside.delete", "order", False),
    ]


async def test_what_countersign_writes_is_not_recorded(shop: Shop) -> None:
    root, record_id = shop.inside.administrator(), await _customer(shop)

    await shop.inside.value(root, "customer", "update", id=record_id, visits=9)
    await shop.inside.value(root, "customer", "create", first_name="Mia")

    assert not await _entries(shop)


async def test_rows_that_a_foreign_key_deletes_are_recorded(shop: Shop) -> None:
    _run(
        shop,
        "ALTER TABLE line DROP CONSTRAINT line_order_id_fkey",
        'ALTER TABLE line ADD FOREIGN KEY (order_id) REFERENCES "Orders" ON DELETE CASCADE',
        'DELETE FROM "Orders"',
    )

    assert sorted(each[:2] for each in await _entries(shop)) == [
        *[("outside.delete", "line")] * 3, *[("outside.delete", "order")] * 2
    ]  # fmt: skip


async def test_a_change_that_is_rolled_back_is_not_recorded(shop: Shop) -> None:
    with _connect(shop) as connection, connection.transaction(force_rollback=True):
        connection.execute("UPDATE customer SET visits = 3")

    assert not await _entries(shop)


async def test_the_history_shows_a_recorded_change_in_place_of_the_one_that_was_noticed(shop: Shop) -> None:
    root, record_id = shop.inside.administrator(), await _customer(shop)
    await shop.inside.value(root, "customer", "update", id=record_id, visits=1, note="first")
    _run(shop, "UPDATE customer SET visits = 2, note = 'second' WHERE customer_id = 3")
    _run(shop, "UPDATE customer SET visits = 3, born = '2001-01-01' WHERE customer_id = 3")
    await shop.inside.value(root, "customer", "update", id=record_id, visits=4)
    await _entries(shop)

    history: list[dict[str, Any]] = list(await shop.inside.value(root, "customer", "history", id=record_id))

    shown = [(each["command"], each["by"], each["changes"], each.get("fields")) for each in history[:3]]
    assert shown == [
        ("customer.update", None, {"visits": [3, 4]}, None),
        ("outside.change", "postgres", {}, ["born", "visits"]),
        ("outside.change", "postgres", {"note": ["first", "second"]}, ["visits"]),
    ]
    assert history[3]["command"] == "customer.update"
    assert not any("since" in each for each in history)


async def test_the_history_reads_only_the_newest_changes_of_others(shop: Shop) -> None:
    root, record_id = shop.inside.administrator(), await _customer(shop)
    await shop.inside.value(root, "customer", "update", id=record_id, visits=1)
    _run(shop, "UPDATE customer SET visits = 3 WHERE customer_id = 3")
    await _entries(shop)
    count = audit_history.MAX_RECORDED + 10
    _run(
        shop,
        "INSERT INTO records.audit_entry SELECT (jsonb_populate_record(e, jsonb_build_object("
        "'id', 'x' || n, 'at', e.at + n, 'number', e.number + n))).* "
        f"FROM records.audit_entry AS e, generate_series(1, {count}) AS n WHERE e.command = 'outside.change'",
    )

    rows = await shop.inside.rows(audit_history._ENTRIES, record_id, "customer")
    history: list[dict[str, Any]] = list(await shop.inside.value(root, "customer", "history", id=record_id))

    assert [row[1] for row in rows] == ["outside.change"] * audit_history.MAX_RECORDED + ["customer.update"]
    assert history[0]["changes"] == {"visits": [1, 3]}
    assert len(history) == limits.MAX_HISTORY_ENTRIES


async def test_the_history_names_no_hidden_field_and_tells_agents_no_role(shop: Shop) -> None:
    record_id = await _customer(shop)
    _run(shop, "UPDATE customer SET visits = 2, note = 'second' WHERE customer_id = 3")
    _run(shop, "UPDATE customer SET note = 'third' WHERE customer_id = 3")
    await _entries(shop)
    grant = Grant(model="customer", clear=("visits",), commands=("get", "list", "history"))
    person, agent = await shop.inside.person(grant), await shop.inside.agent("scout")

    by_person = await shop.inside.value(person, "customer", "history", id=record_id)
    by_agent = await shop.inside.value(agent, "customer", "history", id=record_id)

    assert [each["fields"] for each in by_person] == [["visits"]]
    assert [each["by"] for each in by_agent] == [None, None]


async def test_the_audit_names_the_fields_that_the_reader_sees(shop: Shop) -> None:
    _run(shop, "UPDATE customer SET visits = 2, note = 'second' WHERE customer_id = 3")
    await _entries(shop)
    condition = {"field": "command", "op": "eq", "value": "outside.change"}
    root = shop.inside.administrator()

    (entry,) = await shop.inside.value(root, "audit_entry", "list", filter=[condition])

    assert (entry["fields"], entry["user_id"]) == ("note,visits", "role:postgres")
    assert entry["request_id"].endswith(" their-app")


async def test_the_changes_and_the_changed_models_are_counted(shop: Shop) -> None:
    database = shop.inside.service.records.database
    await outside_changes.note_connected(database, ["customer", "former"])
    await outside_changes.note_connected(database, [each.name for each in MODELS])
    _run(shop, "UPDATE customer SET visits = 2", "UPDATE line SET title = 'Milk' WHERE number = 1")
    await _entries(shop)

    assert await outside_changes.count(database) == (len(MODELS), 5, 2, 0)


async def test_each_change_has_one_entry_after_kills_at_every_statement(shop: Shop, tmp_path: Path) -> None:
    count = 30
    with _connect(shop) as connection:
        for number in range(count):
            connection.execute("UPDATE customer SET visits = %s WHERE customer_id = 3", [number + 100])
    orders = [
        {"url": shop.url, "folder": str(tmp_path), "kill_at": kill_at, "reads": True, "person": ""}
        for kill_at in (*range(1, 60, 3), 0)
    ]

    ended = subprocess.run(
        [sys.executable, "-m", "tests.adopted.kill_worker"], input="".join(json.dumps(each) + "\n" for each in orders),
        env={**environment(), "PYTHONPATH": f"{SOURCE}:{SOURCE.parent}"}, capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert '{"is_killed": true' in ended.stdout
    assert len(await shop.inside.rows(ENTRIES)) == count
    with _connect(shop) as connection:
        assert connection.execute("SELECT count(*) FROM countersign_watch.outside_change").fetchone() == (0,)


async def test_a_role_that_may_only_update_one_column_is_recorded_and_reads_no_record(shop: Shop) -> None:
    role = f"clerk_{_database(shop)}"
    _run(shop, f'CREATE ROLE "{role}" LOGIN', f'GRANT SELECT, UPDATE (visits) ON customer TO "{role}"')

    with _connect(shop, role) as connection:
        connection.execute("UPDATE customer SET visits = 3 WHERE customer_id = 3")
        for statement in (
            "SELECT id FROM countersign_watch.outside_change",
            "INSERT INTO countersign_watch.outside_change (relation, operation) VALUES ('x', 'update')",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement.encode())

    assert [each[3] for each in await _entries(shop)] == [f"role:{role}"]


async def test_a_temporary_type_or_operator_of_a_writer_is_not_used(shop: Shop) -> None:
    with _connect(shop) as connection:
        connection.execute("CREATE DOMAIN pg_temp.text AS integer")
        connection.execute("CREATE TEMPORARY TABLE new_rows (customer_id integer)")
        connection.execute("SET search_path = pg_temp, public; SET DateStyle = 'German'")
        connection.execute("SET standard_conforming_strings = off")
        connection.execute("UPDATE customer SET visits = 3 WHERE customer_id = 3")

    assert [each[4] for each in await _entries(shop)] == ["visits"]


async def test_a_table_that_is_no_longer_watched_is_named_in_the_audit(shop: Shop, postgres_cluster: Cluster) -> None:
    reader, names = _reader(shop), sorted(each.name for each in MODELS)
    await reader.check()
    assert await shop.inside.rows(WATCH_ENTRIES) == [("outside.watched", name) for name in names]
    (trigger,) = _triggers(shop, "line", 16)

    _run(shop, f"ALTER TABLE line DISABLE TRIGGER {trigger}")
    await reader.check()
    await reader.check()

    assert '"public"."line"' not in reader.relations
    assert (await shop.inside.rows(WATCH_ENTRIES))[-3:] == [
        ("outside.watched", "line"), ("outside.unwatched", "line"), ("outside.watched", "order")
    ]  # fmt: skip
    before = _triggers(shop, "customer")
    script = watch.script(MODELS, f"reader_{_database(shop)}", "shop.py")
    postgres_cluster.sql(script, database=_database(shop))
    await reader.check()
    assert len(reader.relations) == reader.count
    assert _triggers(shop, "customer") == before


def _triggers(shop: Shop, table: str, kind: int | None = None) -> list[str]:
    statement = (
        "SELECT tgname || ':' || oid, tgtype FROM pg_trigger WHERE tgrelid = %s::regclass AND NOT tgisinternal "
        "AND tgname LIKE 'changes%%' ORDER BY 1"
    )
    with _connect(shop) as connection:
        rows = connection.execute(statement, [table]).fetchall()
    return [name if kind is None else name.partition(":")[0] for name, type_ in rows if kind in (None, type_)]


async def test_a_backlog_that_is_full_is_told_and_then_recorded_again(shop: Shop) -> None:
    await _reader(shop).check()
    _run(
        shop,
        "UPDATE customer SET visits = 3 WHERE customer_id = 3",
        f"UPDATE countersign_watch.progress SET read_to = {-postgres_watch.MAX_BACKLOG}",
        "UPDATE customer SET visits = 4 WHERE customer_id = 3",
    )

    assert len(await _entries(shop)) == 1
    watched = [command for command, model in await shop.inside.rows(WATCH_ENTRIES) if model == "customer"]
    assert watched == ["outside.watched", "outside.unwatched", "outside.watched"]

    _run(shop, "UPDATE customer SET visits = 5 WHERE customer_id = 3")
    assert len(await _entries(shop)) == 2


async def test_what_a_long_transaction_loses_near_the_limit_is_a_gap_in_the_audit(shop: Shop) -> None:
    await _reader(shop).check()
    database = shop.inside.service.records.database
    await outside_changes.note_connected(database, [each.name for each in MODELS])
    _run(shop, f"UPDATE countersign_watch.progress SET read_to = {-postgres_watch.MAX_BACKLOG - 1}")
    with _connect(shop) as connection:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM customer")
        _run(shop, "UPDATE countersign_watch.progress SET read_to = 0")
        assert not await _entries(shop)
        connection.execute("UPDATE customer SET visits = 3")
        connection.execute("COMMIT")

    assert not await _entries(shop)
    watched = [command for command, model in await shop.inside.rows(WATCH_ENTRIES) if model == "customer"]
    assert watched == ["outside.watched", "outside.unwatched", "outside.watched"]
    assert (await outside_changes.count(database)).interrupted_models == len(MODELS)
    assert not await _entries(shop)
    assert len([model for _, model in await shop.inside.rows(WATCH_ENTRIES) if model == "customer"]) == 3


async def test_an_agent_reads_no_role_and_no_application_in_the_audit(shop: Shop) -> None:
    _run(shop, "UPDATE customer SET visits = 2 WHERE customer_id = 3")
    await _entries(shop)
    condition = {"field": "command", "op": "eq", "value": "outside.change"}
    agent = await shop.inside.agent("scout")
    agent = audit_history.with_audit(agent, shop.inside.service.engine.dialect)

    (entry,) = await shop.inside.value(agent, "audit_entry", "list", filter=[condition])
    exported = (await shop.inside.value(agent, "audit_entry", "export"))["text"]

    assert (entry["user_id"], entry["fields"]) == ("role:", "visits")
    assert entry["request_id"].startswith("xid:")
    assert "postgres" not in exported
    assert "their-app" not in exported
    for name in ("user_id", "request_id"):
        probe = {"field": name, "op": "contains", "value": "postgres"}
        with pytest.raises(BadInput):
            await shop.inside.value(agent, "audit_entry", "list", filter=[probe])
        with pytest.raises(BadInput):
            await shop.inside.value(agent, "audit_entry", "list", order=[{"field": name}])


async def test_other_grants_of_the_role_are_changed_without_those_of_the_watch(
    shop: Shop, postgres_cluster: Cluster
) -> None:
    role = f"reader_{_database(shop)}"
    await shop.inside.service.records.database.close()
    _run(shop, "DROP SCHEMA records CASCADE", f"REVOKE CREATE ON DATABASE {_database(shop)} FROM {role}",
         f"COMMENT ON ROLE {role} IS 'Reads tables for Countersign. SQL of countersign connect rights changes what it may read.'")  # fmt: skip # noqa: E501

    postgres_cluster.sql(rights.grants(MODELS, role, "shop.py"), database=_database(shop))

    with _connect(shop, role) as connection:
        connection.execute("SET default_transaction_read_only = off")
        connection.execute("DELETE FROM countersign_watch.outside_change WHERE id = 1")


async def test_the_sql_for_removal_leaves_nothing(shop: Shop, postgres_cluster: Cluster) -> None:
    postgres_cluster.sql(watch.REMOVAL, database=_database(shop))

    assert not _triggers(shop, "customer")
    _run(shop, "UPDATE customer SET visits = 3")
    assert not await _entries(shop)


async def test_changes_are_recorded_after_many_that_were_rolled_back(shop: Shop) -> None:
    await _reader(shop).check()
    with _connect(shop) as connection:
        for _ in range(postgres_watch.MAX_BACKLOG // postgres_watch.MAX_ROWS + 2):
            with connection.transaction(force_rollback=True):
                connection.execute("INSERT INTO country SELECT 'X' || n, 'Land' FROM generate_series(1, 1000) AS n")

    assert not await _entries(shop)
    _run(shop, "UPDATE customer SET visits = 77 WHERE customer_id = 3")

    assert [each[4] for each in await _entries(shop)] == ["visits"]
    assert ("outside.unwatched", "customer") in await shop.inside.rows(WATCH_ENTRIES)


async def test_an_application_cannot_stop_the_reading(shop: Shop) -> None:
    role = f"clerk_{_database(shop)}"
    _run(shop, f'CREATE ROLE "{role}" LOGIN', "UPDATE customer SET visits = 77 WHERE customer_id = 3")

    with _connect(shop, role) as connection:
        connection.execute("SELECT pg_advisory_lock(4801736212)")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT FROM countersign_watch.progress FOR UPDATE")
        assert len(await _entries(shop)) == 1


async def test_a_record_with_a_key_of_another_form_does_not_stop_the_reading(shop: Shop) -> None:
    record = "INSERT INTO countersign_watch.outside_change (relation, operation, key) VALUES "
    _run(
        shop,
        *(
            f"{record} ('\"public\".\"{table}\"', 'delete', {key})"
            for table, key in (
                ("customer", "ARRAY['a']"), ("customer", "ARRAY['1', '2']"), ("customer", "ARRAY[NULL::text]"),
                ("Orders", "ARRAY['no uuid']"),
            )
        ),
    )  # fmt: skip

    assert [each[:3] for each in await _entries(shop)] == [
        *[("outside.delete", "customer", False)] * 3, ("outside.delete", "order", False)
    ]  # fmt: skip


@pytest.mark.parametrize(
    "change",
    ["DROP COLUMN note", "RENAME COLUMN note TO remark", "RENAME COLUMN customer_id TO id"],
)
async def test_an_application_still_writes_after_a_column_is_gone(shop: Shop, change: str) -> None:
    _run(
        shop,
        f"ALTER TABLE customer {change}",
        "UPDATE customer SET visits = 9",
        "INSERT INTO customer (first_name) VALUES ('Mia')",
        "DELETE FROM customer WHERE first_name = 'Mia'",
    )

    assert [each[:3] for each in await _entries(shop)] == [
        ("outside.change", "customer", False), ("outside.create", "customer", False),
        ("outside.delete", "customer", False),
    ]  # fmt: skip
