"""Comments on records: who sees, changes and deletes them, what agents see and write, and mentions of people."""

import asyncio
import json

import pytest

from countersign.kernel import clock
from countersign.records import mention_emails
from countersign.records.commands import mentions
from tests.records.approvals.test_emails import sent_emails
from tests.records.office import ROOT_URL, Office

SOON_S = 5.1 * 60


async def lead(office: Office, who: str = "alice", **values: object) -> str:
    """Create a lead."""
    return str((await office.value(who, "lead.create", title="Trial", **values))["id"])


async def comment(office: Office, who: str, record_id: str, text: str) -> str:
    """Comment on a lead, and return the id of the comment."""
    return str((await office.value(who, "comment.create", model="lead", record=record_id, text=text))["id"])


async def deliver(office: Office, later_s: float = SOON_S) -> None:
    """Run one round of e-mails about mentions at this time in the future."""
    service = office.service
    with clock.fixed(clock.later(clock.now(), seconds=later_s)):
        await mention_emails.send_due(service.engine, service.callers, service.records.mail)


async def notices(office: Office, who: str) -> list[str]:
    """Return the records of the mentions on the first page of a person."""
    return [mention["record"]["id"] for mention in (await office.value(who, "user.home"))["mentions"]]


async def test_a_comment_is_seen_by_anyone_who_sees_its_record(office: Office) -> None:
    record_id = await lead(office)
    written = await office.value("alice", "comment.create", model="lead", record=record_id, text="Call them")
    record_filter = [{"field": "record", "op": "eq", "value": record_id}]

    assert written["written_at"]
    assert [each["text"] for each in await office.value("bob", "comment.list", filter=record_filter)] == [
        "Call them"
    ]
    assert await office.value("carol", "comment.list", filter=record_filter) == []
    assert await office.refusal_of("carol", "comment.get", id=written["id"]) == "no such record"


async def test_only_its_author_changes_a_comment(office: Office) -> None:
    record_id = await lead(office)
    written = await office.value("bob", "comment.create", model="lead", record=record_id, text="First")

    assert await office.refusal_of("alice", "comment.update", id=written["id"], text="Changed") == "no such record"
    changed_comment = await office.value("bob", "comment.update", id=written["id"], text="Second")
    assert changed_comment["text"] == "Second"


async def test_no_comment_is_made_on_a_hidden_or_missing_record(office: Office) -> None:
    invoice = (await office.first_record("invoice"))["id"]

    for model, record_id in (("invoice", invoice), ("lead", "0" * 24), ("nothing", invoice)):
        answer = await office.refusal_of("alice", "comment.create", model=model, record=record_id, text="Hello")
        assert answer == "no such record"


async def test_comments_are_deleted_with_their_record(office: Office) -> None:
    record_id = await lead(office)
    written = await office.value("alice", "comment.create", model="lead", record=record_id, text="Private matter")

    await office.value("alice", "lead.delete", id=record_id)

    assert await office.refusal_of("root", "comment.get", id=written["id"]) == "no such record"
    trail = await office.value(
        "root", "audit_entry.list", filter=[{"field": "record_id", "op": "eq", "value": written["id"]}]
    )
    assert [entry["command"] for entry in trail] != []
    assert "Private matter" not in str(trail)


async def test_only_models_that_declare_comments_have_them(office: Office) -> None:
    product = await office.value("carol", "product.create", sku="A-1", name="Anvil", unit_price_minor=5)

    answer = await office.refusal_of("carol", "comment.create", model="product", record=product["id"], text="Heavy")
    models = (await office.http.get("/api/meta", headers=office.headers("carol"))).json()["models"]

    assert answer.startswith("comment.model: product has no comments")
    assert {model["name"] for model in models if model.get("has_comments")} == {"party", "invoice"}


async def test_a_comment_stays_on_its_record_and_shows_when_it_was_edited(office: Office) -> None:
    record_id, other_id = await lead(office), await lead(office)
    written = await office.value("bob", "comment.create", model="lead", record=record_id, text="First")

    answer = await office.refusal_of("bob", "comment.update", id=written["id"], record=other_id)
    edited = await office.value("bob", "comment.update", id=written["id"], text="Second")

    assert answer == "comment.record cannot change: create a new comment instead"
    assert written["edited_at"] is None
    assert edited["edited_at"] >= written["written_at"]


