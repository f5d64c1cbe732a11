"""Text that an agent writes in clear is never linked with an existing equal value, so guesses reveal nothing."""

from typing import Any

import pytest

from countersign.records.access.view import Caller
from countersign.records.approvals.proposals import Proposal
from countersign.records.commands.errors import BadInput
from tests.records.inside import InProcessService

KNOWN = "ada@example.com"


async def refresh_agent(book: InProcessService, label: str = "scout") -> Caller:
    """Return the agent as authentication returns it for the next request."""
    return await book.agent(label)


async def get(book: InProcessService, caller: Caller, record: dict[str, Any]) -> dict[str, Any]:
    """Return the record as the caller sees it."""
    return await book.value(caller, "contact", "get", id=record["id"])


async def test_a_guessed_value_does_not_get_the_token_of_the_existing_value(
    book: InProcessService, root: Caller, agent: Caller
) -> None:
    existing_contact = await book.value(root, "contact", "create", email=KNOWN)
    token = (await get(book, agent, existing_contact))["email"]

    created_contact = await book.value(agent, "contact", "create", email=KNOWN, other_email=KNOWN)
    later_agent = await refresh_agent(book)
    shown_contact = await get(book, later_agent, created_contact)

    assert created_contact["email"] == shown_contact["email"]
    assert created_contact["other_email"] == shown_contact["other_email"]
    assert len({token, shown_contact["email"], shown_contact["other_email"]}) == 3
    assert (await get(book, later_agent, existing_contact))["email"] == token
    rows = await book.value(later_agent, "contact", "list")
    assert sorted(row["email"] for row in rows) == sorted([token, shown_contact["email"]])


async def test_an_update_with_a_clear_text_gets_its_own_token_even_for_the_same_value(
    book: InProcessService, root: Caller, agent: Caller
) -> None:
    existing_contact = await book.value(root, "contact", "create", email=KNOWN)
    token = (await get(book, agent, existing_contact))["email"]

    right = await book.value(agent, "contact", "update", id=existing_contact["id"], email=KNOWN)
    later_agent = await refresh_agent(book)
    wrong_guess = await book.value(later_agent, "contact", "update", id=existing_contact["id"], email="eve@example.com")

    assert len({token, right["email"], wrong_guess["email"]}) == 3
    # A right guess and a wrong guess have the same result: both count as changes.
    assert (existing_contact["revision"], right["revision"], wrong_guess["revision"]) == (1, 2, 3)


async def test_only_the_agent_that_wrote_a_value_can_use_its_token(
    book: InProcessService, root: Caller, agent: Caller
) -> None:
    own_email = (await book.value(agent, "contact", "create", email=KNOWN))["email"]
    later_agent = await refresh_agent(book)

    copy = await book.value(later_agent, "contact", "create", email=own_email, notes=f"to {own_email}")

    assert copy["email"] == own_email
    assert (await get(book, root, copy))["email"] == KNOWN
    assert (await get(book, root, copy))["notes"] == f"to {KNOWN}"
    clerk = await refresh_agent(book, "clerk")
    with pytest.raises(BadInput, match="unknown token"):
        await book.value(clerk, "contact", "create", email=own_email)


async def test_others_see_what_an_agent_wrote_joined_as_it_is(
    book: InProcessService, root: Caller, agent: Caller
) -> None:
    existing_contact = await book.value(root, "contact", "create", email=KNOWN)
    agents_contact = await book.value(agent, "contact", "create", email=KNOWN)
    clerk = await refresh_agent(book, "clerk")

    assert (await get(book, clerk, existing_contact))["email"] == (await get(book, clerk, agents_contact))["email"]


async def test_writing_by_token_keeps_the_link(book: InProcessService, root: Caller, agent: Caller) -> None:
    existing_contact = await book.value(root, "contact", "create", email=KNOWN)
    token = (await get(book, agent, existing_contact))["email"]

    copy = await book.value(agent, "contact", "create", email=token)

    assert copy["email"] == token
    assert await book.rows("SELECT count(*) FROM pii_alias") == [(0,)]
    assert await book.rows("SELECT refs FROM pii_value") == [(2,)]


