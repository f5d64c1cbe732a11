"""Idempotency-Key in records (decisions 11): each key has one effect, and a replay reveals no more than a new call."""

import asyncio
import itertools
import random
import shutil
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from countersign.kernel import clock
from countersign.records import app
from countersign.records.commands.errors import BadInput
from tests.records.conftest import OfficeSettings, SeededOffice
from tests.records.office import ROOT_URL, Office, settings

LEAD = {"title": "A lead", "contact_email": "new@person.example", "contact_name": "New Person"}
IN_PROGRESS = "the first call with this Idempotency-Key is still running; repeat the call in a second"
REUSED = "this Idempotency-Key was used for another input; use a new key"


def new_key() -> str:
    """Return a new key."""
    return str(uuid.uuid4())


async def run_with_key(
    office: Office, who: str, command: str, key: str, body: Mapping[str, object] | None = None
) -> httpx.Response:
    """Run a command with a key."""
    headers = {**office.headers(who), "Idempotency-Key": key}
    return await office.http.post("/api/" + command.replace(".", "/"), json=body or {}, headers=headers)


async def run_twice(
    office: Office, who: str, command: str, body: Mapping[str, object] | None = None
) -> tuple[httpx.Response, httpx.Response]:
    """Run a command twice with one key. Only the second response must be marked as a replay."""
    key = new_key()
    first_answer, repeated_answer = (
        await run_with_key(office, who, command, key, body),
        await run_with_key(office, who, command, key, body),
    )
    assert "idempotency-replayed" not in first_answer.headers, first_answer.text
    assert repeated_answer.headers.get("idempotency-replayed") == "true", repeated_answer.text
    return first_answer, repeated_answer


def has_same_bytes(first_answer: httpx.Response, repeated_answer: httpx.Response) -> bool:
    """Return whether both responses have the same status and bytes."""
    return (first_answer.status_code, first_answer.content) == (repeated_answer.status_code, repeated_answer.content)


async def leads(office: Office, title: str = "A lead") -> int:
    """Return the number of leads with this title."""
    search_result = await office.value(
        "root", "lead.search", filter=[{"field": "title", "op": "eq", "value": title}], limit=1
    )
    return int(search_result["total"])


async def test_a_repeated_create_makes_one_record_and_gets_the_first_answer(office: Office) -> None:
    first_answer, repeated_answer = await run_twice(office, "alice", "lead.create", LEAD)

    assert (first_answer.status_code, has_same_bytes(first_answer, repeated_answer)) == (200, True)
    assert await leads(office) == 1


async def test_every_kind_of_writing_command_with_a_key_is_done_once_for_a_person(office: Office) -> None:
    lead = await office.value("alice", "lead.create", **LEAD)
    contact = await office.value("root", "party.create", name="Solo")
    calls: list[tuple[str, str, dict[str, Any]]] = [
        ("alice", "lead.update", {"id": lead["id"], "title": "Renamed", "contact_email": "other@person.example"}),
        ("alice", "lead.qualify", {"id": lead["id"]}),
        ("alice", "lead.import", {"csv": "title\nOne row\nAnother row\n"}),
        ("alice", "lead.import", {"csv": "title\nOne row\n", "dry_run": True}),
        ("alice", "lead.import", {"csv": 'title,stage\nOne row,"nowhere"\n'}),
        ("root", "party.delete", {"id": contact["id"]}),
        ("root", "user.invite", {"id": (await office.first_record("user", username="bob"))["id"]}),
    ]

    for who, command, body in calls:
        first_answer, repeated_answer = await run_twice(office, who, command, body)
        assert (first_answer.status_code, has_same_bytes(first_answer, repeated_answer)) == (200, True), (
            f"{command}: {first_answer.text} {repeated_answer.text}"
        )

    assert await leads(office, "One row") == 1
    history = await office.value("root", "lead.history", id=lead["id"])
    assert sorted(entry["command"] for entry in history) == ["lead.create", "lead.qualify", "lead.update"]


