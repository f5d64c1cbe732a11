"""The scenario of the API document with the agent of examples/agent over MCP, and a person who approves."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from countersign.records import app
from countersign.records.audit.verify import verify
from tests.records.conftest import OfficeSettings
from tests.records.office import ROOT_URL, Office
from tests.servers.countersign import served

AGENT = Path(__file__).parents[2] / "examples/agent/agent.py"
LIMIT_S = 120


@pytest.mark.parametrize("with_2026", ["0", "1"], ids=["handshake", "2026-07-28"])
async def test_the_example_agent_works_a_lead_and_a_person_approves(
    office_settings: OfficeSettings, with_2026: str
) -> None:
    settings = {
        "COUNTERSIGN_MASTER_KEY": office_settings.settings.master_key,
        "COUNTERSIGN_DATABASE_URL": office_settings.settings.database_url,
        "COUNTERSIGN_RESERVE_MIB": "0",
        "COUNTERSIGN_MCP_2026": with_2026,
    }
    data = Path(office_settings.settings.data)
    with served(data, service="records", settings=settings) as running:
        async with httpx.AsyncClient(base_url=running.url, timeout=30) as client:
            await _day(
                Office(client, office_settings.tokens), f"{running.url}/mcp", "2026" if with_2026 == "1" else "2025"
            )
        assert ".example" not in running.log.read_text()
    async with app.open_records(office_settings.settings, ROOT_URL, is_loopback=True) as service:
        assert (await verify(service.records.database, service.records.secret)).faults == ()


async def _day(office: Office, url: str, year: str) -> None:
    agent = await office.agent("alice", "lead.*", label="mailbot")
    variables = {**os.environ, "COUNTERSIGN_AGENT_TOKEN": office.tokens[agent]}
    command = [sys.executable, str(AGENT), url, "--wait", "60"]
    process = await asyncio.create_subprocess_exec(*command, env=variables, stdout=-1, stderr=-1)
    async with asyncio.timeout(LIMIT_S):
        plan = await _wait_for_plan(office, process)
        lead_before = await office.value("alice", "lead.get", id=plan["target"]["id"])
        approval = await office.approve("alice", plan["id"], digest=plan["digest"])
        assert approval.json()["value"]["state"] == "executed", approval.text
        output, errors = await process.communicate()
    printed_output = output.decode()
    assert process.returncode == 0, errors.decode()

    assert f"revision {year}" in printed_output
    assert "@" not in printed_output
    assert "refused: token not allowed in lead.title" in printed_output
    assert printed_output.rstrip().endswith(f"Plan {plan['id']} is executed.")
    await _require_work(office, printed_output, lead_before)


async def _wait_for_plan(office: Office, process: asyncio.subprocess.Process) -> dict[str, Any]:
    """Return the agent's plan as soon as it exists."""
    while process.returncode is None:
        plans = await office.value("alice", "plan.list", filter=[{"field": "state", "op": "eq", "value": "pending"}])
        if plans:
            return plans[0]
        await asyncio.sleep(0.1)
    _, errors = await process.communicate()
    raise AssertionError(f"the agent ended early: {errors.decode()}")


async def _require_work(office: Office, printed_output: str, deleted_lead: dict[str, Any]) -> None:
    """Require that the changes of the agent are in the records, in clear for people who see them in clear, and in the
    audit with the agent's name."""
    worked = printed_output.partition("Worked lead ")[2][:24]
    lead = await office.value("alice", "lead.get", id=worked)
    assert lead["stage"] == "qualified"
    assert lead["notes"] == f"Write to {lead['contact_email']} on Monday."
    assert "EMAIL" not in lead["title"]
    assert lead["contact_email"] == deleted_lead["contact_email"]
    assert await office.refusal_of("alice", "lead.get", id=deleted_lead["id"]) == "no such record"

    entry_filter = [
        {"field": "record_id", "op": "eq", "value": worked},
        {"field": "agent", "op": "eq", "value": "mailbot"},
    ]
    story = await office.value("root", "audit_entry.list", filter=entry_filter)
    assert sorted(entry["command"] for entry in story) == ["lead.qualify", "lead.update"]
