"""Payments are possible only for posted invoices, count once, and must match the amounts of the invoice."""

import asyncio
from typing import Any

import pytest

from countersign.kernel import clock
from tests.records.office import Office

TODAY = clock.rfc3339(clock.now())[:10]


async def create_posted_invoice(office: Office, amount: int = 1000, party: str = "") -> dict[str, Any]:
    """Create a posted invoice of the party, or of a new party."""
    party = party or (await office.value("root", "party.create", name="Ada"))["id"]
    invoice = await office.value("carol", "invoice.create", party=party)
    line = {"description": "Work", "unit_price_minor": amount, "tax_bp": 0}
    await office.value("carol", "invoice_line.create", invoice=invoice["id"], **line)
    return dict(await office.value("carol", "invoice.post", id=invoice["id"]))


async def test_a_payment_is_for_a_posted_invoice(office: Office) -> None:
    party = await office.value("root", "party.create", name="Ada")
    draft = (await office.value("carol", "invoice.create", party=party["id"]))["id"]
    reason = await office.refusal_of("carol", "payment.create", invoice=draft, amount_minor=1)
    assert reason == "payment.create is refused: it requires that invoice.state is posted"
    await office.value("carol", "invoice.cancel", id=draft)
    assert "paid or cancelled" in await office.refusal_of("carol", "payment.create", invoice=draft, amount_minor=1)

    paid_invoice = (await create_posted_invoice(office))["id"]
    first_payment = await office.value("carol", "payment.create", invoice=paid_invoice, amount_minor=1000)
    await office.value("carol", "invoice.settle", id=paid_invoice)
    locked = "is not allowed in this state: payment is locked while invoice.state is paid or cancelled"
    for command, body in (
        ("payment.create", {"invoice": paid_invoice, "amount_minor": 1}),
        ("payment.update", {"id": first_payment["id"], "amount_minor": 1}),
        ("payment.delete", {"id": first_payment["id"]}),
    ):
        assert await office.refusal_of("carol", command, **body) == f"{command} {locked}"
    other_invoice = (await create_posted_invoice(office))["id"]
    moved_payment = await office.value("carol", "payment.create", invoice=other_invoice, amount_minor=1)
    assert locked in await office.refusal_of("carol", "payment.update", id=moved_payment["id"], invoice=paid_invoice)
    imported = await office.value("carol", "payment.import", csv=f"invoice,amount_minor\n{paid_invoice},5\n{draft},5")
    assert [error["row"] for error in imported["errors"]] == [1, 2]


async def test_a_paid_invoice_is_reopened_to_correct_its_payments(office: Office) -> None:
    invoice = (await create_posted_invoice(office))["id"]
    payment = await office.value("carol", "payment.create", invoice=invoice, amount_minor=1000)
    await office.value("carol", "invoice.settle", id=invoice)
    await office.value("carol", "invoice.reopen", id=invoice)
    await office.value("carol", "payment.update", id=payment["id"], amount_minor=400)
    seen_invoice = await office.value("carol", "invoice.get", id=invoice)
    assert (seen_invoice["state"], seen_invoice["paid_minor"], seen_invoice["open_minor"]) == ("posted", 400, 600)
    assert "open_minor is 0" in await office.refusal_of("carol", "invoice.settle", id=invoice)


async def test_an_overpaid_invoice_needs_a_refund_before_settlement(office: Office) -> None:
    invoice = (await create_posted_invoice(office))["id"]
    await office.value("carol", "payment.create", invoice=invoice, amount_minor=10_000)
    assert "open_minor is 0" in await office.refusal_of("carol", "invoice.settle", id=invoice)

    await office.value("carol", "payment.create", invoice=invoice, amount_minor=-9_000)

    assert (await office.value("carol", "invoice.settle", id=invoice))["open_minor"] == 0


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"amount_minor": 0}, "amount_minor is not 0"),
        ({"amount_minor": 5, "paid_on": "2999-01-01"}, "paid_on is at most today"),
        ({"amount_minor": 5, "paid_on": "2001-01-01"}, "paid_on is at least invoice.issued"),
    ],
)
async def test_amount_and_day_of_a_payment_must_be_possible(
    office: Office, values: dict[str, object], reason: str
) -> None:
    invoice = (await create_posted_invoice(office))["id"]
    assert reason in await office.refusal_of("carol", "payment.create", invoice=invoice, **values)
    payment = await office.value("carol", "payment.create", invoice=invoice, amount_minor=5)
    assert payment["paid_on"] == TODAY
    assert reason in await office.refusal_of("carol", "payment.update", id=payment["id"], **values)


