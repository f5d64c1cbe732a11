"""Posting an invoice: its date, its amounts and its party, and lines with values from a product."""

from datetime import date, timedelta
from typing import Any

import pytest

from countersign.kernel import clock
from countersign.kernel.clock import DAY, Instant
from tests.records.books.test_payments import TODAY
from tests.records.office import Office


def day(ago: int) -> str:
    """Return the date this number of days ago."""
    return (date.fromisoformat(TODAY) - timedelta(days=ago)).isoformat()


async def create_draft(office: Office, *, price: int = 1000, **values: object) -> str:
    """Create a draft with a line for a new party."""
    party = (await office.value("root", "party.create", name="Ada"))["id"]
    invoice = (await office.value("carol", "invoice.create", **{"party": party, **values}))["id"]
    line = {"description": "Work", "unit_price_minor": price, "tax_bp": 0}
    await office.value("carol", "invoice_line.create", invoice=invoice, **line)
    return str(invoice)


async def test_an_invoice_that_is_entered_late_has_its_own_day(office: Office) -> None:
    with clock.fixed(Instant(clock.now() - 400 * DAY)):
        await office.value("carol", "invoice.post", id=await create_draft(office))

    # On January 1, the previous day belongs to another series.
    with clock.fixed(Instant(clock.now() - (DAY if TODAY.endswith("-01-01") else 0))):
        today, yesterday = [clock.rfc3339(Instant(clock.now() - ago * DAY))[:10] for ago in (0, 1)]
        first_draft, second_draft, third_draft = [await create_draft(office) for _ in range(3)]
        late_invoice = await office.value("carol", "invoice.post", id=first_draft, issued=yesterday)
        assert late_invoice["issued"] == yesterday
        assert late_invoice["number"].startswith(yesterday[:4])
        assert (await office.value("carol", "invoice.post", id=second_draft))["issued"] == today
        await office.value("carol", "payment.create", invoice=first_draft, amount_minor=5, paid_on=yesterday)

        reason = await office.refusal_of("carol", "invoice.post", id=third_draft, issued=yesterday)
        assert reason.startswith("invoice.issued must not be before the date of the previous invoice")
        assert (await office.value("carol", "invoice.get", id=third_draft))["state"] == "draft"
        posted_invoice = await office.value("carol", "invoice.post", id=third_draft, issued=today)
        assert int(posted_invoice["number"][5:]) == int(late_invoice["number"][5:]) + 2


async def test_an_invoice_of_the_year_before_takes_a_number_of_that_year(office: Office) -> None:
    year = str(int(TODAY[:4]) - 1)
    created_invoice = await office.value("carol", "invoice.post", id=await create_draft(office), issued=f"{year}-12-31")
    assert created_invoice["number"] == f"{year}-000001"
    reason = await office.refusal_of("carol", "invoice.post", id=await create_draft(office), issued=f"{year}-12-30")
    assert f"before the date of the previous invoice of the series {year}" in reason


async def test_a_clock_that_was_ahead_does_not_stop_the_books(office: Office) -> None:
    await office.value("carol", "invoice.post", id=await create_draft(office))
    with clock.fixed(Instant(clock.now() - 2 * DAY)):
        assert (await office.value("carol", "invoice.post", id=await create_draft(office)))["issued"] == day(2)


async def test_the_day_of_an_invoice_is_a_past_or_present_day_that_only_posting_sets(office: Office) -> None:
    invoice = await create_draft(office)
    tomorrow = (date.fromisoformat(TODAY) + timedelta(days=2)).isoformat()
    reason = await office.refusal_of("carol", "invoice.post", id=invoice, issued=tomorrow)
    assert reason == "invoice.post is refused: it requires that issued is at most today"
    assert "real calendar date" in await office.refusal_of("carol", "invoice.post", id=invoice, issued="yesterday")
    assert "read-only" in await office.refusal_of("carol", "invoice.update", id=invoice, issued=TODAY)
    assert "read-only" in await office.refusal_of("carol", "invoice.create", party=None, issued=TODAY)
    posted_invoice = await office.value("carol", "invoice.post", id=invoice, issued=None)
    assert posted_invoice["issued"] == TODAY
    assert "not allowed in this state" in await office.refusal_of("carol", "invoice.post", id=invoice, issued=TODAY)


