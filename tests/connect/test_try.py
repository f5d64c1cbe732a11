"""The whole way: each schema is drafted, written, served with --try, and read by an administrator and by an agent.

Each text of the schemas that is not a fixed vocabulary contains a mark. A mark in an answer to the agent is a leak.
"""

import re
from pathlib import Path

import httpx
import pytest

from countersign.connect.draft import Draft
from countersign.declare import text
from countersign.declare.model import Declared
from countersign.declare.registry import Registry
from countersign.records import base_models
from tests.connect.conftest import SCHEMAS, DatabaseFactory, drafted, drafted_sqlite
from tests.servers.countersign import served

MARK = "xMARKx"
PASSWORD = "a long password"
NAMES = sorted(path.stem for path in SCHEMAS.glob("*.sql"))


def signed_in(client: httpx.Client, log: str) -> tuple[dict[str, str], dict[str, str]]:
    """Create the first administrator and an agent, and return the headers of each."""
    link = re.search(r"/setup\?token=(\S+)", log)
    assert link is not None, log
    client.post("/setup", data={"token": link[1], "username": "root", "password": PASSWORD})
    token = client.post("/api/auth/login", json={"username": "root", "password": PASSWORD}).json()["token"]
    person = {"Authorization": f"Bearer {token}"}
    issued = client.post("/api/auth/agent-token", json={"scopes": ["*"], "label": "scout"}, headers=person)
    return person, {"Authorization": f"Bearer {issued.json()['token']}"}


def read(client: httpx.Client, model: Declared, headers: dict[str, str]) -> list[str]:
    """Run every reading command on the model, and return the answers. Each must succeed."""

    def call(command: str, given: dict[str, object]) -> httpx.Response:
        return client.post(f"/api/{model.name}/{command}", json=given, headers=headers)

    sorted_by = [each.name for each in model.fields.values() if not each.personal and each.operators]
    listed = call("list", {"limit": 5})
    assert listed.status_code == 200, (model.name, listed.text)
    answers = [
        listed,
        call("get", {"id": listed.json()["value"][0]["id"]}),
        call("search", {"limit": 5, "order": [{"field": name, "dir": "desc"} for name in sorted_by[:5]]}),
        call("export", {}),
        *(call("count_by", {"field": each.name}) for each in model.fields.values() if each.is_countable),
    ]
    failed = [f"{each.request.url.path} {each.request.content!r}: {each.text}" for each in answers if each.is_error]
    assert not failed
    return [each.text for each in answers]


@pytest.mark.parametrize("name", NAMES)
def test_every_table_with_a_key_works_without_an_edit(
    name: str, schema_url: DatabaseFactory, tmp_path: Path
) -> None:
    url = schema_url(name)

    serve_and_read(url, drafted(url, name), tmp_path)


def test_a_sqlite_file_shows_no_text_in_a_column_of_another_type(sqlite_file: Path, tmp_path: Path) -> None:
    serve_and_read(f"sqlite:///{sqlite_file}", drafted_sqlite(sqlite_file), tmp_path)


def serve_and_read(url: str, module_draft: Draft, tmp_path: Path) -> None:
    """Serve the draft over the database, and read all of it as an administrator and as an agent."""
    file = tmp_path / "module.py"
    file.write_text(text.write(module_draft.text))
    registry = Registry((base_models.MODULE, text.build(module_draft.text, "module.py")))
    adopted = [each for each in registry.models.values() if each.table is not None]

    with (
        served(
            tmp_path / "data", "--try", "--accept-wide-rights", "--modules", str(file), service="records",
            settings={"COUNTERSIGN_DATABASE_URL": url},
        ) as running,
        httpx.Client(base_url=running.url, timeout=60) as client,
    ):  # fmt: skip
        person, agent = signed_in(client, running.log.read_text())
        for model in adopted:
            read(client, model, person)
            shown = read(client, model, agent)
            assert not [each for each in shown if MARK in each], model.name