async def test_a_manager_deletes_comments_but_changes_none(office: Office) -> None:
    record_id = await lead(office)
    by_bob = await comment(office, "bob", record_id, "Mine")
    by_alice = await comment(office, "alice", record_id, "Hers")

    for who in ("alice", "root"):
        assert await office.refusal_of(who, "comment.update", id=by_bob, text="Changed") == "no such record"
    assert await office.refusal_of("bob", "comment.delete", id=by_alice) == "no such record"
    await office.value("alice", "comment.delete", id=by_bob)

    assert [each["id"] for each in await office.all("comment", "bob") if each["record"] == record_id] == [by_alice]


async def test_an_agent_writes_in_its_own_words_and_sees_texts_as_one_token(office: Office) -> None:
    record_id = await lead(office)
    await comment(office, "alice", record_id, "Ada Lovelace, ada@example.org, wants it by May")
    agent = await office.agent("bob", label="scout")

    written = await office.value(agent, "comment.create", model="lead", record=record_id, text="The offer is out")
    about = [{"field": "record", "op": "eq", "value": record_id}]
    answer = await office.call(agent, "comment.list", {"filter": about})
    as_seen = await office.first_record("comment", "alice", id=written["id"])

    assert "Ada" not in answer.text
    assert "offer" not in answer.text
    assert all(each["text"].startswith("NOTES_") for each in answer.json()["value"])
    assert (as_seen["agent"], as_seen["text"]) == ("scout", "The offer is out")
    assert as_seen["author"] == (await office.first_record("user", username="bob"))["id"]


async def test_an_agent_changes_only_what_it_wrote_and_proposes_deletions(office: Office) -> None:
    record_id = await lead(office)
    by_bob = await comment(office, "bob", record_id, "Mine")
    scout, other = await office.agent("bob", label="scout"), await office.agent("bob", label="other")
    by_scout = await comment(office, scout, record_id, "Its own")

    assert await office.refusal_of(scout, "comment.update", id=by_bob, text="Changed") == "no such record"
    assert await office.refusal_of(other, "comment.update", id=by_scout, text="Changed") == "no such record"
    await office.value(scout, "comment.update", id=by_scout, text="Corrected")
    plan_id = await office.proposed(scout, "comment.delete", id=by_scout)
    assert (await office.approve("bob", plan_id)).status_code == 200

    assert [each["text"] for each in await office.all("comment", "bob") if each["record"] == record_id] == ["Mine"]


async def test_a_token_in_a_comment_needs_approval_because_everyone_reads_comments(office: Office) -> None:
    record_id = await lead(office, notes="Their budget is confidential")
    agent = await office.agent("alice", label="scout")
    token = (await office.value(agent, "lead.get", id=record_id))["notes"]

    plan_id = await office.proposed(agent, "comment.create", model="lead", record=record_id, text=f"See {token}")
    assert [each for each in await office.all("comment") if each["record"] == record_id] == []
    assert (await office.approve("alice", plan_id)).status_code == 200

    (written,) = [each for each in await office.all("comment", "alice") if each["record"] == record_id]
    assert (written["text"], written["agent"]) == ("See Their budget is confidential", "scout")


async def test_an_agent_proposes_no_comment_on_a_record_that_it_does_not_see(office: Office) -> None:
    agent = await office.agent("bob", label="scout")
    notes = await office.value("bob", "lead.create", title="Own", contact_name="Ada Lovelace")
    token = (await office.value(agent, "lead.get", id=notes["id"]))["contact_name"]
    invoice = (await office.first_record("invoice"))["id"]

    for model, record_id in (("invoice", invoice), ("lead", "0" * 24)):
        answer = await office.refusal_of(agent, "comment.create", model=model, record=record_id, text=token)
        assert answer == "no such record"


async def test_the_audit_shows_the_text_only_to_those_who_read_it(office: Office) -> None:
    record_id = await lead(office)
    written = await comment(office, "alice", record_id, "Between us")
    agent = await office.agent("root", label="auditor")
    about = [{"field": "record_id", "op": "eq", "value": written}]

    seen = await office.value("root", "audit_entry.list", filter=about)
    masked = await office.call(agent, "audit_entry.list", {"filter": about})
    await office.value("alice", "comment.delete", id=written)
    after = await office.call("root", "audit_entry.list", {"filter": about})

    assert seen[0]["changes"]["text"] == [None, "Between us"]
    assert masked.json()["value"][0]["changes"]["text"][1].startswith("NOTES_")
    assert "Between us" not in masked.text + after.text


