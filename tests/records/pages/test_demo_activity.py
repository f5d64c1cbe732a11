"""The demonstration's activity fills the home pages of its people."""

import json
import re

import pytest

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.records import demo_activity
from tests.records.office import Office


async def test_the_demonstration_has_proposals_of_each_risk_and_work_due_near_today(office: Office) -> None:
    await demo_activity.add_activity(office.service.engine)

    plans = [*await office.all("plan", "alice"), *await office.all("plan", "carol")]
    home = await office.value("alice", "user.home")

    assert {plan["risk"] for plan in plans} == {"high", "medium", "low"}
    assert {plan["agent"] for plan in plans} == {"inbox-triage", "crm-sync", "helpdesk-bot", "billing-helper"}
    assert [record["model"] for record in (*home["due"], *home["tickets"])] == ["lead", "ticket"]
    assert len(await office.all("payment", "carol")) > 50


@pytest.mark.parametrize("time_of_day", ["00:00:30", "03:05:00", "23:59:30"])
async def test_the_demonstration_can_be_filled_at_any_time_of_the_day(office: Office, time_of_day: str) -> None:
    now = clock.now()
    midnight, today = now - now % clock.DAY, clock.rfc3339(now)[:10]
    hours, minutes, seconds = map(int, time_of_day.split(":"))

    with clock.fixed(clock.later(Instant(midnight), seconds=(hours * 60 + minutes) * 60 + seconds)):
        await demo_activity.add_activity(office.service.engine)

    payments = [plan for plan in await office.all("plan", "carol") if "payment.create" in json.dumps(plan)]
    days = re.findall(r"paid_on\W+(\d{4}-\d\d-\d\d)", json.dumps(payments))
    assert days
    assert max(days) <= today


async def test_the_newest_activity_of_the_demonstration_is_by_several_people_and_refers_to_its_record(
    office: Office,
) -> None:
    await demo_activity.add_activity(office.service.engine)

    feed = (await office.value("alice", "user.home"))["feed"][:6]

    assert {entry["by"] for entry in feed} == {"alice", "bob"}
    assert {entry["agent"] for entry in feed} == {None, "crm-sync"}
    assert len({entry["at"] for entry in feed}) == 6
    assert all(entry["command"].split(".")[0] == entry["record"]["model"] for entry in feed)


async def test_the_agents_of_the_demonstration_have_called_and_been_refused(office: Office) -> None:
    await demo_activity.add_activity(office.service.engine)

    tokens = {agent_token["label"]: agent_token for agent_token in await office.all("agent_token", "alice")}
    calls = (await office.value("alice", "agent_token.calls", id=tokens["inbox-triage"]["id"], limit=100))["calls"]

    assert all(token["last_used_at"] and token["calls_24h"] > 0 for token in tokens.values())
    assert [call["at"] for call in calls] == sorted((call["at"] for call in calls), reverse=True)
    results = {(call["result"], call["tool"]) for call in calls}
    assert {result for result, _ in results} == {"ok", "proposed", "refused"}
    assert ("refused", "lead.update") in results
    helper = next(
        agent_token
        for agent_token in await office.all("agent_token", "carol")
        if agent_token["label"] == "billing-helper"
    )
    assert helper["refused_24h"] > 0


async def test_decided_leads_of_the_demonstration_are_in_the_past_and_few_open_leads_are_overdue(
    office: Office,
) -> None:
    await demo_activity.add_activity(office.service.engine)

    today = clock.rfc3339(clock.now())[:10]
    leads = await office.all("lead", "alice")
    decided_leads = [lead for lead in leads if lead["stage"] in ("won", "lost")]
    open_leads = [lead for lead in leads if lead["stage"] not in ("won", "lost")]

    assert max(lead["expected_close"] for lead in decided_leads) <= today
    overdue = [open_lead for open_lead in open_leads if open_lead["expected_close"] < today]
    assert 0 < len(overdue) < len(open_leads) / 10


async def test_people_of_the_demonstration_have_views_a_favourite_and_comments(office: Office) -> None:
    await demo_activity.add_activity(office.service.engine)

    views = {view["name"]: view for view in await office.all("view", "alice")}
    (favourite,) = await office.all("favourite", "alice")
    comments = await office.all("comment", "bob")

    assert set(views) == {"Offers", "Without a party", "Won", "Waiting", "Not paid"}
    assert favourite["path"] == f"/models/lead?view={views['Offers']['id']}"
    assert {comment["model"] for comment in comments} == {"lead"}
    assert len({comment["written_at"] for comment in comments}) == len(comments) == 7
