"""An agent that writes a guessed value cannot find out whether an existing record has the same value: no command gives
the written value the token of the existing one."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from countersign.declare import Model, Text
from countersign.records.access.view import Caller
from tests.records import inside
from tests.records.inside import InProcessService
from tests.records.office import Office

WRONG = "wrong@x.example"


class Card(Model):
    """A model with personal fields, and with fields that are computed from them."""

    title = Text()
    name = Text(personal="PERSON")
    nickname = Text(personal="PERSON")
    remark = Text(personal="REMARK")
    name_copy = Text(personal="PERSON", computed=lambda name: name)
    copy_of_copy = Text(personal="PERSON", computed=lambda name_copy: name_copy)
    title_copy = Text(personal="PERSON", computed=lambda title: title)
    title_and_name = Text(
        personal="PERSON", computed=lambda name, title: name if title == "plain" else f"{title} {name}"
    )
    remark_copy = Text(personal="PERSON", computed=lambda remark: remark)


COMPUTED = ("name_copy", "copy_of_copy", "title_copy", "title_and_name", "remark_copy")


@pytest.fixture
async def cards(database_url: str, tmp_path: Path) -> AsyncIterator[InProcessService]:
    """A service without cards, once on SQLite and once on PostgreSQL."""
    async with inside.open_service(database_url, tmp_path, Card) as service:
        yield service


@pytest.fixture
async def agent(cards: InProcessService) -> Caller:
    """An agent that sees every personal field masked."""
    return await cards.agent("scout")


async def first_lead(office: Office, agent: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return a lead without a party as the agent sees it and in clear."""
    no_party = [{"field": "party", "op": "is_null", "value": True}]
    (lead,) = await office.value(agent, "lead.list", filter=no_party, limit=1)
    return lead, await office.value("alice", "lead.get", id=lead["id"])


async def test_a_guess_copied_by_an_action_does_not_get_the_token_of_an_existing_value(office: Office) -> None:
    agent = await office.agent("alice", "*")
    victim, clear_lead = await first_lead(office, agent)
    for guess in (clear_lead["contact_email"], WRONG):
        own_lead = await office.value(agent, "lead.create", title="x", contact_name="A B", contact_email=guess)
        plan = await office.proposed(agent, "lead.convert", id=own_lead["id"])
        assert (await office.approve("alice", plan)).status_code == 200

        party = (await office.value(agent, "lead.get", id=own_lead["id"]))["party"]
        created_party = await office.value(agent, "party.get", id=party)

        # The agent already knows that the values are equal, because it wrote both.
        assert created_party["email"] == own_lead["contact_email"] != victim["contact_email"]
        assert created_party["name"] == own_lead["contact_name"]


async def test_a_value_that_an_action_copies_keeps_its_token(office: Office) -> None:
    agent = await office.agent("alice", "*")
    lead = await office.value("alice", "lead.create", title="x", contact_name="Ada Only", contact_email=WRONG)
    seen_lead = await office.value(agent, "lead.get", id=lead["id"])
    plan = await office.proposed(agent, "lead.convert", id=lead["id"])
    assert (await office.approve("alice", plan)).status_code == 200

    party = (await office.value(agent, "lead.get", id=lead["id"]))["party"]
    created_party = await office.value(agent, "party.get", id=party)

    assert (created_party["name"], created_party["email"]) == (seen_lead["contact_name"], seen_lead["contact_email"])


async def test_a_guess_in_a_clear_field_is_not_confirmed_by_a_copy_in_a_masked_field(office: Office) -> None:
    agent = await office.agent("root", "*", unmask=["lead.contact_phone"])
    victim = next(party for party in await office.all("party", agent) if party["phone"])
    clear_phone = (await office.value("root", "party.get", id=victim["id"]))["phone"]
    own_lead = await office.value(agent, "lead.create", title="x", contact_name="A B", contact_phone=clear_phone)
    plan = await office.proposed(agent, "lead.convert", id=own_lead["id"])
    assert (await office.approve("root", plan)).status_code == 200

    party = (await office.value(agent, "lead.get", id=own_lead["id"]))["party"]

    assert (await office.value(agent, "party.get", id=party))["phone"] != victim["phone"]


