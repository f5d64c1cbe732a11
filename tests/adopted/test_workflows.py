"""Workflows over status columns of tables of others: their actions change the column, and states that other
applications write are shown."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from countersign.declare import Declared, Grant, Module, Move, Select, Workflow, check, text, where
from countersign.declare.registry import Registry
from countersign.kernel.errors import Refused
from countersign.records import base_models
from countersign.records.access.view import Caller
from countersign.records.adopted.store import AdoptedStore
from countersign.records.approvals import decisions
from tests.adopted.shop import MODULE, Shop, open_shop
from tests.adopted.writable import make_writable
from tests.declare.sample_modules import model

STATES = Select("new", values={"new": "new", "paid": "paid", "on hold": "on_hold"}, unknown="other")
ORDERS = Workflow("state", pay=Move("new", "on_hold", to="paid"), hold=Move("new", to="on_hold", label="Put on hold"))
CUSTOMERS = Workflow(
    "status",
    block=Move("new", to="blocked", inputs=("note",), clears=("born",)),
    trust=Move("blocked", to="new", guards=(where("visits", gte=8),), optional={"rating": None}),
)


def _attributes(declared: Declared) -> dict[str, Any]:
    if declared.name == "order":
        return {**declared.fields, "state": STATES, "workflow": ORDERS}
    if declared.name == "customer":
        return {**declared.fields, "workflow": CUSTOMERS, "visits_are_few": check("visits")(_visits_are_few)}
    return {**declared.fields}


def _visits_are_few(visits: int) -> str | None:
    return "must be at most 1000" if visits > 1000 else None


def _registry() -> Registry:
    models = [
        model(each.__name__, _attributes(each.declared), table=replace(each.declared.table, writable=True))
        for each in MODULE.models
        if each.declared.table is not None
    ]
    return Registry(
        [base_models.MODULE, Module("shop", version="1.0.0", models=tuple(models), search_path=("public",))]
    )


@pytest.fixture(params=["sqlite", "postgres"])
async def shop(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Shop]:
    """The service over a shop whose rows it may change."""
    url = make_writable(request, tmp_path, grants=('INSERT, UPDATE ON customer, "Orders", line',))
    async with open_shop(url, tmp_path, _registry(), is_shared=True) as opened:
        yield opened


def _states(shop: Shop) -> list[Any]:
    rows = shop.rows('SELECT CAST(state AS text) FROM "Orders" ORDER BY id')
    return [row[0] for row in rows] + shop.rows("SELECT status FROM customer WHERE customer_id = 1")


async def _first(shop: Shop, person: Caller, model: str) -> dict[str, Any]:
    return dict((await shop.inside.value(person, model, "list"))[0])


async def _refusal(shop: Shop, person: Caller, model: str, command: str, **body: object) -> str:
    with pytest.raises(Refused) as caught:
        await shop.inside.value(person, model, command, **body)
    return caught.value.detail


async def test_an_action_changes_the_column_of_an_enum(shop: Shop) -> None:
    root = shop.inside.administrator()
    order = await _first(shop, root, "order")

    held = await shop.inside.value(root, "order", "hold", id=order["id"], revision=order["revision"])
    second_refusal = await _refusal(shop, root, "order", "hold", id=order["id"])

    assert held["state"] == "on_hold"
    assert _states(shop)[0] == "on hold"
    assert second_refusal == "order.hold is not allowed in this state: state is on_hold"
    (entry,) = await shop.inside.value(root, "order", "history", id=order["id"])
    assert (entry["command"], entry["changes"]) == ("order.hold", {"state": ["new", "on_hold"]})


async def test_an_action_changes_a_number_with_its_inputs_and_what_it_clears(shop: Shop) -> None:
    root = shop.inside.administrator()
    ada = await _first(shop, root, "customer")

    blocked = await shop.inside.value(root, "customer", "block", id=ada["id"], note="does not pay")
    guarded = await _refusal(shop, root, "customer", "trust", id=ada["id"])
    shop.change("UPDATE customer SET visits = 8 WHERE customer_id = 1")
    trusted = await shop.inside.value(root, "customer", "trust", id=ada["id"])

    assert (blocked["status"], blocked["note"], blocked["born"]) == ("blocked", "does not pay", None)
    assert guarded == "customer.trust is not allowed in this state: it requires that visits is at least 8"
    assert (trusted["status"], trusted["rating"]) == ("new", None)


async def test_a_validator_of_a_package_refuses_values_of_a_connected_table(shop: Shop) -> None:
    root = shop.inside.administrator()
    ada = await _first(shop, root, "customer")

    updated = await _refusal(shop, root, "customer", "update", id=ada["id"], visits=1001)
    created = await _refusal(shop, root, "customer", "create", first_name="Bo", visits=1001)

    assert (updated, created) == ("customer.visits must be at most 1000",) * 2
    assert shop.rows("SELECT count(*) FROM customer WHERE visits > 1000") == [(0,)]


async def test_an_update_of_the_state_runs_the_action_that_leads_to_it(shop: Shop) -> None:
    root = shop.inside.administrator()
    order = await _first(shop, root, "order")

    await shop.inside.value(root, "order", "update", id=order["id"], state="on_hold")
    detail = await _refusal(shop, root, "order", "update", id=order["id"], state="new")

    assert _states(shop)[0] == "on hold"
    assert detail == "no action leads order.state from on_hold to new"


async def test_a_state_that_another_application_writes_is_shown_and_is_no_state_of_an_action(shop: Shop) -> None:
    root = shop.inside.administrator()
    order, ada = await _first(shop, root, "order"), await _first(shop, root, "customer")
    if not shop.is_sqlite:
        shop.change("ALTER TYPE order_state ADD VALUE 'lost'")
    shop.change("""UPDATE "Orders" SET state = 'lost' WHERE customer_id = 1""")
    shop.change("UPDATE customer SET status = 42 WHERE customer_id = 1")

    assert (await _first(shop, root, "order"))["state"] == "other"
    assert await shop.inside.value(root, "order", "count_by", field="state") == [
        {"value": "on_hold", "count": 1}, {"value": "other", "count": 1},
    ]  # fmt: skip
    assert await _refusal(shop, root, "order", "pay", id=order["id"]) == (
        "order.pay is not allowed in this state: state is other"
    )
    assert await _refusal(shop, root, "customer", "update", id=ada["id"], status="blocked") == (
        "no action leads customer.status from other to blocked"
    )
    changed = await shop.inside.value(root, "customer", "update", id=ada["id"], visits=3)
    assert (changed["status"], _states(shop)[-1]) == ("other", (42,))


async def test_a_new_record_starts_at_the_first_option(shop: Shop) -> None:
    root = shop.inside.administrator()
    if not shop.is_sqlite:
        shop.change("ALTER TABLE customer ALTER COLUMN status SET DEFAULT 1")
        shop.change("SELECT setval('customer_customer_id_seq', 3)")
        shop.change(f"GRANT USAGE ON SEQUENCE customer_customer_id_seq TO reader_{shop.url.rpartition('/')[2]}")

    created = await shop.inside.value(root, "customer", "create", first_name="Mia", email="mia@example.com")
    detail = await _refusal(shop, root, "customer", "create", first_name="Max", status="blocked")

    assert created["status"] == "new"
    assert detail == "customer.status starts at new: leave it out on create"


async def _agent(shop: Shop) -> tuple[Caller, dict[str, str]]:
    person = await shop.inside.member()
    return person, {"Authorization": f"Bearer {await shop.token_of(person)}"}


async def _call(shop: Shop, headers: dict[str, str], address: str, **body: object) -> httpx.Response:
    return await shop.http.post(f"/api/{address}", json=body, headers=headers)


async def test_an_action_of_an_agent_is_a_plan(shop: Shop) -> None:
    person, headers = await _agent(shop)
    order = await _first(shop, person, "order")
    answer = await _call(shop, headers, "order/pay", id=order["id"])
    assert (answer.status_code, _states(shop)[0]) == (202, "new")

    plan = (await _call(shop, headers, "plan/get", id=answer.json()["plan_id"])).json()["value"]
    service = shop.inside.service
    await decisions.approve(shop.inside.run(person), service.callers, answer.json()["plan_id"])

    assert [(each["field"], each["before"], each["after"]) for each in plan["diff"]] == [("state", "new", "paid")]
    assert _states(shop)[0] == "paid"


async def test_a_plan_of_an_action_is_stale_when_another_application_has_changed_the_state(shop: Shop) -> None:
    person, headers = await _agent(shop)
    order = await _first(shop, person, "order")
    answer = await _call(shop, headers, "order/pay", id=order["id"])
    shop.change("""UPDATE "Orders" SET state = 'on hold' WHERE customer_id = 1""")

    with pytest.raises(decisions.NotPending, match="stale"):
        await decisions.approve(shop.inside.run(person), shop.inside.service.callers, answer.json()["plan_id"])

    assert _states(shop)[0] == "on hold"


async def test_an_agent_proposes_an_action_with_text_in_clear(shop: Shop) -> None:
    person, headers = await _agent(shop)
    ada = await _first(shop, person, "customer")
    before = (await _call(shop, headers, "customer/get", id=ada["id"])).json()["value"]

    answer = await _call(shop, headers, "customer/block", id=ada["id"], note="does not pay")
    run = shop.inside.run(shop.narrowed(person))
    decision = await decisions.approve(run, shop.inside.service.callers, answer.json()["plan_id"])
    after = (await _call(shop, headers, "customer/get", id=ada["id"])).json()["value"]

    assert decision.state == "executed"
    assert shop.rows("SELECT note, status FROM customer WHERE customer_id = 1") == [("does not pay", 1)]
    assert after["note"].startswith("TEXT_")
    assert after["note"] != before["note"]


async def test_people_who_see_tokens_and_databases_that_are_only_read_have_no_actions(shop: Shop) -> None:
    store = shop.inside.service.engine.adopted["customer"]
    assert isinstance(store, AdoptedStore)
    masked = await shop.inside.person(Grant(model="customer", masked="*", commands="*"))

    assert {"trust", "block"} <= store.narrowed(shop.inside.administrator()).view.models["customer"].commands
    assert not {"trust", "block"} & store.narrowed(masked).view.models["customer"].commands


def test_a_module_text_states_a_workflow() -> None:
    written = text.read(
        'from countersign.declare import Model, Module, Move, Select, Table, Workflow, where\n\n\n'
        'class Order(Model, table=Table("orders", key="id", writable=True)):\n    """An order."""\n\n'
        '    state = Select(values={0: "new", 1: "paid"}, unknown="other", column="order_status")\n'
        '    workflow = Workflow("state", pay=Move("new", to="paid", guards=(where("state", is_null=False),)))\n\n\n'
        'module = Module("shop", version="1.0.0", models=(Order,))\n'
    )

    registry = Registry([base_models.MODULE, text.build(written, "shop.py")])

    workflow = registry.models["order"].workflow
    assert workflow is not None
    assert list(workflow.moves) == ["pay"]
    assert text.read(text.write(written)) == written
