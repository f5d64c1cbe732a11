"""Rate limits: which requests count for which caller, the headers of every answer, and the answer when the limit is
reached."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from countersign.kernel import clock
from countersign.settings import Settings, load
from countersign.store import app as distribution
from countersign.store.context import Store
from tests.contract.scenes import all_rows
from tests.store.conftest import ROOT_URL
from tests.store.world import World

LIMITS = ("ratelimit-limit", "ratelimit-remaining", "ratelimit-reset")
PRODUCT = {"slug": "made", "title": "Made", "kind": "tool", "platforms": ["linux"]}


@pytest.fixture
def database_url(tmp_path: Path) -> str:
    """Requests are counted outside the database, so one kind of database is enough."""
    return f"sqlite:///{tmp_path}/test.db"


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Different small quotas that a test can use up."""
    proxies = "10.0.0.1, 10.0.0.2, 10.42.0.0/16, fd00:7::/64"
    return replace(settings, rate_anonymous=4, rate_person=6, rate_token=3, rate_documents=5, trusted_proxies=proxies)


def client_from(store: Store, address: str) -> httpx.AsyncClient:
    """Return a client that connects from another address."""
    transport = httpx.ASGITransport(distribution.create(store), client=(address, 4321))
    return httpx.AsyncClient(transport=transport, base_url=ROOT_URL)


def rate_headers(answer: httpx.Response) -> tuple[int, ...]:
    """Limit, remaining and reset in the answer's headers."""
    return tuple(int(answer.headers[name]) for name in LIMITS)


def assert_limited(answer: httpx.Response) -> None:
    """Require the documented 429, with headers that say when to retry."""
    problem: dict[str, Any] = answer.json()
    assert (answer.status_code, problem["code"]) == (429, "rate_limit_exceeded")
    assert problem["type"] == f"{ROOT_URL}/problems/rate-limit-exceeded"
    assert 1 <= int(answer.headers["retry-after"]) <= 60
    assert rate_headers(answer)[1] == 0
    assert len(answer.headers.get_list("ratelimit-limit")) == 1


def test_the_defaults_are_the_documented_limits() -> None:
    settings = load({})

    assert (settings.rate_anonymous, settings.rate_community, settings.rate_agent) == (120, 600, 1200)
    assert (settings.rate_person, settings.rate_token) == (1200, 60)
    assert (settings.code_failures_person, settings.code_failures_address) == (10, 50)
    assert load({"COUNTERSIGN_RATE_ANONYMOUS": "7"}).rate_anonymous == 7


async def test_every_answer_has_the_remaining_count_until_it_is_zero(world: World) -> None:
    headers_of_responses = [rate_headers(await world.call("GET", "/products")) for _ in range(4)]
    limited_response = await world.call("GET", "/products")

    assert [(limit, remaining) for limit, remaining, _ in headers_of_responses] == [(4, 3), (4, 2), (4, 1), (4, 0)]
    assert all(0 < reset <= 60 for _, _, reset in headers_of_responses)
    assert_limited(limited_response)


@pytest.mark.parametrize(
    ("method", "path", "options", "status"),
    [
        ("GET", "/products", {}, 200),
        ("HEAD", "/products", {}, 200),
        ("GET", "/products", {"headers": {"If-None-Match": "*"}}, 304),
        ("GET", "/products?limit=0", {}, 400),
        ("GET", "/library", {}, 401),
        ("GET", "/products/none", {}, 404),
        ("GET", "/nowhere", {}, 404),
        ("PATCH", "/products", {}, 405),
        ("GET", "/products", {"headers": {"Accept": "image/png"}}, 406),
        ("GET", "/products", {"headers": {"Authorization": "Bearer forged"}}, 401),
    ],
)
async def test_answers_of_every_status_are_counted_and_have_quota_headers(
    world: World, method: str, path: str, options: dict[str, Any], status: int
) -> None:
    answers = [await world.call(method, path, **options) for _ in range(5)]

    assert [answer.status_code for answer in answers] == [status] * 4 + [429]
    assert [rate_headers(answer)[:2] for answer in answers[:4]] == [(4, 3), (4, 2), (4, 1), (4, 0)]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/openapi.json", 200),
        ("http://127.0.0.1:8480/wiki.json", 200),
        ("http://127.0.0.1:8480/llms.txt", 200),
        ("http://127.0.0.1:8480/auth.md", 200),
        ("/.well-known/oauth-protected-resource", 200),
        ("/.well-known/jwks.json", 200),
        ("/problems/invalid-request", 200),
        ("/problems/none", 404),
        ("/api/keys", 200),
    ],
)
async def test_documents_problem_pages_and_keys_have_a_quota_of_their_own(world: World, path: str, status: int) -> None:
    for _ in range(5):
        catalog = await world.call("GET", "/products")
    answers = [await world.call("GET", path) for _ in range(6)]

    assert_limited(catalog)
    assert [answer.status_code for answer in answers] == [status] * 5 + [429]
    assert [rate_headers(answer)[:2] for answer in answers] == [(5, remaining) for remaining in (4, 3, 2, 1, 0, 0)]


