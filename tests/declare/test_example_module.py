"""The example module, installed from its own package, works end to end: table, commands, masking, permissions."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from tests import docs
from tests.servers.countersign import COMMAND, SOURCE, environment, served
from tests.servers.process import free_port

EXAMPLE = docs.ROOT / "examples/module"
PASSWORD = "countersign-demo"
MODULES = "party,crm,billing,helpdesk,equipment"


def install(folder: Path) -> Path:
    """Build and install the package of the folder, as pip does it, without a network; the path of the installed
    package."""
    site = folder.with_name("site")
    options = ("--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target", site)
    subprocess.run([sys.executable, "-m", "pip", "install", *options, folder], check=True, capture_output=True)
    return site


def copy_example(folder: Path) -> Path:
    """Return a copy of the example, so that the build leaves no files in the repository."""
    return Path(shutil.copytree(EXAMPLE, folder / "package"))


class Caller(NamedTuple):
    """A caller with a token."""

    url: str
    token: str

    def call(self, command: str, **body: object) -> httpx.Response:
        """Run a command."""
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.post(f"{self.url}/api/{command.replace('.', '/')}", json=body, headers=headers)

    def value(self, command: str, **body: object) -> Any:
        """Return the result of the command."""
        answer = self.call(command, **body)
        assert answer.status_code == 200, answer.text
        return answer.json()["value"]

    def get(self, path: str) -> Any:
        """Return the body of the answer to a GET request."""
        return httpx.get(f"{self.url}{path}", headers={"Authorization": f"Bearer {self.token}"}).json()

    def agent(self, *scopes: str) -> "Caller":
        """Return an agent of this person."""
        headers = {"Authorization": f"Bearer {self.token}"}
        body = {"scopes": scopes, "label": "lender"}
        answer = httpx.post(f"{self.url}/api/auth/agent-token", json=body, headers=headers)
        return Caller(self.url, answer.json()["token"])


def person(url: str, name: str) -> Caller:
    """Return a person of the demonstration, signed in."""
    answer = httpx.post(f"{url}/api/auth/login", json={"username": name, "password": PASSWORD})
    return Caller(url, answer.json()["token"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the installed example."""
    return install(copy_example(tmp_path_factory.mktemp("example")))


