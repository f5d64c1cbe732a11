"""The commands that administer the records service: module tables, users, audit."""

import json
import sqlite3
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from countersign.cli.output import Exit
from countersign.web.assets import Assets
from tests.cli.conftest import Run, Settings
from tests.servers.countersign import served

PASSWORD = "a long enough password"


def test_modules_are_planned_applied_and_listed(run: Run, data: Path, settings: Settings) -> None:
    listed_result = run("modules", "list", "--json", "--data", data, **settings)
    planned_result = run("modules", "plan", "--json", "--data", data, **settings)
    tried_result = run("modules", "apply", "--dry-run", "--json", "--data", data, **settings)
    untouched = not data.exists()
    applied_result = run("modules", "apply", "--json", "--data", data, **settings)
    second_result = run("modules", "apply", "--data", data, **settings)
    result_after = run("modules", "list", "--data", data, **settings)

    steps = [step["what"] for step in json.loads(planned_result.stdout)["steps"]]
    assert untouched
    assert {module["installed"] for module in json.loads(listed_result.stdout)["modules"]} == {None}
    assert json.loads(tried_result.stdout) == json.loads(planned_result.stdout)
    assert "create the table lead" in steps
    assert json.loads(applied_result.stdout)["applied"] == steps
    assert second_result.stdout == "Everything is up to date.\n"
    assert "crm\t1.0.0\t1.0.0\ton\tSales\n" in result_after.stdout


def test_a_disabled_module_is_dropped_only_on_request(run: Run, data: Path, settings: Settings) -> None:
    fewer = {**settings, "COUNTERSIGN_MODULES": "party"}
    with served(data, "--demo", service="records", settings=settings):
        pass

    shown_result = run("modules", "plan", "--data", data, **fewer)
    tried_result = run("modules", "apply", "--destroy", "--dry-run", "--data", data, **fewer)
    refused_result = run("modules", "apply", "--data", data, **fewer)
    serve_result = run("serve", "records", "--port", "0", "--data", data, **fewer)
    kept_result = run("modules", "plan", "--data", data, **settings)
    destroyed_result = run("modules", "apply", "--destroy", "--data", data, **fewer)
    listed_result = run("modules", "list", "--data", data, **fewer)

    assert "! drop the table lead with its records\n" in shown_result.stdout
    assert "  drop the index of lead by " in shown_result.stdout
    assert "--destroy" in shown_result.stderr
    assert tried_result.returncode == Exit.OK
    assert [refused_result.returncode, serve_result.returncode] == [Exit.CONFLICT, Exit.CONFLICT]
    assert "run `countersign modules apply --destroy`" in serve_result.stderr
    assert kept_result.stdout == "Everything is up to date.\n"
    assert destroyed_result.returncode == Exit.OK, destroyed_result.stderr
    assert "crm\t-\t-\toff\t\n" in listed_result.stdout


def test_a_disabled_module_without_records_is_dropped_by_itself(run: Run, data: Path, settings: Settings) -> None:
    fewer = {**settings, "COUNTERSIGN_MODULES": "party"}
    assert run("modules", "apply", "--data", data, **settings).returncode == Exit.OK

    shown_result = run("modules", "plan", "--data", data, **fewer)
    applied_result = run("modules", "apply", "--data", data, **fewer)
    listed_result = run("modules", "list", "--data", data, **fewer)

    assert "  drop the table lead with its records\n" in shown_result.stdout
    assert "--destroy" not in shown_result.stderr
    assert applied_result.returncode == Exit.OK, applied_result.stderr
    assert "crm\t-\t-\toff\t\n" in listed_result.stdout


