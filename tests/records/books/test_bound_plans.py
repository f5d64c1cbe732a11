"""A plan becomes stale if a record that it reads changes, and stays valid after all other changes."""

import json
from typing import Any

import pytest

from tests.records.books.test_payments import create_posted_invoice
from tests.records.office import Office

LINE = {"description": "Work", "unit_price_minor": 5, "tax_bp": 0}


async def create_draft(office: Office) -> str:
    """Create a draft with one line. Agents can only propose its commands."""
    party = (await office.value("root", "party.create", name="Ada"))["id"]
    invoice = (await office.value("carol", "invoice.create", party=party))["id"]
    await office.value("carol", "invoice_line.create", invoice=invoice, **LINE)
    for command in ("create", "update"):
        await office.value("root", "setting.create", title=f"approval:invoice_line.{command}", value='{"n": 1}')
    return str(invoice)


async def approve_and_get_state(office: Office, plan: str) -> str:
    """Approve the plan, and return its state."""
    response = (await office.approve("root", plan)).json()
    return str(response["state"] if "state" in response else response["value"]["state"])


async def test_a_plan_is_stale_after_a_person_has_posted_the_same_payment(office: Office) -> None:
    agent = await office.agent("root", "*")
    invoice = (await create_posted_invoice(office))["id"]
    count_before = len(await office.all("payment"))
    plan = await office.proposed(agent, "payment.create", invoice=invoice, amount_minor=1000)
    await office.value("carol", "payment.create", invoice=invoice, amount_minor=1000)

    body = (await office.approve("carol", plan)).json()

    assert body["state"] == "stale"
    stale_reason = "a record that payment.create depends on changed since it was proposed"
    assert body["error"] == f"plan is stale: {stale_reason}: invoice {invoice}"
    # Other callers also read the stored text.
    assert (await office.value("carol", "plan.get", id=plan))["error"] == stale_reason
    assert len(await office.all("payment")) == count_before + 1
    assert (await office.value("carol", "invoice.get", id=invoice))["paid_minor"] == 1000
    assert (await office.value(agent, "plan.get", id=plan))["error"] == "stale"


async def test_a_person_without_the_field_does_not_learn_which_record_changed(office: Office) -> None:
    payment_grant = {"model": "payment", "commands": "*", "clear": "*", "write": "*"}
    await office.person("eve", payment_grant, {"model": "invoice", "commands": "get,list", "clear": "number"})
    agent = await office.agent("root", "*")
    invoice = (await create_posted_invoice(office))["id"]
    plan = await office.proposed(agent, "payment.create", invoice=invoice, amount_minor=1000)
    await office.value("carol", "payment.create", invoice=invoice, amount_minor=1000)

    body = (await office.approve("eve", plan)).json()

    assert body["error"] == "plan is stale: a record that payment.create depends on changed since it was proposed"


async def receive_payment(office: Office, invoice: str, _third: str, _back: str) -> None:
    """Create a payment for the invoice."""
    await office.value("carol", "payment.create", invoice=invoice, amount_minor=1)


async def settle_invoice(office: Office, invoice: str, _third: str, _back: str) -> None:
    """Pay the open amount of the invoice, and settle the invoice."""
    left_open_minor = (await office.value("carol", "invoice.get", id=invoice))["open_minor"]
    await office.value("carol", "payment.create", invoice=invoice, amount_minor=left_open_minor)
    await office.value("carol", "invoice.settle", id=invoice)


async def cancel_invoice(office: Office, invoice: str, _third: str, _back: str) -> None:
    """Pay back the paid amount of the invoice, and cancel the invoice."""
    left_paid_minor = (await office.value("carol", "invoice.get", id=invoice))["paid_minor"]
    if left_paid_minor:
        await office.value("carol", "payment.create", invoice=invoice, amount_minor=-left_paid_minor)
    await office.value("carol", "invoice.cancel", id=invoice)


async def change_payment_and_restore_it(office: Office, invoice: str, _third: str, refund: str) -> None:
    """Change the amount of another payment of the invoice, and change it back."""
    amount = (await office.value("carol", "payment.get", id=refund))["amount_minor"]
    for changed_minor in (amount - 1, amount):
        await office.value("carol", "payment.update", id=refund, amount_minor=changed_minor)