@pytest.mark.parametrize("who", ["carol", "agent"])
async def test_an_invoice_is_not_due_before_its_day(office: Office, who: str) -> None:
    agent = await office.agent("root", "*")
    who = agent if who == "agent" else who
    invoice = await create_draft(office, due=day(3))
    reason = await office.refusal_of(who, "invoice.post", id=invoice)
    assert reason == (
        "invoice.post is refused: it requires that due is at least issued; change due in the draft, or give an earlier "
        "issued"
    )
    assert reason == await office.refusal_of(who, "invoice.post", id=invoice, issued=day(2))
    plan = await office.proposed(agent, "invoice.post", id=invoice, issued=day(3))
    assert (await office.approve("carol", plan)).status_code == 200
    created_invoice = await office.value("carol", "invoice.get", id=invoice)
    assert (created_invoice["issued"], created_invoice["due"]) == (day(3), day(3))


async def test_the_approver_reads_the_day_that_an_agent_proposes(office: Office) -> None:
    agent = await office.agent("root", "*")
    plan = await office.proposed(agent, "invoice.post", id=await create_draft(office), issued=day(1))
    shown_plan = await office.value("carol", "plan.get", id=plan)
    assert {change["field"]: change["after"] for change in shown_plan["diff"]} == {"issued": day(1), "state": "posted"}


@pytest.mark.parametrize("who", ["carol", "agent"])
async def test_an_invoice_with_a_total_of_zero_is_not_posted(office: Office, who: str) -> None:
    who = await office.agent("root", "*") if who == "agent" else who
    invoice = await create_draft(office, price=0)
    reason = await office.refusal_of(who, "invoice.post", id=invoice)
    assert reason == (
        "invoice.post is refused: it requires that total_minor is not 0; add a line with a price, or cancel the invoice"
    )
    credit = await create_draft(office, price=-500)
    assert (await office.value("carol", "invoice.post", id=credit))["open_minor"] == -500


async def test_an_inactive_party_gets_no_invoice(office: Office) -> None:
    agent = await office.agent("root", "*")
    invoice = await create_draft(office)
    party = (await office.value("root", "invoice.get", id=invoice))["party"]
    plan = await office.proposed(agent, "invoice.post", id=invoice)
    await office.value("root", "party.update", id=party, is_active=False)
    error_text = "invoice.post is refused: it requires that party.is_active is true; activate the party first"
    assert await office.refusal_of("carol", "invoice.post", id=invoice) == error_text
    assert await office.refusal_of(agent, "invoice.post", id=invoice) == error_text
    assert (await office.approve("carol", plan)).json()["state"] == "stale"
    await office.value("root", "party.update", id=party, is_active=True)
    await office.value("carol", "invoice.post", id=invoice)
    # The open amount of the invoice remains and can be paid.
    await office.value("root", "party.update", id=party, is_active=False)
    await office.value("carol", "payment.create", invoice=invoice, amount_minor=5)


async def test_a_caller_who_does_not_see_the_party_gets_no_reason(office: Office) -> None:
    grants = [
        {"model": "invoice", "commands": "*", "clear": "*", "write": "*"},
        {"model": "invoice_line", "commands": "*", "clear": "*", "write": "*"},
        {"model": "party", "commands": "get,list", "clear": "kind"},
    ]  # fmt: skip
    await office.person("eve", *grants)
    agent = await office.agent("eve", "*")
    invoice = await create_draft(office)
    party = (await office.value("root", "invoice.get", id=invoice))["party"]
    await office.value("root", "party.update", id=party, is_active=False)
    assert await office.refusal_of("eve", "invoice.post", id=invoice) == "invoice.post is refused"
    plan = await office.proposed(agent, "invoice.post", id=invoice)
    assert (await office.approve("root", plan)).json()["state"] == "failed"
    commands = (await office.http.get("/api/commands", headers=office.headers("eve"))).json()["commands"]
    assert "is_active" not in str(commands)