async def test_a_guess_is_not_confirmed_by_a_later_agent_token_with_the_same_label(office: Office) -> None:
    agent = await office.agent("alice", "lead.*", "party.get", label="mail", name="first")
    victim, clear_lead = await first_lead(office, agent)
    own_lead = await office.value(agent, "lead.create", title="x", contact_email=clear_lead["contact_email"])
    token = next(
        agent_token for agent_token in await office.all("agent_token", "alice") if agent_token["label"] == "mail"
    )
    await office.value("alice", "agent_token.revoke", id=token["id"])

    later_agent = await office.agent("alice", "lead.*", "party.get", label="mail", name="second")

    guessed_token = (await office.value(later_agent, "lead.get", id=own_lead["id"]))["contact_email"]
    victims_token = (await office.value(later_agent, "lead.get", id=victim["id"]))["contact_email"]
    assert len({guessed_token, victims_token, own_lead["contact_email"], victim["contact_email"]}) == 4
    (entry,) = await office.value(later_agent, "lead.history", id=own_lead["id"])
    assert entry["changes"]["contact_email"] == [None, guessed_token]
    # The tokens that the earlier agent token was shown are invalid, also the token of a value that it wrote itself.
    for old in (own_lead["contact_email"], victim["contact_email"]):
        reason = await office.refusal_of(later_agent, "lead.update", id=own_lead["id"], contact_email=old)
        assert reason == f"unknown token {old}"


async def test_a_value_computed_from_a_guess_does_not_get_the_token_of_an_existing_value(
    cards: InProcessService, agent: Caller
) -> None:
    root = cards.administrator()
    existing_card = await cards.value(root, "card", "create", name="Ada", remark="Ada")
    token = (await cards.value(agent, "card", "get", id=existing_card["id"]))["name"]

    own_card = await cards.value(agent, "card", "create", name="Ada", title="Ada", remark="Ada")
    by_token = await cards.value(agent, "card", "create", name=token)

    tokens = [own_card[name] for name in COMPUTED]
    assert token not in tokens
    assert len({*tokens}) == len(tokens)
    # The agent wrote the name as a token, so the fields that are computed from the name get the same token.
    assert (by_token["name_copy"], by_token["copy_of_copy"]) == (token, token)


async def test_right_and_wrong_guesses_change_computed_fields_in_the_same_way(
    cards: InProcessService, agent: Caller
) -> None:
    root = cards.administrator()
    for guess in ("Ada", "Eve"):
        existing_card = await cards.value(root, "card", "create", name="Ada", title="plain", remark="Ada")
        card_before = await cards.value(agent, "card", "get", id=existing_card["id"])

        card_after = await cards.value(agent, "card", "update", id=existing_card["id"], name=guess, remark=guess)

        changed_names = [name for name in ("name", "remark", *COMPUTED) if card_before[name] != card_after[name]]
        assert changed_names == ["name", "remark", "name_copy", "copy_of_copy", "title_and_name", "remark_copy"]
        (entry, _) = await cards.value(agent, "card", "history", id=existing_card["id"])
        assert sorted(entry["changes"]) == sorted(changed_names)


async def test_a_value_that_is_computed_later_from_a_guess_does_not_get_the_token_of_an_existing_value(
    cards: InProcessService, agent: Caller
) -> None:
    root = cards.administrator()
    existing_card = await cards.value(root, "card", "create", name="Ada")
    token = (await cards.value(agent, "card", "get", id=existing_card["id"]))["name"]
    own_card = await cards.value(agent, "card", "create", name="Ada", title="Mrs.")

    await cards.value(root, "card", "update", id=own_card["id"], title="plain")

    assert (await cards.value(root, "card", "get", id=own_card["id"]))["title_and_name"] == "Ada"
    assert (await cards.value(agent, "card", "get", id=own_card["id"]))["title_and_name"] != token


async def test_two_guesses_that_an_agent_swaps_do_not_get_the_tokens_of_existing_values(
    cards: InProcessService, agent: Caller
) -> None:
    root = cards.administrator()
    existing_card = await cards.value(root, "card", "create", name="Ada", nickname="Eve")
    shown_card = await cards.value(agent, "card", "get", id=existing_card["id"])
    own_card = await cards.value(agent, "card", "create", name="Ada", nickname="Eve")

    swapped_card = await cards.value(
        agent, "card", "update", id=own_card["id"], name=own_card["nickname"], nickname=own_card["name"]
    )

    assert (swapped_card["name"], swapped_card["nickname"]) == (own_card["nickname"], own_card["name"])
    assert swapped_card["name"] != shown_card["nickname"]
    assert (await cards.value(root, "card", "get", id=own_card["id"]))["name"] == "Eve"
