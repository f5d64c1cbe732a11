"""Texts at their longest, in an indexed field: kept, or refused with the reason where no index can hold them."""

import random

from tests.records.office import Office


def incompressible(length: int) -> str:
    """Characters of three bytes each that no database makes shorter."""
    chance = random.Random(length)
    return "".join(chr(chance.randrange(0x4E00, 0x9FA0)) for _ in range(length))


async def test_an_indexed_text_may_have_a_thousand_usual_characters_and_several_hundred_of_the_longest(
    office: Office,
) -> None:
    for title in ("x" * 1000, "ü" * 1000, incompressible(800)):
        assert (await office.value("alice", "lead.create", title=title))["title"] == title


async def test_a_text_that_an_index_cannot_hold_is_refused_and_never_a_fault(office: Office) -> None:
    title = incompressible(1000)

    answer = await office.call("alice", "lead.create", {"title": title})

    if office.service.records.database.dialect == "sqlite":
        assert answer.json()["value"]["title"] == title
    else:
        assert answer.status_code == 400
        assert "too long to be indexed" in answer.json()["error"]
        found = await office.value("alice", "lead.list", filter=[{"field": "title", "op": "eq", "value": title}])
        assert found == []
