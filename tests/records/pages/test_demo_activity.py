"""The demonstration's activity fills the home pages of its people."""

from countersign.kernel import clock
from countersign.records import demo_activity
from tests.records.office import Office


async def test_the_demonstration_has_proposals_of_each_risk_and_work_due_near_today(office: Office) -> None:
    await demo_activity.add_activity(office.service.engine)

    plans = [*await office.all("plan", "alice"), *await office.all("plan", "carol")]
    home = await office.value("alice", "user.home")

    assert {each["risk"] for each in plans} == {"high", "medium", "low"}
    assert {each["agent"] for each in plans} == {"inbox-triage", "crm-sync", "helpdesk-bot", "billing-helper"}
    assert [each["model"] for each in (*home["due"], *home["tickets"])] == ["lead", "ticket"]
    assert len(await office.all("payment", "carol")) > 50


async def test_the_newest_activity_of_the_demonstration_is_by_several_people_and_refers_to_its_record(
    office: Office,
) -> None:
    await demo_activity.add_activity(office.service.engine)

    feed = (await office.value("alice", "user.home"))["feed"][:6]

    assert {each["by"] for each in feed} == {"alice", "bob"}
    assert {each["agent"] for each in feed} == {None, "crm-sync"}
    assert len({each["at"] for each in feed}) == 6
    assert all(each["command"].split(".")[0] == each["record"]["model"] for each in feed)


async def test_the_agents_of_the_demonstration_have_called_and_been_refused(office: Office) -> None:
    await demo_activity.add_activity(office.service.engine)

    tokens = {each["label"]: each for each in await office.all("agent_token", "alice")}
    calls = (await office.value("alice", "agent_token.calls", id=tokens["inbox-triage"]["id"], limit=100))["calls"]

    assert all(each["last_used_at"] and each["calls_24h"] > 0 for each in tokens.values())
    assert [each["at"] for each in calls] == sorted((each["at"] for each in calls), reverse=True)
    results = {(each["result"], each["tool"]) for each in calls}
    assert {result for result, _ in results} == {"ok", "proposed", "refused"}
    assert ("refused", "lead.update") in results
    helper = next(each for each in await office.all("agent_token", "carol") if each["label"] == "billing-helper")
    assert helper["refused_24h"] > 0


async def test_decided_leads_of_the_demonstration_are_in_the_past_and_few_open_ones_are_overdue(
    office: Office,
) -> None:
    await demo_activity.add_activity(office.service.engine)

    today = clock.rfc3339(clock.now())[:10]
    leads = await office.all("lead", "alice")
    decided = [each for each in leads if each["stage"] in ("won", "lost")]
    open_leads = [each for each in leads if each["stage"] not in ("won", "lost")]

    assert max(each["expected_close"] for each in decided) <= today
    overdue = [each for each in open_leads if each["expected_close"] < today]
    assert 0 < len(overdue) < len(open_leads) / 10


async def test_people_of_the_demonstration_have_views_a_favourite_and_comments(office: Office) -> None:
    await demo_activity.add_activity(office.service.engine)

    views = {each["name"]: each for each in await office.all("view", "alice")}
    (favourite,) = await office.all("favourite", "alice")
    comments = await office.all("comment", "bob")

    assert set(views) == {"Offers", "Without a party", "Won", "Waiting", "Not paid"}
    assert favourite["path"] == f"/models/lead?view={views['Offers']['id']}"
    assert {each["model"] for each in comments} == {"lead"}
    assert len({each["written_at"] for each in comments}) == len(comments) == 6
