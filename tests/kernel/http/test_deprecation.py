"""Deprecation is announced in every response until the sunset, and the route is gone after it."""

from collections.abc import AsyncIterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Any

import httpx
import msgspec
import pytest

from countersign.kernel import clock
from countersign.kernel.database.open import open_database
from countersign.kernel.errors import NotFound
from countersign.kernel.http import response
from countersign.kernel.http.app import App, Policy, problem_renderer
from countersign.kernel.http.deprecation import Deprecation, deprecated
from countersign.kernel.http.rate_limit import RateLimiter, SharedMemoryCounters
from countersign.kernel.http.request import Headers, Request
from countersign.kernel.http.response import Response
from countersign.kernel.http.routing import Nothing, Route, route

NOTICE = Deprecation(date(2026, 1, 1), date(2026, 4, 1), "https://docs.example/old")


class Anyone:
    """A caller without a credential."""

    key, quota, is_anonymous = "anyone", "anonymous", True

    def allows(self, scope: str) -> bool:
        """Return False for every scope."""
        return False


class OpenGate:
    """An authenticator that admits every caller."""

    async def caller_of(self, headers: Headers, address: str, route: Route[Any]) -> Anyone:
        """Return the same caller for every request."""
        return Anyone()

    def admit(self, caller: Anyone, scope: str | None) -> None:
        """Admit every caller."""


async def old(call: Request[None, Anyone, Nothing, Nothing]) -> Response:
    """Respond like the deprecated route."""
    if call.headers.get("x-fail"):
        raise NotFound("nothing here")
    return response.json({"a": 1})


class OldQuery(msgspec.Struct, forbid_unknown_fields=True):
    """A query with a deprecated parameter and a current one."""

    category: Annotated[str | None, deprecated(date(2026, 1, 1), date(2026, 4, 1), "https://docs.example/kind")] = None
    kind: str | None = None


class OldBody(msgspec.Struct, forbid_unknown_fields=True):
    """A body with a deprecated member and a current one."""

    name: str
    label: Annotated[str, deprecated(date(2025, 12, 1), date(2026, 5, 1), "https://docs.example/name")] = ""


class OldMember(msgspec.Struct):
    """A deprecated member of a response."""

    count: Annotated[int, deprecated(date(2026, 1, 1), date(2026, 4, 1), "https://docs.example/total")]


class OldAnswer(msgspec.Struct):
    """A response that contains the deprecated member."""

    rows: list[OldMember]


async def narrowed(call: Request[None, Anyone, OldQuery, Nothing]) -> Response:
    """Respond with the query."""
    return response.json({"category": call.query.category})


async def respond(call: Request[None, Anyone, Nothing, OldBody]) -> Response:
    """Respond with the body."""
    return response.json({"label": call.body.label})


async def constant_versions() -> tuple[int, ...]:
    """Return versions that never change."""
    return (1,)


