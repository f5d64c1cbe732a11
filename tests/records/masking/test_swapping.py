"""Values of masked fields in responses and inputs: exact, with their type, and never the value of another record."""

import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from countersign.declare import Grant
from countersign.records.access.view import Caller
from countersign.records.commands.errors import BadInput
from tests.records.inside import InProcessService
from tests.records.queries.worlds import CONTROL

PERSONAL = ("email", "other_email", "phone", "postcode", "notes")
TEXTS = st.lists(
    st.sampled_from(["EMAIL_1", "EMAIL_10", "email_1", "<EMAIL>", "LITERAL_4", "NOTES_0", "_", " ", "é", "e\u0301"])
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters=CONTROL), max_size=8),
    max_size=12,
).map("".join)


async def make(book: InProcessService, root: Caller, **values: str) -> str:
    """Create a contact as a caller without masks, and return its id."""
    return (await book.value(root, "contact", "create", **values))["id"]


async def seen_contact(book: InProcessService, caller: Caller, record_id: str) -> dict[str, Any]:
    """Return a contact as the caller sees it."""
    return await book.value(caller, "contact", "get", id=record_id)


async def refusal_of(book: InProcessService, caller: Caller, command: str = "create", **values: str) -> str:
    """Return the error of a command that is refused and writes nothing."""
    rows_before = await book.rows("SELECT count(*), coalesce(sum(revision), 0) FROM contact")
    with pytest.raises(BadInput) as refusal:
        await book.value(caller, "contact", command, **values)
    assert await book.rows("SELECT count(*), coalesce(sum(revision), 0) FROM contact") == rows_before
    return str(refusal.value)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TEXTS.filter(bool), TEXTS.filter(bool), TEXTS.filter(bool))
async def test_every_text_is_unchanged_after_masking_and_unmasking(
    book: InProcessService, root: Caller, agent: Caller, title: str, email: str, notes: str
) -> None:
    contact_id = await make(book, root, title=title, remark=notes, email=email, notes=notes)

    shown_contact = await seen_contact(book, agent, contact_id)
    copied_values = {name: shown_contact[name] for name in ("title", "remark", "email", "notes")}
    copied = await book.value(agent, "contact", "create", **copied_values)

    assert re.fullmatch("EMAIL_(0|[1-9][0-9]*)", shown_contact["email"])
    assert re.fullmatch("NOTES_(0|[1-9][0-9]*)", shown_contact["notes"])
    real_tokens = book.service.engine.grammar.tokens(shown_contact["title"] + " " + shown_contact["remark"])
    assert {token.label for token in real_tokens} <= {"LITERAL"}
    copy = await seen_contact(book, root, copied["id"])
    assert (copy["title"], copy["remark"], copy["email"], copy["notes"]) == (title, notes, email, notes)


async def test_a_value_that_contains_tokens_is_unchanged(book: InProcessService, root: Caller, agent: Caller) -> None:
    first_contact = await make(book, root, email="ada@example.com")
    token = (await seen_contact(book, agent, first_contact))["email"]
    second_contact = await make(book, root, email=f"{token}", notes=f"not {token}, nor EMAIL_1")

    shown_contact = await seen_contact(book, agent, second_contact)
    third_contact = (
        await book.value(agent, "contact", "create", email=shown_contact["email"], notes=shown_contact["notes"])
    )["id"]

    assert shown_contact["email"] != token
    stored_contact = await seen_contact(book, root, third_contact)
    assert (stored_contact["email"], stored_contact["notes"]) == (token, f"not {token}, nor EMAIL_1")


async def test_five_hundred_tokens_in_one_note_are_swapped(book: InProcessService, root: Caller, agent: Caller) -> None:
    mails = [f"p{number}@example.com" for number in range(250)]
    for pair_start in range(0, 250, 2):
        await make(book, root, email=mails[pair_start], other_email=mails[pair_start + 1])
    rows = await book.value(agent, "contact", "list", order=[{"field": "id"}])
    tokens = [row[name] for row in rows for name in ("email", "other_email")]
    clear_by_id = {row["id"]: row for row in await book.value(root, "contact", "list")}
    meant = [clear_by_id[row["id"]][name] for row in rows for name in ("email", "other_email")]

    created_contact = await book.value(agent, "contact", "create", notes=", ".join(tokens + tokens))

    assert (await seen_contact(book, root, created_contact["id"]))["notes"] == ", ".join(meant + meant)


async def test_a_token_of_one_label_is_refused_in_a_field_of_another_label(
    book: InProcessService, root: Caller, agent: Caller
) -> None:
    contact_id = await make(book, root, email="ada@example.com", phone="+441234", postcode="10115", notes="n")
    shown_contact = await seen_contact(book, agent, contact_id)

    assert await refusal_of(book, agent, phone=shown_contact["email"]) == "token not allowed in contact.phone"
    assert await refusal_of(book, agent, email=shown_contact["phone"]) == "token not allowed in contact.email"
    assert await refusal_of(book, agent, email=shown_contact["notes"]) == "token not allowed in contact.email"
    wrong_token = shown_contact["email"].replace("EMAIL", "PHONE")
    assert await refusal_of(book, agent, phone=wrong_token) == f"unknown token {wrong_token}"


