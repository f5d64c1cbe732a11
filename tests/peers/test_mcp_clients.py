"""Independent, unmodified MCP clients. Each lists tools, calls a tool, is refused, gets a plan, and gets an error for
an unknown tool."""

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.peers.conftest import RunningService
from tests.peers.node import PROJECT, Node, environment

HANDSHAKE = "2025-11-25"
NEWEST = "newest"


def check(peer: RunningService, process: "subprocess.CompletedProcess[str]", revision: str | None) -> None:
    """Compare the client's results with the service."""
    assert process.returncode == 0, process.stderr
    results: dict[str, Any] = json.loads(process.stdout)
    if revision is not None:
        assert results["revision"] == (peer.newest if revision == NEWEST else revision)
    assert sorted(results["tools"]) == sorted(peer.tools)
    assert results["got"]["status"] == "ok"
    assert results["got"]["value"]["id"] == peer.lead
    assert results["got"]["value"]["contact_email"].startswith("EMAIL_")
    assert results["refused"] == [True, "no such record"]
    assert not results["proposed"][0]
    assert results["proposed"][1]["status"] == "approval_required"
    assert len(results["proposed"][1]["plan_id"]) == 24
    assert results["unknown"][0] == -32602
    assert "Unknown tool: lead__fly" in results["unknown"][1]


@pytest.mark.parametrize(
    ("script", "mode", "revision"),
    [
        ("official_sdk.py", "legacy", HANDSHAKE),
        ("official_sdk.py", "auto", NEWEST),
        ("fastmcp_client.py", "auto", None),
    ],
)
def test_a_client_in_python_works(peer: RunningService, script: str, mode: str, revision: str | None) -> None:
    command = [sys.executable, str(PROJECT / script), peer.url, peer.token, peer.lead, mode]

    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment())

    check(peer, result, revision)


@pytest.mark.parametrize(
    ("script", "mode", "revision"),
    [
        ("official_v1.mjs", "legacy", HANDSHAKE),
        ("official_v2.mjs", "legacy", HANDSHAKE),
        ("official_v2.mjs", "auto", NEWEST),
        ("ai_sdk.mjs", "auto", None),
    ],
)
def test_a_client_in_javascript_works(
    peer: RunningService, node: Node, script: str, mode: str, revision: str | None
) -> None:
    check(peer, node.run(script, peer.url, peer.token, peer.lead, mode), revision)


def run_inspector(peer: RunningService, node: Node, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Return the output of the Inspector's command line."""
    inspector_options = ("--cli", peer.url, "--transport", "http", "--header", f"Authorization: Bearer {peer.token}")
    return node.run("node_modules/.bin/mcp-inspector", *inspector_options, *arguments)


def test_the_inspector_lists_the_tools_and_finds_nothing_in_their_schemas(peer: RunningService, node: Node) -> None:
    process = run_inspector(peer, node, "--method", "tools/list", "--strict")

    assert process.returncode == 0, process.stderr
    assert sorted(tool["name"] for tool in json.loads(process.stdout)["tools"]) == sorted(peer.tools)
    assert "Warning" not in process.stderr
    assert "Error" not in process.stderr


def test_the_inspector_calls_a_tool(peer: RunningService, node: Node) -> None:
    calling = ("--method", "tools/call", "--tool-name", "lead__get", "--tool-arg")

    good_call, refused_call = (
        run_inspector(peer, node, *calling, f"id={peer.lead}"),
        run_inspector(peer, node, *calling, "id=x"),
    )

    assert json.loads(good_call.stdout)["structuredContent"]["value"]["id"] == peer.lead
    assert json.loads(refused_call.stdout)["content"][0]["text"] == "no such record"
