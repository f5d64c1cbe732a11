"""Agent tokens: their scopes, the commands that they never permit, and how they end."""

from typing import Any

import pytest

from countersign.kernel import clock
from tests.records.office import Office


async def _commands(office: Office, who: str) -> set[str]:
    answer = await office.http.get("/api/commands", headers=office.headers(who))
    return {command["id"] for command in answer.json()["commands"]}


FREE = {"plan.get", "plan.list", "plan.search", "plan.withdraw"}


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ("lead.get", {"lead.get"}),
        ("*.get", {"lead.get", "party.get"}),
        ("activity.*", {"activity.get", "activity.list", "activity.update", "activity.finish"}),
        ("*", {"lead.get", "party.list", "lead.qualify", "activity.create"}),
    ],
)
async def test_a_scope_covers_only_the_commands_that_it_names(office: Office, scope: str, expected: set[str]) -> None:
    agent = await office.agent("bob", scope)

    commands = await _commands(office, agent)

    assert commands >= expected | FREE
    if scope == "lead.get":
        assert commands == expected | FREE
    assert commands <= await _commands(office, "bob") | FREE


@pytest.mark.parametrize(
    "scopes", [[], ["lead.fly"], ["invoice.get"], ["lead.delete"], ["*.delete"], ["lead"], ["LEAD.get"], [""], [1], "*"]
)
async def test_a_scope_without_a_matching_right_of_the_person_gets_400(office: Office, scopes: object) -> None:
    answer = await office.post("bob", "/api/auth/agent-token", {"scopes": scopes, "label": "x"})

    assert (answer.status_code, list(answer.json())) == (400, ["error"])


@pytest.mark.parametrize("label", [None, "", "  ", "x" * 101, 5, "EMAIL_12", "for email_12"])
async def test_a_label_is_a_short_text_without_tokens(office: Office, label: object) -> None:
    answer = await office.post("bob", "/api/auth/agent-token", {"scopes": ["*"], "label": label})

    assert answer.status_code == 400


async def test_an_unknown_key_is_400(office: Office) -> None:
    answer = await office.post("bob", "/api/auth/agent-token", {"scopes": ["*"], "label": "x", "scope": "*"})

    assert "scope" in answer.json()["error"]


async def test_an_agent_never_sees_personal_fields_in_clear(office: Office) -> None:
    for person in ("alice", "carol", "root"):
        agent = await office.agent(person)
        rows: list[dict[str, Any]] = await office.value(agent, "party.list", limit=20)
        for row in rows:
            assert row["name"].startswith("PERSON_")
            assert row["email"] is None or row["email"].startswith("EMAIL_")


async def test_unmask_shows_single_fields_where_the_person_has_the_right(office: Office) -> None:
    agent = await office.agent("root", name="trusted", unmask=["lead.contact_email"])

    lead = (await office.value(agent, "lead.list", limit=1))[0]

    assert "@" in lead["contact_email"]
    assert lead["contact_name"].startswith("PERSON_")
    entry = await office.first_record("audit_entry", command="agent_token.create")
    assert "lead.contact_email" in str(entry["changes"])


async def test_unmask_without_the_right_is_400(office: Office) -> None:
    body = {"scopes": ["*"], "label": "x", "unmask": ["lead.contact_email"]}

    assert (await office.post("alice", "/api/auth/agent-token", body)).status_code == 400


async def test_a_token_is_valid_for_90_days_or_the_requested_time(office: Office) -> None:
    await office.agent("bob", name="default")
    body = {"scopes": ["*"], "label": "short", "expires_in": 60}
    office.tokens["short"] = (await office.post("bob", "/api/auth/agent-token", body)).json()["token"]
    now = clock.now()

    with clock.fixed(clock.later(now, seconds=61)):
        assert (await office.call("short", "lead.list", {"limit": 1})).status_code == 401
        assert (await office.call("default", "lead.list", {"limit": 1})).status_code == 200
    with clock.fixed(clock.later(now, seconds=90 * 86400 + 5)):
        assert (await office.call("default", "lead.list", {"limit": 1})).status_code == 401


@pytest.mark.parametrize("expires_in", [0, -1, 10**9, "60", 1.5, True])
async def test_another_life_is_400(office: Office, expires_in: object) -> None:
    body = {"scopes": ["*"], "label": "x", "expires_in": expires_in}

    assert (await office.post("bob", "/api/auth/agent-token", body)).status_code == 400