async def test_a_token_is_refused_in_a_field_that_is_read_in_clear(
    book: InProcessService, root: Caller, agent: Caller
) -> None:
    contact_id = await make(book, root, title="t", email="ada@example.com")
    token = (await seen_contact(book, agent, contact_id))["email"]

    for text in (token, f"see {token}", f"[{token}]", "EMAIL_7"):
        assert await refusal_of(book, agent, title=text) == "token not allowed in contact.title"
        assert await refusal_of(book, agent, remark=text) == "token not allowed in contact.remark"
        assert (
            await refusal_of(book, agent, "update", id=contact_id, title=text) == "token not allowed in contact.title"
        )
    for field in ("title", "remark"):
        condition = {"field": field, "op": "contains", "value": token}
        with pytest.raises(BadInput, match="token not allowed in a filter"):
            await book.value(agent, "contact", "list", filter=[condition])


@pytest.mark.parametrize("text", ["email_123", "<EMAIL>", "EMAIL-123", "EMAIL_0123", "EMAIL_1234567890123456"])
@pytest.mark.parametrize("field", ["email", "notes"])
async def test_near_misses_are_refused_in_masked_fields(
    book: InProcessService, agent: Caller, field: str, text: str
) -> None:
    assert f"{text} is no placeholder token" in await refusal_of(book, agent, **{field: text})
    assert f"{text} is no placeholder token" in await refusal_of(book, agent, **{field: f"to {text}."})


async def test_a_token_in_brackets_is_fine(book: InProcessService, root: Caller, agent: Caller) -> None:
    token = (await seen_contact(book, agent, await make(book, root, email="ada@example.com")))["email"]

    created_contact = await book.value(agent, "contact", "create", notes=f"[{token}] <{token}>")

    assert (await seen_contact(book, root, created_contact["id"]))["notes"] == "[ada@example.com] <ada@example.com>"


async def test_a_caller_who_sees_everything_writes_token_like_text_unchanged(
    book: InProcessService, root: Caller
) -> None:
    contact_id = await make(book, root, title="EMAIL_1", email="EMAIL_2", notes="email_3 <EMAIL>")

    stored_contact = await seen_contact(book, root, contact_id)

    assert (stored_contact["title"], stored_contact["email"], stored_contact["notes"]) == (
        "EMAIL_1",
        "EMAIL_2",
        "email_3 <EMAIL>",
    )


async def test_token_like_text_becomes_a_literal_token_that_is_unmasked_in_any_field(
    book: InProcessService, root: Caller, agent: Caller
) -> None:
    contact_id = await make(book, root, title="about EMAIL_12 and EMAIL_1", remark="EMAIL_12")
    shown_contact = await seen_contact(book, agent, contact_id)

    first_token, second_token = (token.text for token in book.service.engine.grammar.tokens(shown_contact["title"]))
    copy = await book.value(
        agent, "contact", "create", title=f"{second_token}/{first_token}", notes=f"re {first_token}", email=first_token
    )

    assert shown_contact["title"] == f"about {first_token} and {second_token}"
    assert shown_contact["remark"] == first_token
    assert first_token.startswith("LITERAL_")
    stored_contact = await seen_contact(book, root, copy["id"])
    assert (stored_contact["title"], stored_contact["notes"], stored_contact["email"]) == (
        "EMAIL_1/EMAIL_12",
        "re EMAIL_12",
        "EMAIL_12",
    )
    assert await refusal_of(book, agent, title="LITERAL_12345") == "unknown token LITERAL_12345"


async def test_tokens_of_two_callers_have_nothing_to_do_with_each_other(book: InProcessService, root: Caller) -> None:
    scout_agent, clerk_agent = await book.agent("scout"), await book.agent("clerk")
    person = await book.person(Grant(model="contact", commands="*", masked="*", write="*"))
    ids = [await make(book, root, email=f"p{n}@example.com", phone=f"+{n}", title="EMAIL_1") for n in range(20)]

    contacts_by_caller = [
        {id_: await seen_contact(book, caller, id_) for id_ in ids} for caller in (scout_agent, clerk_agent, person)
    ]

    tokens = [
        {row[name] for row in record.values() for name in ("email", "phone", "title")} for record in contacts_by_caller
    ]
    assert [len(token) for token in tokens] == [41, 41, 41]
    assert not tokens[0] & tokens[1] | tokens[0] & tokens[2] | tokens[1] & tokens[2]
    foreign_email = contacts_by_caller[0][ids[0]]["email"]
    for caller in (clerk_agent, person):
        assert await refusal_of(book, caller, email=foreign_email) == f"unknown token {foreign_email}"
        assert await refusal_of(book, caller, notes=f"to {foreign_email}") == f"unknown token {foreign_email}"


async def test_equal_values_have_equal_tokens_only_where_the_label_is_linked(
    book: InProcessService, root: Caller, agent: Caller
) -> None:
    values = {"email": "a@example.com", "other_email": "a@example.com", "phone": "+44", "postcode": "1", "notes": "n"}
    first_contact, second_contact = [
        await seen_contact(book, agent, await make(book, root, **values)) for _ in range(2)
    ]

    assert (
        first_contact["email"]
        == first_contact["other_email"]
        == second_contact["email"]
        == second_contact["other_email"]
    )
    assert first_contact["phone"] == second_contact["phone"]
    assert first_contact["postcode"] != second_contact["postcode"]
    assert first_contact["notes"] != second_contact["notes"]
