"""The configurations of docs/how-to/connect-an-agent.md: each can be parsed, names the endpoint and contains no
token."""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests import docs
from tests.servers.countersign import Running, environment, served

PAGE = (docs.ROOT / "docs/how-to/connect-an-agent.md").read_text()
ENDPOINT = "http://127.0.0.1:8080/mcp"
TOKEN = "COUNTERSIGN_AGENT_TOKEN"


def blocks(language: str) -> list[str]:
    """Return the code blocks of the page that are in this language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def texts(value: Any) -> Iterator[str]:
    """Yield every text in a configuration."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from texts(each)


CONFIGURATIONS = [*(json.loads(block) for block in blocks("json")), *(tomllib.loads(block) for block in blocks("toml"))]


def server_of(configuration: dict[str, Any]) -> dict[str, Any]:
    """Return the only server that a configuration names."""
    servers = next(configuration[name] for name in ("mcpServers", "servers", "mcp_servers") if name in configuration)
    assert list(servers) == ["countersign"]
    return servers["countersign"]


def test_each_common_client_has_a_configuration() -> None:
    headings = re.findall(r"^### (.+)$", PAGE, re.MULTILINE)

    assert {"Claude Code", "Claude Desktop", "Codex", "Gemini CLI", "VS Code", "Cursor", "Windsurf"} <= set(headings)
    assert len(CONFIGURATIONS) == 7


@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=range(len(CONFIGURATIONS)))
def test_the_configuration_leads_to_the_endpoint_with_a_token_from_elsewhere(configuration: dict[str, Any]) -> None:
    server = server_of(configuration)

    addresses = [server[name] for name in ("url", "httpUrl", "serverUrl") if name in server] or server["args"]
    assert ENDPOINT in addresses
    texts_of_server = list(texts(server))
    assert any(TOKEN in each or "${input:" in each or "PASTE_THE_TOKEN" in each for each in texts_of_server)
    assert not [each for each in texts_of_server if re.search(r"css_agent_[A-Za-z0-9]{20}", each)]
    if "headers" in server:
        assert re.fullmatch(r"Bearer \$.+", server["headers"]["Authorization"])


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """Serve the records service with demonstration data."""
    with served(tmp_path / "data", "--demo", service="records") as each:
        yield each


def test_the_documented_own_program_runs(running: Running, tmp_path: Path) -> None:
    with httpx.Client(base_url=running.url) as http:
        sign_in = {"username": "alice", "password": "countersign-demo"}
        alice = http.post("/api/auth/login", json=sign_in).json()["token"]
        token_request = {"scopes": ["lead.*"], "label": "assistant"}
        headers = {"Authorization": f"Bearer {alice}"}
        token = http.post("/api/auth/agent-token", json=token_request, headers=headers).json()["token"]
    (program,) = blocks("python")
    script = tmp_path / "program.py"
    script.write_text(program.replace(ENDPOINT, f"{running.url}/mcp"))

    result = subprocess.run(
        [sys.executable, script], env=environment(**{TOKEN: token}), capture_output=True, text=True, check=False
    )

    assert result.returncode == 0, result.stderr
    assert result.stdout.split()[0] == "ok"
    assert int(result.stdout.split()[1]) > 100