def test_the_quota_of_documents_and_the_keys_an_hour_are_settings() -> None:
    assert (load({}).rate_documents, load({}).rate_keys) == (600, 5)
    settings = load({"COUNTERSIGN_RATE_DOCUMENTS": "7", "COUNTERSIGN_RATE_KEYS": "2"})
    assert (settings.rate_documents, settings.rate_keys) == (7, 2)


async def test_liveness_is_never_refused(world: World) -> None:
    answers = [await world.call("GET", "/healthz") for _ in range(20)]

    assert {answer.status_code for answer in answers} == {200}
    assert "ratelimit-limit" not in answers[0].headers


async def test_a_window_ends(world: World) -> None:
    for _ in range(5):
        last_response = await world.call("GET", "/info")
    assert_limited(last_response)

    with clock.fixed(clock.later(clock.now(), seconds=int(last_response.headers["retry-after"]) + 1)):
        assert (await world.call("GET", "/info")).status_code == 200


async def test_people_and_clients_have_each_a_quota_of_their_own(world: World) -> None:
    ann, bob = await world.person("ann@example.com"), await world.person("bob@example.com")
    client = await world.client_token("north")
    for _ in range(4):
        await world.call("GET", "/info")

    for token in (ann, bob, client):
        answers = [await world.call("GET", "/info", token) for _ in range(7)]
        assert [rate_headers(answer)[:2] for answer in answers[:6]] == [
            (6, remaining) for remaining in (5, 4, 3, 2, 1, 0)
        ]
        assert_limited(answers[6])


async def test_all_tokens_of_a_person_share_their_quota(world: World) -> None:
    await world.person("ann@example.com")
    tokens = [await world.person_token("ann@example.com", "read:library") for _ in range(7)]

    answers = [await world.call("GET", "/info", token) for token in tokens]

    assert_limited(answers[6])


async def test_token_requests_of_an_address_have_a_quota(world: World) -> None:
    ann = await world.person("ann@example.com")
    form = {"grant_type": "client_credentials", "client_id": "cc_x", "client_secret": "y"}
    answers = [await world.http.post("/api/v1/auth/token", data=form) for _ in range(4)]
    page = await world.http.post("/auth/session/token", json={}, headers={"Origin": ROOT_URL})

    assert [answer.status_code for answer in answers] == [401, 401, 401, 429]
    assert (answers[3].json()["error"], answers[3].json()["code"]) == ("rate_limited", "rate_limit_exceeded")
    assert int(answers[3].headers["retry-after"]) > 0
    assert page.status_code == 429
    assert (await world.call("GET", "/info", ann)).status_code == 200


async def test_a_rate_limited_request_changes_nothing(world: World) -> None:
    owner = await world.person("owner@north.example", north="owner")
    for _ in range(6):
        await world.call("GET", "/info", owner)
    rows_before = await all_rows(world.store)

    assert_limited(await world.call("POST", "/products", owner, json=PRODUCT))

    assert await all_rows(world.store) == rows_before


async def test_forged_credentials_do_not_escape_the_quota_of_their_address(world: World) -> None:
    answers = [await world.call("GET", "/info", f"forged-{number}") for number in range(5)]

    assert [answer.status_code for answer in answers] == [401, 401, 401, 401, 429]


async def test_all_workers_share_the_counts(world: World) -> None:
    async with client_from(world.store, "127.0.0.1") as other_client:
        for worker in (world.http, other_client, world.http, other_client):
            assert (await worker.get("/api/v1/info")).status_code == 200
        for worker in (world.http, other_client):
            assert_limited(await worker.get("/api/v1/info"))


async def test_each_address_has_its_own_count(world: World) -> None:
    for _ in range(5):
        last_response = await world.call("GET", "/info")
    assert_limited(last_response)

    async with client_from(world.store, "192.0.2.7") as other_client:
        assert (await other_client.get("/api/v1/info")).status_code == 200


async def test_a_stranger_cannot_name_another_address(world: World) -> None:
    async with client_from(world.store, "192.0.2.7") as stranger:
        answers = [
            await stranger.get("/api/v1/info", headers={"X-Forwarded-For": f"198.51.100.{number}"})
            for number in range(5)
        ]

    assert_limited(answers[4])


@pytest.mark.parametrize("proxy", ["10.42.3.9", "fd00:7::9"])
async def test_a_proxy_in_a_trusted_network_is_trusted(world: World, proxy: str) -> None:
    async with client_from(world.store, proxy) as ingress:
        forwarded = [
            await ingress.get("/api/v1/info", headers={"X-Forwarded-For": f"203.0.113.{number}, 10.42.200.1"})
            for number in range(5)
        ]

    assert [response.status_code for response in forwarded] == [200] * 5


@pytest.mark.parametrize("outside_address", ["10.43.0.1", "fd00:8::9"])
async def test_a_neighbour_of_that_network_is_not(world: World, outside_address: str) -> None:
    async with client_from(world.store, outside_address) as stranger:
        answers = [
            await stranger.get("/api/v1/info", headers={"X-Forwarded-For": f"203.0.113.{number}"})
            for number in range(5)
        ]

    assert_limited(answers[4])


