"""The first page, the command `find`, recent records, and the calls of an agent."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.records.office import Office


def day(days: int) -> str:
    """Return the date this number of days from now."""
    return (datetime.now(UTC) + timedelta(days=days)).date().isoformat()


async def test_home_lists_the_tasks_of_the_person(office: Office) -> None:
    agent = await office.agent("alice", label="mailbot")
    me = (await office.first_record("user", username="alice"))["id"]
    soon = await office.value("alice", "lead.create", title="Closing soon", expected_close=day(-400), owner=me)
    await office.value("alice", "lead.create", title="Far away", expected_close=day(300), owner=me)
    await office.value("alice", "ticket.create", subject="Broken", assignee=me, priority="urgent")
    await office.proposed(agent, "lead.delete", id=soon["id"])

    home = await office.value("alice", "user.home")

    assert home["waiting"]["count"] >= 1
    assert home["waiting"]["items"][0]["title"] == "Delete lead “Closing soon”"
    leads = next(record for record in home["due"] if record["model"] == "lead")
    assert leads["items"][0]["record"]["title"] == "Closing soon"
    assert "Far away" not in [item["record"]["title"] for item in leads["items"]]
    (tickets,) = home["tickets"]
    assert (tickets["owner_field"], tickets["items"][0]["record"]["title"]) == ("assignee", "Broken")
    assert home["feed"][0]["command"] in ("ticket.create", "lead.create")
    assert home["feed"][0]["by"] == "alice"


async def test_home_is_shown_to_people_who_read_the_audit(office: Office) -> None:
    await office.value("root", "lead.create", title="New")

    home = await office.value("root", "user.home")

    assert (home["feed"][0]["command"], home["feed"][0]["by"]) == ("lead.create", "root")


async def test_home_shows_no_hidden_records(office: Office) -> None:
    await office.value("carol", "product.create", sku="SECRET-1", name="Secret product", unit_price_minor=5)

    home = await office.value("bob", "user.home")

    assert "Secret" not in str(home)
    assert {entry["record"]["model"] for entry in home["feed"]} <= {"lead", "ticket"}


async def test_a_record_is_recent_only_for_the_person_who_opened_it(office: Office) -> None:
    first_lead, second_lead = [(await office.value("alice", "lead.create", title=f"Lead {n}"))["id"] for n in range(2)]
    for record_id in (first_lead, second_lead, first_lead):
        await office.value("alice", "lead.get", id=record_id)

    recent = await office.value("alice", "user.recent")

    assert [entry["record"]["title"] for entry in recent] == ["Lead 0", "Lead 1"]
    assert await office.value("bob", "user.recent") == []


async def test_deleted_records_are_not_listed_as_recent(office: Office) -> None:
    record_id = (await office.value("alice", "lead.create", title="Gone"))["id"]
    await office.value("alice", "lead.get", id=record_id)
    await office.value("alice", "lead.delete", id=record_id)

    assert await office.value("alice", "user.recent") == []


async def test_find_searches_the_names_of_all_models(office: Office) -> None:
    await office.value("alice", "lead.create", title="Quince jam for Quentin")
    await office.value("alice", "ticket.create", subject="The quince is sour")
    await office.value("alice", "party.create", name="Quincy Adams")

    hits = await office.value("alice", "user.find", q="QUINC")

    assert {(hit["model"], hit["title"]) for hit in hits} == {
        ("lead", "Quince jam for Quentin"),
        ("ticket", "The quince is sour"),
        ("party", "Quincy Adams"),
    }
    assert hits[-1]["model"] == "ticket"
    assert next(hit for hit in hits if hit["model"] == "lead")["state"] == "new"


async def test_find_never_searches_masked_or_hidden_fields(office: Office) -> None:
    await office.value("alice", "party.create", name="Quincy Adams")
    await office.value("carol", "product.create", sku="Q-1", name="Quincy lamp", unit_price_minor=5)

    assert await office.value("bob", "user.find", q="quincy") == []
    assert [hit["model"] for hit in await office.value("carol", "user.find", q="quincy l")] == ["product"]


@pytest.mark.parametrize("body", [{}, {"q": ""}, {"q": "x" * 101}, {"q": "x", "limit": 0}, {"q": "x", "model": "lead"}])
async def test_malformed_finds_are_refused(office: Office, body: dict[str, Any]) -> None:
    assert await office.refusal_of("alice", "user.find", **body)


async def test_calls_of_an_agent_are_logged_without_their_content(office: Office) -> None:
    record_id = (await office.value("alice", "lead.create", title="Trial"))["id"]
    agent = await office.agent("alice", label="mailbot")
    token = await office.first_record("agent_token", "alice", label="mailbot")
    assert (token["last_used_at"], token["calls_24h"]) == (None, 0)

    await office.value(agent, "lead.get", id=record_id)
    await office.refusal_of(agent, "lead.update", id=record_id, stage="no such stage")
    await office.proposed(agent, "lead.delete", id=record_id)
    await office.all("lead", agent)

    page = await office.value("alice", "agent_token.calls", id=token["id"])
    assert [(call["tool"], call["record_id"], call["result"]) for call in page["calls"]] == [
        ("lead.list", None, "ok"),
        ("lead.delete", record_id, "proposed"),
        ("lead.update", record_id, "refused"),
        ("lead.get", record_id, "ok"),
    ]
    assert "no such stage" not in str(page)
    next_page = await office.value("alice", "agent_token.calls", id=token["id"], after=page["cursor"])
    assert next_page == {"calls": [], "cursor": page["cursor"]}
    used_token = await office.first_record("agent_token", "alice", label="mailbot")
    assert used_token["last_used_at"] is not None
    assert (used_token["calls_24h"], used_token["refused_24h"], used_token["proposals_open"]) == (4, 1, 1)


async def test_calls_of_agents_of_other_people_are_hidden(office: Office) -> None:
    agent = await office.agent("alice", label="mailbot")
    token = await office.first_record("agent_token", "alice", label="mailbot")

    assert await office.refusal_of("bob", "agent_token.calls", id=token["id"]) == "no such record"
    assert (await office.call(agent, "agent_token.calls", {"id": token["id"]})).status_code == 404


async def test_a_person_is_seen_and_can_be_switched_off(office: Office) -> None:
    await office.value("bob", "user.home")
    bob = await office.first_record("user", username="bob")

    assert (await office.call("alice", "user.deactivate", {"id": bob["id"]})).status_code == 404
    off = await office.value("root", "user.deactivate", id=bob["id"])

    assert off["is_active"] is False
    await office.value("root", "user.recent")
    assert (await office.first_record("user", username="bob"))["last_seen_at"] is not None
    assert (await office.call("bob", "lead.list")).status_code == 401
