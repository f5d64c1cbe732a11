"""The official MCP client at the served store."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.peers.node import PROJECT, environment
from tests.servers.countersign import served


@pytest.mark.parametrize(
    ("mode", "is_2026", "revision"),
    [("legacy", "false", "2025-11-25"), ("auto", "false", "2025-11-25"), ("auto", "true", "2026-07-28")],
)
def test_the_official_client_works_at_the_store(tmp_path: Path, mode: str, is_2026: str, revision: str) -> None:
    variables = {"COUNTERSIGN_MCP_2026": is_2026, "COUNTERSIGN_RESERVE_MIB": "0"}
    with served(tmp_path / "data", service="distribution", settings=variables) as running:
        command = [sys.executable, str(PROJECT / "store_official_sdk.py"), f"{running.url}/mcp", mode]
        result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment())

    assert result.returncode == 0, result.stderr
    output = json.loads(result.stdout)
    assert output["revision"] == revision
    assert {"list_products", "get_product", "run_batch"} <= set(output["tools"])
    assert output["got"] == {"items": [], "next_cursor": None}
    assert output["refused"][0] is True
    # The server answers HTTP 401, which this client without credentials reports as an error of its own.
    assert output["unknown"][0] == -32603