async def test_a_reference_is_on_an_invoice_once(office: Office) -> None:
    first_invoice = await create_posted_invoice(office)
    invoice, other_invoice = (
        first_invoice["id"],
        (await create_posted_invoice(office, party=first_invoice["party"]))["id"],
    )
    await office.value("carol", "payment.create", invoice=invoice, amount_minor=5, reference="RF18 Straße")
    equal_references = ("\u200brf18 stra\u00adße", "\uff32\uff2618 strasse", "RF18\u00a0Straße", "RF18\u2028Straße")
    for same_reference in (" RF18  Straße", "rf18 STRASSE", "Rf18\tstrasse ", *equal_references):
        reason = await office.refusal_of(
            "carol", "payment.create", invoice=invoice, amount_minor=5, reference=same_reference
        )
        assert reason.startswith("payment.reference must be unique among the records with the same invoice")
    # One transfer may pay several invoices of one party.
    second_payment = await office.value(
        "carol", "payment.create", invoice=other_invoice, amount_minor=5, reference="rf18 straße"
    )
    assert "must be unique" in await office.refusal_of(
        "carol", "payment.update", id=second_payment["id"], invoice=invoice
    )
    for _ in range(2):
        await office.value("carol", "payment.create", invoice=invoice, amount_minor=5)


async def test_a_payment_reference_belongs_to_one_party(office: Office) -> None:
    own_invoice, other_invoice = await create_posted_invoice(office), (await create_posted_invoice(office))["id"]
    first_payment = await office.value(
        "carol", "payment.create", invoice=own_invoice["id"], amount_minor=5, reference="UE-1"
    )
    reason = await office.refusal_of(
        "carol", "payment.create", invoice=other_invoice, amount_minor=5, reference="ue\u20111"
    )
    assert reason == "payment.reference is already used by a payment of another party; correct it, or make it unique"
    plain_payment = await office.value("carol", "payment.create", invoice=other_invoice, amount_minor=5)
    assert reason == await office.refusal_of("carol", "payment.update", id=plain_payment["id"], reference="UE-1")
    imported = await office.value(
        "carol", "payment.import", csv=f"invoice,amount_minor,reference\n{other_invoice},5,Ue-1"
    )
    assert [error["error"] for error in imported["errors"]] == [reason]
    await office.value("carol", "payment.create", invoice=other_invoice, amount_minor=5, reference="UE-1/2")
    await office.value("carol", "payment.delete", id=first_payment["id"])
    await office.value("carol", "payment.update", id=plain_payment["id"], reference="UE-1")


async def test_a_restore_keeps_references_that_an_earlier_version_took(office: Office) -> None:
    own_invoice, other_invoice = [(await create_posted_invoice(office))["id"] for _ in range(2)]
    stored_references = [(own_invoice, "UE-1"), (other_invoice, "UE-1"), (own_invoice, "ue-1")]
    rows = [f"{number}{'f' * 23},{invoice},5,{text}" for number, (invoice, text) in enumerate(stored_references)]
    head = "id,invoice,amount_minor,reference"

    report = await office.value("root", "payment.import", csv="\n".join([head, *rows]), restore=True)
    assert (report["errors"], report["created"]) == ([], 3)

    repeated_csv = f"{head}\n{'e' * 24},{own_invoice},6,UE-1"
    errors = (await office.value("root", "payment.import", csv=repeated_csv, restore=True))["errors"]
    assert "payment.reference must be unique among" in errors[0]["error"]
    unrestored = await office.value(
        "root", "payment.import", csv=f"invoice,amount_minor,reference\n{other_invoice},5,ue-1"
    )
    assert "payment.reference" in unrestored["errors"][0]["error"]


async def test_one_reference_sent_for_two_parties_at_once_is_booked_for_one_party(office: Office) -> None:
    invoices = [(await create_posted_invoice(office))["id"] for _ in range(30)]
    bodies = [{"invoice": invoice, "amount_minor": 5, "reference": "UE-1"} for invoice in invoices]
    answers = await asyncio.gather(*(office.call("carol", "payment.create", body) for body in bodies))
    assert sorted(answer.status_code for answer in answers) == [200, *[400] * 29]


