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


async def test_a_guessed_value_does_not_get_the_token_of_the_one_that_is_there(
    book: InProcessService, root: Caller, agent: Caller
) -> None:
    there = await book.value(root, "contact", "create", email=KNOWN)
    token = (await get(book, agent, there))["email"]

    answered = await book.value(agent, "contact", "create", email=KNOWN, other_email=KNOWN)
    later = await refresh_agent(book)
    shown_contact = await get(book, later, answered)

    assert answered["email"] == shown_contact["email"]
    assert answered["other_email"] == shown_contact["other_email"]
    assert len({token, shown_contact["email"], shown_contact["other_email"]}) == 3
    assert (await get(book, later, there))["email"] == token
    rows = await book.value(later, "contact", "list")
    assert sorted(row["email"] for row in rows) == sorted([token, shown_contact["email"]])


async def test_an_update_in_clear_gets_a_token_of_its_own_even_with_the_same_value(
    book: InProcessService, root: Caller, agent: Caller
) -> None:
    there = await book.value(root, "contact", "create", email=KNOWN)
    token = (await get(book, agent, there))["email"]

    right = await book.value(agent, "contact", "update", id=there["id"], email=KNOWN)
    later = await refresh_agent(book)
    wrong = await book.value(later, "contact", "update", id=there["id"], email="eve@example.com")

    assert len({token, right["email"], wrong["email"]}) == 3
    # A right guess and a wrong guess have the same result: both count as changes.
    assert (there["revision"], right["revision"], wrong["revision"]) == (1, 2, 3)


async def test_only_the_agent_that_wrote_a_value_can_use_its_token(
    book: InProcessService, root: Caller, agent: Caller
) -> None:
    own_email = (await book.value(agent, "contact", "create", email=KNOWN))["email"]
    later = await refresh_agent(book)

    copy = await book.value(later, "contact", "create", email=own_email, notes=f"to {own_email}")

    assert copy["email"] == own_email
    assert (await get(book, root, copy))["email"] == KNOWN
    assert (await get(book, root, copy))["notes"] == f"to {KNOWN}"
    clerk = await refresh_agent(book, "clerk")
    with pytest.raises(BadInput, match="unknown token"):
        await book.value(clerk, "contact", "create", email=own_email)


async def test_others_see_what_an_agent_wrote_joined_as_it_is(
    book: InProcessService, root: Caller, agent: Caller
) -> None:
    there = await book.value(root, "contact", "create", email=KNOWN)
    written = await book.value(agent, "contact", "create", email=KNOWN)
    clerk = await refresh_agent(book, "clerk")

    assert (await get(book, clerk, there))["email"] == (await get(book, clerk, written))["email"]


async def test_writing_by_token_keeps_the_link(book: InProcessService, root: Caller, agent: Caller) -> None:
    there = await book.value(root, "contact", "create", email=KNOWN)
    token = (await get(book, agent, there))["email"]

    copy = await book.value(agent, "contact", "create", email=token)

    assert copy["email"] == token
    assert await book.rows("SELECT count(*) FROM pii_alias") == [(0,)]
    assert await book.rows("SELECT refs FROM pii_value") == [(2,)]


async def test_the_token_of_a_replaced_guess_means_nothing_any_more(
    book: InProcessService, root: Caller, agent: Caller
) -> None:
    written = await book.value(agent, "contact", "create", email=KNOWN)
    later = await refresh_agent(book)

    await book.value(root, "contact", "update", id=written["id"], email="new@example.com")

    with pytest.raises(BadInput, match="unknown token"):
        await book.value(later, "contact", "create", email=written["email"])
    assert await book.rows("SELECT count(*) FROM pii_alias") == [(0,)]
    assert await book.rows("SELECT refs FROM pii_value") == [(1,)]


async def test_an_old_token_does_not_come_back_by_a_right_guess(
    book: InProcessService, root: Caller, agent: Caller
) -> None:
    there = await book.value(root, "contact", "create", email=KNOWN)
    token = (await get(book, agent, there))["email"]
    await book.value(agent, "contact", "create", email=KNOWN)
    await book.value(root, "contact", "update", id=there["id"], email="new@example.com")

    with pytest.raises(BadInput, match="unknown token"):
        await book.value(agent, "contact", "create", email=token)


async def test_the_history_and_the_plans_of_a_record_show_its_token(book: InProcessService, root: Caller) -> None:
    agent = await book.caller_of(await book.issue_agent_token(await book.member()))
    there = await book.value(root, "contact", "create", email=KNOWN)
    token = (await get(book, agent, there))["email"]
    first_contact = await book.value(agent, "contact", "create", email=KNOWN)
    await book.value(agent, "contact", "update", id=first_contact["id"], email=KNOWN)
    third = await book.value(root, "contact", "update", id=first_contact["id"], email="new@example.com")
    fourth = await book.value(agent, "contact", "update", id=first_contact["id"], email=KNOWN)
    view = agent.view.models["contact"]
    proposed = await book.service.dispatch.run(agent, view, "delete", {"id": first_contact["id"]}, "request")
    assert isinstance(proposed.value, Proposal)

    history = await book.value(agent, "contact", "history", id=first_contact["id"])
    (plan,) = await book.value(agent, "plan", "list")

    emails = [entry["changes"]["email"] for entry in reversed(history)]
    seen_new = emails[2][1]
    assert third["email"] == "new@example.com"
    assert emails == [
        # Other records contain the value, but the agent must not find out. Of its own tokens, only the last one is
        # valid.
        [None, "[erased]"],
        ["[erased]", "[erased]"],
        ["[erased]", seen_new],
        [seen_new, fourth["email"]],
    ]
    assert plan["diff"][0]["before"] == fourth["email"]
    assert token not in str(history) + str(plan)
    # Other callers see that the values are equal.
    clerk = await book.agent("clerk")
    joined = (await get(book, clerk, there))["email"]
    entries = await book.value(clerk, "contact", "history", id=first_contact["id"])
    assert [entry["changes"]["email"][1] == joined for entry in reversed(entries)] == [True, True, False, True]


async def test_deleting_what_it_wrote_does_not_tell_whether_others_hold_the_value(
    book: InProcessService, root: Caller, agent: Caller
) -> None:
    there = await book.value(root, "contact", "create", email=KNOWN)
    token = (await get(book, agent, there))["email"]
    written = await book.value(agent, "contact", "create", email=KNOWN)
    await book.value(root, "contact", "delete", id=written["id"])

    condition = {"field": "record_id", "op": "eq", "value": written["id"]}
    entries = await book.value(agent, "audit_entry", "list", filter=[condition], order=[{"field": "at"}])

    assert [entry["changes"]["email"] for entry in entries] == [[None, "[erased]"], ["[erased]", None]]
    assert token not in str(entries)


async def test_a_token_under_another_label_is_unknown(book: InProcessService, agent: Caller) -> None:
    own_email = (await book.value(agent, "contact", "create", email=KNOWN))["email"]
    relabelled = own_email.replace("EMAIL", "PHONE")

    for field in ("phone", "notes"):
        with pytest.raises(BadInput, match=f"unknown token {relabelled}"):
            await book.value(agent, "contact", "create", **{field: relabelled})