async def test_an_agents_answers_and_proposals_are_done_once(office: Office) -> None:
    agent = await office.agent("alice")
    first_answer, repeated_answer = await run_twice(office, agent, "lead.create", LEAD)
    assert (first_answer.status_code, has_same_bytes(first_answer, repeated_answer)) == (200, True)
    lead = first_answer.json()["value"]
    body = {"id": lead["id"], "contact_email": lead["contact_email"], "title": "By an agent"}
    first_answer, repeated_answer = await run_twice(office, agent, "lead.update", body)
    assert (first_answer.status_code, has_same_bytes(first_answer, repeated_answer)) == (200, True)

    first_answer, repeated_answer = await run_twice(office, agent, "lead.delete", {"id": lead["id"]})
    assert (first_answer.status_code, has_same_bytes(first_answer, repeated_answer)) == (202, True)
    first_answer, repeated_answer = await run_twice(
        office, agent, "plan.withdraw", {"id": first_answer.json()["plan_id"]}
    )
    assert (first_answer.status_code, has_same_bytes(first_answer, repeated_answer)) == (200, True)
    steps = [{"command": "lead.create", "input": LEAD}]
    first_answer, repeated_answer = await run_twice(office, agent, "plan.propose", {"steps": steps})
    assert (first_answer.status_code, has_same_bytes(first_answer, repeated_answer)) == (202, True)
    first_answer, repeated_answer = await run_twice(
        office, "alice", "plan.reject", {"id": first_answer.json()["plan_id"], "reason": "no"}
    )
    assert (first_answer.status_code, has_same_bytes(first_answer, repeated_answer)) == (200, True)
    assert first_answer.json()["value"]["state"] == "rejected"


async def test_a_withdrawn_proposal_is_not_made_again_by_a_repeat(office: Office) -> None:
    agent, key = await office.agent("alice"), new_key()
    lead = await office.first_record("lead", "alice")
    first_answer = await run_with_key(office, agent, "lead.delete", key, {"id": lead["id"]})
    await office.value(agent, "plan.withdraw", id=first_answer.json()["plan_id"])

    repeated_answer = await run_with_key(office, agent, "lead.delete", key, {"id": lead["id"]})

    assert has_same_bytes(first_answer, repeated_answer)
    pending = [{"field": "state", "op": "eq", "value": "pending"}]
    assert (await office.value(agent, "plan.search", filter=pending, limit=1))["total"] == 0


async def test_a_key_is_a_uuid_bare_or_quoted(office: Office) -> None:
    key = new_key()
    await run_with_key(office, "alice", "lead.create", key, LEAD)
    for spelling in (f'"{key}"', key.upper()):
        assert (await run_with_key(office, "alice", "lead.create", spelling, LEAD)).headers[
            "idempotency-replayed"
        ] == "true"

    for wrong_key in ("", "x", key[:-1], f"{key}, {new_key()}", f"'{key}'"):
        answer = await run_with_key(office, "alice", "lead.create", wrong_key, LEAD)
        assert (answer.status_code, answer.json()) == (
            400,
            {"error": "Idempotency-Key: must be one UUID, bare or in double quotes"},
        )
    assert await leads(office) == 1


async def test_a_key_is_refused_with_another_input_and_accepted_with_another_spelling_of_the_input(
    office: Office
) -> None:
    key = new_key()
    await run_with_key(office, "alice", "lead.create", key, LEAD)

    other_answer = await run_with_key(office, "alice", "lead.create", key, {**LEAD, "title": "Another"})
    reordered = await run_with_key(office, "alice", "lead.create", key, dict(reversed(LEAD.items())))

    assert (other_answer.status_code, other_answer.json()) == (400, {"error": REUSED})
    assert (reordered.status_code, reordered.headers["idempotency-replayed"]) == (200, "true")
    assert (await leads(office), await leads(office, "Another")) == (1, 0)