async def test_payments_that_an_earlier_version_took_are_read_and_repaired(office: Office) -> None:
    invoice = (await create_posted_invoice(office))["id"]
    payment = (await office.value("carol", "payment.create", invoice=invoice, amount_minor=5))["id"]
    party = await office.value("root", "party.create", name="Ada")
    draft = (await office.value("carol", "invoice.create", party=party["id"]))["id"]
    async with office.service.records.database.transaction() as transaction:
        text = "UPDATE payment SET invoice = $1, amount_minor = 0, paid_on = '2999-01-01' WHERE id = $2"
        await transaction.run(text, draft, payment)
        await transaction.run("UPDATE party SET email = 'nowhere', website = 'javascript:1' WHERE id = $1", party["id"])
    seen_payment = await office.value("carol", "payment.get", id=payment)
    assert (seen_payment["amount_minor"], seen_payment["paid_on"]) == (0, "2999-01-01")
    assert (await office.value("carol", "payment.update", id=payment, method="cash"))["method"] == "cash"
    await office.value("carol", "payment.update", id=payment, invoice=invoice, amount_minor=7, paid_on=TODAY)
    await office.value("root", "party.update", id=party["id"], notes="Still here")
    agent = await office.agent("root", "party.*")
    shown_party = await office.value(agent, "party.get", id=party["id"])
    # A value that is older than the format does not match it. The error for its token must not reveal anything about
    # the value.
    created_party = await office.value(agent, "party.create", name="Copy", email=shown_party["email"])
    assert created_party["email"] == shown_party["email"]


async def test_the_party_data_of_a_posted_invoice_does_not_change(office: Office) -> None:
    tax = {"tax_id": "at u123 456 78"}
    party = (await office.value("root", "party.create", name="Ada & Co", **tax))["id"]
    address = {"street": "Lane 1", "postcode": "1010", "city": "Wien", "country": "at"}
    await office.value("root", "address.create", party=party, **address)
    invoice = (await office.value("carol", "invoice.create", party=party))["id"]
    await office.value("carol", "invoice_line.create", invoice=invoice, description="Work", unit_price_minor=5)
    assert (await office.value("carol", "invoice.get", id=invoice))["party_name"] is None
    assert "read-only" in await office.refusal_of("carol", "invoice.update", id=invoice, party_name="Bob")
    invoice_before = await office.value("carol", "invoice.post", id=invoice)
    assert invoice_before["party_name"] == "Ada & Co"
    assert invoice_before["party_tax_id"] == "ATU12345678"
    assert invoice_before["party_address"] == "Lane 1\n1010 Wien\nAT"
    await office.value("root", "party.update", id=party, name="Other", tax_id="FR1")
    (main,) = await office.value("root", "address.list", filter=[{"field": "party", "op": "eq", "value": party}])
    await office.value("root", "address.update", id=main["id"], street="Elsewhere 9")
    invoice_after = await office.value("carol", "invoice.get", id=invoice)
    assert {name: invoice_after[name] for name in invoice_before} == invoice_before
    agent = await office.agent("carol", "invoice.*")
    seen_invoice = await office.value(agent, "invoice.get", id=invoice)
    assert seen_invoice["party_name"].startswith("PERSON_")
    assert seen_invoice["party_address"].startswith("ADDRESS_")
    assert seen_invoice["party_tax_id"].startswith("TAXID_")


async def test_reopening_a_record_removes_the_reason_for_its_end(office: Office) -> None:
    lead = (await office.value("root", "lead.create", title="Order"))["id"]
    await office.value("root", "lead.lose", id=lead, lost_reason="price")
    assert (await office.value("root", "lead.reopen", id=lead))["lost_reason"] is None
    assert "lost_reason is required" in await office.refusal_of("root", "lead.lose", id=lead)
    ticket = (await office.value("root", "ticket.create", subject="It broke"))["id"]
    await office.value("root", "ticket.solve", id=ticket, resolution="Switched on")
    assert (await office.value("root", "ticket.reopen", id=ticket))["resolution"] is None
