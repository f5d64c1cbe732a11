"""The endpoint table of the API document, row by row, and the checks before any command: method, size, media type,
token."""

from typing import Any

import pytest

from countersign.kernel import clock
from tests.records.office import Office

CALLS = ["/api/auth/agent-token", "/api/lead/list", "/api/approve/0123456789abcdef01234567"]


async def test_post_auth_login_answers_a_token(office: Office) -> None:
    body = {"username": "alice", "password": "countersign-demo"}

    answer = await office.http.post("/api/auth/login", json=body)

    assert answer.status_code == 200
    assert list(answer.json()) == ["token"]
    headers = {"Authorization": f"Bearer {answer.json()['token']}"}
    assert (await office.http.get("/api/commands", headers=headers)).status_code == 200


@pytest.mark.parametrize(("username", "password"), [("alice", "wrong"), ("nobody", "countersign-demo"), ("Alice", "x")])
async def test_post_auth_login_answers_401_to_wrong_credentials(office: Office, username: str, password: str) -> None:
    answer = await office.http.post("/api/auth/login", json={"username": username, "password": password})

    assert answer.status_code == 401
    assert answer.json() == {"error": "wrong user name or password"}
    assert answer.headers["www-authenticate"] == "Bearer"


async def test_post_auth_login_answers_429_for_any_password_when_locked_out(office: Office) -> None:
    wrong_login = {"username": "bob", "password": "wrong"}
    for _ in range(5):
        assert (await office.http.post("/api/auth/login", json=wrong_login)).status_code == 401

    right = await office.http.post("/api/auth/login", json={"username": "BOB", "password": "countersign-demo"})

    assert right.status_code == 429
    assert 1 <= int(right.headers["retry-after"]) <= 60
    assert list(right.json()) == ["error"]
    assert (await office.call("bob", "lead.list", {"limit": 1})).status_code == 200


@pytest.mark.parametrize("body", [{}, {"username": "alice"}, {"username": 1, "password": "x"}, {"x": 1}])
async def test_post_auth_login_answers_400_to_another_input(office: Office, body: dict[str, object]) -> None:
    assert (await office.http.post("/api/auth/login", json=body)).status_code == 400


async def test_post_auth_agent_token_answers_a_token_once(office: Office) -> None:
    answer = await office.post("alice", "/api/auth/agent-token", {"scopes": ["lead.list"], "label": "scout"})

    assert answer.status_code == 200
    assert list(answer.json()) == ["token"]
    listed_tokens = (await office.call("alice", "agent_token.list")).text
    assert answer.json()["token"] not in listed_tokens
    assert "scout" in listed_tokens


async def test_post_auth_agent_token_is_only_for_people(office: Office) -> None:
    agent = await office.agent("alice")

    answer = await office.post(agent, "/api/auth/agent-token", {"scopes": ["*"], "label": "child"})

    assert (answer.status_code, answer.json()) == (404, {"error": "not found"})


async def test_get_commands_lists_the_commands_that_the_caller_may_use(office: Office) -> None:
    agent = await office.agent("alice", "lead.get", "lead.delete", "*.list")

    answer = await office.http.get("/api/commands", headers=office.headers(agent))

    assert list(answer.json()) == ["commands"]
    commands = {command["id"]: command for command in answer.json()["commands"]}
    assert "invoice.list" not in commands
    assert {"lead.get", "lead.delete", "lead.list", "party.list", "plan.get", "plan.withdraw"} <= set(commands)
    assert {"lead.update", "user.create", "plan.reject", "lead.search"}.isdisjoint(commands)
    assert set(commands["lead.get"]) == {"id", "description", "needs_approval"}
    assert commands["lead.delete"]["needs_approval"] is True
    assert commands["lead.get"]["needs_approval"] is False


async def _listed_commands(office: Office, who: str) -> set[str]:
    answer = await office.http.get("/api/commands", headers=office.headers(who))
    return {command["id"] for command in answer.json()["commands"]}


async def test_every_listed_command_exists_and_every_other_command_is_missing(office: Office) -> None:
    listed_by_caller = {who: await _listed_commands(office, who) for who in ("alice", "bob", "carol", "root")}
    every = listed_by_caller["root"]

    for who in ("alice", "bob", "carol"):
        assert listed_by_caller[who] < every
        for command in sorted(every):
            answer = await office.call(who, command, {"no_such_key": 1})
            assert (answer.status_code != 404) == (command in listed_by_caller[who]), command