async def test_a_key_belongs_to_its_caller_and_command(office: Office) -> None:
    key = new_key()
    agents = [await office.agent("alice", label=label) for label in ("one", "two")]
    for who in ("alice", "root", *agents):
        assert "idempotency-replayed" not in (await run_with_key(office, who, "lead.create", key, LEAD)).headers
    lead = await office.first_record("lead", title="A lead")
    for command in ("lead.update", "lead.qualify"):
        answer = await run_with_key(office, "alice", command, key, {"id": lead["id"]})
        assert (answer.status_code, "idempotency-replayed" in answer.headers) == (200, False), answer.text

    assert await leads(office) == 4


async def test_an_agents_key_outlives_its_bearer_token(office: Office) -> None:
    key, old = new_key(), await office.agent("alice", label="bot", name="old")
    new = await office.agent("alice", label="bot", name="new")
    first_answer = await run_with_key(office, old, "lead.create", key, LEAD)

    repeated_answer = await run_with_key(office, new, "lead.create", key, LEAD)

    assert has_same_bytes(first_answer, repeated_answer)
    assert await leads(office) == 1


async def test_a_command_that_reads_takes_no_key(office: Office) -> None:
    lead = await office.first_record("lead")
    for command, body in (("lead.get", {"id": lead["id"]}), ("lead.search", {"limit": 1}), ("plan.watch", {})):
        for key in ("not a key", new_key()):
            for answer in [await run_with_key(office, "alice", command, key, body) for _ in range(2)]:
                assert (answer.status_code, "idempotency-replayed" in answer.headers) == (200, False)


async def test_the_openapi_document_names_the_idempotency_key_of_operations_that_accept_keys(office: Office) -> None:
    paths = (await office.http.get("/api/openapi.json", headers=office.headers("alice"))).json()["paths"]

    keyed_paths = {path for path, path_item in paths.items() if "parameters" in path_item["post"]}

    assert {"/api/lead/create", "/api/lead/qualify", "/api/lead/import", "/api/session/revoke"} <= keyed_paths
    reading = {path for path in paths if path.endswith(("/get", "/list", "/search", "/export", "/history", "/watch"))}
    assert not reading & keyed_paths
    assert "Idempotency-Replayed" in paths["/api/lead/create"]["post"]["responses"]["200"]["headers"]


async def test_a_refusal_is_repeated_though_the_input_would_be_accepted_by_now(office: Office) -> None:
    lead, key = await office.value("alice", "lead.create", **LEAD), new_key()
    await office.value("alice", "lead.qualify", id=lead["id"])
    first_answer = await run_with_key(office, "alice", "lead.qualify", key, {"id": lead["id"]})
    assert first_answer.status_code == 400
    unknown = {**LEAD, "nothing": 1}
    assert has_same_bytes(*await run_twice(office, "alice", "lead.create", unknown))

    repeated_answer = await run_with_key(office, "alice", "lead.qualify", key, {"id": lead["id"]})
    other_answer = await run_with_key(office, "alice", "lead.qualify", key, {"id": lead["id"], "revision": 1})

    assert (repeated_answer.status_code, repeated_answer.headers["idempotency-replayed"]) == (400, "true")
    assert repeated_answer.content == first_answer.content
    assert (other_answer.status_code, other_answer.json()) == (400, {"error": REUSED})


