"""Writing back what was read changes nothing: the record and the revision stay the same, and there is no audit
entry."""

from typing import Any

from tests.records.office import Office

MODELS = ("lead", "party", "ticket", "activity", "product", "user")
UNMASKED = ("lead.contact_email", "lead.contact_name", "party.email", "party.name", "ticket.requester_email")


async def _callers(office: Office) -> list[str]:
    masked = {"masked": "contact_email,contact_name,notes", "clear": "title,stage,owner"}
    await office.person("dora", {"model": "lead", "commands": "get,list,update", "write": "*", **masked})
    return [
        "root",
        "bob",
        "dora",
        await office.agent("root", label="masked"),
        await office.agent("root", label="unmasked", unmask=UNMASKED),
    ]


async def _entries(office: Office) -> int:
    return int((await office.value("root", "audit_entry.search", limit=1))["total"])


async def _writable(office: Office, who: str) -> dict[str, list[str]]:
    """Map each model that the caller may update to the fields that the caller reads and writes."""
    answer = await office.http.get("/api/meta", headers=office.headers(who))
    return {
        model["name"]: [field["name"] for field in model["fields"] if not field["readonly"]]
        for model in answer.json()["models"]
        if model["name"] in MODELS
        and {"list", "update"} <= {command.rpartition(".")[2] for command in model["commands"]}
    }


async def _fill(office: Office) -> None:
    """Create records with a value in every personal field, including texts with tokens."""
    text = {"notes": "Call EMAIL_12 on Monday.\n"}
    lead = {"contact_email": "ada@x.example", "contact_name": "Ada", "contact_phone": "+43 1", "lost_reason": "none"}
    await office.value("alice", "lead.create", title="About EMAIL_12", **lead, **text)
    await office.value("root", "party.create", name="Ada", email="ada@x.example", **text)


async def test_writing_back_what_was_read_changes_nothing(office: Office) -> None:
    await _fill(office)
    for who in await _callers(office):
        writable = await _writable(office, who)
        assert "lead" in writable
        for model, names in writable.items():
            rows = await office.value(who, f"{model}.list", limit=50)
            for record in sorted(rows, key=lambda row: sum(value is not None for value in row.values()))[-2:]:
                await _same_after(office, who, model, record, names)


async def _same_after(office: Office, who: str, model: str, record: dict[str, Any], names: list[str]) -> None:
    entries_before = await _entries(office)
    values = {name: record[name] for name in names}
    answer = await office.call(who, f"{model}.update", {"id": record["id"], **values})
    if answer.status_code == 202:
        # A change that an agent may only propose also changes nothing when it is approved.
        plan_id = answer.json()["plan_id"]
        approval = await office.approve("root", plan_id)
        assert approval.status_code == 200, approval.text
        state = [{"field": "plan_id", "op": "eq", "value": plan_id}, {"field": "model", "op": "eq", "value": model}]
        assert (await office.value("root", "audit_entry.search", filter=state, limit=1))["total"] == 0
        stored_record = await office.value("root", f"{model}.get", id=record["id"])
        assert stored_record["revision"] == record["revision"]
        return
    assert answer.status_code == 200, f"{who} {model} {values}: {answer.text}"
    assert answer.json()["value"] == record
    assert await _entries(office) == entries_before


async def test_a_note_with_text_added_beside_its_token_is_a_change(office: Office) -> None:
    await _fill(office)
    agent = await office.agent("alice")
    record = next(lead for lead in await office.all("lead", agent) if lead["contact_phone"] and lead["notes"])

    for text in ("{}!", " {}", "{}\n", "{} "):
        body = {"id": record["id"], "notes": text.replace("{}", record["notes"])}
        changed_lead = await office.value(agent, "lead.update", **body)
        assert changed_lead["revision"] == record["revision"] + 1
        assert changed_lead["notes"] != record["notes"]
        record = changed_lead


async def test_the_notes_token_of_another_record_is_a_change(office: Office) -> None:
    agent = await office.agent("root")
    first_lead = await office.value("root", "lead.create", title="One", notes="The same text")
    other_lead = await office.value("root", "lead.create", title="Other", notes="The same text")
    lead_before = await office.value(agent, "lead.get", id=first_lead["id"])
    token = (await office.value(agent, "lead.get", id=other_lead["id"]))["notes"]

    changed_lead = await office.value(agent, "lead.update", id=first_lead["id"], notes=token)

    assert changed_lead["revision"] == lead_before["revision"] + 1
    assert changed_lead["notes"] not in (lead_before["notes"], token)


async def test_a_guess_of_the_text_in_place_is_a_change(office: Office) -> None:
    agent = await office.agent("root")
    lead = await office.value("root", "lead.create", title="One", notes="A text", contact_email="ada@x.example")
    lead_before = await office.value(agent, "lead.get", id=lead["id"])

    for guess in ({"notes": "A text"}, {"contact_email": "ada@x.example"}):
        changed_lead = await office.value(agent, "lead.update", id=lead["id"], **guess)
        assert changed_lead["revision"] == lead_before["revision"] + 1
        assert all(changed_lead[name] != lead_before[name] for name in guess)
        lead_before = changed_lead