@pytest.fixture(scope="module")
def url(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A demonstration with the example, in which the clerk bob is also a storekeeper."""
    data = tmp_path_factory.mktemp("office") / "data"
    settings = {"PYTHONPATH": f"{site}{os.pathsep}{SOURCE}", "COUNTERSIGN_MODULES": MODULES}
    with served(data, "--demo", service="records", settings=settings) as running:
        root = person(running.url, "root")
        bob = root.value("user.list", filter=[{"field": "username", "op": "eq", "value": "bob"}])[0]
        role = root.value("role.list", filter=[{"field": "title", "op": "eq", "value": "storekeeper"}])[0]
        root.value("user_role.create", user=bob["id"], role=role["id"])
        yield running.url


def lent(keeper: Caller, contact: str) -> Any:
    """Lend an item to a contact, and return the item."""
    party = keeper.value("party.list", limit=1)[0]["id"]
    created_equipment = keeper.value("equipment.create", title=f"Camera for {contact}")
    return keeper.value("equipment.lend", id=created_equipment["id"], borrower=party, contact=contact, due="2026-12-01")


def test_a_storekeeper_makes_lists_and_lends_equipment(url: str) -> None:
    keeper = person(url, "bob")

    created_equipment = keeper.value("equipment.create", title="Tripod", serial="T-1")
    party = keeper.value("party.list", limit=1)[0]["id"]
    lent = keeper.value(
        "equipment.lend", id=created_equipment["id"], borrower=party, contact="Ada Byron", due="2026-12-01"
    )
    listed_equipment = keeper.value("equipment.list", filter=[{"field": "serial", "op": "eq", "value": "T-1"}])
    returned = keeper.value("equipment.take_back", id=created_equipment["id"])

    assert (created_equipment["state"], lent["state"], returned["state"]) == ("in_stock", "lent", "in_stock")
    assert listed_equipment == [lent]
    assert (lent["contact"], returned["contact"], returned["borrower"], returned["due"]) == (
        "Ada Byron",
        None,
        None,
        None,
    )


def test_an_action_insists_on_its_inputs_and_its_state(url: str) -> None:
    keeper = person(url, "bob")
    created_equipment = keeper.value("equipment.create", title="Lamp")

    refused_response = keeper.call("equipment.lend", id=created_equipment["id"])
    too_early = keeper.call("equipment.take_back", id=created_equipment["id"])

    assert (refused_response.status_code, refused_response.json()) == (400, {"error": "equipment.borrower is required"})
    assert too_early.status_code == 400
    assert "not allowed in this state" in too_early.json()["error"]


def test_an_agent_sees_a_token_for_the_contact_and_can_write_it_back(url: str) -> None:
    keeper = person(url, "bob")
    lent_equipment = lent(keeper, "Grace Hopper")
    agent = keeper.agent("equipment.*", "party.get")

    answer = agent.call("equipment.get", id=lent_equipment["id"])
    token = answer.json()["value"]["contact"]
    update_response = agent.call("equipment.update", id=lent_equipment["id"], contact=token, title="Camera")

    assert re.fullmatch(r"PERSON_\d+", token)
    assert update_response.status_code == 200, update_response.text
    assert "Grace" not in update_response.text
    assert keeper.value("equipment.get", id=lent_equipment["id"])["contact"] == "Grace Hopper"


def test_an_agent_only_proposes_commands_for_which_the_module_requires_approval(url: str) -> None:
    keeper = person(url, "bob")
    lent_equipment = lent(keeper, "Annie Easley")

    answer = keeper.agent("equipment.*").call("equipment.scrap", id=lent_equipment["id"])

    assert (answer.status_code, answer.json()["approval_required"]) == (202, True)
    assert keeper.value("equipment.get", id=lent_equipment["id"])["state"] == "lent"
    response = httpx.post(
        f"{url}/api/approve/{answer.json()['plan_id']}", headers={"Authorization": f"Bearer {keeper.token}"}
    )
    assert response.status_code == 200, response.text
    assert keeper.value("equipment.get", id=lent_equipment["id"])["state"] == "scrapped"


def test_the_module_is_invisible_to_callers_without_a_role_of_the_module(url: str) -> None:
    stranger = person(url, "carol")

    refused_response, unknown = stranger.call("equipment.list"), stranger.call("nothing.list")

    assert (refused_response.status_code, refused_response.content) == (404, unknown.content)
    assert "equipment" not in str(stranger.get("/api/commands"))
    assert "equipment" not in str(stranger.get("/api/meta"))


def test_the_descriptions_know_the_module(url: str) -> None:
    keeper = person(url, "bob")

    approval_by_command = {
        command["id"]: command["needs_approval"] for command in keeper.get("/api/commands")["commands"]
    }
    model = next(model for model in keeper.get("/api/meta")["models"] if model["name"] == "equipment")

    assert approval_by_command["equipment.scrap"]
    assert not approval_by_command["equipment.lend"]
    assert [field["name"] for field in model["fields"]] == ["title", "serial", "state", "borrower", "contact", "due"]
    assert "/api/equipment/lend" in keeper.get("/api/openapi.json")["paths"]


def test_a_wrong_declaration_ends_the_start_with_its_place_and_remedy(tmp_path: Path) -> None:
    package = copy_example(tmp_path)
    source = package / "countersign_equipment/__init__.py"
    right = source.read_text()
    source.write_text(right.replace('"PERSON"', '"Person"'))
    assert source.read_text() != right

    result = subprocess.run(
        [*COMMAND, "serve", "records", "--data", tmp_path / "data", "--port", str(free_port())],
        env=environment(PYTHONPATH=f"{install(package)}{os.pathsep}{SOURCE}", COUNTERSIGN_MODULES="party,equipment"),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert result.returncode == 2
    assert "countersign_equipment/__init__.py: equipment.contact: the label 'Person' must be" in result.stderr
    assert "Traceback" not in result.stderr
    page = (docs.ROOT / "docs/how-to/write-a-module.md").read_text()
    advice = re.findall(r"(?:Why:   …|Next:  )(.+)", page)
    assert len(advice) == 2
    assert [line for line in advice if line not in result.stderr] == []


def test_the_example_has_a_test_of_its_own_which_passes(site: Path) -> None:
    options = ("-q", "-c", os.devnull, "-p", "no:cacheprovider")
    result = subprocess.run(
        [sys.executable, "-m", "pytest", *options, EXAMPLE / "test_equipment.py"],
        env=environment(PYTHONPATH=f"{site}{os.pathsep}{SOURCE}"),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert "2 passed" in result.stdout, result.stdout + result.stderr
