"""Tests every command and address with every kind of caller and record, according to `table.py`."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import pytest

from countersign.records import app
from tests.figures import Figures
from tests.records.matrix import scene as scenes
from tests.records.matrix import table
from tests.records.matrix.scene import MatrixScene

THINGS = ("ours", "hidden", "missing")
CALLERS = (*table.PEOPLE, *table.AGENTS)
COUNTED = {
    "party": "kind", "address": "label", "lead": "stage", "activity": "kind", "ticket": "state", "invoice": "state",
    "invoice_line": "invoice", "payment": "method", "user": "is_active", "user_role": "role", "grant": "role",
}  # fmt: skip
"""Maps each model to the field by which its records are counted. The other models have no field of a suitable kind."""

CHANGES: dict[str, dict[str, object]] = {
    "lead.update": {"title": "another"},
    "ticket.update": {"subject": "another"},
    "setting.update": {"value": '{"n": 2}'},
}
"""The inputs of updates that are proposed."""

NEW: dict[str, dict[str, object]] = {
    "user": {"username": "somebody"},
    "role": {"title": "something"},
    "setting": {"title": "approval:lead.lose", "value": '{"n": 2}'},
    "grant": {"commands": "list"},
}
"""The inputs that are proposed for the models that define rights."""

ABOUT_ONE = frozenset({"get", "update", "delete", "history", "related", "revoke", "invite", "reject", "withdraw"})
FILTERED = frozenset({"list", "search", "export", "count_by"})
ALONE = {"create": 400, "import": 400, "series": 400, "propose": 400, "watch": 200, "verify": 200}
ALONE |= {"people": 400, "home": 200, "recent": 200, "find": 400, "deactivate": 400, "data_map": 200, "decide": 400}
"""Maps each command that is not about a record to the status of its response to an empty input."""

pytestmark = pytest.mark.asyncio(loop_scope="module")

NOBODY = b'{"error":"the bearer token is missing, unknown, expired or revoked"}'
NOT_FOUND = b'{"error":"not found"}'
NO_SUCH_RECORD = b'{"error":"no such record"}'


def without_request_id(answer: httpx.Response) -> tuple[object, ...]:
    """Return the whole response without the request id."""
    headers = sorted((name, value) for name, value in answer.headers.multi_items() if name != "x-request-id")
    return (answer.status_code, answer.content, tuple(headers))


def commands() -> Iterator[tuple[str, str]]:
    """Yield every model with each of its commands."""
    for model, command_names in table.COMMANDS.items():
        for name in command_names.split():
            yield model, name


def is_about_one(model: str, name: str) -> bool:
    """Return whether the command takes the id of a record. Actions do, too."""
    return name in ABOUT_ONE or (name not in FILTERED and name not in ALONE)


def harmless_input(model: str, name: str, record_id: str) -> dict[str, object]:
    """Return an input about the record that has no effect: an input of a writing command contains a wrong revision."""
    if name in ALONE:
        return {}
    if is_about_one(model, name):
        other_input = {"reason": "no"} if name == "reject" else {}
        is_read = name in ("get", "history", "related", "calls", "revoke", "invite", "withdraw", "reject")
        return {"id": record_id, **(other_input if is_read else {"revision": 999_999})}
    only: dict[str, object] = {"filter": [{"field": "id", "op": "eq", "value": record_id}]}
    return {"field": COUNTED.get(model, "title"), **only} if name == "count_by" else only


def wrong_with(caller: str, model: str, name: str, row_kind: str, answer: httpx.Response) -> str | None:
    """Return what is wrong with the response to a caller who has the command, or None."""
    if name in ALONE:
        return None if answer.status_code == ALONE[name] else f"{ALONE[name]} was expected"
    exists = table.exists(caller, model, row_kind, name)
    if is_about_one(model, name):
        # An agent may revoke its own token, and no other token.
        is_barred = model == "agent_token" and name == "revoke" and caller in table.AGENTS
        return _wrong_with_one(model, name, answer, exists=exists and not is_barred)
    return _wrong_with_many(model, name, answer, exists=exists)


def _wrong_with_many(model: str, name: str, answer: httpx.Response, *, exists: bool) -> str | None:
    if name == "count_by" and model not in COUNTED:
        return None if answer.status_code == 400 else "it has nothing to count by"
    if answer.status_code != 200:
        return "it must be answered"
    return None if _found(name, answer.json()["value"]) == exists else "the record must be found if it exists, only"


def _wrong_with_one(model: str, name: str, answer: httpx.Response, *, exists: bool) -> str | None:
    if not exists:
        is_missing = (answer.status_code, answer.content) == (400, NO_SUCH_RECORD)
        return None if is_missing else "it must not be told from a missing one"
    if "revision" in harmless_input(model, name, ""):
        expected_body = b'{"error":"record has changed"}'
        return None if (answer.status_code, answer.content) == (400, expected_body) else "its revision must be compared"
    return None if answer.status_code == 200 else "it must be done"


def _found(name: str, value: Any) -> bool:
    if name == "search":
        return value["total"] == 1
    if name == "export":
        return len(value["text"].splitlines()) == 2
    return len(value) == 1


def unlike(answer: httpx.Response, unknown_answer: tuple[object, ...]) -> str | None:
    """Return what is wrong with the response to a caller who does not have the command or is not authenticated, or
    None."""
    return None if without_request_id(answer) == unknown_answer else "it must be as if there were no such command"


def told_too_much(caller: str, answer: httpx.Response) -> str | None:
    """Return the secret in the response that this caller may not know, or None."""
    is_keeper = table.role_of(caller) == "keeper"
    secret_words = [scenes.HIDDEN_ROW, scenes.HIDDEN_FIELD] if is_keeper else []
    if is_keeper or caller in table.AGENTS or table.role_of(caller) in ("clerk", "none"):
        secret_words.append(scenes.PERSONAL)
    if caller in table.AGENTS:
        secret_words.append(scenes.COMMENT)
    return next((f"it holds {word}" for word in secret_words if word in answer.text), None)


async def test_every_command_has_its_place_in_the_table(scene: MatrixScene) -> None:
    known_commands = scene.office.service.engine.commands

    tabled_commands = {model: sorted(command_names.split()) for model, command_names in table.COMMANDS.items()}
    assert tabled_commands == {model: sorted(names) for model, names in known_commands.items()}


async def test_every_address_has_its_place_in_the_table(scene: MatrixScene) -> None:
    routes = app.create(scene.office.service).routes

    assert sorted(table.ROUTES) == sorted(f"{route.method} {route.path}" for route in routes)


def matrix_cells(held_by_caller: Mapping[str, frozenset[str]], *, is_full: bool) -> Iterator[tuple[str, str, str, str]]:
    """Yield the model, the command, the caller and the kind of record. Yield all kinds for commands that the caller
    has, and one kind in turn for the others."""
    for number, (model, name) in enumerate(commands()):
        things = ("missing",) if model == "plan" else THINGS
        for turn, caller in enumerate((*CALLERS, *table.OUTSIDERS)):
            is_whole = is_full or f"{model}.{name}" in held_by_caller.get(caller, ())
            for row_kind in things if is_whole else [things[(number + turn) % len(things)]]:
                yield model, name, caller, row_kind


async def test_every_command_has_the_result_of_the_table_for_every_caller(
    scene: MatrixScene, is_full: bool, figures: Figures
) -> None:
    cells, complaints = Counter[str](), list[str]()
    anonymous_answer = without_request_id(await scene.send("anonymous", "GET", "/api/meta"))
    unknown_answers = {caller: without_request_id(await scene.run(caller, "nothing.get", {})) for caller in CALLERS}
    unknown_answers |= dict.fromkeys(table.OUTSIDERS, anonymous_answer)
    held_by_caller = {caller: table.holds(caller) for caller in CALLERS}

    for model, name, caller, row_kind in matrix_cells(held_by_caller, is_full=is_full):
        record_id = scene.record(caller if caller in held_by_caller else "alice", model, row_kind)
        answer = await scene.run(caller, f"{model}.{name}", harmless_input(model, name, record_id))
        has = f"{model}.{name}" in held_by_caller.get(caller, ())
        complaint = (
            wrong_with(caller, model, name, row_kind, answer) if has else unlike(answer, unknown_answers[caller])
        )
        complaint = complaint or told_too_much(caller, answer)
        cells[caller] += 1
        if complaint:
            complaints.append(
                f"{caller}, {model}.{name}, {row_kind}: {complaint}: {answer.status_code} {answer.text[:120]}"
            )

    assert anonymous_answer[:2] == (401, NOBODY)
    assert all(unknown_answers[caller][:2] == (404, NOT_FOUND) for caller in CALLERS)
    assert not complaints, "\n".join(complaints)
    figures |= {"cells": cells.total(), "callers": len(cells), "commands": sum(1 for _ in commands())}


async def test_every_address_admits_the_callers_of_the_table(scene: MatrixScene, figures: Figures) -> None:
    anonymous_answer = without_request_id(await scene.send("anonymous", "GET", "/api/meta"))
    cells = 0
    for address, kind in table.ROUTES.items():
        method, path = address.split(" ")
        path = path.format(plan_id=scenes.MISSING, model="plan", command="get")
        for caller in (*table.OUTSIDERS, *CALLERS):
            cells += 1
            answer = await scene.send(caller, method, path)
            cell = (address, caller, answer.status_code, answer.text)
            if kind in ("password", "link"):
                # The body is invalid JSON, so the rest of the request makes no difference.
                assert without_request_id(answer)[0] in (400, 404, 415), cell
                assert without_request_id(answer) == without_request_id(await scene.send("anonymous", method, path)), (
                    cell
                )
            elif kind == "anybody":
                assert (answer.status_code, answer.json()) == (200, {"status": "ok"}), cell
            elif caller in table.OUTSIDERS:
                assert without_request_id(answer) == anonymous_answer, cell
            elif "approve" in path or (kind == "person" and caller in table.AGENTS):
                assert (answer.status_code, answer.content) == (404, NOT_FOUND), cell
            else:
                assert answer.status_code in ((200,) if method == "GET" else (200, 400)), cell
    figures["cells"] = cells


async def test_callers_see_only_the_commands_that_they_may_use(scene: MatrixScene, figures: Figures) -> None:
    for caller in CALLERS:
        held_commands = table.holds(caller)
        listed_commands = (await scene.send(caller, "GET", "/api/commands")).json()["commands"]
        tools = (await _over_mcp(scene, caller, "tools/list", {})).json()["result"]["tools"]
        models = {model["name"] for model in (await scene.send(caller, "GET", "/api/meta")).json()["models"]}

        assert {listed_command["id"] for listed_command in listed_commands} == held_commands, caller
        assert {tool["name"].replace("__", ".") for tool in tools} == table.as_tools(held_commands), caller
        assert models == {command.partition(".")[0] for command in held_commands}, caller
        assert table.PROPOSED_ONLY & held_commands <= {
            listed_command["id"] for listed_command in listed_commands if listed_command["needs_approval"]
        }
    figures["cells"] = 3 * len(CALLERS) * sum(1 for _ in commands())


async def test_a_tool_that_a_caller_has_not_is_unknown(scene: MatrixScene, is_full: bool, figures: Figures) -> None:
    cells = 0
    for number, (model, name) in enumerate(commands()):
        for turn, caller in enumerate(CALLERS):
            if f"{model}.{name}" in table.holds(caller) or not (is_full or (number + turn) % 5 == 0):
                continue
            cells += 1
            tool = f"{model}__{name}"
            unknown = tool[:-1] + "0"
            forbidden = await _over_mcp(scene, caller, "tools/call", {"name": tool, "arguments": {}})
            misspelt = await _over_mcp(scene, caller, "tools/call", {"name": unknown, "arguments": {}})
            assert "error" in forbidden.json(), (caller, tool, forbidden.text)
            assert forbidden.text == misspelt.text.replace(unknown, tool), (caller, tool)
    figures["cells"] = cells


async def _over_mcp(scene: MatrixScene, caller: str, method: str, parameters: object) -> httpx.Response:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}
    headers = {
        **scene.office.headers(caller),
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-11-25",
    }
    return await scene.office.http.post("/mcp", json=message, headers=headers)


def naming(model: str, name: str, record_id: str) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield commands with inputs that use a field of this name."""
    for op, value in (("eq", "x"), ("is_null", True)):
        condition: dict[str, object] = {"filter": [{"field": name, "op": op, "value": value}]}
        for command in ("list", "search", "export", "count_by"):
            yield command, condition if command != "count_by" else {"field": COUNTED.get(model, "title"), **condition}
    for command in ("list", "search", "export"):
        yield command, {"order": [{"field": name}]}
    yield "count_by", {"field": name}
    yield "create", {name: "x"}
    yield "update", {"id": record_id, name: "x"}
    yield "import", {"csv": f"{name}\nx\n", "dry_run": True}
    for word in table.COMMANDS[model].removeprefix(table.ALL).split():
        yield word, {"id": record_id, name: "x"}