async def test_a_mention_is_a_notice_until_the_person_opens_the_record(office: Office) -> None:
    record_id = await lead(office)

    written = await office.value(
        "alice", "comment.create", model="lead", record=record_id, text="@bob please call, write to x@bob, @stranger."
    )

    assert [person["username"] for person in written["mentions"]] == ["bob"]
    assert await notices(office, "bob") == [record_id]
    assert await notices(office, "alice") == []
    await office.value("bob", "lead.get", id=record_id)
    assert await notices(office, "bob") == []


async def test_a_letter_has_a_link_and_no_text(office: Office) -> None:
    record_id = await lead(office)
    await comment(office, "alice", record_id, "@bob the code is 4711")
    await comment(office, "alice", record_id, "@bob, and the other one is 4712")

    await deliver(office, 60)
    assert sent_emails(office) == []
    await deliver(office)
    await deliver(office, 2 * SOON_S)

    ((recipient, subject, text),) = sent_emails(office)
    assert (recipient, subject) == ("bob@example.com", "2 comments mention you")
    assert f"{ROOT_URL}/models/lead/records/{record_id}" in text
    assert not any(word in text for word in ("471", "alice", "Trial"))


async def test_no_letter_is_sent_to_a_person_who_wants_none_or_has_read_the_comment(office: Office) -> None:
    bob = (await office.first_record("user", username="bob"))["id"]
    await office.value("root", "user.update", id=bob, letters="none")
    record_id = await lead(office)
    await comment(office, "alice", record_id, "@bob and @root")
    await office.value("root", "lead.get", id=record_id)
    await office.service.engine.calls.write()

    await deliver(office)

    assert sent_emails(office) == []


async def test_a_person_who_does_not_see_the_record_is_not_mentioned(office: Office) -> None:
    record_id = await lead(office)

    answer = await office.refusal_of("alice", "comment.create", model="lead", record=record_id, text="Ask @carol")
    agent = await office.agent("alice", label="scout")
    await comment(office, agent, record_id, "Ask @carol and @bob")

    assert answer == "comment.text mentions @carol, who does not see this record: take the mention out"
    assert await notices(office, "carol") == []
    assert await notices(office, "bob") == [record_id]


async def test_an_agent_learns_nothing_from_mentions(office: Office) -> None:
    record_id = await lead(office)
    agent = await office.agent("alice", label="scout")

    answers = [
        await office.value(agent, "comment.create", model="lead", record=record_id, text=f"@{name}")
        for name in ("bob", "carol", "stranger")
    ]

    assert [answer["mentions"] for answer in answers] == [[], [], []]


async def test_an_edit_notifies_only_people_who_are_new(office: Office) -> None:
    record_id = await lead(office)
    written = await comment(office, "alice", record_id, "@bob")
    await office.value("bob", "lead.get", id=record_id)
    assert await notices(office, "bob") == []

    await office.value("alice", "comment.update", id=written, text="@bob and @root")

    assert await notices(office, "bob") == []
    assert await notices(office, "root") == [record_id]
    await office.value("alice", "comment.update", id=written, text="@bob")
    assert await notices(office, "root") == []


async def test_mentions_end_with_their_comment_and_their_record(office: Office) -> None:
    record_id = await lead(office)
    written = await comment(office, "alice", record_id, "@bob")
    await comment(office, "alice", record_id, "@bob again")

    await office.value("alice", "comment.delete", id=written)
    assert await notices(office, "bob") == [record_id]
    await office.value("alice", "lead.delete", id=record_id)

    assert await notices(office, "bob") == []
    statement = "SELECT comment_id FROM comment_mention WHERE record_id = $1"
    assert await office.service.records.database.fetch(statement, record_id) == []
    await deliver(office)
    assert sent_emails(office) == []