async def test_get_meta_describes_the_fields_that_the_caller_sees(office: Office) -> None:
    answer = await office.http.get("/api/meta", headers=office.headers("bob"))

    assert answer.headers["link"] == '</mcp>; rel="mcp"'
    assert set(answer.json()) == {"modules", "models", "caller"}
    models = {model["name"]: model for model in answer.json()["models"]}
    assert "invoice" not in models
    fields = {field["name"]: field for field in models["party"]["fields"]}
    assert "tax_id" not in fields
    assert fields["name"]["masked"] is True
    members = {"name", "kind", "label", "help", "required", "readonly", "options", "ref", "masked"}
    assert all(set(field) >= members for field in models["lead"]["fields"])
    qualify = next(action for action in models["lead"]["actions"] if action["id"] == "lead.qualify")
    assert {"id", "label", "inputs", "from", "to", "needs_approval"} <= set(qualify)
    assert (qualify["from"], qualify["to"]) == (["new"], "qualified")
    assert (qualify["labels"]["de"], qualify["risk"], qualify["reversible"]) == ("Qualifizieren", "medium", False)
    assert answer.json()["caller"] == {"kind": "person", "name": "bob", "scopes": []}
    asking_again = {**office.headers("bob"), "If-None-Match": answer.headers["etag"]}
    repeated_response = await office.http.get("/api/meta", headers=asking_again)
    assert repeated_response.status_code == 304


_WON = {"field": "stage", "op": "eq", "value": "won"}


async def test_get_meta_describes_the_presentation_of_models(office: Office) -> None:
    meta = {who: await _models(office, who) for who in ("alice", "bob")}

    lead = meta["bob"]["lead"]
    assert (lead["icon"], lead["group"], lead["title_field"]) == ("briefcase", "crm", "title")
    assert lead["subtitle_fields"] == ["contact_name", "stage"]
    assert lead["plurals"] == {"en": "Leads", "de": "Leads"}
    stage = next(field for field in lead["fields"] if field["name"] == "stage")
    assert stage["choices"][0] == {"value": "new", "label": {"en": "New", "de": "Neu"}, "tone": "info"}
    assert [choice["tone"] for choice in stage["choices"]] == ["info", "cyan", "violet", "good", "bad"]
    assert stage["is_personal"] is False
    email = next(field for field in lead["fields"] if field["name"] == "contact_email")
    assert (email["is_personal"], email["token_label"], stage["token_label"]) == (True, "EMAIL", None)
    details = {command_detail["id"]: command_detail for command_detail in meta["alice"]["lead"]["command_details"]}
    assert details["lead.delete"] == {
        "id": "lead.delete",
        "labels": {"en": "Delete", "de": "Löschen"},
        "verb": {"en": "Delete", "de": "Löschen"},
        "reversible": False,
        "risk": "high",
    }


async def test_get_meta_lists_the_measures_of_dashboards(office: Office) -> None:
    lead = (await _models(office, "bob"))["lead"]

    revenue = next(measure for measure in lead["measures"] if measure["fn"] == "sum")
    assert (revenue["field"], revenue["date"], revenue["better"]) == ("expected_revenue_minor", "expected_close", "up")
    assert (revenue["filter"], revenue["among"], revenue["ahead"]) == ([_WON], [], False)
    rate = next(measure for measure in lead["measures"] if measure["fn"] == "share")
    assert (rate["field"], rate["filter"]) == (None, [_WON])
    assert rate["among"] == [{"field": "stage", "op": "in", "value": ["won", "lost"]}]
    assert [measure["label"]["en"] for measure in lead["measures"] if measure["ahead"]] == ["Open pipeline"]


async def test_get_meta_shows_the_views_of_a_list_as_input_for_search(office: Office) -> None:
    closing, mine_view = (await _models(office, "alice"))["lead"]["views"]

    assert (closing["name"], closing["label"]["de"]) == ("closing", "Abschluss im Quartal")
    assert closing["filter"][0]["value"] > clock.rfc3339(clock.now())[:10]
    assert closing["order"] == [{"field": "expected_close", "dir": "asc"}]
    assert mine_view["filter"][0]["value"] == (await office.first_record("user", "alice", username="alice"))["id"]
    for view in (closing, mine_view):
        leads = await office.value("alice", "lead.search", filter=view["filter"], order=view["order"])
        assert {row["stage"] for row in leads["rows"]} <= {"new", "qualified", "proposed"}
        assert leads["total"] > 0