async def pay_other_invoice(office: Office, _invoice: str, third_invoice: str, _back: str) -> None:
    """Create a payment for another invoice."""
    await office.value("carol", "payment.create", invoice=third_invoice, amount_minor=1)


async def change_nothing(office: Office, *_: str) -> None:
    """Change nothing."""
    del office


CHANGES = {
    action.__name__: action
    for action in (
        receive_payment,
        settle_invoice,
        cancel_invoice,
        change_payment_and_restore_it,
        pay_other_invoice,
        change_nothing,
    )
}


@pytest.mark.parametrize("command", ["create", "update", "move away", "move there", "delete", "steps", "import"])
@pytest.mark.parametrize("change", list(CHANGES))
async def test_a_plan_about_a_payment_is_bound_to_its_invoice(office: Office, command: str, change: str) -> None:
    agent = await office.agent("root", "*")
    invoice, other_invoice, third_invoice = [(await create_posted_invoice(office))["id"] for _ in range(3)]
    at = other_invoice if command == "move there" else invoice
    payment = (await office.value("carol", "payment.create", invoice=at, amount_minor=1000))["id"]
    refund = (await office.value("carol", "payment.create", invoice=invoice, amount_minor=-300))["id"]
    new: dict[str, Any] = {"invoice": invoice, "amount_minor": 3}
    body: dict[str, tuple[str, dict[str, Any]]] = {
        "create": ("payment.create", new),
        "update": ("payment.update", {"id": payment, "amount_minor": 7}),
        "move away": ("payment.update", {"id": payment, "invoice": other_invoice}),
        "move there": ("payment.update", {"id": payment, "invoice": invoice}),
        "delete": ("payment.delete", {"id": payment}),
        "steps": ("plan.propose", {"steps": [{"command": "payment.create", "input": new}]}),
        "import": ("payment.import", {"csv": f"invoice,amount_minor\n{invoice},3"}),
    }
    plan = await office.proposed(agent, body[command][0], **body[command][1])

    await CHANGES[change](office, invoice, third_invoice, refund)

    assert await approve_and_get_state(office, plan) == (
        "executed" if change in ("change_nothing", "pay_other_invoice") else "stale"
    )


@pytest.mark.parametrize("command", ["create", "update", "delete"])
@pytest.mark.parametrize("change", ["line", "notes", "nothing"])
async def test_a_plan_about_a_line_is_bound_to_its_invoice(office: Office, command: str, change: str) -> None:
    agent = await office.agent("root", "*")
    invoice = await create_draft(office)
    line = (await office.first_record("invoice_line", invoice=invoice))["id"]
    body: dict[str, dict[str, Any]] = {
        "create": {"invoice": invoice, **LINE},
        "update": {"id": line, "quantity": 2},
        "delete": {"id": line},
    }
    plan = await office.proposed(agent, f"invoice_line.{command}", **body[command])

    if change == "line":
        await office.value("carol", "invoice_line.create", invoice=invoice, **LINE)
    elif change == "notes":
        await office.value("carol", "invoice.update", id=invoice, notes="Agreed on the phone")

    assert await approve_and_get_state(office, plan) == ("executed" if change == "nothing" else "stale")


@pytest.mark.parametrize("change", ["name", "address", "nothing"])
async def test_a_plan_that_moves_an_invoice_and_posts_it_is_bound_to_its_new_party(office: Office, change: str) -> None:
    agent = await office.agent("root", "*")
    invoice = await create_draft(office)
    same_named_party = (await office.value(agent, "party.create", name="Ada"))["id"]
    address_values = {"party": same_named_party, "street": "Low 1", "city": "Yr", "country": "FR"}
    steps = [
        {"command": "invoice.update", "input": {"id": invoice, "party": same_named_party}},
        {"command": "invoice.post", "input": {"id": invoice}},
    ]
    plan = await office.proposed(agent, "plan.propose", steps=steps)

    if change == "name":
        await office.value("root", "party.update", id=same_named_party, name="Eve")
    elif change == "address":
        await office.value("root", "address.create", **address_values)

    assert await approve_and_get_state(office, plan) == ("executed" if change == "nothing" else "stale")