async def test_the_token_of_a_replaced_guess_means_nothing_any_more(
    book: InProcessService, root: Caller, agent: Caller
) -> None:
    agents_contact = await book.value(agent, "contact", "create", email=KNOWN)
    later_agent = await refresh_agent(book)

    await book.value(root, "contact", "update", id=agents_contact["id"], email="new@example.com")

    with pytest.raises(BadInput, match="unknown token"):
        await book.value(later_agent, "contact", "create", email=agents_contact["email"])
    assert await book.rows("SELECT count(*) FROM pii_alias") == [(0,)]
    assert await book.rows("SELECT refs FROM pii_value") == [(1,)]


async def test_an_old_token_does_not_come_back_by_a_right_guess(
    book: InProcessService, root: Caller, agent: Caller
) -> None:
    existing_contact = await book.value(root, "contact", "create", email=KNOWN)
    token = (await get(book, agent, existing_contact))["email"]
    await book.value(agent, "contact", "create", email=KNOWN)
    await book.value(root, "contact", "update", id=existing_contact["id"], email="new@example.com")

    with pytest.raises(BadInput, match="unknown token"):
        await book.value(agent, "contact", "create", email=token)


async def test_the_history_and_the_plans_of_a_record_show_its_token(book: InProcessService, root: Caller) -> None:
    agent = await book.caller_of(await book.issue_agent_token(await book.member()))
    existing_contact = await book.value(root, "contact", "create", email=KNOWN)
    token = (await get(book, agent, existing_contact))["email"]
    first_contact = await book.value(agent, "contact", "create", email=KNOWN)
    await book.value(agent, "contact", "update", id=first_contact["id"], email=KNOWN)
    third_change = await book.value(root, "contact", "update", id=first_contact["id"], email="new@example.com")
    fourth_change = await book.value(agent, "contact", "update", id=first_contact["id"], email=KNOWN)
    view = agent.view.models["contact"]
    proposal = await book.service.dispatch.run(agent, view, "delete", {"id": first_contact["id"]}, "request")
    assert isinstance(proposal.value, Proposal)

    history = await book.value(agent, "contact", "history", id=first_contact["id"])
    (plan,) = await book.value(agent, "plan", "list")

    emails = [entry["changes"]["email"] for entry in reversed(history)]
    seen_new = emails[2][1]
    assert third_change["email"] == "new@example.com"
    assert emails == [
        # Other records contain the value, but the agent must not find out. Of its own tokens, only the last one is
        # valid.
        [None, "[erased]"],
        ["[erased]", "[erased]"],
        ["[erased]", seen_new],
        [seen_new, fourth_change["email"]],
    ]
    assert plan["diff"][0]["before"] == fourth_change["email"]
    assert token not in str(history) + str(plan)
    # Other callers see that the values are equal.
    clerk = await book.agent("clerk")
    clerks_token = (await get(book, clerk, existing_contact))["email"]
    entries = await book.value(clerk, "contact", "history", id=first_contact["id"])
    assert [entry["changes"]["email"][1] == clerks_token for entry in reversed(entries)] == [True, True, False, True]


async def test_deleting_its_own_record_does_not_reveal_whether_other_records_have_the_value(
    book: InProcessService, root: Caller, agent: Caller
) -> None:
    existing_contact = await book.value(root, "contact", "create", email=KNOWN)
    token = (await get(book, agent, existing_contact))["email"]
    agents_contact = await book.value(agent, "contact", "create", email=KNOWN)
    await book.value(root, "contact", "delete", id=agents_contact["id"])

    condition = {"field": "record_id", "op": "eq", "value": agents_contact["id"]}
    entries = await book.value(agent, "audit_entry", "list", filter=[condition], order=[{"field": "at"}])

    assert [entry["changes"]["email"] for entry in entries] == [[None, "[erased]"], ["[erased]", None]]
    assert token not in str(entries)


async def test_a_token_under_another_label_is_unknown(book: InProcessService, agent: Caller) -> None:
    own_email = (await book.value(agent, "contact", "create", email=KNOWN))["email"]
    relabelled = own_email.replace("EMAIL", "PHONE")

    for field in ("phone", "notes"):
        with pytest.raises(BadInput, match=f"unknown token {relabelled}"):
            await book.value(agent, "contact", "create", **{field: relabelled})
