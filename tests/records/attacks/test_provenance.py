"""A person must consent before a value is copied to records that are visible to people who do not see it now."""

from typing import Any

from tests.records.office import Office

OWN = '[{"field":"owner","op":"eq","value":{"stand":"CALLER"}}]'


async def leads_of(office: Office) -> tuple[dict[str, Any], str]:
    """Return a lead of alice as her agent sees it, and a lead of ann, who sees only her own leads."""
    ann = await office.person("ann", {"model": "lead", "commands": "*", "clear": "*", "write": "*", "rows": OWN})
    await office.agent("alice", "*", name="agent")
    own_lead = await office.value(
        "alice", "lead.create", title="x", contact_name="Ada One", contact_email="a@one.example"
    )
    anns_lead = await office.value("root", "lead.create", title="of ann", owner=ann)
    return await office.value("agent", "lead.get", id=own_lead["id"]), anns_lead["id"]


async def test_a_copy_to_a_record_that_other_people_see_is_proposed(office: Office) -> None:
    own_lead, anns_lead = await leads_of(office)

    await office.proposed("agent", "lead.update", id=anns_lead, contact_email=own_lead["contact_email"])
    await office.proposed("agent", "lead.update", id=anns_lead, notes=f"as {own_lead['contact_name']}")

    assert (await office.value("ann", "lead.get", id=anns_lead))["contact_email"] is None


async def test_a_copy_within_one_record_is_made_at_once(office: Office) -> None:
    own_lead, _ = await leads_of(office)

    changed_lead = await office.value(
        "agent", "lead.update", id=own_lead["id"], notes=f"Ask {own_lead['contact_name']}"
    )

    assert "NOTES_" in changed_lead["notes"]


async def test_a_copy_to_a_record_with_the_same_audience_is_made_at_once(office: Office) -> None:
    agent = await office.agent("alice", "*")
    own_lead, other_lead = await office.value(agent, "lead.list", limit=2)

    changed_lead = await office.value(
        agent, "lead.update", id=other_lead["id"], contact_email=own_lead["contact_email"]
    )

    assert changed_lead["contact_email"] == own_lead["contact_email"]