async def test_mentions_are_limited(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    record_id = await lead(office)
    monkeypatch.setattr(mentions, "MAX_MENTIONS", 1)
    answer = await office.refusal_of("alice", "comment.create", model="lead", record=record_id, text="@bob @root")
    assert answer == "comment.text mentions more than 1 people: mention fewer of them"
    monkeypatch.undo()
    monkeypatch.setattr(mentions, "MAX_AN_HOUR", 3)
    agent = await office.agent("alice", label="scout")
    for _ in range(5):
        await comment(office, agent, record_id, "@bob")

    assert await notices(office, "bob") == [record_id] * 3
    answer = await office.refusal_of("alice", "comment.create", model="lead", record=record_id, text="@root")
    assert "you have mentioned 3 people in an hour" in answer
    await deliver(office)
    assert len(sent_emails(office)) == 1, "several mentions are one e-mail"


async def test_names_are_completed_with_people_who_see_the_record(office: Office) -> None:
    record_id = await lead(office)
    invoice = (await office.first_record("invoice"))["id"]

    everyone = await office.value("alice", "comment.people", model="lead", record=record_id)
    some = await office.value("alice", "comment.people", model="lead", record=record_id, q="BO")

    assert {person["username"] for person in everyone} == {"alice", "bob", "root"}
    assert [set(person) for person in some] == [{"id", "username", "name"}]
    assert [person["username"] for person in some] == ["bob"]
    assert "@" not in json.dumps(everyone)
    assert await office.refusal_of("alice", "comment.people", model="invoice", record=invoice) == "no such record"
    # Carol sees no other people.
    assert await office.value("carol", "comment.people", model="invoice", record=invoice) == []


async def test_a_long_list_of_signs_is_no_mention() -> None:
    assert mentions.written_names("mail x@bob.example, (@Ann.), @" + "." * 200)[0] == ["ann.", "ann"]
    assert len(mentions.written_names("@a " * 5_000)) == 200


async def test_concurrent_comments_are_all_there(office: Office) -> None:
    record_id = await lead(office)

    await asyncio.gather(*(comment(office, who, record_id, f"@root {n}") for n in range(5) for who in ("alice", "bob")))

    assert await notices(office, "root") == [record_id] * 6
    assert len([each for each in await office.all("comment", "bob") if each["record"] == record_id]) == 10


async def test_a_person_who_is_deleted_leaves_comments_without_author_and_no_mentions(office: Office) -> None:
    zoe = await office.person("zoe", {"model": "lead", "commands": "get,list,search", "clear": "title"})
    record_id = await lead(office)
    written = await comment(office, "zoe", record_id, "I call them")
    await comment(office, "alice", record_id, "@zoe thanks")
    assert await notices(office, "zoe") == [record_id]

    await office.value("root", "user.delete", id=zoe, cascade=True)

    left = await office.first_record("comment", id=written)
    assert (left["author"], left["text"]) == (None, "I call them")
    statement = "SELECT comment_id FROM comment_mention WHERE user_id = $1"
    assert await office.service.records.database.fetch(statement, zoe) == []


async def test_a_proposed_comment_is_hidden_from_people_who_do_not_see_its_record(office: Office) -> None:
    record_id = await lead(office)
    agent = await office.agent("alice", label="scout")
    await office.value("root", "setting.create", title="approval:comment.create", value="{}")
    plan_id = await office.proposed(agent, "comment.create", model="lead", record=record_id, text="The takeover talks")

    assert await office.refusal_of("carol", "plan.get", id=plan_id) == "no such record"
    assert await office.refusal_of("carol", "plan.reject", id=plan_id, reason="No") == "no such record"
    assert (await office.approve("carol", plan_id)).status_code == 404

    assert (await office.approve("alice", plan_id)).status_code == 200
    assert [each["text"] for each in await office.all("comment", "bob") if each["record"] == record_id] == [
        "The takeover talks"
    ]


async def test_a_person_who_no_longer_sees_the_record_does_not_decide_about_a_comment_on_it(office: Office) -> None:
    record_id = await lead(office, "bob")
    agent = await office.agent("bob", label="scout")
    await office.value("root", "setting.create", title="approval:comment.create", value="{}")
    plan_id = await office.proposed(agent, "comment.create", model="lead", record=record_id, text="The takeover talks")
    (user,) = await office.value("root", "user.list", filter=[{"field": "username", "op": "eq", "value": "bob"}])
    of_bob = [{"field": "user", "op": "eq", "value": user["id"]}]
    for role in await office.value("root", "user_role.list", filter=of_bob):
        await office.value("root", "user_role.delete", id=role["id"])

    assert (await office.approve("bob", plan_id)).status_code == 404
    assert (await office.value("root", "plan.get", id=plan_id))["state"] == "pending"