async def test_a_refusal_that_passes_is_not_stored(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("countersign.records.approvals.proposals.MAX_PENDING", 0)
    agent, key = await office.agent("alice"), new_key()
    lead = await office.first_record("lead", "alice")
    refused_answer = await run_with_key(office, agent, "lead.delete", key, {"id": lead["id"]})
    assert refused_answer.status_code == 400

    monkeypatch.undo()
    repeated_answer = await run_with_key(office, agent, "lead.delete", key, {"id": lead["id"]})

    assert (repeated_answer.status_code, "idempotency-replayed" in repeated_answer.headers) == (202, False)


async def test_a_command_whose_result_cannot_be_computed_has_no_effect(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise BadInput("no outcome")

    key = new_key()
    monkeypatch.setattr("countersign.records.idempotency.record_of", refuse)
    refused_answer = await run_with_key(office, "alice", "lead.create", key, LEAD)
    assert (refused_answer.status_code, refused_answer.json(), await leads(office)) == (400, {"error": "no outcome"}, 0)

    monkeypatch.undo()
    repeated_answer = await run_with_key(office, "alice", "lead.create", key, LEAD)

    assert (repeated_answer.status_code, "idempotency-replayed" in repeated_answer.headers) == (200, False)
    assert await leads(office) == 1


async def test_too_many_guesses_are_not_stored_as_an_answer(office: Office) -> None:
    agent = await office.agent("alice")
    lead = await office.first_record("lead", "alice")
    body, keys = {"id": lead["id"], "contact_email": "EMAIL_1"}, [new_key() for _ in range(22)]
    answers = [await run_with_key(office, agent, "lead.update", key, body) for key in keys]
    assert [answer.status_code for answer in answers[-2:]] == [429, 429]

    repeated_answers = [await run_with_key(office, agent, "lead.update", key, body) for key in (keys[0], keys[-1])]

    assert [response.status_code for response in repeated_answers] == [400, 429]


async def test_only_one_of_twenty_concurrent_calls_with_one_key_has_an_effect(office: Office) -> None:
    key = new_key()

    answers = await asyncio.gather(*(run_with_key(office, "alice", "lead.create", key, LEAD) for _ in range(20)))

    assert await leads(office) == 1
    first_answer = next(
        answer for answer in answers if answer.status_code == 200 and "idempotency-replayed" not in answer.headers
    )
    for answer in answers:
        if answer.status_code == 200:
            assert answer.content == first_answer.content
        else:
            assert (answer.status_code, answer.json()) == (400, {"error": IN_PROGRESS})
            assert answer.headers["retry-after"] == "1"
    assert has_same_bytes(first_answer, await run_with_key(office, "alice", "lead.create", key, LEAD))


async def test_only_one_of_two_nodes_with_one_key_has_an_effect(office_settings: OfficeSettings) -> None:
    async with (
        app.open_records(office_settings.settings, ROOT_URL, is_loopback=True) as first_node,
        app.open_records(office_settings.settings, ROOT_URL, is_loopback=True) as two,
        httpx.AsyncClient(transport=httpx.ASGITransport(app.create(first_node)), base_url=ROOT_URL) as at_one,
        httpx.AsyncClient(transport=httpx.ASGITransport(app.create(two)), base_url=ROOT_URL) as at_two,
    ):
        nodes = [Office(at_one, office_settings.tokens, first_node), Office(at_two, office_settings.tokens, two)]
        for number in range(5):
            key, body = new_key(), {"title": f"At once {number}"}
            answers = await asyncio.gather(
                *(run_with_key(node, "alice", "lead.create", key, body) for node in nodes * 2)
            )
            record_ids = [answer.json()["value"]["id"] for answer in answers if answer.status_code == 200]
            assert record_ids
            assert len(set(record_ids)) == 1
            assert {answer.json()["error"] for answer in answers if answer.status_code != 200} <= {IN_PROGRESS}
            assert await leads(nodes[0], f"At once {number}") == 1


async def test_a_key_is_forgotten_after_a_day(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    key, start_time = new_key(), clock.now()
    await run_with_key(office, "alice", "lead.create", key, LEAD)
    await run_with_key(office, "alice", "lead.qualify", new_key(), {"id": "x"})
    database = office.service.records.database
    await app.run_periodic_tasks(office.service)
    assert await database.fetch_one("SELECT count(*) FROM idempotency") == (2,)

    monkeypatch.setattr(clock, "now", lambda: clock.later(start_time, seconds=24 * 3600 + 60))
    await app.run_periodic_tasks(office.service)

    assert await database.fetch_one("SELECT count(*) FROM idempotency") == (0,)


async def test_a_stored_response_is_decrypted_only_with_the_key(office: Office) -> None:
    first_answer, _ = await run_twice(office, "alice", "lead.create", LEAD)
    token = await run_with_key(office, "alice", "auth.agent-token", new_key(), {"scopes": ["*"], "label": "bot"})
    assert token.status_code == 200, token.text

    rows = await office.service.records.database.fetch("SELECT * FROM idempotency")

    stored_bytes = b"\0".join(
        bytes(value) if isinstance(value, bytes) else str(value).encode() for row in rows for value in row
    )
    for secret in (
        "new@person.example",
        "New Person",
        "A lead",
        first_answer.json()["value"]["id"],
        token.json()["token"],
    ):
        assert secret.encode() not in stored_bytes


async def test_an_erased_value_is_erased_from_the_stored_answer(office: Office) -> None:
    agent = await office.agent("alice")
    for who, erased_email in (("alice", "gone@person.example"), (agent, "lost@person.example")):
        key, body = new_key(), {**LEAD, "contact_email": erased_email}
        first_lead = (await run_with_key(office, who, "lead.create", key, body)).json()["value"]
        await office.value("alice", "lead.update", id=first_lead["id"], contact_email="new@person.example")

        second_value = (await run_with_key(office, who, "lead.create", key, body)).json()["value"]

        assert second_value == {**first_lead, "contact_email": "[erased]"}


async def test_a_repeat_for_a_deleted_or_hidden_record_returns_only_its_id(office: Office) -> None:
    await office.person("dora", {"model": "lead", "commands": "get,create,update", "clear": "*", "write": "*"})
    keys = [new_key(), new_key()]
    values = [(await run_with_key(office, "dora", "lead.create", key, LEAD)).json()["value"] for key in keys]
    await office.value("root", "lead.delete", id=values[0]["id"])
    grant = next(grant for grant in await office.all("grant") if grant["commands"] == "get,create,update")
    rows = '[{"field": "title", "op": "eq", "value": "Other"}]'
    await office.value("root", "grant.update", id=grant["id"], rows=rows)

    for key, record in zip(keys, values, strict=True):
        repeated_answer = await run_with_key(office, "dora", "lead.create", key, LEAD)
        assert (repeated_answer.status_code, repeated_answer.json()["value"]) == (200, {"id": record["id"]})


async def test_a_repeat_shows_fields_as_the_caller_sees_them_now(office: Office) -> None:
    fields = "title,stage,contact_email,contact_name"
    await office.person("dora", {"model": "lead", "commands": "get,create,update", "clear": fields, "write": "*"})
    key, refused_key = new_key(), new_key()
    first_body = (await run_with_key(office, "dora", "lead.create", key, LEAD)).json()
    reason = (
        await run_with_key(
            office, "dora", "lead.update", refused_key, {"id": first_body["value"]["id"], "stage": "won"}
        )
    ).json()
    grant = next(grant for grant in await office.all("grant") if grant["commands"] == "get,create,update")
    changes = {"clear": "title", "masked": "contact_email"}
    await office.value("root", "grant.update", id=grant["id"], **changes)

    second_body = (await run_with_key(office, "dora", "lead.create", key, LEAD)).json()
    reason_again = await run_with_key(
        office, "dora", "lead.update", refused_key, {"id": first_body["value"]["id"], "stage": "won"}
    )

    assert second_body["value"] == await office.value("dora", "lead.get", id=first_body["value"]["id"])
    assert second_body["denied"] == await office.denied("dora", "lead.get", id=first_body["value"]["id"])
    assert "contact_name" not in second_body["value"]
    assert second_body["value"]["contact_email"].startswith("EMAIL_")
    assert reason_again.status_code == 400
    assert reason_again.json()["error"] not in (reason["error"], REUSED)


async def test_errors_and_reasons_are_not_shown_again_after_the_row_rules_changed(office: Office) -> None:
    await office.person("dora", {"model": "lead", "commands": "get,create", "clear": "*", "write": "*"})
    rows = "title,stage\nOne row,nowhere\n"
    imported, create_key = new_key(), new_key()

    async def calls() -> list[httpx.Response]:
        return [
            await run_with_key(office, "dora", "lead.import", imported, {"csv": rows}),
            await run_with_key(office, "dora", "lead.create", create_key, {**LEAD, "stage": "nowhere"}),
        ]

    first_answers, repeated_answers = await calls(), await calls()
    assert [response.status_code for response in first_answers] == [200, 400]
    assert all(map(has_same_bytes, first_answers, repeated_answers))
    grant = next(grant for grant in await office.all("grant") if grant["commands"] == "get,create")
    narrow = '[{"field": "title", "op": "eq", "value": "Other"}]'
    await office.value("root", "grant.update", id=grant["id"], rows=narrow)

    later_answers = await calls()

    for answer, reason in zip(
        later_answers, ("its answer is not shown again", "was refused; use a new key"), strict=True
    ):
        assert (answer.status_code, answer.headers["idempotency-replayed"]) == (400, "true")
        assert reason in answer.json()["error"]
        assert first_answers[1].json()["error"] not in answer.text


async def test_a_repeat_without_the_right_or_the_token_is_refused_as_any_call(office: Office) -> None:
    await office.person("dora", {"model": "lead", "commands": "get,create", "clear": "*", "write": "*"})
    key = new_key()
    await run_with_key(office, "dora", "lead.create", key, LEAD)
    grant = next(grant for grant in await office.all("grant") if grant["commands"] == "get,create")
    await office.value("root", "grant.update", id=grant["id"], commands="get")
    assert (await run_with_key(office, "dora", "lead.create", key, LEAD)).status_code == 404

    sign_out_key = new_key()
    ended_answer = await run_with_key(office, "dora", "session.revoke", sign_out_key)
    assert ended_answer.json()["value"]["ended_at"]
    assert (await run_with_key(office, "dora", "session.revoke", sign_out_key)).status_code == 401


async def test_a_repeated_request_for_an_agent_token_gets_the_same_token(office: Office) -> None:
    body = {"scopes": ["lead.get"], "label": "bot"}
    first_answer, repeated_answer = await run_twice(office, "alice", "auth.agent-token", body)
    assert (first_answer.status_code, has_same_bytes(first_answer, repeated_answer)) == (200, True)

    bot_tokens = [
        agent_token for agent_token in await office.all("agent_token", "alice") if agent_token["label"] == "bot"
    ]

    assert len(bot_tokens) == 1


async def test_a_repeat_of_a_response_over_a_mebibyte_reads_the_record_again(office: Office) -> None:
    body = {"name": "Long", "notes": "x" * 1_000_000}
    key = new_key()
    first_answer = await run_with_key(office, "root", "party.create", key, body)
    assert first_answer.status_code == 200, first_answer.text
    await office.value("root", "party.update", id=first_answer.json()["value"]["id"], name="Longer")

    repeated_answer = await run_with_key(office, "root", "party.create", key, body)

    assert (repeated_answer.json()["value"]["name"], repeated_answer.headers["idempotency-replayed"]) == (
        "Longer",
        "true",
    )


async def test_answers_over_the_size_limit_that_cannot_be_read_anew_are_repeated(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("countersign.kernel.http.idempotency.MAX_STORED_BYTES", 200)
    rows = {"csv": "title,stage\n" + "One row,nowhere\n" * 10}

    first_answer, repeated_answer = await run_twice(office, "alice", "lead.import", rows)
    refused_answer, refused_again = await run_twice(office, "alice", "lead.create", {**LEAD, "x" * 200: 1})

    assert (
        first_answer.status_code,
        len(first_answer.json()["value"]["errors"]),
        has_same_bytes(first_answer, repeated_answer),
    ) == (200, 10, True)
    assert (refused_answer.status_code, refused_again.status_code) == (400, 400)
    assert "use a new key" in refused_again.json()["error"]


@pytest.fixture
async def sqlite_pair(sqlite_office: SeededOffice, tmp_path: Path) -> AsyncIterator[tuple[Office, Office]]:
    """Two offices with the same data."""
    async with AsyncExitStack() as stack:
        offices: list[Office] = []
        for name in ("one", "two"):
            shutil.copytree(sqlite_office.place, tmp_path / name)
            opening = app.open_records(settings(str(tmp_path / name)), ROOT_URL, is_loopback=True)
            service = await stack.enter_async_context(opening)
            transport = httpx.ASGITransport(app.create(service), raise_app_exceptions=False)
            client = await stack.enter_async_context(httpx.AsyncClient(transport=transport, base_url=ROOT_URL))
            offices.append(Office(client, dict(sqlite_office.tokens), service))
        yield offices[0], offices[1]


@pytest.mark.parametrize("seed", range(3))
async def test_calls_with_retries_leave_the_same_database_as_calls_without_retries(
    sqlite_pair: tuple[Office, Office], seed: int
) -> None:
    """The test sends the same random calls to two offices. One office gets each call a second time, at once or much
    later."""
    plain_office, retried = sqlite_pair
    rng, counter = random.Random(seed), itertools.count()
    calls_sent: list[tuple[str, str, dict[str, Any], bytes]] = []
    ids: tuple[list[str], list[str]] = ([], [])
    for _ in range(25):
        who, command, body = _random_call(rng, next(counter))
        place = rng.randrange(len(ids[0])) if ids[0] else 0
        bodies = [{**body, "id": id_[place]} if "id" in body and id_ else body for id_ in ids]
        key = new_key()
        plain_answer = await plain_office.call(who, command, bodies[0])
        two = await run_with_key(retried, who, command, key, bodies[1])
        assert plain_answer.status_code == two.status_code, (plain_answer.text, two.text)
        if command == "lead.create" and plain_answer.status_code == 200:
            ids[0].append(plain_answer.json()["value"]["id"])
            ids[1].append(two.json()["value"]["id"])
        calls_sent.append((who, command, {"key": key, "body": bodies[1]}, two.content))
        for who_again, command_again, sent_call, answer in rng.sample(calls_sent, min(len(calls_sent), 2)):
            replayed = await run_with_key(retried, who_again, command_again, sent_call["key"], sent_call["body"])
            assert replayed.headers["idempotency-replayed"] == "true"
            assert replayed.status_code in (200, 400)
            if replayed.status_code == 400:
                # For a record that has been deleted since, the response says only that.
                assert replayed.content in (answer, b'{"error":"no such record"}')

    assert sorted(map(_shown, await plain_office.all("lead"))) == sorted(map(_shown, await retried.all("lead")))


def _random_call(rng: random.Random, number: int) -> tuple[str, str, dict[str, Any]]:
    command = rng.choice(("lead.create", "lead.create", "lead.update", "lead.qualify", "lead.delete", "lead.lose"))
    if command == "lead.create":
        return "alice", command, {"title": f"Lead {number}", "contact_email": f"{rng.randrange(3)}@x.example"}
    body: dict[str, Any] = {"id": "x"}
    if command == "lead.update":
        body |= {"title": f"Title {rng.randrange(3)}", "revision": rng.randrange(1, 4)}
    return "root", command, body


def _shown(lead: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(lead[name]) for name in ("title", "stage", "contact_email", "revision"))