async def test_a_hidden_field_gets_the_same_answer_as_a_misspelt_field(scene: MatrixScene, figures: Figures) -> None:
    cells, differences = 0, list[str]()
    for caller in ("keeper", "keeper's agent"):
        for model, hidden_field in table.HIDDEN.items():
            misspelt = "q" * len(hidden_field)
            record_id = scene.record(caller, model, "ours")
            shown_body = (await scene.run(caller, f"{model}.get", {"id": record_id})).json()
            assert hidden_field not in shown_body["value"], (caller, model)
            assert f"{model}.{hidden_field}" in shown_body["denied"], (caller, model)
            asking = zip(naming(model, hidden_field, record_id), naming(model, misspelt, record_id), strict=True)
            for (name, body), (_, misspelt_body) in asking:
                if f"{model}.{name}" not in table.holds(caller):
                    continue
                cells += 1
                asked_hidden = await scene.run(caller, f"{model}.{name}", body)
                asked_misspelt = await scene.run(caller, f"{model}.{name}", misspelt_body)
                misspelt_text = asked_misspelt.text.replace(misspelt, hidden_field)
                if asked_hidden.status_code == 500 or (asked_hidden.status_code, asked_hidden.text) != (
                    asked_misspelt.status_code,
                    misspelt_text,
                ):
                    differences.append(
                        f"{caller} {model}.{name} {json.dumps(body)}: {asked_hidden.text} and {misspelt_text}"
                    )

    assert not differences, "\n".join(differences)
    figures["cells"] = cells


