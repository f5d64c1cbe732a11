"""Agents and money: agents can only propose commands that move money, unless a setting permits them. Commands that can
only fail are refused at once."""

from typing import Any

import pytest

from tests.records.books.test_payments import create_posted_invoice
from tests.records.office import Office

LIFTED = '{"n": 0}'


async def lift(office: Office, *commands: str) -> None:
    """Let agents run these commands directly."""
    for command in commands:
        await office.value("root", "setting.create", title=f"approval:{command}", value=LIFTED)


async def test_agents_only_propose_commands_that_move_money(office: Office) -> None:
    agent = await office.agent("root", "*")
    invoice = (await create_posted_invoice(office))["id"]
    plan = await office.proposed(agent, "payment.create", invoice=invoice, amount_minor=1000)
    result = (await office.approve("alice", plan)).status_code, (await office.approve("root", plan)).json()
    assert result[0] == 404
    payment = result[1]["value"]["result"]["id"]
    await office.proposed(agent, "payment.update", id=payment, method="cash")
    await office.proposed(agent, "payment.delete", id=payment)
    await office.proposed(agent, "invoice.settle", id=invoice)
    product = (await office.first_record("product"))["id"]
    await office.proposed(agent, "product.create", sku="NEW", name="New", unit_price_minor=1)
    await office.proposed(agent, "product.update", id=product, unit_price_minor=1)
    await office.proposed(agent, "product.update", id=product, tax_bp=0)
    party = (await office.first_record("party"))["id"]
    changes: list[dict[str, object]] = [
        *({"email": "new@x.example"}, {"phone": "+4412345"}, {"tax_id": "GB1"}, {"is_active": False}),
        *({"name": "Eve"}, {"website": "x.example"}),
    ]
    for change in changes:
        await office.proposed(agent, "party.update", id=party, **change)
    lead = await office.first_record("lead", stage="qualified")
    await office.value("root", "lead.update", id=lead["id"], party=party)
    await office.proposed(agent, "lead.win", id=lead["id"])
    with_amount = {"stage": "won", "expected_revenue_minor": 7}
    plan = await office.proposed(agent, "lead.update", id=lead["id"], **with_amount)
    shown_plan = await office.value("root", "plan.get", id=plan)
    assert {change["field"]: change["after"] for change in shown_plan["diff"]} == with_amount


async def test_agents_only_propose_changes_to_the_value_and_the_state_of_a_won_lead(office: Office) -> None:
    agent = await office.agent("root", "*")
    lead, party = await office.first_record("lead", stage="qualified"), await office.first_record("party")
    amount = {"id": lead["id"], "expected_revenue_minor": 5}
    assert (await office.value(agent, "lead.update", **amount))["expected_revenue_minor"] == 5
    await office.value("root", "lead.update", id=lead["id"], party=party["id"])
    await office.value("root", "lead.win", id=lead["id"])

    await office.value(agent, "lead.update", **amount, title="Renamed")
    await office.proposed(agent, "lead.update", **amount | {"expected_revenue_minor": 6})
    for ref_name in ("party", "owner"):
        await office.proposed(agent, "lead.update", **amount | {ref_name: None})
    await office.proposed(agent, "lead.reopen", id=lead["id"])
    await office.proposed(agent, "lead.update", **amount | {"stage": "qualified", "expected_revenue_minor": 6})
    assert (await office.value("root", "lead.get", id=lead["id"]))["expected_revenue_minor"] == 5


async def test_an_agent_can_only_propose_the_address_of_invoices(office: Office) -> None:
    agent = await office.agent("root", "*")
    party = (await office.value("root", "party.create", name="Ada"))["id"]
    address_values = {"street": "Low 1", "city": "Yr", "country": "FR"}
    address = (await office.value("root", "address.create", party=party, **address_values))["id"]

    invoice = (await office.value(agent, "invoice.create", party=party))["id"]
    same_named_party = (await office.value(agent, "party.create", name="Ada", email="eve@x.example"))["id"]
    await office.proposed(agent, "invoice.update", id=invoice, party=same_named_party)
    await office.value(agent, "invoice.update", id=invoice, party=party, notes="Thank you")
    await office.proposed(agent, "address.update", id=address, city="Riga")
    await office.proposed(agent, "address.create", party=party, label="invoice", **address_values | {"city": "Riga"})
    assert (await office.value("root", "address.get", id=address))["city"] == "Yr"


