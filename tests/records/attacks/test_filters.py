"""Fields that are rewritten or masked in responses cannot be read through filters and orders."""

from tests.records.office import Office

AUDIT = {"model": "audit_entry", "commands": "get,list,search", "clear": "*"}
TITLES = {"model": "lead", "commands": "get,list", "clear": "title"}


async def _errors_of_field(office: Office, who: str, model: str, field: str) -> list[str]:
    """Return the errors of a filter and an order that use the field."""
    condition = {"field": field, "op": "contains", "value": "a"}
    return [
        await office.refusal_of(who, f"{model}.list", filter=[condition], limit=1),
        await office.refusal_of(who, f"{model}.search", order=[{"field": field}], limit=1),
    ]


async def test_an_agent_cannot_spell_out_error_or_digest_of_its_plan_by_filters(office: Office) -> None:
    agent = await office.agent("alice", "party.*", "plan.*")
    plan = await office.proposed(agent, "party.delete", id=(await office.first_record("invoice"))["party"])
    assert (await office.approve("root", plan)).status_code == 400
    assert (await office.value(agent, "plan.get", id=plan))["error"] == "refused"
    unknown = await _errors_of_field(office, agent, "plan", "nothing")
    for field in ("error", "digest", "input", "diff", "effects"):
        response_texts = [
            text.replace(field, "nothing") for text in await _errors_of_field(office, agent, "plan", field)
        ]
        assert response_texts == unknown


async def test_a_filter_on_the_audit_does_not_reveal_which_hidden_fields_were_changed(office: Office) -> None:
    await office.person("dan", TITLES, AUDIT)
    for who in ("dan", await office.agent("dan", "*")):
        unknown = await _errors_of_field(office, who, "audit_entry", "nothing")
        for field in ("fields", "changes"):
            response_texts = [
                text.replace(field, "nothing") for text in await _errors_of_field(office, who, "audit_entry", field)
            ]
            assert response_texts == unknown


async def test_the_numbers_of_the_audit_do_not_reveal_how_many_entries_are_hidden(office: Office) -> None:
    await office.person("dan", TITLES, AUDIT)
    for who in ("dan", await office.agent("root", "*")):
        answer = (await office.call(who, "audit_entry.list", {"limit": 1})).json()
        assert answer["value"]
        assert not {"lane", "number"} & set(answer["value"][0])
        assert {"audit_entry.lane", "audit_entry.number"} <= set(answer["denied"])
    assert (await office.first_record("audit_entry"))["number"]
    entries = await office.value("root", "audit_entry.list", filter=[{"field": "fields", "op": "eq", "value": "title"}])
    assert all(entry["fields"] == "title" for entry in entries)
