"""A caller cannot infer hidden values from totals or from refusals."""

from tests.records.office import Office

CARD = '[{"field": "method", "op": "eq", "value": "card"}]'
CANCELLED = '[{"field": "state", "op": "eq", "value": "cancelled"}]'
TOTALS = {"model": "invoice", "commands": "get,list", "clear": "number,paid_minor,open_minor,total_minor,net_minor"}
PAYMENTS = {"model": "payment", "commands": "get,list", "clear": "invoice,amount_minor,method"}
LINES = {"model": "invoice_line", "commands": "get,list,update", "clear": "description", "write": "description"}


async def test_a_total_is_hidden_from_callers_who_do_not_see_all_counted_records(office: Office) -> None:
    await office.person("dan", TOTALS, {**PAYMENTS, "rows": CARD})
    invoice = await office.first_record("invoice", state="posted")
    for who in ("dan", await office.agent("dan", "*")):
        invoice_before = await office.value(who, "invoice.get", id=invoice["id"])
        assert not {"paid_minor", "open_minor", "net_minor"} & set(invoice_before)
        await office.value("carol", "payment.create", invoice=invoice["id"], amount_minor=777, method="cash")
        assert await office.value(who, "invoice.get", id=invoice["id"]) == invoice_before
        assert "invoice.paid_minor" in await office.denied(who, "invoice.get", id=invoice["id"])


async def test_a_total_is_shown_to_callers_who_see_all_counted_records(office: Office) -> None:
    await office.person("eve", TOTALS, PAYMENTS)
    narrow = await office.agent("eve", "invoice.*")
    invoice = await office.first_record("invoice", state="posted")
    for who in ("eve", narrow, "carol"):
        assert (await office.value(who, "invoice.get", id=invoice["id"]))["paid_minor"] == invoice["paid_minor"]


async def test_an_agent_does_not_learn_a_hidden_state_from_the_response_to_an_action(office: Office) -> None:
    await office.person("dan", {"model": "lead", "commands": "get,list,qualify,propose,lose", "clear": "title"})
    agent = await office.agent("dan", "*")
    for stage in ("new", "won"):
        lead = (await office.first_record("lead", stage=stage))["id"]
        await office.proposed(agent, "lead.qualify", id=lead)
    stages = {"model": "lead", "commands": "get,list,propose", "clear": "title,stage"}
    await office.person("eve", stages)
    agent = await office.agent("eve", "*")
    for revenue in (None, 5):
        lead = (await office.value("alice", "lead.create", title="x", expected_revenue_minor=revenue))["id"]
        await office.value("alice", "lead.qualify", id=lead)
        await office.proposed(agent, "lead.propose", id=lead)


async def test_a_fault_not_reported_at_the_proposal_is_found_at_the_approval(office: Office) -> None:
    await office.person("eve", {"model": "lead", "commands": "get,list,propose,lose", "clear": "title,stage"})
    agent = await office.agent("eve", "*")
    lead = (await office.value("alice", "lead.create", title="x"))["id"]
    await office.value("alice", "lead.qualify", id=lead)
    for command in ("lead.propose", "lead.lose"):
        answer = await office.approve("alice", await office.proposed(agent, command, id=lead))
        assert (answer.status_code, answer.json()["state"]) == (400, "failed")
    assert (await office.first_record("lead", id=lead))["stage"] == "qualified"


async def test_an_agent_does_not_learn_from_a_line_whether_the_hidden_invoice_is_posted(office: Office) -> None:
    await office.person("dan", {"model": "invoice", "clear": "state", "commands": "get,list", "rows": CANCELLED}, LINES)
    agent = await office.agent("dan", "*")
    for state in ("draft", "posted"):
        invoice = (await office.first_record("invoice", state=state))["id"]
        line = (await office.first_record("invoice_line", invoice=invoice))["id"]
        assert await office.refusal_of(agent, "invoice.get", id=invoice) == "no such record"
        await office.proposed(agent, "invoice_line.update", id=line, description="x")


async def test_an_agent_that_only_creates_does_not_learn_which_values_are_in_use(office: Office) -> None:
    taken_sku = (await office.first_record("product"))["sku"]
    for scopes in (("product.create",), ("product.create", "product.get")):
        agent = await office.agent("carol", *scopes, name=" and ".join(scopes))
        for sku in (taken_sku, "FREE-1"):
            await office.proposed(agent, "product.create", sku=sku, name="x", unit_price_minor=1)
    wide = await office.agent("carol", "product.create", "product.list", name="wide")
    assert "unique" in await office.refusal_of(wide, "product.create", sku=taken_sku, name="x", unit_price_minor=1)
