"""`countersign api` makes any API call; `completion` and `version` describe the program itself."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from countersign.cli.output import Exit
from countersign.records import demo
from tests.cli.conftest import Run, ScriptedServer
from tests.servers.countersign import Running, environment, served

ALICE = {"username": "alice", "password": demo.PASSWORD}


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The root URL of a records service with demonstration data."""
    data = tmp_path_factory.mktemp("api") / "data"
    with served(data, "--demo", service="both") as running:
        yield f"http://127.0.0.1:{running.records_port}"


def test_a_call_prints_the_answer_of_the_server(run: Run, demo_store: Running) -> None:
    page = run("api", "get", "products", "-f", "limit=2", "--server", demo_store.url)
    second_result = run("api", "GET", "/api/v1/products", "-f", "limit=2", "--server", demo_store.url)

    assert page.returncode == Exit.OK, page.stderr
    assert len(json.loads(page.stdout)["items"]) == 2
    assert second_result.stdout == page.stdout


def test_all_pages_of_a_list_are_lines_of_items(run: Run, demo_store: Running) -> None:
    whole_result = run("api", "GET", "products", "-f", "limit=100", "--server", demo_store.url)
    lines = run("api", "GET", "products", "-f", "limit=2", "--pages", "--server", demo_store.url)

    items = json.loads(whole_result.stdout)["items"]
    assert len(items) > 4
    assert [json.loads(line) for line in lines.stdout.splitlines()] == items


def test_pages_of_an_array_follow_its_link(run: Run, scripted: Callable[[], ScriptedServer]) -> None:
    server = scripted()
    server.say(200, [1, 2], Link='<http://elsewhere/api/v1/library?cursor=b>; rel="next"')
    server.say(200, [3])

    result = run("api", "GET", "library", "--pages", "--server", server.url)

    assert result.stdout == "1\n2\n3\n"
    assert [request.path for request in server.seen] == ["/api/v1/library", "/api/v1/library?cursor=b"]


def test_fields_are_the_body_of_a_post(run: Run, scripted: Callable[[], ScriptedServer]) -> None:
    server = scripted()
    server.say(503, {})
    server.say(201, {"made": True})

    result = run(
        *("api", "POST", "redeem", "-f", "code=1", "-j", "many=[1]", "-H", "X-Extra: a", "--server", server.url),
        COUNTERSIGN_TOKEN="secret",
    )

    first_request, second_request = server.seen
    assert (result.returncode, result.stdout) == (Exit.OK, '{"made": true}')
    assert json.loads(second_request.body) == {"code": "1", "many": [1]}
    assert second_request.headers["authorization"] == "Bearer secret"
    assert second_request.headers["x-extra"] == "a"
    # The client repeats it as the same call.
    assert first_request.headers["idempotency-key"] == second_request.headers["idempotency-key"]


def test_a_given_header_replaces_the_default_in_any_spelling(run: Run, scripted: Callable[[], ScriptedServer]) -> None:
    server = scripted()
    server.say(200, {})
    headers = {
        "content-type": "text/csv",
        "idempotency-key": "mine",
        "ACCEPT": "text/plain",
        "authorization": "Basic x",
    }
    options = [word for name, value in headers.items() for word in ("-H", f"{name}: {value}")]

    run("api", "POST", "redeem", *options, "--server", server.url, COUNTERSIGN_TOKEN="secret")

    (request,) = server.seen
    assert {name: request.headers[name.lower()] for name in headers} == headers


def test_the_body_of_a_call_may_be_a_file(run: Run, scripted: Callable[[], ScriptedServer]) -> None:
    server = scripted()
    server.say(200, {})

    result = run("api", "PUT", "products/1", "--input", "-", "--server", server.url, stdin='{"title": "T"}')

    assert result.returncode == Exit.OK, result.stderr
    assert server.seen[0].body == b'{"title": "T"}'


def test_a_refusal_ends_with_the_exit_code_of_its_kind(run: Run, demo_store: Running) -> None:
    missing_result = run("api", "GET", "products/no-such-product", "--server", demo_store.url)
    unknown_result = run("api", "GET", "library", "--server", demo_store.url)

    assert (missing_result.returncode, missing_result.stdout) == (Exit.NOT_FOUND, "")
    assert unknown_result.returncode == Exit.REFUSED
    assert "countersign login" in unknown_result.stderr


def test_a_request_that_needs_a_person_has_its_own_exit_code(run: Run, records: str) -> None:
    login = run("api", "POST", "/api/auth/login", "--input", "-", "--server", records, stdin=json.dumps(ALICE))
    session = json.loads(login.stdout)["token"]
    body = ["-j", 'scopes=["lead.list", "lead.delete"]', "-f", "label=cli"]
    agent = run("api", "POST", "/api/auth/agent-token", *body, "--server", records, COUNTERSIGN_TOKEN=session)
    token = json.loads(agent.stdout)["token"]
    leads = run("api", "POST", "/api/lead/list", "-j", "limit=1", "--server", records, COUNTERSIGN_TOKEN=token)
    lead = json.loads(leads.stdout)["value"][0]["id"]

    result = run("api", "POST", "/api/lead/delete", "-f", f"id={lead}", "--server", records, COUNTERSIGN_TOKEN=token)

    assert result.returncode == Exit.APPROVAL, result.stderr
    assert json.loads(result.stdout)["plan_id"] in result.stderr
    assert f"{records}/approvals" in result.stderr