async def test_get_meta_omits_views_that_use_a_field_that_the_caller_does_not_read(office: Office) -> None:
    agent = await office.agent("alice", "lead.*")

    assert [view["name"] for view in (await _models(office, agent))["lead"]["views"]] == ["closing"]


async def test_get_meta_names_only_referring_models_that_the_caller_sees(office: Office) -> None:
    alice, bob, carol = [await _models(office, who) for who in ("alice", "bob", "carol")]

    assert {ref["model"] for ref in alice["party"]["incoming"]} == {"address", "lead", "ticket"}
    assert {ref["model"] for ref in bob["party"]["incoming"]} == {"address", "lead", "ticket"}
    assert {ref["model"] for ref in carol["party"]["incoming"]} == {"address", "invoice"}
    assert "tax_id" not in str(bob["party"])


async def test_get_meta_contains_the_currency_of_the_setting(office: Office) -> None:
    def currencies(models: dict[str, Any]) -> set[str | None]:
        return {field["currency"] for model in models.values() for field in model["fields"] if field["kind"] == "money"}

    assert currencies(await _models(office, "alice")) == {None}

    assert "setting.value" in await office.refusal_of("root", "setting.create", title="base.currency", value='"JPY"')
    await office.value("root", "setting.create", title="base.currency", value='"EUR"')

    models = await _models(office, "alice")
    assert currencies(models) == {"EUR"}
    assert all("currency" not in field for field in models["lead"]["fields"] if field["kind"] != "money")


async def _models(office: Office, who: str) -> dict[str, Any]:
    answer = await office.http.get("/api/meta", headers=office.headers(who))
    return {model["name"]: model for model in answer.json()["models"]}


async def test_get_openapi_describes_the_commands_that_the_caller_may_use(office: Office) -> None:
    answer = await office.http.get("/api/openapi.json", headers=office.headers("bob"))

    assert answer.status_code == 200, answer.text
    document = answer.json()
    assert document["openapi"].startswith("3.1")
    assert {"url", "transport", "protocol_versions", "auth"} <= set(document["x-mcp"])
    assert "/api/lead/list" in document["paths"]
    assert not [path for path in document["paths"] if "invoice" in path]
    assert "tax_id" not in answer.text


async def test_post_model_command_answers_an_envelope(office: Office) -> None:
    answer = await office.call("bob", "party.list", {"limit": 2})

    assert list(answer.json()) == ["denied", "value"]
    assert answer.json()["denied"] == ["party.tax_id"]
    assert len(answer.json()["value"]) == 2


async def test_post_model_command_answers_202_if_the_command_needs_approval(office: Office) -> None:
    agent = await office.agent("alice")
    lead = await office.first_record("lead")

    answer = await office.call(agent, "lead.delete", {"id": lead["id"]})

    assert answer.status_code == 202
    assert set(answer.json()) == {"approval_required", "plan_id", "expires_at"}
    assert answer.json()["approval_required"] is True


async def test_post_approve_executes_the_plan(office: Office) -> None:
    agent = await office.agent("alice")
    lead = await office.first_record("lead")
    plan_id = await office.proposed(agent, "lead.delete", id=lead["id"])

    answer = await office.approve("alice", plan_id)

    assert answer.status_code == 200
    assert answer.json()["value"] == {"plan_id": plan_id, "state": "executed", "result": {"id": lead["id"]}}


async def test_post_approve_takes_an_absent_body_without_a_content_type(office: Office) -> None:
    agent = await office.agent("alice")
    plan_id = await office.proposed(agent, "lead.delete", id=(await office.first_record("lead"))["id"])

    answer = await office.http.post(f"/api/approve/{plan_id}", headers=office.headers("alice"))

    assert answer.status_code == 200


