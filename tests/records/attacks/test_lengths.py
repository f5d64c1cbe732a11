"""No response reveals the length of a masked value, to whatever field its token is written."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from countersign.declare import LongText, Model, Text
from countersign.records.access.view import Caller
from countersign.records.commands import unmask_input
from countersign.records.commands.errors import BadInput
from tests.records import inside
from tests.records.inside import InProcessService

LENGTHS = (0, 1, 10, 500, 972, 978, 990, 999, 1000, 1001, 5000)


class Contact(Model):
    """A person with contact data."""

    name = Text(personal="PERSON")
    nickname = Text(personal="PERSON", max_length=20)
    notes = LongText(personal="NOTES")
    summary = Text(personal="NOTES")
    remark = LongText(personal="REMARK", max_length=3000)


@pytest.fixture
async def book(database_url: str, tmp_path: Path) -> AsyncIterator[InProcessService]:
    """An empty address book, once on SQLite and once on PostgreSQL."""
    async with inside.open_service(database_url, tmp_path, Contact) as service:
        yield service


@pytest.fixture
async def agent(book: InProcessService) -> Caller:
    """An agent that sees every personal field masked."""
    return await book.agent("scout")


async def write_values(book: InProcessService, agent: Caller, **values: str) -> str:
    """Write these values, and return the response without tokens and ids."""
    try:
        created_contact = await book.value(agent, "contact", "create", **values)
    except BadInput as refusal:
        return refusal.detail
    return f"fits {sorted(name for name, value in created_contact.items() if value)}"


@pytest.mark.parametrize("field", ["name", "nickname", "notes", "summary", "remark"])
async def test_whether_a_token_fits_does_not_depend_on_the_length_of_its_value(
    book: InProcessService, agent: Caller, field: str
) -> None:
    answer_texts: list[list[str]] = []
    for length in (3, 900):
        clear_contact = await book.value(
            book.administrator(), "contact", "create", name="n" * length, notes="o" * length
        )
        shown_contact: dict[str, Any] = await book.value(agent, "contact", "get", id=clear_contact["id"])
        tokens = [shown_contact["notes"]] if field in ("notes", "summary") else [shown_contact["name"]]
        if field == "remark":
            tokens = [shown_contact["name"], f"{shown_contact['name']} {shown_contact['notes']}"]
        answers: list[str] = []
        for token in tokens:
            for room in LENGTHS:
                padded = f"{'x' * (room - len(token) - 1)} {token}" if room else token
                answers.append((await write_values(book, agent, **{field: padded})).replace(token, "TOKEN"))
        answer_texts.append(answers)

    assert answer_texts[0] == answer_texts[1]


async def test_a_token_fits_into_a_field_that_is_shorter_than_the_token(book: InProcessService, agent: Caller) -> None:
    clear_contact = await book.value(book.administrator(), "contact", "create", name="n" * 900)
    shown_contact = await book.value(agent, "contact", "get", id=clear_contact["id"])

    created_contact = await book.value(agent, "contact", "create", nickname=shown_contact["name"])

    assert created_contact["nickname"] == shown_contact["name"]
    assert (await book.value(book.administrator(), "contact", "get", id=created_contact["id"]))["nickname"] == "n" * 900


async def test_a_line_is_never_longer_than_lines_are(book: InProcessService, agent: Caller) -> None:
    clear_contact = await book.value(book.administrator(), "contact", "create", name="n", notes="o")
    shown_contact = await book.value(agent, "contact", "get", id=clear_contact["id"])

    with pytest.raises(BadInput, match="a placeholder token counting as 1000"):
        await book.value(agent, "contact", "create", name=f"{shown_contact['name']} {shown_contact['name']}")
    with pytest.raises(BadInput, match="takes no placeholder token of a long text"):
        await book.value(agent, "contact", "create", summary=shown_contact["notes"])


async def test_notes_are_appended_to_a_full_field_too(book: InProcessService, agent: Caller) -> None:
    clear_contact = await book.value(book.administrator(), "contact", "create", notes="o" * 1_000_000)
    shown_contact = await book.value(agent, "contact", "get", id=clear_contact["id"])

    await book.value(
        agent, "contact", "update", id=clear_contact["id"], notes=f"{shown_contact['notes']}\nCalled today."
    )

    notes = (await book.value(book.administrator(), "contact", "get", id=clear_contact["id"]))["notes"]
    assert notes == f"{'o' * 1_000_000}\nCalled today."
    doubled_notes = (await book.value(agent, "contact", "get", id=clear_contact["id"]))["notes"]
    with pytest.raises(BadInput, match="may hold one placeholder token of a long text"):
        await book.value(agent, "contact", "update", id=clear_contact["id"], notes=f"{doubled_notes} {doubled_notes}")


async def test_notes_do_not_grow_for_ever(
    book: InProcessService, agent: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unmask_input, "MAX_GROWN_LENGTH", 2_000)
    contact = await book.value(agent, "contact", "create", notes="o" * 1_500)

    errors: set[str] = set()
    for _ in range(5):
        try:
            contact = await book.value(
                agent, "contact", "update", id=contact["id"], notes=f"{contact['notes']} {'o' * 1_000}"
            )
        except BadInput as refusal:
            errors.add(refusal.detail)

    assert errors == {"contact.notes has grown too long: write it anew"}
