"""Attacks on the sandbox: leaving it through a path, guessing the data set of another key, and attacking the service
through stored data."""

from dataclasses import replace
from typing import Any

import httpx
import pytest

from countersign.kernel.security import secrets
from countersign.store import app as distribution
from countersign.store.sandbox.router import SandboxRouter
from tests.store.conftest import ROOT_URL
from tests.store.sandbox.data import PRODUCT, SandboxCaller, all_of
from tests.store.world import World

ESCAPES = (
    "/sandbox/api/v1/../../api/v1/products",
    "/sandbox/../api/v1/products",
    "/sandbox/api/v1/%2e%2e/%2e%2e/api/v1/products",
    "/sandbox/api/v1/..%2f..%2f..%2fapi/v1/products",
    "/sandbox//api/v1/products",
    "/sandbox/./api/v1/products",
    "/sandbox/%61pi/v1/products",
    "/%73andbox/api/v1/products",
    "/sandbox%2fapi/v1/products",
    "/SANDBOX/api/v1/products",
    "/sandbox/sandbox/api/v1/products",
    "/sandbox/api/v1/sandbox/api/v1/products",
    "/sandboxes/api/v1/products",
    "/sandbox/api/v1",
    "/sandbox/api/v2/products",
    "/sandbox/api/v1/products/..",
    "/sandbox/api/v1/products/%2e%2e%2f%2e%2e%2fdistribution.sqlite",
    "/sandbox/api/v1/media/..%2f..%2f..%2fmaster.key",
    "/sandbox/auth/signin",
    "/sandbox/auth/authorize",
    "/sandbox/",
    "/sandbox/healthz",
)


async def send_unnormalized(
    front: SandboxRouter, path: str, headers: list[tuple[bytes, bytes]], method: str = "POST"
) -> tuple[int, bytes]:
    """Send a request with an unnormalized path."""
    sent_messages: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b'{"slug":"escaped","title":"E","kind":"tool","platforms":["web"]}'}

    async def send(message: dict[str, Any]) -> None:
        sent_messages.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "client": ("127.0.0.1", 1),
        "headers": [(b"host", b"127.0.0.1:8480"), (b"content-type", b"application/json"), *headers],
    }
    await front(scope, receive, send)
    return sent_messages[0]["status"], b"".join(message.get("body", b"") for message in sent_messages[1:])


@pytest.mark.parametrize("path", ESCAPES)
async def test_no_spelling_of_a_path_leads_out_of_the_sandbox_or_around_it(sandbox: SandboxCaller, path: str) -> None:
    await sandbox.world.person("owner@north.example", north="owner")
    await sandbox.call("GET", "/products")
    rows_before = await all_of(sandbox.world)
    key = [(b"x-api-key", sandbox.key.encode())]

    for method in ("GET", "POST", "PUT", "DELETE"):
        status, body = await send_unnormalized(sandbox.front, path, key, method)
        assert status in (400, 403, 404, 405), (method, body)

    assert await all_of(sandbox.world) == rows_before


async def test_cookies_do_not_pass_in_either_direction(world: World, front: SandboxRouter) -> None:
    token = await world.person("owner@north.example", north="owner")
    cookies = {"Cookie": f"css_session={token}; __Host-session={token}; countersign={token}"}

    refused_response = await world.http.post("/sandbox/api/v1/products", headers=cookies, json=PRODUCT)
    answers = [
        await world.http.request(method, f"/sandbox{path}", headers=cookies)
        for method, path in (("GET", "/api/v1/products"), ("GET", "/openapi.json"), ("GET", "/auth/signin"))
    ]

    assert refused_response.status_code == 401
    assert not [answer for answer in (refused_response, *answers) if "set-cookie" in answer.headers]


async def test_content_of_a_data_set_is_never_served_as_a_page(sandbox: SandboxCaller) -> None:
    answers = [await sandbox.call("GET", path) for path in ("/products", "/products/none")]

    assert {answer.headers["content-security-policy"] for answer in answers} == {"sandbox; default-src 'none'"}
    assert {answer.headers["x-content-type-options"] for answer in answers} == {"nosniff"}


