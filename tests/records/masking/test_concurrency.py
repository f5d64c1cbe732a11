"""Concurrent writers of shared values: no write fails, and every reference is counted."""

import asyncio
import random

from countersign.records.access.view import Caller
from tests.records.inside import InProcessService
from tests.records.masking.test_vault import recount_references, vault_counts

WRITERS = 4
TURNS = 25


async def test_writers_who_exchange_shared_values_do_not_wait_for_each_other_in_a_circle(
    book: InProcessService, root: Caller
) -> None:
    people = [f"p{number}@example.com" for number in range(3)]
    for _ in range(WRITERS):
        await book.value(root, "contact", "create", email=people[0], other_email=people[1], phone="1")
    contacts = [row["id"] for row in await book.value(root, "contact", "list")]

    async def write(number: int) -> None:
        rng = random.Random(number)
        for _ in range(TURNS):
            email, other_email = rng.sample(people, 2)
            await book.value(
                root,
                "contact",
                "update",
                id=contacts[number],
                email=email,
                other_email=other_email,
                phone=rng.choice("12"),
            )

    await asyncio.gather(*(write(number) for number in range(WRITERS)))

    assert dict(await book.rows("SELECT id, refs FROM pii_value")) == await recount_references(book)
    assert sum(refs for _, refs in await vault_counts(book)) == 3 * WRITERS


async def test_writers_who_make_and_delete_the_same_values_count_right(book: InProcessService, root: Caller) -> None:
    async def write(number: int) -> None:
        rng = random.Random(number)
        for _ in range(TURNS):
            values = {"email": f"p{rng.randrange(3)}@x", "other_email": f"p{rng.randrange(3)}@x", "phone": "1"}
            created_contact = await book.value(root, "contact", "create", **values)
            if rng.random() < 0.8:
                await book.value(root, "contact", "delete", id=created_contact["id"])

    await asyncio.gather(*(write(number) for number in range(WRITERS)))

    assert dict(await book.rows("SELECT id, refs FROM pii_value")) == await recount_references(book)
