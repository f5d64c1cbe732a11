"""Batches that would have an effect nobody is told of, or hold up everybody else."""

import uuid

from tests.distribution.batch.conftest import Batches, batches, codes, get, post, product

__all__ = ["batches"]


async def test_repeating_an_atomic_batch_that_was_taken_back_still_has_no_effect(batches: Batches) -> None:
    """Long addresses make the refusals too long to be stored, so that the repeat makes the answer anew."""
    padded = [get("/nothing/" + "\U0001f600" * 5_000) for _ in range(48)]
    operations = [post("/products", product("kept")), get("/nothing"), *padded]
    repeat = {"Idempotency-Key": str(uuid.uuid4())}
    before = await batches.everything()

    first = await batches.send(operations, batches.owner, mode="atomic", headers=repeat)
    again = await batches.send(operations, batches.owner, mode="atomic", headers=repeat)

    assert len(first.content) > 1 << 20
    assert codes(again.json()["results"]) == codes(first.json()["results"])
    after = await batches.everything()
    assert {**after, "idempotency": []} == {**before, "idempotency": []}