async def test_no_cache_returns_the_answer_of_one_data_set_for_another_data_set(sandbox: SandboxCaller) -> None:
    http = sandbox.world.http

    sandbox_answers = [
        await http.get(f"/sandbox{path}") for path in ("/api/v1/products", "/openapi.json", "/api/v1/catalog")
    ]
    keyed_response = await sandbox.call("GET", "/products")
    service_answer = await http.get("/api/v1/products")

    for answer in (*sandbox_answers, keyed_response):
        assert "public" not in answer.headers["cache-control"]
    assert "public" in service_answer.headers["cache-control"]


async def test_guesses_of_keys_find_nothing_and_count(world: World, front: SandboxRouter) -> None:
    known_caller = await SandboxCaller.create(world, front)
    await known_caller.call("GET", "/products")
    guesses = [
        known_caller.key[:-1] + ("x" if known_caller.key[-1] != "x" else "y"),
        known_caller.key.replace("csk_sandbox", "csk_agent"),
        known_caller.name,
        "../" + known_caller.name,
        *(secrets.new_secret("csk_sandbox") for _ in range(3)),
    ]

    for guess in guesses:
        for headers in ({"X-API-Key": guess}, {"Authorization": f"Bearer {guess}"}):
            answer = await world.http.get("/sandbox/api/v1/products", headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (401, "invalid_token"), guess
    assert len([path for path in known_caller.folder.parent.iterdir() if path.name.startswith("k")]) == 1


async def test_guessing_ends_with_the_quota_of_the_address(world: World, front: SandboxRouter) -> None:
    strict = distribution.create(replace(world.store, settings=replace(world.store.settings, rate_anonymous=5)))
    transport = httpx.ASGITransport(strict)
    async with httpx.AsyncClient(transport=transport, base_url=ROOT_URL) as client:
        answers = [
            await client.get("/sandbox/api/v1/products", headers={"X-API-Key": secrets.new_secret("csk_agent")})
            for _ in range(7)
        ]

    assert [answer.status_code for answer in answers] == [401] * 5 + [429] * 2
    assert int(answers[-1].headers["retry-after"]) > 0


async def test_calls_and_guesses_inside_do_not_count_outside(sandbox: SandboxCaller) -> None:
    world = sandbox.world
    remaining_before = int((await world.http.get("/api/v1/info")).headers["ratelimit-remaining"])

    for _ in range(12):
        await world.http.get("/sandbox/api/v1/products")
        await sandbox.call("POST", "/redeem", json={"code": "AAAA-BBBB-CCCC-DDDD"})
    limited_response = await sandbox.call("POST", "/redeem", json={"code": "AAAA-BBBB-CCCC-DDDD"})
    remaining_after = int((await world.http.get("/api/v1/info")).headers["ratelimit-remaining"])
    customer = await world.person("customer@example.com")

    assert limited_response.status_code == 429
    assert remaining_before - remaining_after == 1
    assert (await world.call("POST", "/redeem", customer, json={"code": "AAAA-BBBB-CCCC-DDDD"})).status_code == 404


async def test_the_owners_pass_never_leaves_the_server(sandbox: SandboxCaller) -> None:
    async with sandbox.front.data_sets.opened(sandbox.name) as data_set:
        owner_token = await data_set.owner.token()

    for path in ("/auth/me", "/org", "/org/members", "/org/clients", "/products", "/nowhere", "/jobs", "/library"):
        answer = await sandbox.call("GET", path)
        assert owner_token not in answer.text
        assert owner_token not in str(answer.headers)
    service_answer = await sandbox.world.http.get("/api/v1/products", headers={"X-API-Key": owner_token})
    other_caller = await SandboxCaller.create(sandbox.world, sandbox.front)
    foreign_answer = await other_caller.call("GET", "/products", headers={"Authorization": f"Bearer {owner_token}"})
    assert [service_answer.status_code, foreign_answer.status_code] == [401, 401]


@pytest.mark.parametrize("header", ["X-API-Key", "Authorization"])
async def test_a_credential_that_is_sent_twice_is_refused(sandbox: SandboxCaller, header: str) -> None:
    value = sandbox.key if header == "X-API-Key" else f"Bearer {sandbox.key}"

    answer = await sandbox.world.http.get("/sandbox/api/v1/products", headers=[(header, value), (header, value)])

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