async def test_a_proxy_names_the_address_it_was_called_from(world: World) -> None:
    async with client_from(world.store, "10.0.0.1") as proxy:
        # The client's own values come first in the header, and are not trusted.
        forged_answers = [
            await proxy.get("/api/v1/info", headers={"X-Forwarded-For": f"203.0.113.{number}, 192.0.2.7, 10.0.0.2"})
            for number in range(5)
        ]
        other_answer = await proxy.get("/api/v1/info", headers={"X-Forwarded-For": "192.0.2.8"})

    assert_limited(forged_answers[4])
    assert other_answer.status_code == 200


async def _keys(world: World) -> httpx.Response:
    return await world.call("GET", "/api/keys")


async def _sign_in(world: World) -> httpx.Response:
    form = {"email": "ann@example.com", "password": "not the right one"}
    return await world.http.post("/auth/signin", data=form, headers={"Origin": ROOT_URL})


async def _register(world: World) -> httpx.Response:
    return await world.call("POST", "/auth/register", json={"type": "anonymous"})


async def _letters(world: World) -> httpx.Response:
    return await world.http.post("/auth/reset", data={"email": "ann@example.com"}, headers={"Origin": ROOT_URL})


OWN_LIMITS = {"keys": (_keys, 5), "sign-in": (_sign_in, 5), "register": (_register, 2), "letters": (_letters, 5)}


async def test_a_429_for_an_address_or_a_lower_key_suggests_a_key_with_a_higher_limit(settings: Settings) -> None:
    low = replace(settings, rate_anonymous=2, rate_community=2, rate_agent=9, rate_person=2, trusted_proxies="")
    async with distribution.open_store(low, ROOT_URL, is_loopback=True) as store:
        world = World(store, client_from(store, "198.51.100.7"))
        await world.org("north")
        community = (await world.call("GET", "/api/keys")).json()["api_key"]
        callers = {"nobody": None, "a key": community, "a person": await world.person("ann@example.com")}
        answers = {
            name: [await world.call("GET", "/info", token) for _ in range(3)][-1] for name, token in callers.items()
        }
        resolution_match = re.search(
            r"GET (\S+), then send its api_key as X-API-Key", answers["nobody"].json()["resolution"]
        )
        assert resolution_match is not None
        key = (await world.http.get(resolution_match[1])).json()["api_key"]
        keyed_answers = [await world.call("GET", "/info", headers={"X-API-Key": key}) for _ in range(9)]

    assert [answer.status_code for answer in answers.values()] == [429] * 3
    assert ["api/keys?tier=agent" in answer.json()["resolution"] for answer in answers.values()] == [True, True, False]
    assert "to 9 requests a minute" in answers["a key"].json()["resolution"]
    assert [answer.status_code for answer in keyed_answers] == [200] * 9


async def test_a_429_does_not_suggest_a_key_that_does_not_raise_the_limit(settings: Settings) -> None:
    equal = replace(settings, rate_anonymous=2, rate_agent=2, trusted_proxies="")
    async with distribution.open_store(equal, ROOT_URL, is_loopback=True) as store:
        world = World(store, client_from(store, "198.51.100.7"))
        answers = [await world.call("GET", "/info") for _ in range(3)]

    assert_limited(answers[2])
    assert "api/keys" not in answers[2].json()["resolution"]


@pytest.mark.parametrize("name", OWN_LIMITS)
async def test_a_429_carries_the_numbers_of_the_limit_that_was_reached(settings: Settings, name: str) -> None:
    send, limit = OWN_LIMITS[name]
    general = replace(settings, rate_anonymous=1000, rate_token=1000, rate_register=2, trusted_proxies="")
    async with distribution.open_store(general, ROOT_URL, is_loopback=True) as store:
        transport = httpx.ASGITransport(distribution.create(store))
        async with httpx.AsyncClient(transport=transport, base_url=ROOT_URL) as client:
            world = World(store, client)
            answers = [await send(world) for _ in range(limit + 1)]

    assert 429 not in [answer.status_code for answer in answers[:limit]]
    assert answers[limit].status_code == 429, answers[limit].text
    assert rate_headers(answers[limit])[:2] == (limit, 0)
    assert rate_headers(answers[limit])[2] == int(answers[limit].headers["retry-after"])
    assert len(answers[limit].headers.get_list("ratelimit-limit")) == 1


def test_every_refusal_of_status_429_is_made_with_the_numbers_of_its_limit() -> None:
    """A new limit must have them too: the class requires them, or the line that raises it names them."""
    source = Path(distribution.__file__).parent
    classes_429 = {
        name
        for path in source.rglob("*.py")
        for name in re.findall(r"class (\w+)\([^)]*\):\n(?:    .*\n|\n)*?    status = 429", path.read_text())
    }
    assert {"TooManyJobs", "TooManyFollowed", "SlowDown"} <= classes_429
    for path in source.rglob("*.py"):
        for line in path.read_text().splitlines():
            if any(f"raise {name}(" in line for name in classes_429):
                assert "exhausted_headers(" in line, (path.name, line)