async def test_plans_are_seen_and_decided_by_people_who_may_run_their_commands(
    scene: MatrixScene, figures: Figures
) -> None:
    cells = 0
    for (maker, name, row_kind), deciders in table.PLANS.items():
        owner = table.AGENTS[maker][0]
        for caller in CALLERS:
            sees = caller == maker or caller in deciders.split()
            is_own = caller in (maker, owner)
            plan_id = await _propose_plan(scene, maker, name, row_kind)
            cell = (maker, name, row_kind, caller)
            read_plan = await scene.run(caller, "plan.get", {"id": plan_id})
            assert (read_plan.status_code == 200) == sees, cell
            assert sees or without_request_id(read_plan) == without_request_id(
                await scene.run(caller, "plan.get", {"id": scenes.MISSING})
            ), cell
            listed_plans = await scene.run(caller, "plan.list", harmless_input("plan", "list", plan_id))
            if "plan.list" in table.holds(caller):
                assert len(listed_plans.json()["value"]) == sees, cell
            approved_response = await scene.send(caller, "POST", f"/api/approve/{plan_id}", {"digest": "another"})
            if sees and caller in table.PEOPLE:
                assert approved_response.status_code == 400, cell
                assert "digest does not match" in approved_response.text, cell
            else:
                assert (approved_response.status_code, approved_response.content) == (404, NOT_FOUND), cell
            withdrawal = await scene.run(caller, "plan.withdraw", {"id": plan_id})
            assert (withdrawal.status_code == 200) == (is_own and sees), cell
            assert is_own or withdrawal.content == NO_SUCH_RECORD, cell
            await _reject(scene, caller, await _propose_plan(scene, maker, name, row_kind), sees=sees)
            cells += 5
    figures["cells"] = cells


