"""The effect of a request with an Idempotency-Key: a refusal rolls it back and is recorded; the record expires after a
day."""

import uuid
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx
import pytest

from countersign.kernel import clock
from countersign.kernel.database.migrate import in_dialect
from countersign.kernel.database.open import open_database
from countersign.kernel.database.port import Database, Transaction
from countersign.kernel.errors import NotFound, Refused, Unavailable
from countersign.kernel.http import idempotency, response
from countersign.kernel.http.app import App, Policy, problem_renderer
from countersign.kernel.http.request import Headers, Request
from countersign.kernel.http.response import Response
from countersign.kernel.http.routing import Nothing, Route, route

TABLES = """
CREATE TABLE thing (id TEXT PRIMARY KEY);
CREATE TABLE idempotency (key_hash BLOB PRIMARY KEY, request_hash BLOB NOT NULL, status BIGINT NOT NULL,
    headers TEXT NOT NULL, body BLOB NOT NULL, sealed BIGINT NOT NULL, created_at BIGINT NOT NULL);
"""
REFUSALS: Mapping[str, type[Refused]] = {"missing": NotFound, "busy": Unavailable}


class Person:
    """A signed-in caller."""

    key, quota, is_anonymous = "person", "person", False


class OpenGate:
    """An authenticator that admits every caller."""

    async def caller_of(self, headers: Headers, address: str, route: Route[Any]) -> Person:
        """Return the same caller for every request."""
        return Person()

    def admit(self, caller: Person, scope: str | None) -> None:
        """Admit every caller."""


async def insert(call: Request[None, Person, Nothing, Nothing]) -> Response:
    """Insert a row, and refuse after that if the header asks for it."""
    transaction: Transaction = call.transaction
    await transaction.run("INSERT INTO thing (id) VALUES ($1)", str(uuid.uuid4()))
    refusal = REFUSALS.get(call.headers.get("x-refuse") or "")
    if refusal is not None:
        raise refusal("refused after the insert")
    return response.json({"done": True})


async def constant_versions() -> tuple[int, ...]:
    """Return versions that never change."""
    return (1,)


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """A database with the tables `thing` and `idempotency`."""
    database = await open_database(database_url, schema="shop", read_deadline_s=60, reserve_bytes=0)
    async with database.transaction() as transaction:
        await transaction.run(in_dialect(TABLES, database.dialect))
    yield database
    await database.close()


@pytest.fixture
async def http(database: Database) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an application whose only route inserts a row."""
    app = App(
        [route("POST", "/things", insert, answers={200: dict}, writes=True)],
        None,
        database=database,
        authenticator=OpenGate(),
        limiter=None,
        versions=constant_versions,
        policy=Policy(problem_renderer("http://here"), "", "test"),
    )
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here") as client:
        yield client


async def rows(database: Database) -> int:
    """Return the number of inserted rows."""
    ((count,),) = await database.fetch("SELECT count(*) FROM thing")
    return int(count)


async def test_a_refusal_rolls_the_effect_back_and_is_replayed(http: httpx.AsyncClient, database: Database) -> None:
    key = {"Idempotency-Key": str(uuid.uuid4())}

    first_response = await http.post("/things", headers={**key, "X-Refuse": "missing"})
    second_response = await http.post("/things", headers=key)

    assert (first_response.status_code, second_response.status_code) == (404, 404)
    assert first_response.json() == second_response.json()
    assert second_response.headers["idempotency-replayed"] == "true"
    assert await rows(database) == 0


async def test_an_outage_rolls_the_effect_back_and_the_retry_succeeds(
    http: httpx.AsyncClient, database: Database
) -> None:
    key = {"Idempotency-Key": str(uuid.uuid4())}

    first_response = await http.post("/things", headers={**key, "X-Refuse": "busy"})
    second_response = await http.post("/things", headers=key)
    third_response = await http.post("/things", headers=key)

    assert [answer.status_code for answer in (first_response, second_response, third_response)] == [503, 200, 200]
    assert ["idempotency-replayed" in answer.headers for answer in (second_response, third_response)] == [False, True]
    assert await rows(database) == 1


async def test_a_key_may_be_used_again_after_a_day(http: httpx.AsyncClient, database: Database) -> None:
    key = {"Idempotency-Key": str(uuid.uuid4())}
    began = clock.now()

    async def post_after(seconds: float) -> httpx.Response:
        with clock.fixed(clock.later(began, seconds=seconds)):
            return await http.post("/things", headers=key)

    answers = [
        await post_after(seconds)
        for seconds in (0, idempotency.VALID_S - 1, idempotency.VALID_S + 1, 2 * idempotency.VALID_S)
    ]

    assert ["idempotency-replayed" in answer.headers for answer in answers] == [False, True, False, True]
    assert await rows(database) == 2


async def test_a_response_that_another_node_stored_meanwhile_refuses_the_effect(database: Database) -> None:
    key = idempotency.scoped_key(str(uuid.uuid4()), ("person",), b"")
    answer = response.json({"done": True})
    async with database.transaction() as transaction:
        await idempotency.store(transaction, key, answer, secret=False)

    async def insert_and_store() -> None:
        async with database.transaction() as transaction:
            await transaction.run("INSERT INTO thing (id) VALUES ('a')")
            await idempotency.store(transaction, key, answer, secret=False)

    with pytest.raises(idempotency.InProgress):
        await insert_and_store()

    assert await rows(database) == 0
