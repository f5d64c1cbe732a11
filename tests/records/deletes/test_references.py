"""Every reference of every shipped module: a deletion is refused while the reference exists, and cascades as
declared."""

from countersign.declare import Declared
from countersign.declare.registry import Referrer
from tests.records.deletes.making import pair, referrers, stored_value
from tests.records.mcp.desk import McpDesk, tool
from tests.records.office import Office

REFUSAL = "another record refers to this one"


async def test_a_deletion_is_refused_while_any_reference_to_the_record_exists(office: Office) -> None:
    targets_with_referrers = referrers(office.service.records.registry)
    for target, referrer in targets_with_referrers:
        record_id, referring_id = await pair(office, target, referrer)

        over_rest = await office.refusal_of("root", f"{target.name}.delete", id=record_id)
        over_mcp = await McpDesk(office).result(tool(f"{target.name}__delete", id=record_id), "root")

        assert over_rest == REFUSAL, _named(target, referrer)
        assert over_mcp["isError"] is True, _named(target, referrer)
        assert REFUSAL in over_mcp["content"][0]["text"]
        assert await stored_value(office, referrer.model, referring_id, referrer.ref.name) == [record_id]
    assert len(targets_with_referrers) >= 16, "the shipped modules have fewer references than they had"


async def test_a_deletion_follows_the_rule_that_each_reference_declares(office: Office) -> None:
    for number, (target, referrer) in enumerate(referrers(office.service.records.registry)):
        record_id, referring_id = await pair(office, target, referrer)
        body = {"id": record_id, "cascade": True}
        if referrer.ref.on_delete == "refuse":
            assert await office.refusal_of("root", f"{target.name}.delete", **body) == REFUSAL
            assert await stored_value(office, target, record_id) == [record_id], _named(target, referrer)
            continue

        if number % 2:
            await office.value("root", f"{target.name}.delete", **body)
        else:
            result = await McpDesk(office).result(tool(f"{target.name}__delete", **body), "root")
            assert result["isError"] is False, result

        expected_values = {"cascade": [], "clear": [None]}[referrer.ref.on_delete]
        assert await stored_value(office, target, record_id) == [], _named(target, referrer)
        assert await stored_value(office, referrer.model, referring_id, referrer.ref.name) == expected_values, _named(
            target, referrer
        )
        await _is_audited(office, target, referrer, referring_id)


async def _is_audited(office: Office, target: Declared, referrer: Referrer, record_id: str) -> None:
    filters = [{"field": "record_id", "op": "eq", "value": record_id},
               {"field": "command", "op": "eq", "value": f"{target.name}.delete"}]  # fmt: skip
    (entry,) = await office.value("root", "audit_entry.list", filter=filters)
    assert entry["model"] == referrer.model.name
    assert entry["changes"][referrer.ref.name][1] is None


async def test_a_deletion_without_rights_to_the_cascade_needs_an_approval(
    office: Office,
) -> None:
    for number, (target, referrer) in enumerate(referrers(office.service.records.registry)):
        who = f"clerk{number}"
        await office.person(who, {"model": target.name, "commands": "*", "clear": "*", "write": "*"})
        record_id, referring_id = await pair(office, target, referrer)
        assert await office.refusal_of(who, f"{target.name}.delete", id=record_id) == REFUSAL
        if referrer.ref.on_delete == "refuse":
            assert await office.refusal_of(who, f"{target.name}.delete", id=record_id, cascade=True) == REFUSAL
        elif _has_right_of_its_own(referrer):
            plan = await office.proposed(who, f"{target.name}.delete", id=record_id, cascade=True)
            assert (await office.approve(who, plan)).status_code == 404, _named(target, referrer)
            assert await stored_value(office, referrer.model, referring_id, referrer.ref.name) == [record_id]
            approval = await office.approve("root", plan)
            assert approval.json()["value"]["state"] == "executed", approval.text
            assert await stored_value(office, target, record_id) == []
        else:
            await office.value(who, f"{target.name}.delete", id=record_id, cascade=True)
            assert await stored_value(office, target, record_id) == []


def _has_right_of_its_own(referrer: Referrer) -> bool:
    """Return whether a caller can be given the right to change this ref. Models without the command and fields that
    only the engine writes follow the record to which they belong."""
    if referrer.ref.on_delete == "cascade":
        return "delete" in referrer.model.commands
    return "update" in referrer.model.commands and not referrer.ref.readonly


async def test_meta_shows_the_deletion_rule_of_each_visible_reference(office: Office) -> None:
    registry = office.service.records.registry
    for who in ("root", "alice", "carol"):
        answer = await office.http.get("/api/meta", headers=office.headers(who))
        for model in answer.json()["models"]:
            for field in model["fields"]:
                declared = registry.models[model["name"]].fields[field["name"]]
                assert field["on_delete"] == getattr(declared, "on_delete", None), field
                assert isinstance(field["may_hide"], bool)


async def test_the_documents_name_cascade(office: Office) -> None:
    document = (await office.http.get("/api/openapi.json", headers=office.headers("alice"))).json()
    body = document["paths"]["/api/party/delete"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body["properties"]["cascade"]["type"] == "boolean"
    assert body["required"] == ["id"]


def _named(target: Declared, referrer: Referrer) -> str:
    return f"{referrer.model.name}.{referrer.ref.name} to {target.name}"
