"""Texts of the maximum length in an indexed field: they are stored, or refused with the reason if no index can contain
them."""

import random

import pytest

from countersign.records.commands import limits
from tests.records.office import Office


def incompressible(length: int) -> str:
    """Return a text of characters of three bytes each that a database cannot compress."""
    rng = random.Random(length)
    return "".join(chr(rng.randrange(0x4E00, 0x9FA0)) for _ in range(length))


async def test_an_indexed_text_may_have_a_thousand_usual_characters_and_several_hundred_of_the_longest(
    office: Office,
) -> None:
    for title in ("x" * 1000, "ü" * 1000, incompressible(800)):
        assert (await office.value("alice", "lead.create", title=title))["title"] == title


async def test_a_text_too_long_for_an_index_is_refused_without_a_server_error(office: Office) -> None:
    title = incompressible(1000)

    answer = await office.call("alice", "lead.create", {"title": title})

    if office.service.records.database.dialect == "sqlite":
        assert answer.json()["value"]["title"] == title
    else:
        assert answer.status_code == 400
        assert "too long to be indexed" in answer.json()["error"]
        leads = await office.value("alice", "lead.list", filter=[{"field": "title", "op": "eq", "value": title}])
        assert leads == []


async def test_a_page_of_too_many_long_texts_is_refused_and_a_smaller_page_is_returned(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_PAGE_BYTES", 1 << 20)
    for _ in range(3):
        await office.value("alice", "lead.create", title="Long", notes="x" * 500_000)
    long = [{"field": "title", "op": "eq", "value": "Long"}]

    for command, page_sizes in {"lead.list": (3, 200), "lead.search": (3, 200), "lead.export": (3, 200)}.items():
        for limit in page_sizes:
            answer = await office.call("alice", command, {"filter": long, "limit": limit})
            assert answer.status_code == 400, command
            assert "longer than 1 MiB" in answer.json()["error"]
        assert await office.value("alice", command, filter=long, limit=2)


async def test_a_list_without_limit_may_be_of_any_length(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_PAGE_BYTES", 1 << 20)
    for _ in range(3):
        await office.value("alice", "lead.create", title="Long", notes="x" * 500_000)

    leads = await office.value("alice", "lead.list", filter=[{"field": "title", "op": "eq", "value": "Long"}])

    assert [len(lead["notes"]) for lead in leads] == [500_000] * 3
