"""A posted invoice cannot be changed by any command."""

from typing import Any

from tests.records.office import Office

INVOICES = {"model": "invoice", "commands": "get,list,update,settle", "clear": "number,due,notes", "write": "*"}


async def _paid_up(office: Office) -> dict[str, Any]:
    invoice = await office.first_record("invoice", state="posted")
    await office.value("carol", "payment.create", invoice=invoice["id"], amount_minor=invoice["open_minor"])
    return await office.first_record("invoice", id=invoice["id"])


async def test_an_update_that_moves_a_locked_record_changes_no_other_field(office: Office) -> None:
    invoice = await _paid_up(office)
    other_party = next(party["id"] for party in await office.all("party") if party["id"] != invoice["party"])
    for who in ("carol", await office.agent("carol", "*")):
        for change in ({"party": other_party}, {"due": "2030-01-01"}, {"notes": "changed after posting"}):
            reason = await office.refusal_of(who, "invoice.update", id=invoice["id"], state="paid", **change)
            assert reason == "invoice.update is not allowed in this state: invoice is locked while state is not draft"
    assert await office.first_record("invoice", id=invoice["id"]) == invoice
    assert (await office.value("carol", "invoice.update", id=invoice["id"], state="paid"))["state"] == "paid"


async def test_an_update_of_the_state_of_an_open_record_changes_its_other_fields_too(office: Office) -> None:
    lead = await office.first_record("lead", stage="new")
    agent = await office.agent("alice", "lead.*")
    changed_lead = await office.value(agent, "lead.update", id=lead["id"], stage="qualified", title="and renamed")
    assert (changed_lead["stage"], changed_lead["title"]) == ("qualified", "and renamed")