async def test_the_second_of_two_plans_for_one_invoice_must_be_read_again(office: Office) -> None:
    own_agent, other_agent = await office.agent("root", "*", label="a"), await office.agent("root", "*", label="b")
    invoice = (await create_posted_invoice(office))["id"]
    plans = [
        await office.proposed(person, "payment.create", invoice=invoice, amount_minor=1000)
        for person in (own_agent, other_agent)
    ]

    assert [await approve_and_get_state(office, plan) for plan in plans] == ["executed", "stale"]
    assert (await office.value("carol", "invoice.get", id=invoice))["paid_minor"] == 1000


async def test_a_settlement_and_a_sale_are_bound_to_their_amounts(office: Office) -> None:
    agent = await office.agent("root", "*")
    invoice = (await create_posted_invoice(office))["id"]
    payment = (await office.value("carol", "payment.create", invoice=invoice, amount_minor=1000))["id"]
    settling = await office.proposed(agent, "invoice.settle", id=invoice)
    for amount in (900, 1000):
        await office.value("carol", "payment.update", id=payment, amount_minor=amount)
    assert await approve_and_get_state(office, settling) == "stale"

    lead, party = await office.first_record("lead", stage="qualified"), await office.first_record("party")
    await office.value("root", "lead.update", id=lead["id"], party=party["id"])
    winning = await office.proposed(agent, "lead.win", id=lead["id"])
    await office.value("root", "lead.update", id=lead["id"], expected_revenue_minor=1)
    assert await approve_and_get_state(office, winning) == "stale"


async def test_a_changed_invoice_is_reported_to_its_deciders_and_the_agent_proposes_again(office: Office) -> None:
    agent = await office.agent("root", "*")
    invoice = (await create_posted_invoice(office))["id"]
    body: dict[str, Any] = {"invoice": invoice, "amount_minor": 400}
    plan = await office.proposed(agent, "payment.create", **body)
    assert await office.proposed(agent, "payment.create", **body) == plan
    assert (await office.value("root", "plan.get", id=plan))["error"] is None

    await office.value("carol", "payment.create", invoice=invoice, amount_minor=1)

    assert (await office.value("root", "plan.get", id=plan))["error"] == "stale"
    second_plan = await office.proposed(agent, "payment.create", **body)
    assert second_plan != plan
    assert await approve_and_get_state(office, second_plan) == "executed"


async def test_a_change_that_the_agent_does_not_see_makes_no_other_plan(office: Office) -> None:
    grants = [
        {"model": "payment", "commands": "get,list,create", "clear": "invoice,amount_minor,paid_on", "write": "*"},
        {"model": "invoice", "commands": "get,list", "clear": "due"},
        {"model": "party", "commands": "get,list", "clear": "kind"},
    ]  # fmt: skip
    await office.person("eve", *grants)
    agent = await office.agent("eve", "*")
    invoice = (await create_posted_invoice(office))["id"]
    plan = await office.proposed(agent, "payment.create", invoice=invoice, amount_minor=400)

    await office.value("carol", "payment.create", invoice=invoice, amount_minor=1)

    assert await office.proposed(agent, "payment.create", invoice=invoice, amount_minor=400) == plan
    assert (await office.value("eve", "plan.get", id=plan))["error"] is None
    assert await approve_and_get_state(office, plan) == "stale"


async def test_an_unbound_plan_of_an_earlier_version_must_be_proposed_again(office: Office) -> None:
    agent = await office.agent("root", "*")
    invoice = (await create_posted_invoice(office))["id"]
    plan = await office.proposed(agent, "payment.create", invoice=invoice, amount_minor=400)
    async with office.service.records.database.transaction() as transaction:
        row = await transaction.fetch_one("SELECT input FROM plan WHERE id = $1", plan)
        assert row is not None
        steps = json.loads(row[0])
        del steps[0]["reads"]
        await transaction.run("UPDATE plan SET input = $1 WHERE id = $2", json.dumps(steps), plan)

    assert await approve_and_get_state(office, plan) == "stale"