async def test_a_revoked_token_is_refused_at_once(office: Office) -> None:
    agent = await office.agent("bob")
    record = (await office.value("bob", "agent_token.list"))[0]

    await office.value("bob", "agent_token.revoke", id=record["id"])

    assert (await office.call(agent, "lead.list", {"limit": 1})).status_code == 401
    assert (await office.value("bob", "agent_token.get", id=record["id"]))["ended_at"]


async def test_only_callers_with_the_right_revoke_the_token_of_another_person(office: Office) -> None:
    await office.agent("bob")
    record = (await office.value("bob", "agent_token.list"))[0]

    assert await office.refusal_of("alice", "agent_token.revoke", id=record["id"]) == "no such record"
    await office.value("root", "agent_token.revoke", id=record["id"])


async def test_a_wildcard_covers_the_current_rights_of_the_person(office: Office) -> None:
    agent = await office.agent("bob", "*")
    assert (await office.call(agent, "product.list", {})).status_code == 404
    role = await office.first_record("role", title="clerk")

    grant = await office.value(
        "root", "grant.create", role=role["id"], model="product", commands="list", clear="sku,name"
    )

    assert set((await office.value(agent, "product.list"))[0]) == {"id", "revision", "sku", "name"}
    await office.value("root", "grant.delete", id=grant["id"])
    assert (await office.call(agent, "product.list", {})).status_code == 404


async def test_placeholder_tokens_outlive_the_rotation_of_the_bearer_token(office: Office) -> None:
    first_token = await office.agent("bob", name="one", label="mailbot")
    second_token = await office.agent("bob", name="two", label="mailbot")
    other_agent = await office.agent("bob", name="three", label="another")

    party_lists = [await office.value(who, "party.list", limit=5) for who in (first_token, second_token, other_agent)]

    assert party_lists[0] == party_lists[1]
    assert [row["name"] for row in party_lists[0]] != [row["name"] for row in party_lists[2]]


async def test_a_command_that_ends_a_record_returns_the_ended_record(office: Office) -> None:
    agent, own_token = await office.agent("alice", label="bot"), await office.agent("alice", label="own")
    tokens = {agent_token["label"]: agent_token["id"] for agent_token in await office.all("agent_token", "alice")}
    session = (await office.value("bob", "session.list"))[0]
    lead = await office.first_record("lead", "alice")
    plans = [await office.proposed(agent, "lead.delete", id=lead["id"]) for _ in range(2)]
    assert plans[0] == plans[1]
    rejected = await office.value("alice", "plan.reject", id=plans[0], reason="no")
    withdrawn_id = await office.proposed(agent, "lead.delete", id=lead["id"])
    withdrawn_plan = await office.value(agent, "plan.withdraw", id=withdrawn_id)
    ended_records = [
        ("plan", rejected),
        ("agent_token", await office.value("alice", "agent_token.revoke", id=tokens["bot"])),
        ("agent_token", await office.value(own_token, "agent_token.revoke", id=tokens["own"])),
        ("session", await office.value("bob", "session.revoke")),
        ("user", await office.value("root", "user.update", id=session["user"], is_active=False)),
    ]

    for model, answer in ended_records:
        assert answer == await office.value("root", f"{model}.get", id=answer["id"])
    assert (rejected["state"], withdrawn_plan["state"]) == ("rejected", "withdrawn")
    assert [bool(record.get("ended_at")) for _, record in ended_records] == [False, True, True, True, False]


async def test_ending_an_ended_token_changes_nothing(office: Office) -> None:
    await office.agent("alice", label="bot")
    token = next(
        agent_token for agent_token in await office.all("agent_token", "alice") if agent_token["label"] == "bot"
    )
    first_revocation = await office.value("alice", "agent_token.revoke", id=token["id"])

    second_agent_token = await office.value("alice", "agent_token.revoke", id=token["id"])

    assert second_agent_token == first_revocation
    ends = [{"field": "command", "op": "eq", "value": "agent_token.revoke"}]
    (entry,) = await office.value("root", "audit_entry.list", filter=ends)
    assert entry["changes"] == {"ended_at": [None, first_revocation["ended_at"]]}
