"""The limit on unknown tokens: after 20 unknown tokens within ten minutes, the caller must wait, and the audit has an
entry."""

from countersign.kernel import clock
from tests.records.office import Office


async def test_after_twenty_unknown_tokens_the_caller_gets_429_and_the_audit_records_the_attempts(
    office: Office
) -> None:
    agent, other_agent = await office.agent("alice", label="one"), await office.agent("alice", label="two")
    lead = (await office.first_record("lead"))["id"]
    body = {"id": lead, "contact_email": "EMAIL_12345"}
    for _ in range(20):
        answer = await office.call(agent, "lead.update", body)
        assert (answer.status_code, answer.json()) == (400, {"error": "unknown token EMAIL_12345"})

    for _ in range(3):
        answer = await office.call(agent, "lead.update", body)
        assert answer.status_code == 429
        assert int(answer.headers["retry-after"]) >= 1

    entries = await office.all("audit_entry")
    assert [entry["agent"] for entry in entries if entry["command"] == "base.unknown_tokens"] == ["one"]
    # Commands without tokens still work, and other callers are not limited.
    assert (await office.call(agent, "lead.list", {"limit": 1})).status_code == 200
    assert (await office.call(other_agent, "lead.update", body)).status_code == 400
    with clock.fixed(clock.later(clock.now(), seconds=601)):
        assert (await office.call(agent, "lead.update", body)).status_code == 400