async def test_a_refusal_names_no_hidden_day(office: Office) -> None:
    grants = [
        {"model": "invoice", "commands": "get,list,post", "clear": "due,state", "write": "*"},
        {"model": "party", "commands": "get,list", "clear": "*"},
    ]  # fmt: skip
    await office.person("eve", *grants)
    invoice = await create_draft(office, due=day(3))
    assert await office.refusal_of("eve", "invoice.post", id=invoice) == "invoice.post is refused"
    # The input cannot contain the date of the invoice either, because it would be compared with the date of the
    # previous invoice.
    assert "unknown field" in await office.refusal_of("eve", "invoice.post", id=invoice, issued=day(9))
    assert "requires that due" in await office.refusal_of("carol", "invoice.post", id=invoice)


async def test_nothing_is_open_of_a_cancelled_invoice(office: Office) -> None:
    invoice = await create_draft(office)
    await office.value("carol", "invoice.post", id=invoice)
    cancelled = await office.value("carol", "invoice.cancel", id=invoice)
    assert (cancelled["open_minor"], cancelled["total_minor"]) == (0, 1000)


async def test_a_product_fills_the_omitted_fields_of_a_line(office: Office) -> None:
    price: dict[str, Any] = {"name": "Oak table", "unit_price_minor": 12_300, "tax_bp": 700}
    product = (await office.value("root", "product.create", sku="OAK", **price))["id"]
    invoice = await create_draft(office)
    filled = {"description": "Oak table", "unit_price_minor": 12_300, "tax_bp": 700}
    invoice_line = await office.value("carol", "invoice_line.create", invoice=invoice, product=product)
    assert {name: invoice_line[name] for name in filled} == filled
    own_invoice_line = await office.value(
        "carol", "invoice_line.create", invoice=invoice, product=product, unit_price_minor=1
    )
    assert (own_invoice_line["unit_price_minor"], own_invoice_line["description"]) == (1, "Oak table")
    assert "description is required" in await office.refusal_of("carol", "invoice_line.create", invoice=invoice)
    changed_invoice_line = await office.value("carol", "invoice_line.update", id=own_invoice_line["id"], product=None)
    assert changed_invoice_line["unit_price_minor"] == 1
    table = f"invoice,product,quantity\n{invoice},{product},2"
    imported = await office.value("carol", "invoice_line.import", csv=table)
    assert (await office.value("carol", "invoice_line.get", id=imported["ids"][0]))["net_minor"] == 24_600
    schema = (await office.http.get("/api/openapi.json", headers=office.headers("carol"))).json()
    body = schema["paths"]["/api/invoice_line/create"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body["required"] == ["invoice"]


async def test_a_product_fills_only_fields_that_the_caller_sees(office: Office) -> None:
    grants = [
        {"model": "invoice", "commands": "*", "clear": "*", "write": "*"},
        {"model": "invoice_line", "commands": "*", "clear": "*", "write": "*"},
        {"model": "product", "commands": "get,list", "clear": "sku,name"},
        {"model": "party", "commands": "get,list", "clear": "kind"},
    ]  # fmt: skip
    await office.person("eve", *grants)
    invoice, product = await create_draft(office), (await office.first_record("product"))["id"]
    reason = await office.refusal_of("eve", "invoice_line.create", invoice=invoice, product=product)
    assert reason == "invoice_line.unit_price_minor is required"
    invoice_line = await office.value(
        "eve", "invoice_line.create", invoice=invoice, product=product, unit_price_minor=1
    )
    assert invoice_line["tax_bp"] == 1900
    assert invoice_line["description"] == (await office.first_record("product"))["name"]


async def test_an_import_of_posted_invoices_says_that_an_administrator_restores_them(office: Office) -> None:
    await office.value("carol", "invoice.post", id=await create_draft(office))
    table = (await office.value("carol", "invoice.export"))["text"]
    errors = (await office.value("carol", "invoice.import", csv=table))["errors"]
    assert {error["error"] for error in errors if "starts at draft" in error["error"]} == {
        "invoice.state starts at draft: leave it out on create; an administrator imports exported records in other "
        "states, as posted invoices, with restore"
    }
    assert "only an administrator" in await office.refusal_of("carol", "invoice.import", csv=table, restore=True)
    assert "restore" not in await office.refusal_of("carol", "invoice.create", party=None, state="posted")
