"""Token domains: an agent keeps its placeholder tokens when its bearer token changes, and loses them with its last
bearer token."""

import pytest

from countersign.records.access import sessions
from countersign.records.access.agent_tokens import close_unused_domains
from countersign.records.access.view import Caller
from countersign.records.approvals.proposals import Proposal
from countersign.records.commands.errors import BadInput
from tests.records.inside import InProcessService


async def revoke_token(book: InProcessService, token_id: str) -> None:
    """Revoke a bearer token."""
    async with book.service.records.database.transaction() as transaction:
        assert await sessions.end_credential(transaction, "agent_token", token_id)


async def token_of(book: InProcessService, caller: Caller, record_id: str) -> str:
    """Return the placeholder token of a contact's e-mail address."""
    return (await book.value(caller, "contact", "get", id=record_id))["email"]


async def test_a_second_token_of_the_label_takes_up_the_domain(book: InProcessService) -> None:
    person = await book.member()
    contact_id = (await book.value(person, "contact", "create", email="ada@example.com"))["id"]
    first_token_id = await book.issue_agent_token(person)
    token = await token_of(book, await book.caller_of(first_token_id), contact_id)

    second_token_id = await book.issue_agent_token(person)
    await revoke_token(book, first_token_id)
    rotated_caller = await book.caller_of(second_token_id)

    assert await token_of(book, rotated_caller, contact_id) == token
    assert (await book.value(rotated_caller, "contact", "create", email=token))["email"] == token
    assert await book.service.callers.agent(book.service.records.database, first_token_id) is None


async def test_other_labels_and_other_people_have_other_tokens(book: InProcessService) -> None:
    person = await book.member()
    contact_id = (await book.value(person, "contact", "create", email="ada@example.com"))["id"]
    callers = [
        await book.caller_of(await book.issue_agent_token(person, label)) for label in ("scout", "Scout", "clerk")
    ]
    callers.append(await book.agent("scout"))

    tokens = [await token_of(book, caller, contact_id) for caller in callers]

    assert len(set(tokens)) == 4
    for caller, foreign in zip(callers, tokens[1:] + tokens[:1], strict=True):
        with pytest.raises(BadInput, match=f"unknown token {foreign}"):
            await book.value(caller, "contact", "create", email=foreign)


async def test_the_domain_ends_with_its_last_token_and_its_salt_is_wiped(book: InProcessService) -> None:
    person = await book.member()
    contact_id = (await book.value(person, "contact", "create", email="ada@example.com"))["id"]
    tokens = [await book.issue_agent_token(person) for _ in range(2)]
    old = await token_of(book, await book.caller_of(tokens[0]), contact_id)

    await revoke_token(book, tokens[0])
    assert await token_of(book, await book.caller_of(tokens[1]), contact_id) == old
    await revoke_token(book, tokens[1])

    rows = await book.rows("SELECT salt FROM token_domain WHERE closed_at IS NOT NULL")
    assert [bytes(row[0]) for row in rows] == [b""]
    later_caller = await book.caller_of(await book.issue_agent_token(person))
    assert await token_of(book, later_caller, contact_id) != old
    with pytest.raises(BadInput, match=f"unknown token {old}"):
        await book.value(later_caller, "contact", "create", email=old)


async def test_a_domain_whose_tokens_have_expired_is_not_used_again(book: InProcessService) -> None:
    person = await book.member()
    contact_id = (await book.value(person, "contact", "create", email="ada@example.com"))["id"]
    first_token_id = await book.issue_agent_token(person)
    old = await token_of(book, await book.caller_of(first_token_id), contact_id)
    async with book.service.records.database.transaction() as transaction:
        await transaction.run('UPDATE "agent_token" SET expires_at = 1 WHERE id = $1', first_token_id)

    later_caller = await book.caller_of(await book.issue_agent_token(person))

    assert await token_of(book, later_caller, contact_id) != old


async def test_a_pending_plan_keeps_the_domain_until_the_decision(book: InProcessService) -> None:
    person = await book.member()
    contact_id = (await book.value(person, "contact", "create", email="ada@example.com"))["id"]
    first_token_id = await book.issue_agent_token(person)
    caller = await book.caller_of(first_token_id)
    old = await token_of(book, caller, contact_id)
    proposal = await book.service.dispatch.run(
        caller, caller.view.models["contact"], "delete", {"id": contact_id}, "request"
    )
    assert isinstance(proposal.value, Proposal)
    await revoke_token(book, first_token_id)

    second_token_id = await book.issue_agent_token(person)
    assert await token_of(book, await book.caller_of(second_token_id), contact_id) == old
    await book.value(await book.caller_of(second_token_id), "plan", "withdraw", id=proposal.value.plan_id)
    await revoke_token(book, second_token_id)

    third_token_id = await book.issue_agent_token(person)
    assert await token_of(book, await book.caller_of(third_token_id), contact_id) != old


async def test_only_unused_domains_are_closed(book: InProcessService) -> None:
    person = await book.member()
    await book.issue_agent_token(person)
    await book.domain(person.user_id, "left over")
    await book.domain(person.user_id, "")

    async with book.service.records.database.transaction() as transaction:
        closed_domains = await close_unused_domains(transaction, None)

    open_ones = await book.rows("SELECT label FROM token_domain WHERE closed_at IS NULL ORDER BY label")
    assert [row[0] for row in open_ones] == ["", "scout"]
    assert len(closed_domains) == 1
