"""The activity of the demonstration fills the first pages of its people."""

from countersign.records import demo_activity
from tests.records.office import Office


async def test_the_demonstration_has_proposals_of_each_risk_and_work_around_today(office: Office) -> None:
    await demo_activity.add_activity(office.service.engine)

    plans = [*await office.all("plan", "alice"), *await office.all("plan", "carol")]
    home = await office.value("alice", "user.home")

    assert {each["risk"] for each in plans} == {"high", "medium", "low"}
    assert {each["agent"] for each in plans} == {"inbox-triage", "crm-sync", "billing-helper"}
    assert [each["model"] for each in (*home["due"], *home["tickets"])] == ["lead", "ticket"]
    assert len(await office.all("payment", "carol")) > 50
