"""The history of a connected record shows that it was changed outside of Countersign, and does not say by whom."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from countersign.declare import Grant, Module
from countersign.declare.registry import Registry
from countersign.records import base_models
from countersign.records.commands import outside_changes
from tests.adopted.shop import MARK, MODULE, Shop, make_postgres, open_shop
from tests.declare.sample_modules import model
from tests.servers.postgres import Cluster


@pytest.fixture
async def shop(postgres_cluster: Cluster, postgres_url: str, tmp_path: Path) -> AsyncIterator[Shop]:
    """The service over a shop whose rows it may write and delete."""
    url = make_postgres(postgres_cluster, postgres_url)
    name = postgres_url.rpartition("/")[2]
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(b"ALTER TABLE customer ALTER seen TYPE timestamp USING seen AT TIME ZONE 'UTC'")
        connection.execute(f"GRANT CREATE ON DATABASE {name} TO reader_{name}".encode())
        connection.execute(f'GRANT INSERT, UPDATE, DELETE ON customer, "Orders", line TO reader_{name}'.encode())
    models = [
        model(each.__name__, each.declared.fields, table=replace(each.declared.table, writable=True, deletes=True))
        for each in MODULE.models
        if each.declared.table is not None
    ]
    module = Module("shop", version="1.0.0", models=tuple(models), search_path=("public",))
    async with open_shop(url, tmp_path, Registry([base_models.MODULE, module]), is_shared=True) as opened:
        yield opened


async def _customer(shop: Shop) -> str:
    records = await shop.inside.value(shop.inside.administrator(), "customer", "list")
    return next(each["id"] for each in records if each["first_name"] == f"Zoë {MARK}")


async def _update(shop: Shop, record_id: str, **fields: object) -> None:
    await shop.inside.value(shop.inside.administrator(), "customer", "update", id=record_id, **fields)


async def _history(shop: Shop, record_id: str) -> list[dict[str, Any]]:
    return list(await shop.inside.value(shop.inside.administrator(), "customer", "history", id=record_id))


def _shown(history: list[dict[str, Any]]) -> list[tuple[str, dict[str, list[object]]]]:
    return [(each["command"], each["changes"]) for each in history]


async def test_a_change_since_the_last_one_is_shown_with_its_fields(shop: Shop) -> None:
    record_id = await _customer(shop)
    await _update(shop, record_id, visits=1, note="first", email="a@example.com")
    shop.change("UPDATE customer SET visits = 2, note = 'second', born = '2001-01-01' WHERE customer_id = 3")

    history = await _history(shop, record_id)

    assert _shown(history) == [
        ("outside.change", {"note": ["first", "second"], "visits": [1, 2]}),
        ("customer.update", {
            "email": [f"ada{MARK}@example.com", "a@example.com"], "note": [f"Äpfel {MARK}", "first"],
            "visits": [None, 1],
        }),
    ]  # fmt: skip
    assert (history[0]["by"], history[0]["agent"], history[0]["since"]) == (None, None, history[1]["at"])
    assert "since" not in history[1]


async def test_a_change_between_two_updates_is_shown_between_them(shop: Shop) -> None:
    record_id = await _customer(shop)
    await _update(shop, record_id, visits=1)
    shop.change("UPDATE customer SET visits = 2 WHERE customer_id = 3")
    await _update(shop, record_id, note="other")
    await _update(shop, record_id, visits=3)

    history = await _history(shop, record_id)

    assert _shown(history) == [
        ("customer.update", {"visits": [2, 3]}),
        ("outside.change", {"visits": [1, 2]}),
        ("customer.update", {"note": [f"Äpfel {MARK}", "other"]}),
        ("customer.update", {"visits": [None, 1]}),
    ]
    assert (history[1]["at"], history[1]["since"]) == (history[0]["at"], history[3]["at"])


async def test_a_record_that_is_as_countersign_has_left_it_has_no_such_entry(shop: Shop) -> None:
    record_id = await _customer(shop)
    await _update(shop, record_id, visits=1, note="first", rating="2.5", active=False, status="blocked", country=None)
    await _update(shop, record_id, visits=2, note="second", seen="2026-11-30T06:00:00.123Z", balance_minor=5)
    shop.change("UPDATE customer SET visits = 9 WHERE customer_id = 3")
    shop.change("UPDATE customer SET visits = 2 WHERE customer_id = 3")
    shop.change("ALTER TABLE customer ALTER rating TYPE numeric(8, 2)")

    assert [each["command"] for each in await _history(shop, record_id)] == ["customer.update"] * 2


async def test_a_field_that_is_declared_in_another_way_was_not_changed_outside(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    record_id = await _customer(shop)
    await _update(shop, record_id, balance_minor=5, seen="2026-11-30T06:00:00.123Z", visits=1)
    fields = shop.inside.models["customer"].fields
    monkeypatch.setattr(fields["balance_minor"], "scale", 3)
    monkeypatch.setattr(fields["seen"], "zone", "Europe/Vienna")
    shop.change("UPDATE customer SET balance = 0.06, visits = 2 WHERE customer_id = 3")

    before, entry = await _history(shop, record_id)

    assert (before["command"], before["changes"]) == ("outside.change", {"visits": [1, 2]})
    assert entry["changes"]["balance_minor"] == [None, 5]
    # What was written with the new declaration is compared again.
    await _update(shop, record_id, balance_minor=70)
    shop.change("UPDATE customer SET balance = 0.08 WHERE customer_id = 3")
    assert (await _history(shop, record_id))[0]["changes"]["balance_minor"] == [70, 80]


async def test_the_history_of_a_record_without_entries_opens_no_transaction(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    record_id = await _customer(shop)

    def refuse(*_: object) -> None:
        raise AssertionError("the history opens a transaction")

    monkeypatch.setattr(type(shop.inside.service.records.database), "transaction", refuse)

    assert await _history(shop, record_id) == []


async def test_a_record_that_was_deleted_and_inserted_by_another_application_is_shown_as_changed(shop: Shop) -> None:
    record_id = await _customer(shop)
    await shop.inside.value(shop.inside.administrator(), "customer", "delete", id=record_id)
    shop.change("INSERT INTO customer (customer_id, first_name, visits) VALUES (3, 'Mia', 4)")

    first, last = _shown(await _history(shop, record_id))

    assert (first[0], last[0]) == ("outside.change", "customer.delete")
    assert (first[1]["first_name"], first[1]["active"]) == ([None, "Mia"], [None, True])
    assert "visits" not in first[1]


async def test_a_change_through_countersign_while_the_history_is_read_is_not_one_from_outside(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    record_id = await _customer(shop)
    await _update(shop, record_id, visits=1)
    find, values = outside_changes.find, iter((2,))

    async def update_first(*arguments: Any) -> object:
        for value in values:
            await _update(shop, record_id, visits=value)
        return await find(*arguments)

    monkeypatch.setattr(outside_changes, "find", update_first)

    assert [each["command"] for each in await _history(shop, record_id)] == ["customer.update"] * 2


async def test_such_an_entry_does_not_say_when_a_hidden_field_was_changed(shop: Shop) -> None:
    record_id = await _customer(shop)
    await _update(shop, record_id, visits=1)
    await _update(shop, record_id, status="blocked")
    shop.change("UPDATE customer SET visits = 2, status = 0 WHERE customer_id = 3")
    person = await shop.inside.person(Grant(model="customer", clear=("status",), commands=("get", "list", "history")))

    first, last = await shop.inside.value(person, "customer", "history", id=record_id)

    assert first["since"] == last["at"]


async def test_an_agent_sees_tokens_in_such_an_entry_and_no_hidden_fields(shop: Shop) -> None:
    record_id = await _customer(shop)
    await _update(shop, record_id, visits=1, note=f"first {MARK}")
    shop.change(f"UPDATE customer SET visits = 2, note = 'second {MARK}' WHERE customer_id = 3")
    agent = await shop.inside.agent("scout")
    other = await shop.inside.person(Grant(model="customer", clear=("visits",), commands=("get", "list", "history")))

    by_agent = await shop.inside.value(agent, "customer", "history", id=record_id)
    by_other = await shop.inside.value(other, "customer", "history", id=record_id)

    assert MARK not in str(by_agent)
    assert all(str(each).startswith("TEXT_") for each in by_agent[0]["changes"]["note"])
    assert by_other[0]["changes"] == {"visits": [1, 2]}