@pytest.mark.parametrize("path", CALLS)
async def test_a_call_without_a_token_is_401(office: Office, path: str) -> None:
    answer = await office.http.post(path, json={})

    assert answer.status_code == 401
    assert list(answer.json()) == ["error"]
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "authorization", ["", "Bearer", "Bearer ", "Basic YTpi", "Bearer x", "Bearer css_session_0000000000", "Bearer a b"]
)
async def test_a_call_with_an_unknown_token_is_401(office: Office, authorization: str) -> None:
    answer = await office.http.post("/api/lead/list", json={}, headers={"Authorization": authorization})

    assert answer.status_code == 401


@pytest.mark.parametrize("content_type", [None, "text/plain", "application/x-www-form-urlencoded", "application/jsonx"])
@pytest.mark.parametrize("path", ["/api/auth/login", "/api/lead/list", "/api/nobody/knows", "/api/approve/x"])
async def test_a_body_not_sent_as_json_is_415(office: Office, path: str, content_type: str | None) -> None:
    headers = office.headers("alice") | ({} if content_type is None else {"Content-Type": content_type})

    answer = await office.http.post(path, content=b"{}", headers=headers)

    assert (answer.status_code, list(answer.json())) == (415, ["error"])


async def test_a_json_type_with_its_charset_is_accepted(office: Office) -> None:
    headers = office.headers("alice") | {"Content-Type": "application/json; charset=utf-8"}

    assert (await office.http.post("/api/lead/list", content=b'{"limit":1}', headers=headers)).status_code == 200


@pytest.mark.parametrize("path", ["/api/lead/list", "/api/auth/login", "/api/approve/x"])
async def test_another_method_is_405(office: Office, path: str) -> None:
    answer = await office.http.get(path, headers=office.headers("alice"))

    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


async def test_trace_is_refused(office: Office) -> None:
    answer = await office.http.request("TRACE", "/api/meta", headers={**office.headers("alice"), "X-Said": "marker"})

    assert answer.status_code == 405
    assert "marker" not in answer.text


async def test_no_answer_is_to_be_sniffed(office: Office) -> None:
    for path, status in (("/api/meta", 200), ("/api/lead/list", 405), ("/api/nothing", 404)):
        answer = await office.http.get(path, headers=office.headers("alice"))
        assert (answer.status_code, answer.headers["x-content-type-options"]) == (status, "nosniff"), path


async def test_a_body_over_8_mib_is_413_before_any_other_check(office: Office) -> None:
    answer = await office.http.post("/api/lead/list", content=b" " * ((8 << 20) + 1))

    assert answer.status_code == 413
    assert list(answer.json()) == ["error"]


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"null", b'"x"', b"{", b'{"limit":1}x', b'{"limit":1,"limit":2}', b"\xff", b'{"a":"\\u0000"}',
     b'{"a":"\\ud800"}', b'{"limit": NaN}', b"[" * 100_000],
)  # fmt: skip
async def test_a_body_other_than_a_json_object_is_400(office: Office, content: bytes) -> None:
    headers = office.headers("alice") | {"Content-Type": "application/json"}

    answer = await office.http.post("/api/lead/get", content=content, headers=headers)

    assert (answer.status_code, list(answer.json())) == (400, ["error"])


async def test_unknown_hidden_and_forbidden_commands_get_the_same_404(office: Office) -> None:
    agent = await office.agent("bob", "lead.get")
    answers = [
        await office.call(who, command, {"id": "x"})
        for who, command in [
            ("bob", "nothing.get"),
            ("bob", "lead.fly"),
            ("bob", "invoice.get"),
            ("bob", "lead.delete"),
            (agent, "lead.list"),
            (agent, "plan.reject"),
            ("bob", "lead.__class__"),
        ]
    ]
    answers.append(await office.approve("bob", "0123456789abcdef01234567"))
    answers.append(await office.approve(agent, "0123456789abcdef01234567"))

    assert {answer.status_code for answer in answers} == {404}
    assert {answer.content for answer in answers} == {b'{"error":"not found"}'}
    for answer in answers:
        # The request id is a random number, so it is ignored.
        del answer.headers["x-request-id"]
    assert len({str(sorted(answer.headers.items())) for answer in answers}) == 1


async def test_a_path_beside_the_table_is_404(office: Office) -> None:
    for path in ("/api", "/api/", "/api/lead", "/api/lead/get/x", "/api/platform/instances", "/api/lead%2Fget"):
        answer = await office.http.post(path, json={}, headers=office.headers("root"))
        assert (answer.status_code, answer.content) == (404, b'{"error":"not found"}'), path