async def _propose_plan(scene: MatrixScene, maker: str, name: str, row_kind: str) -> str:
    """Let the agent propose a new plan. An update is proposed as a step of a plan, because it would be executed
    directly otherwise."""
    body: dict[str, object] = {"id": scene.record(maker, name.partition(".")[0], row_kind)}
    if name.endswith("update"):
        steps = {"steps": [{"command": name, "input": {**body, **CHANGES[name]}}]}
        return await scene.office.proposed(maker, "plan.propose", **steps)
    return await scene.office.proposed(maker, name, **body)


async def _reject(scene: MatrixScene, caller: str, plan_id: str, *, sees: bool) -> None:
    answer = await scene.run(caller, "plan.reject", {"id": plan_id, "reason": "no"})
    if caller in table.AGENTS:
        assert (answer.status_code, answer.content) == (404, NOT_FOUND), caller
    elif sees:
        assert answer.status_code == 200, (caller, answer.text)
    else:
        assert answer.content == NO_SUCH_RECORD, (caller, answer.text)


async def test_a_command_that_agents_may_only_propose_is_never_executed_directly_for_an_agent(
    scene: MatrixScene, figures: Figures
) -> None:
    cells = Counter[int]()
    for caller in table.AGENTS:
        for hold in sorted(table.PROPOSED_ONLY & table.holds(caller)):
            model, _, name = hold.partition(".")
            record_id = scene.record(caller, model, "ours")
            body = {"create": {}, "update": {"id": record_id}}.get(name, {"id": record_id})
            new_values = NEW.get(model, {}) if name in ("create", "update") else {}
            search_before = await scene.office.value("root", f"{model}.search", limit=1)
            answer = await scene.run(caller, hold, {**body, **new_values})
            search_after = await scene.office.value("root", f"{model}.search", limit=1)
            assert answer.status_code in (202, 400), (caller, hold, answer.text)
            assert search_after["total"] == search_before["total"], (caller, hold)
            cells[answer.status_code] += 1

    figures |= {"cells": cells.total(), "plans": cells[202]}
    assert cells[202] > cells[400]
