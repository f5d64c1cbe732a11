"""The command that verifies the audit: only people with a grant can run it, and its result does not reveal how many
entries are hidden."""

import asyncio
import json

from countersign.kernel.database.port import Row
from tests.records.office import Office

AUDITOR = {"model": "audit_entry", "commands": "get,list,verify", "clear": "command"}
LAST = "SELECT id FROM audit_entry ORDER BY at DESC, id LIMIT 1"


async def _tamper(office: Office) -> str:
    """Forge the last entry with access to the database but without its secret, and return the id of the entry."""
    async with office.service.records.database.transaction() as transaction:
        row: Row | None = await transaction.fetch_one(LAST)
        assert row is not None
        await transaction.run("UPDATE audit_entry SET command = 'lead.get' WHERE id = $1", row[0])
    return str(row[0])


async def test_an_administrator_sees_the_checked_entries_and_the_errors(office: Office) -> None:
    report_before = await office.value("root", "audit_entry.verify")
    entries = await office.value("root", "audit_entry.search", limit=1)

    changed_id = await _tamper(office)
    report_after = await office.value("root", "audit_entry.verify")

    assert (report_before["is_intact"], report_before["entries"], report_before["faults"]) == (
        True,
        entries["total"],
        [],
    )
    assert report_after["is_intact"] is False
    assert [(fault["id"], fault["what"]) for fault in report_after["faults"]] == [(changed_id, "changed")]
    assert report_before["checked_at"] < report_after["checked_at"]


async def test_an_auditor_learns_that_the_audit_is_damaged_but_neither_how_much_nor_where(
    office: Office,
) -> None:
    await office.person("dan", AUDITOR)
    sound = await office.value("dan", "audit_entry.verify")

    await _tamper(office)
    broken = await office.value("dan", "audit_entry.verify")

    assert (sound["is_intact"], broken["is_intact"]) == (True, False)
    assert [sound["entries"], sound["faults"], broken["entries"], broken["faults"]] == [None] * 4


async def test_no_other_person_and_no_agent_finds_the_command(office: Office) -> None:
    await office.person("eve", {**AUDITOR, "commands": "get,list"})
    agent = await office.agent("root", "*")
    missing_response = await office.call("alice", "audit_entry.nothing")

    answers = [await office.call(who, "audit_entry.verify") for who in ("alice", "eve", agent)]

    assert missing_response.status_code == 404
    assert {(answer.status_code, answer.content) for answer in answers} == {(404, missing_response.content)}
    refused_response = await office.post(
        "root", "/api/auth/agent-token", {"scopes": ["audit_entry.verify"], "label": "sly"}
    )
    assert refused_response.status_code == 400


async def test_callers_during_a_verification_share_its_result(office: Office) -> None:
    results = await asyncio.gather(*(office.value("root", "audit_entry.verify") for _ in range(5)))

    # On a busy machine, another call may start after the read has ended.
    assert len({result["checked_at"] for result in results}) < len(results)
    assert "unknown key since" in await office.refusal_of("root", "audit_entry.verify", since="yesterday")


async def test_the_audit_export_contains_the_entries_that_the_reader_can_list(office: Office) -> None:
    await office.person("dan", {**AUDITOR, "commands": "get,list,export"}, {"model": "party", "commands": "get,list"})
    await office.value("alice", "lead.create", title="out of dan's sight")

    for who in ("root", "dan"):
        exported = await office.value(who, "audit_entry.export", limit=5000, content_type="application/x-ndjson")
        listed_audit_entries = await office.value(who, "audit_entry.list", limit=5000)

        assert [json.loads(line) for line in exported["text"].splitlines()] == listed_audit_entries
        assert ("out of dan's sight" in exported["text"]) == (who == "root")