@pytest.mark.parametrize("change", ["name", "address", "new address", "gone address"])
async def test_a_posting_plan_becomes_stale_when_the_copied_party_fields_change(office: Office, change: str) -> None:
    agent = await office.agent("root", "*")
    party = (await office.value("root", "party.create", name="Ada"))["id"]
    address_values = {"street": "Low 1", "city": "Yr", "country": "FR"}
    address = (await office.value("root", "address.create", party=party, **address_values))["id"]
    invoice = (await office.value("root", "invoice.create", party=party))["id"]
    await office.value("root", "invoice_line.create", invoice=invoice, description="Oak", unit_price_minor=5)
    plan = await office.proposed(agent, "invoice.post", id=invoice)

    if change == "name":
        await office.value("root", "party.update", id=party, name="Eve")
    elif change == "address":
        await office.value("root", "address.update", id=address, city="Zed")
    elif change == "new address":
        await office.value("root", "address.create", party=party, label="invoice", **address_values | {"city": "Zed"})
    else:
        await office.value("root", "address.delete", id=address)

    assert (await office.approve("carol", plan)).json()["state"] == "stale"
    second_plan = await office.proposed(agent, "invoice.post", id=invoice)
    assert (await office.approve("carol", second_plan)).status_code == 200


async def test_an_update_of_harmless_fields_stays_direct(office: Office) -> None:
    agent = await office.agent("root", "*")
    party = await office.first_record("party", who=agent)
    same_values = {name: party[name] for name in ("email", "phone", "is_active")}
    changed_party = await office.value(agent, "party.update", id=party["id"], kind="person", **same_values)
    assert changed_party["kind"] == "person"
    # An agent that writes a value in clear must not learn that it guessed the existing value.
    clear_email = (await office.value("root", "party.get", id=party["id"]))["email"]
    await office.proposed(agent, "party.update", id=party["id"], email=clear_email)
    product = (await office.first_record("product"))["id"]
    assert (await office.value(agent, "product.update", id=product, name="Renamed"))["name"] == "Renamed"
    await office.value(agent, "party.create", name="Ada", email="ada@x.example")


async def test_a_setting_lifts_the_approval_that_a_module_asks_for_by_default(office: Office) -> None:
    agent = await office.agent("root", "*")
    await lift(office, "payment.create", "payment.update", "invoice.settle", "party.update", "lead.win")
    invoice = (await create_posted_invoice(office))["id"]
    payment = await office.value(agent, "payment.create", invoice=invoice, amount_minor=1000)
    await office.value(agent, "payment.update", id=payment["id"], method="cash")
    assert (await office.value(agent, "invoice.settle", id=invoice))["state"] == "paid"
    party = (await office.first_record("party"))["id"]
    await office.value(agent, "party.update", id=party, is_active=False)
    await office.value(agent, "party.update", id=party, email="new@x.example", name="Eve", website="x.example")
    commands = (await office.http.get("/api/commands", headers=office.headers(agent))).json()["commands"]
    approval_by_command = {command["id"]: command["needs_approval"] for command in commands}
    assert not any(
        approval_by_command[command] for command in ("payment.create", "invoice.settle", "party.update", "lead.win")
    )
    assert approval_by_command["payment.delete"]
    assert approval_by_command["invoice.reopen"]


@pytest.mark.parametrize("command", ["invoice.post", "invoice.cancel", "payment.delete", "lead.convert", "user.update"])
async def test_no_setting_allows_agents_direct_commands_that_are_always_proposed(office: Office, command: str) -> None:
    reason = await office.refusal_of("root", "setting.create", title=f"approval:{command}", value=LIFTED)
    assert reason == f"setting.value: n must be 1 or more, since no setting lifts the approval of {command}"


async def test_a_setting_that_lifts_an_approval_has_no_other_member(office: Office) -> None:
    for value in ('{"n": 0, "group": "accountant"}', '{"n": 0, "not_owner": true}', '{"n": -1}'):
        reason = await office.refusal_of("root", "setting.create", title="approval:payment.create", value=value)
        assert "0 alone lifts approval" in reason


async def test_lists_of_commands_and_fields_mark_the_commands_that_agents_only_propose(office: Office) -> None:
    agent = await office.agent("root", "*")
    headers = office.headers(agent)
    commands = (await office.http.get("/api/commands", headers=headers)).json()["commands"]
    commands_by_id: dict[str, Any] = {command["id"]: command for command in commands}
    proposed_commands = (
        "payment.create",
        "payment.update",
        "payment.delete",
        "invoice.settle",
        "product.create",
        "lead.win",
    )
    assert all(commands_by_id[command]["needs_approval"] for command in proposed_commands)
    assert not commands_by_id["party.update"]["needs_approval"]
    approval_text = "An agent can only propose changes of name, email, phone, tax_id, website and is_active"
    assert approval_text in commands_by_id["party.update"]["description"]
    meta = (await office.http.get("/api/meta", headers=headers)).json()
    party = next(model for model in meta["models"] if model["name"] == "party")
    marked = [field["name"] for field in party["fields"] if field["needs_approval"]]
    assert marked == ["name", "email", "phone", "tax_id", "website", "is_active"]
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    tools = (await office.http.post("/mcp", json=body, headers=headers)).json()["result"]["tools"]
    descriptions = {tool["name"]: tool["description"] for tool in tools}
    assert approval_text in descriptions["party__update"]
    assert "An agent can only propose it" in descriptions["invoice__settle"]


