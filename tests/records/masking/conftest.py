"""An address book with personal fields on a database of each engine."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from countersign.declare import LongText, Model, Text
from countersign.records.access.view import Caller
from tests.records import inside
from tests.records.inside import InProcessService


class Contact(Model):
    """A person with contact data."""

    title = Text()
    email = Text(personal="EMAIL")
    other_email = Text(personal="EMAIL")
    phone = Text(personal="PHONE")
    postcode = Text(personal="POSTCODE")
    remark = LongText()
    notes = LongText(personal="NOTES")


@pytest.fixture
async def book(database_url: str, tmp_path: Path) -> AsyncIterator[InProcessService]:
    """An empty address book, once on SQLite and once on PostgreSQL."""
    async with inside.open_service(database_url, tmp_path, Contact) as service:
        yield service


@pytest.fixture
def root(book: InProcessService) -> Caller:
    """A person who sees everything in clear."""
    return book.administrator()


@pytest.fixture
async def agent(book: InProcessService) -> Caller:
    """An agent that sees every personal field masked."""
    return await book.agent("scout")