@pytest.fixture
async def http(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an application with a deprecated route, a cached route, and a current route."""
    database = await open_database(f"sqlite:///{tmp_path}/a.db", schema="a", pool=1, read_deadline_s=5, reserve_bytes=0)
    counters = SharedMemoryCounters(tmp_path)
    routes = (
        route("GET", "/old", old, answers={200: dict}, deprecation=NOTICE),
        route("GET", "/cached", old, answers={200: dict}, deprecation=NOTICE, cached=True),
        route("GET", "/new", old, answers={200: dict}),
        route("GET", "/list", narrowed, query=OldQuery, answers={200: dict}, cached=True),
        route("POST", "/things", respond, body=OldBody, answers={200: dict}),
        route("GET", "/answers", old, answers={200: OldAnswer}),
    )
    app = App(
        routes,
        None,
        database=database,
        authenticator=OpenGate(),
        limiter=RateLimiter(counters, {"anonymous": 9}),
        versions=constant_versions,
        policy=Policy(problem_renderer("http://here"), "", "test"),
    )
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here") as client:
        yield client
    await counters.close()
    await database.close()


def midnight(year: int, month: int, day: int) -> clock.Instant:
    """Return midnight in UTC."""
    return clock.from_datetime(datetime(year, month, day, tzinfo=UTC))


async def test_until_the_sunset_every_answer_announces_it(http: httpx.AsyncClient) -> None:
    with clock.fixed(clock.Instant(midnight(2026, 4, 1) - 1)):
        answers = [
            await http.get("/old"),
            await http.get("/old", headers={"X-Fail": "yes"}),
            await http.get("/cached"),
            await http.get("/cached"),
            await http.get("/cached", headers={"If-None-Match": "*"}),
        ]

    assert [answer.status_code for answer in answers] == [200, 404, 200, 200, 304]
    for answer in answers:
        assert answer.headers["deprecation"] == f"@{midnight(2026, 1, 1) // clock.SECOND}"
        assert answer.headers["sunset"] == "Wed, 01 Apr 2026 00:00:00 GMT"
        assert answer.headers["link"] == '<https://docs.example/old>; rel="deprecation"'


async def test_a_route_is_gone_after_its_sunset(http: httpx.AsyncClient) -> None:
    with clock.fixed(midnight(2026, 4, 1)):
        removed_response = await http.get("/old")
        later_answer = await http.get("/new")

    assert (removed_response.status_code, removed_response.json()["code"]) == (410, "endpoint_gone")
    assert "https://docs.example/old" in removed_response.json()["detail"]
    assert later_answer.status_code == 200
    assert "deprecation" not in later_answer.headers


async def test_requests_to_a_removed_route_are_counted(http: httpx.AsyncClient) -> None:
    with clock.fixed(midnight(2026, 5, 1)):
        statuses = [(await http.get("/old")).status_code for _ in range(10)]

    assert statuses == [410] * 9 + [429]


async def test_a_deprecated_parameter_is_announced_only_in_answers_to_its_use(http: httpx.AsyncClient) -> None:
    with clock.fixed(clock.Instant(midnight(2026, 4, 1) - 1)):
        answers_with_old = [await http.get("/list?category=a") for _ in range(3)]
        unused = [await http.get("/list?kind=a") for _ in range(3)]

    for answer in answers_with_old:
        assert answer.json() == {"category": "a"}
        assert answer.headers["deprecation"] == f"@{midnight(2026, 1, 1) // clock.SECOND}"
        assert answer.headers["sunset"] == "Wed, 01 Apr 2026 00:00:00 GMT"
        assert answer.headers["link"] == '<https://docs.example/kind>; rel="deprecation"'
    assert not any("deprecation" in answer.headers or "sunset" in answer.headers for answer in unused)


async def test_after_its_sunset_a_parameter_is_gone_and_the_route_is_not(http: httpx.AsyncClient) -> None:
    with clock.fixed(midnight(2026, 4, 1)):
        gone_response, later_answer = await http.get("/list?category=a"), await http.get("/list?kind=a")

    assert (gone_response.status_code, gone_response.json()["code"]) == (410, "parameter_gone")
    assert gone_response.json()["errors"][0]["parameter"] == "category"
    assert "https://docs.example/kind" in gone_response.json()["detail"]
    assert later_answer.status_code == 200


async def test_a_deprecated_member_of_a_body_is_announced_until_its_removal(http: httpx.AsyncClient) -> None:
    old, new = {"name": "a", "label": "b"}, {"name": "a"}
    with clock.fixed(clock.Instant(midnight(2026, 5, 1) - 1)):
        old_answer, unused_response = await http.post("/things", json=old), await http.post("/things", json=new)
    with clock.fixed(midnight(2026, 5, 1)):
        gone_response, later_answer = await http.post("/things", json=old), await http.post("/things", json=new)

    assert old_answer.json() == {"label": "b"}
    assert old_answer.headers["sunset"] == "Fri, 01 May 2026 00:00:00 GMT"
    assert "sunset" not in unused_response.headers
    assert (gone_response.status_code, gone_response.json()["code"]) == (410, "parameter_gone")
    assert gone_response.json()["errors"][0]["pointer"] == "/label"
    assert later_answer.status_code == 200


async def test_a_deprecated_member_of_an_answer_is_announced_until_its_removal(http: httpx.AsyncClient) -> None:
    for moment in (midnight(2026, 3, 31), midnight(2026, 6, 1)):
        with clock.fixed(moment):
            response = await http.get("/answers")
        assert response.status_code == 200
        assert response.headers["sunset"] == "Wed, 01 Apr 2026 00:00:00 GMT"


def test_a_deprecated_field_is_marked_in_its_schema() -> None:
    _, components = msgspec.json.schema_components([OldBody], ref_template="{name}")

    label = components["OldBody"]["properties"]["label"]
    assert (label["deprecated"], label["x-sunset"]) == (True, "2026-05-01")
    assert "deprecated" not in components["OldBody"]["properties"]["name"]


def test_ninety_days_pass_between_announcement_and_sunset() -> None:
    with pytest.raises(ValueError, match="90 days"):
        Deprecation(date(2026, 1, 1), date(2026, 3, 31), "https://docs.example")
