"""Batches that would have an unreported effect, or block all other requests."""

import asyncio
import uuid
from dataclasses import replace

import pytest

from countersign.settings import Settings
from countersign.store import app as distribution
from countersign.store.auth import queries
from countersign.store.auth.callers import Caller
from tests.store.ask.test_model import STRANGE, Stub, stub
from tests.store.batch.conftest import Batches, batches, codes, get, post, product
from tests.store.batch.test_atomic import paused_batch

BATCHED = [route for route in distribution.ROUTES if not (route.at_root or route.streams or route.own_credentials)]
__all__ = ["batches", "paused_batch", "stub"]


async def test_repeating_an_atomic_batch_that_was_rolled_back_has_no_effect(batches: Batches) -> None:
    """Long addresses make the refusals too long to be stored, so the repeated batch runs again."""
    padded = [get("/nothing/" + "\U0001f600" * 5_000) for _ in range(48)]
    operations = [post("/products", product("kept")), get("/nothing"), *padded]
    repeat = {"Idempotency-Key": str(uuid.uuid4())}
    rows_before = await batches.all_rows()

    first_answer = await batches.send(operations, batches.owner, mode="atomic", headers=repeat)
    repeated_answer = await batches.send(operations, batches.owner, mode="atomic", headers=repeat)

    assert len(first_answer.content) > 1 << 20
    assert codes(repeated_answer.json()["results"]) == codes(first_answer.json()["results"])
    rows_after = await batches.all_rows()
    assert {**rows_after, "idempotency": []} == {**rows_before, "idempotency": []}


@pytest.mark.parametrize("who", ["community", "agent", "customer"])
async def test_no_caller_blocks_all_writes_with_questions_in_one_transaction(
    batches: Batches, paused_batch: tuple[asyncio.Event, asyncio.Event], who: str
) -> None:
    """A caller with a free key may send hundreds of batches of questions in a minute, and each batch takes seconds."""
    world = batches.world
    batch_begun, may_commit = paused_batch
    if who == "customer":
        token = await world.person("customer@example.com")
    else:
        token = (await world.http.get("/api/keys", params={"tier": who})).json()["api_key"]
    operations = [post("/ask", {"query": "How many games?"}), post("/ask?stream=false", {"query": "How many tools?"})]
    asking_task = asyncio.create_task(batches.results(operations, token, mode="atomic"))
    await batch_begun.wait()

    created = await asyncio.wait_for(world.call("POST", "/products", batches.owner, json=product("meanwhile")), 60)
    may_commit.set()

    assert created.status_code == 201
    assert [result["status"] for result in await asking_task] == [200, 200]


def test_every_writing_route_requires_a_scope_that_anonymous_agents_lack() -> None:
    """Therefore a batch of keys, of anonymous agents or of questions needs no transaction."""
    agent = Caller("agent", "x", {}, queries.PRE_CLAIM)
    scoped = {route.scope for route in BATCHED if route.writes and route.path != "/batch"}

    assert {route.path for route in BATCHED if route.method != "GET" and not route.writes} == {"/ask", "/api/keys"}
    assert None not in scoped
    assert not any(agent.allows(str(scope)) for scope in scoped)


class TestModel:
    """The store uses a model for questions."""

    @pytest.fixture
    def settings(self, settings: Settings, stub: Stub) -> Settings:
        """The settings of a slow model."""
        stub.delay_s = 1
        return replace(settings, ask_model_url=stub.url, ask_model="tiny")

    async def test_a_transaction_that_all_wait_for_does_not_wait_for_a_model(
        self, batches: Batches, stub: Stub
    ) -> None:
        operations = [post("/products", product("one")), *[post("/ask", {"query": STRANGE})] * 3]

        results = await batches.results(operations, mode="atomic")

        assert [result["status"] for result in results] == [201] + [200] * 3
        assert stub.seen == []