def test_the_demonstration_is_served_again_and_never_to_other_machines(run: Run, data: Path) -> None:
    outputs: list[str] = []
    for _ in range(2):
        with served(data, "--demo", service="records") as server:
            lines = server.log.read_text().replace(str(server.port), "PORT").splitlines()
            outputs.append("\n".join(line for line in lines if not line.startswith("{")))

    public = {"COUNTERSIGN_RECORDS_URL": "https://records.example"}
    foreign_result = run("serve", "records", "--port", "0", "--data", data, **public)

    assert "each with the password countersign-demo" in outputs[0]
    assert outputs[0] == outputs[1]
    assert foreign_result.returncode == Exit.USAGE
    assert "well-known passwords of the demonstration" in foreign_result.stderr


def test_modules_are_not_applied_to_a_served_installation(run: Run, data: Path) -> None:
    with served(data, service="records"):
        applied_result = run("modules", "apply", "--data", data)
        planned_result = run("modules", "plan", "--data", data)

    assert applied_result.returncode == Exit.CONFLICT
    assert "cannot upgrade the modules" in applied_result.stderr
    assert planned_result.stdout == "Everything is up to date.\n"


def test_a_module_that_is_not_installed_is_a_wrong_setting(run: Run, data: Path) -> None:
    result = run("modules", "plan", "--data", data, COUNTERSIGN_MODULES="no_such")

    assert result.returncode == Exit.USAGE
    assert "COUNTERSIGN_MODULES names 'no_such'" in result.stderr
    assert not data.exists()


def test_a_person_made_here_sets_a_password_by_the_link_once_and_signs_in(
    run: Run, data: Path, settings: Settings
) -> None:
    created_result = run(
        *("user", "create", "zoe", "--name", "Zoe", "--email", "zoe@example.com"),
        *("--role", "administrator", "--role", "clerk", "--data", data),
        **settings,
    )
    link = urlsplit(created_result.stdout.strip())
    (token,) = parse_qs(link.query)["token"]
    with served(data, service="records", settings=settings) as server, httpx.Client(base_url=server.url) as client:
        shown_response = client.get("/setup", params={"token": token})
        setup_responses = [client.post("/setup", data={"token": token, "password": PASSWORD}) for _ in range(2)]
        signed_in = client.post("/api/auth/login", json={"username": "zoe", "password": PASSWORD})
        session = {"Authorization": f"Bearer {signed_in.json()['token']}"}
        people = client.post("/api/user/list", json={}, headers=session).json()["value"]
        entries = client.post("/api/audit_entry/list", json={}, headers=session).text

    assert created_result.returncode == Exit.OK, created_result.stderr
    assert created_result.stdout.count("\n") == 1
    assert (link.scheme, link.path) == ("http", "/setup")
    assert token not in created_result.stderr + server.log.read_text()
    assert shown_response.status_code == 200
    assert [response.is_success for response in setup_responses] == [True, False]
    has_pages = Assets.of_package().entry_assets("work") is not None
    assert ('href="/signin"' in setup_responses[0].text) == has_pages
    assert [(person["username"], person["name"], person["email"]) for person in people] == [
        ("zoe", "Zoe", "zoe@example.com")
    ]
    assert "user_role.create" in entries
    assert token not in entries


def test_a_person_who_cannot_be_created_leaves_no_rows(run: Run, data: Path, settings: Settings) -> None:
    no_role = run("user", "create", "zoe", "--role", "no_such", "--data", data, **settings)
    too_long = run("user", "create", "z" * 101, "--data", data, **settings)
    spaced_result = run("user", "create", "zoe z", "--data", data, **settings)
    no_plan = run("modules", "list", "--json", "--data", data, **settings)
    is_untouched = not data.exists()
    created_result = run("user", "create", "zoe", "--json", "--data", data, **settings)
    taken_result = run("user", "create", "zoe", "--data", data, **settings)
    no_role_later = run("user", "create", "eve", "--role", "no_such", "--data", data, **settings)

    refused_results = (no_role, too_long, spaced_result, taken_result, no_role_later)
    assert is_untouched
    assert {module["installed"] for module in json.loads(no_plan.stdout)["modules"]} == {None}
    roles = [result.stderr.partition("only ")[2].partition("\n")[0] for result in (no_role, no_role_later)]
    assert roles[0] == roles[1]
    assert {"administrator", "clerk"} <= {*roles[0].split(", ")}
    assert created_result.returncode == Exit.OK, created_result.stderr
    assert json.loads(created_result.stdout)["setup_url"].startswith("http://127.0.0.1:8080/setup?token=")
    assert [result.returncode for result in refused_results] == [Exit.FAILED] * 5
    assert "there is no role no_such" in no_role.stderr
    assert "username must have 100 characters at most" in too_long.stderr
    assert "must be unique" in taken_result.stderr
    assert not any("Traceback" in result.stderr for result in refused_results)