async def test_a_command_that_is_visibly_impossible_is_refused_instead_of_proposed(office: Office) -> None:
    agent = await office.agent("root", "*")
    invoice = (await create_posted_invoice(office))["id"]
    empty = (await office.value("root", "invoice.create", party=(await office.first_record("party"))["id"]))["id"]
    line = await office.first_record("invoice_line", invoice=invoice)
    await office.value("carol", "payment.create", invoice=invoice, amount_minor=5, reference="RF1")
    (product, other_product) = (await office.all("product"))[:2]
    impossible: list[tuple[str, dict[str, object], str]] = [
        ("invoice.delete", {"id": invoice}, "another record refers to this one"),
        ("invoice.post", {"id": invoice}, "state is posted"),
        ("invoice.post", {"id": empty}, "it needs at least one invoice_line"),
        ("invoice.settle", {"id": invoice}, "open_minor is 0"),
        ("invoice.cancel", {"id": invoice}, "paid_minor is 0"),
        ("invoice_line.delete", {"id": line["id"]}, "invoice is locked while state is not draft"),
        ("payment.create", {"invoice": empty, "amount_minor": 1}, "invoice.state is posted"),
        ("payment.create", {"invoice": invoice, "amount_minor": 0}, "amount_minor is not 0"),
        ("payment.create", {"invoice": invoice, "amount_minor": 1, "paid_on": "2999-01-01"}, "at most today"),
        ("product.create", {"sku": product["sku"], "name": "x", "unit_price_minor": 1}, "must be unique"),
        ("product.update", {"id": other_product["id"], "sku": product["sku"], "unit_price_minor": 1}, "must be unique"),
        (
            "party.update",
            {"id": (await office.first_record("party"))["id"], "email": "nowhere"},
            "must be an e-mail address",
        ),
    ]
    for command, body, reason in impossible:
        assert reason in await office.refusal_of(agent, command, **body), command
    for payment in await office.all("payment"):
        await office.value("root", "payment.delete", id=payment["id"])
    await office.value("root", "invoice_line.list")
    lone_invoice = (await create_posted_invoice(office))["id"]
    refusal = await office.refusal_of(agent, "invoice.delete", id=lone_invoice, cascade=True)
    assert refusal == "invoice.delete is not allowed in this state: invoice is locked while state is not draft"
    assert await office.all("plan") == []


async def test_a_command_that_fails_for_hidden_reasons_is_proposed(office: Office) -> None:
    """A refusal would reveal a state that the agent may not read."""
    grants = [
        {"model": "payment", "commands": "get,list,create", "clear": "invoice,amount_minor,paid_on", "write": "*"},
        {"model": "invoice", "commands": "get,list,delete", "clear": "due"},
        {"model": "party", "commands": "get,list", "clear": "kind"},
    ]  # fmt: skip
    await office.person("eve", *grants)
    agent = await office.agent("eve", "*")
    draft = (await office.value("root", "invoice.create", party=(await office.first_record("party"))["id"]))["id"]
    lone_invoice = (await create_posted_invoice(office))["id"]
    await office.proposed(agent, "payment.create", invoice=draft, amount_minor=1)
    await office.proposed(agent, "payment.create", invoice=lone_invoice, amount_minor=1)
    await office.proposed(agent, "payment.create", invoice=lone_invoice, amount_minor=1, paid_on="2001-01-01")
    await office.proposed(agent, "invoice.delete", id=draft)
    await office.proposed(agent, "invoice.delete", id=lone_invoice)
    await lift(office, "payment.create")
    await office.proposed(agent, "payment.create", invoice=draft, amount_minor=2)
    await office.proposed(agent, "payment.create", invoice=lone_invoice, amount_minor=2)


async def test_a_plan_may_pay_and_settle(office: Office) -> None:
    """An earlier step of the plan may fulfil the precondition of a later step."""
    agent = await office.agent("root", "*")
    invoice = (await create_posted_invoice(office))["id"]
    steps = [
        {"command": "payment.create", "input": {"invoice": invoice, "amount_minor": 1000}},
        {"command": "invoice.settle", "input": {"id": invoice}},
    ]
    plan = await office.proposed(agent, "plan.propose", steps=steps)
    approval = await office.approve("root", plan)
    assert approval.json()["value"]["state"] == "executed", approval.text
    assert (await office.value("root", "invoice.get", id=invoice))["state"] == "paid"
    draft = (await office.value("root", "invoice.create", party=(await office.first_record("party"))["id"]))["id"]
    line = {"invoice": draft, "description": "Work", "unit_price_minor": 5}
    steps = [
        {"command": "invoice_line.create", "input": line},
        {"command": "invoice.post", "input": {"id": draft}},
    ]
    plan = await office.proposed(agent, "plan.propose", steps=steps)
    approval = await office.approve("root", plan)
    assert approval.json()["value"]["state"] == "executed", approval.text