def test_an_unanswered_call_of_records_is_not_repeated(run: Run, scripted: Callable[[], ScriptedServer]) -> None:
    server = scripted()
    server.answers.append(None)

    result = run("api", "POST", "/api/lead/create", "-f", "name=A", "--server", server.url)

    assert result.returncode == Exit.UNREACHABLE
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["POST", "redeem", "-f", "code"],
        ["POST", "redeem", "-j", "code=abc"],
        ["POST", "redeem", "--input", "-", "-f", "code=1"],
        ["GET", "products", "--input", "-"],
        ["POST", "products", "--pages"],
        ["GET", "http://elsewhere/products"],
        ["GET", "products?limit=2"],
        ["TRACE", "products"],
    ],
)
def test_a_call_that_makes_no_sense_is_a_usage_error(run: Run, arguments: list[str]) -> None:
    result = run("api", *arguments)

    assert result.returncode == Exit.USAGE, result.stderr
    assert "Error: " in result.stderr


def test_a_mistyped_command_gets_a_suggestion(run: Run) -> None:
    result = run("publsih")

    assert result.returncode == Exit.USAGE
    assert "Did you mean 'publish'" in result.stderr


def test_version_names_schemas_and_its_dependencies(run: Run) -> None:
    output = json.loads(run("version", "--json").stdout)

    assert output["schemas"].keys() == {"distribution", "records"}
    assert output["sqlite"].startswith("3.")


def test_bash_completes_commands(run: Run, tmp_path: Path) -> None:
    script = tmp_path / "completion.sh"
    script.write_text(run("completion", "bash").stdout)
    completion_words = "COMP_WORDS=(countersign pu); COMP_CWORD=1"
    ask = f'source "$0"; {completion_words}; _countersign_completion countersign; echo "${{COMPREPLY[@]}}"'
    binary = tmp_path / "bin"
    binary.mkdir()
    (binary / "countersign").write_text('#!/bin/sh\nexec "$PYTHON" -m countersign.cli.main "$@"\n')
    (binary / "countersign").chmod(0o755)
    variables = environment(PYTHON=sys.executable, PATH=f"{binary}:{os.environ['PATH']}")
    result = subprocess.run(["bash", "-c", ask, script], env=variables, capture_output=True, text=True, check=True)

    assert result.stdout.split() == ["push", "publish", "pull"]


def test_a_refusal_of_the_records_service_is_shown_with_reason_and_remedy(run: Run, records: str) -> None:
    login = run("api", "POST", "/api/auth/login", "--input", "-", "--server", records, stdin=json.dumps(ALICE))
    session = {"COUNTERSIGN_TOKEN": json.loads(login.stdout)["token"]}

    missing_result = run("api", "POST", "/api/lead/get", "-f", "id=nope", "--json", "--server", records, **session)
    unknown_result = run("api", "POST", "/api/lead/get", "-f", "idd=nope", "--server", records, **session)
    hidden_result = run("api", "POST", "/api/no/such", "--server", records, **session)
    anonymous_result = run("api", "GET", "/api/meta", "--server", records)

    error = json.loads(missing_result.stdout)["error"]
    assert missing_result.returncode == error["exit_code"] == Exit.NOT_FOUND
    assert (error["why"], error["code"]) == ("no such record (400)", "")
    assert "`list`" in error["next"]
    assert unknown_result.returncode == Exit.FAILED
    assert "Why:   unknown key idd in lead.get (known: id) (400)" in unknown_result.stderr
    assert "api GET /api/meta" in unknown_result.stderr
    assert (hidden_result.returncode, anonymous_result.returncode) == (Exit.NOT_FOUND, Exit.REFUSED)
    assert "COUNTERSIGN_TOKEN" in hidden_result.stderr
    assert "works only with a store" in anonymous_result.stderr


@pytest.mark.parametrize("command", [("login", "--email", "a@example.com"), ("whoami",), ("library",)])
def test_a_store_command_reports_that_the_server_is_a_records_service(
    run: Run, records: str, command: tuple[str, ...]
) -> None:
    result = run(*command, "--server", records, COUNTERSIGN_TOKEN="any")

    assert result.returncode in (Exit.NOT_FOUND, Exit.FAILED)
    assert f"{records} is a records service" in result.stderr
    assert "Set COUNTERSIGN_TOKEN to a token of the records service" in result.stderr
    assert "name the store's address with --server or COUNTERSIGN_SERVER" in result.stderr


def test_the_note_of_a_plan_begins_on_a_line_of_its_own(run: Run, scripted: Callable[[], ScriptedServer]) -> None:
    server = scripted()
    server.say(202, {"plan_id": "plan-1"})

    result = run("api", "POST", "/api/lead/delete", "-f", "id=1", "--server", server.url)

    assert result.stdout == '{"plan_id": "plan-1"}'
    assert result.stderr.startswith("\nNothing has changed yet")