def test_people_can_work_after_a_module_is_removed(run: Run, data: Path) -> None:
    created_result = run("user", "create", "zoe", "--role", "administrator", "--role", "clerk", "--data", data)
    fewer = {"COUNTERSIGN_MODULES": "party"}
    (token,) = parse_qs(urlsplit(created_result.stdout.strip()).query)["token"]
    assert run("modules", "apply", "--destroy", "--data", data, **fewer).returncode == Exit.OK
    with served(data, service="records", settings=fewer) as server, httpx.Client(base_url=server.url) as client:
        client.post("/setup", data={"token": token, "password": PASSWORD})
        signed_in = client.post("/api/auth/login", json={"username": "zoe", "password": PASSWORD})
        session = {"Authorization": f"Bearer {signed_in.json()['token']}"}
        meta = client.get("/api/meta", headers=session)
        history = client.post("/api/audit_entry/list", json={}, headers=session)

    assert [module["name"] for module in meta.json()["modules"]] == ["base", "party"]
    assert "lead" not in {model["name"] for model in meta.json()["models"]}
    assert history.status_code == 200


def test_an_unchanged_audit_is_reported_as_intact(run: Run, data: Path, settings: Settings) -> None:
    empty_result = run("audit", "verify", "--data", data, **settings)
    run("user", "create", "zoe", "--role", "administrator", "--data", data, **settings)
    result = run("audit", "verify", "--data", data, **settings)
    as_json = run("audit", "verify", "--json", "--data", data, **settings)

    assert empty_result.returncode == Exit.NOT_FOUND
    assert (result.returncode, result.stdout) == (Exit.OK, "The audit is intact: 2 entries.\n")
    assert json.loads(as_json.stdout) == {"ok": True, "entries": 2, "faults": []}


@pytest.mark.parametrize(
    ("harm", "output_text"),
    [
        ("UPDATE audit_entry SET command = 'user.delete' WHERE number = 2", "lane 0, number 2 (id {id}): this entry,"),
        ("DELETE FROM audit_entry WHERE number = 1", "lane 0, number 1 (id {id}): this entry is missing"),
        ("DELETE FROM audit_entry WHERE number = 2", "lane 0, number 2: this entry and all after it are missing"),
        ("DELETE FROM audit_lane", "lane 0, number 0: the head of the lane is missing"),
    ],
)
def test_a_tampered_audit_is_reported_with_its_position(run: Run, data: Path, harm: str, output_text: str) -> None:
    run("user", "create", "zoe", "--role", "administrator", "--data", data)
    database = sqlite3.connect(data / "records.sqlite")
    with database:
        (second_id,) = database.execute("SELECT id FROM audit_entry WHERE number = 2").fetchone()
        database.execute(harm)
    database.close()

    result = run("audit", "verify", "--data", data)
    as_json = run("audit", "verify", "--json", "--data", data)

    assert (result.returncode, as_json.returncode) == (Exit.FAILED, Exit.FAILED)
    assert result.stdout.startswith(output_text.format(id=second_id)), result.stdout
    assert result.stdout.count("\n") == 1
    assert [fault["lane"] for fault in json.loads(as_json.stdout)["faults"]] == [0]
