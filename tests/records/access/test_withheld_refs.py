"""A ref to a model that the caller cannot read is a hidden field. It is never shown as empty."""

from typing import Any

from countersign.declare import Declared, Ref
from countersign.records.base_models import PAGE_MODELS
from tests.records.mcp.desk import McpDesk, tool
from tests.records.office import Office

OWN = {("plan", "person"), ("plan", "agent_token"), ("session", "user"), ("agent_token", "user")}
"""Refs to the person and the token of the agent itself, which the agent sees."""


def refs(office: Office) -> list[tuple[Declared, list[str]]]:
    """Return the models with refs to other models, and the names of these refs. Models for pages are left out, because
    agents do not have them."""
    refs_by_model: list[tuple[Declared, list[str]]] = []
    for model in office.service.records.registry.models.values():
        names = [name for name, field in model.fields.items() if isinstance(field, Ref) and field.target != model.name]
        other_names = [name for name in names if (model.name, name) not in OWN]
        if other_names and model.name not in PAGE_MODELS and {"get", "list"} <= set(model.commands):
            refs_by_model.append((model, other_names))
    return refs_by_model


def condition(name: str, op: str = "is_null", value: object = True) -> dict[str, object]:
    """Return a filter with one condition."""
    return {"field": name, "op": op, "value": value}


async def test_no_ref_to_a_model_that_the_caller_cannot_read_is_shown_named_or_accepted(office: Office) -> None:
    refs_by_model = refs(office)
    for model, names in refs_by_model:
        agent = await office.agent("root", f"{model.name}.*", name=f"agent for {model.name}")
        denied_names = await office.denied(agent, f"{model.name}.list", limit=1)
        rows = await office.value(agent, f"{model.name}.list", limit=1)
        for name in names:
            assert f"{model.name}.{name}" in denied_names
            assert all(name not in row for row in rows)
            await _is_unknown(office, agent, model, name, rows)
        await _is_not_described(office, agent, model, names)
    assert len(refs_by_model) >= 8, "the shipped modules have fewer models with refs than they had"


async def _is_unknown(office: Office, agent: str, model: Declared, name: str, rows: list[Any]) -> None:
    unknown = f"unknown field {model.name}.{name}"
    assert await office.refusal_of(agent, f"{model.name}.list", filter=[condition(name)]) == unknown
    assert await office.refusal_of(agent, f"{model.name}.search", order=[{"field": name}]) == unknown
    over_mcp = await McpDesk(office).result(tool(f"{model.name}__list", filter=[condition(name)]), agent)
    assert (over_mcp["isError"], unknown in over_mcp["content"][0]["text"]) == (True, True)
    if "count_by" in model.commands:
        assert await office.refusal_of(agent, f"{model.name}.count_by", field=name) == unknown
        assert await office.refusal_of(agent, f"{model.name}.export", filter=[condition(name)]) == unknown
    if "update" in model.commands and rows:
        for value in (None, rows[0]["id"]):
            reason = await office.refusal_of(agent, f"{model.name}.update", id=rows[0]["id"], **{name: value})
            assert reason == unknown


async def _is_not_described(office: Office, agent: str, model: Declared, names: list[str]) -> None:
    headers = office.headers(agent)
    meta = (await office.http.get("/api/meta", headers=headers)).json()
    (described_model,) = [entry for entry in meta["models"] if entry["name"] == model.name]
    assert not {field["name"] for field in described_model["fields"]} & set(names)
    is_asked = any(_is_asked(model, name) for name in names)
    for command in {"create", "import"} & set(model.commands):
        assert (f"{model.name}.{command}" in described_model["commands"]) is not is_asked, (model.name, command)
        status = (await office.call(agent, f"{model.name}.{command}", {})).status_code
        assert (status == 404) is is_asked
    document = (await office.http.get("/api/openapi.json", headers=headers)).json()
    list_operation = str(document["paths"][f"/api/{model.name}/list"])
    assert not [name for name in names if f"'{name}'" in list_operation]


def _is_asked(model: Declared, name: str) -> bool:
    field = model.fields[name]
    return field.required and field.default is None and not field.readonly


async def test_exports_history_and_plans_leave_the_ref_out(office: Office) -> None:
    agent = await office.agent("alice", "lead.*")
    party = (await office.first_record("party"))["id"]
    lead = (await office.value("alice", "lead.create", title="x", party=party))["id"]

    head = (await office.value(agent, "lead.export", limit=1))["text"].splitlines()[0]
    plan = await office.proposed(agent, "lead.delete", id=lead)
    diff = (await office.value(agent, "plan.get", id=plan))["diff"]
    (entry,) = await office.value(agent, "lead.history", id=lead)

    assert not {"party", "owner"} & set(head.split(","))
    assert not {"party", "owner"} & {change["field"] for change in diff}
    assert not {"party", "owner"} & set(entry["changes"])


async def test_an_agent_sees_the_person_of_its_own_plans_and_tokens(office: Office) -> None:
    agent = await office.agent("alice", "lead.*", "agent_token.list")
    alice = (await office.first_record("user", username="alice"))["id"]
    plan = await office.proposed(agent, "lead.delete", id=(await office.value("alice", "lead.create", title="x"))["id"])

    shown_plan = await office.value(agent, "plan.get", id=plan)
    tokens = await office.value(agent, "agent_token.list")

    assert shown_plan["person"] == alice
    assert "decided_by" not in shown_plan
    assert shown_plan["agent_token"] in {token["id"] for token in tokens}
    assert {token["user"] for token in tokens} == {alice}
    narrow = await office.agent("alice", "lead.*", name="narrow")
    assert (await office.value(narrow, "plan.list")) == []
    second_lead = (await office.value("alice", "lead.create", title="y"))["id"]
    other_plan = await office.proposed(narrow, "lead.delete", id=second_lead)
    assert (await office.value(narrow, "plan.get", id=other_plan))["agent_token"] in {
        agent_token["id"] for agent_token in await office.all("agent_token", "alice")
    }


async def test_an_agent_that_reads_all_tokens_learns_only_its_own_person(office: Office) -> None:
    await office.agent("alice", "lead.*")
    agent = await office.agent("root", "agent_token.list")
    root = (await office.first_record("user", username="root"))["id"]

    users = {agent_token["user"] for agent_token in await office.value(agent, "agent_token.list")}

    assert users == {root, None}


async def test_meta_marks_the_refs_that_may_hide_a_record(office: Office) -> None:
    rows = '[{"field":"kind","op":"eq","value":"person"}]'
    await office.person(
        "dan",
        {"model": "lead", "commands": "*", "clear": "title,party,owner"},
        {"model": "party", "commands": "get", "clear": "kind", "rows": rows},
    )
    for caller, hiding in (("dan", {"party", "owner"}), ("alice", set[str]())):
        meta = (await office.http.get("/api/meta", headers=office.headers(caller))).json()
        (lead,) = [model for model in meta["models"] if model["name"] == "lead"]
        assert {field["name"] for field in lead["fields"] if field["may_hide"]} == hiding
