"""The sandbox responds like the service: both get the same random calls, and the test compares status, code and
members."""

import random
from collections import Counter
from typing import Any

import httpx
import msgspec

from countersign.kernel import clock
from countersign.kernel.http.routing import Route
from countersign.store import demo
from countersign.store.app import ROUTES
from countersign.store.context import Store
from countersign.store.sandbox import data_sets
from countersign.store.sandbox.router import SandboxRouter
from tests.contract.scenes import BODIES, QUERIES, key
from tests.contract.test_bad_input import wrong_values
from tests.figures import Figures
from tests.store.sandbox.data import SandboxCaller
from tests.store.world import World

CALLS, CALLS_FULL = 200, 1_000
# Headers and members about the sandbox itself or about the machine.
ELSEWHERE = {"/health", "/info", "/sandbox", "/sandbox/api/v1/health", "/sandbox/api/v1/telemetry", "/api/keys"}
COMPARED: tuple[Route[Store], ...] = tuple(
    route for route in ROUTES if not route.at_root and route.path not in ELSEWHERE and "events" not in route.path
)
PRODUCTS = ("made-0", "made-1", "aurora-freight", "none", "%2e%2e", "A B", "01968b12-fe80-7000-a63f-b98768cf1330")
VERSIONS = ("1.0.0", "0.0.0", "9.9.9", "not a version", "..")
CALLERS = ("owner",) * 9 + ("forged",)
ODD = ("", "0", "-1", "101", "x", "é", "%00", "1" * 300, "stable", "game", "{}")


class ComparedCall(msgspec.Struct):
    """One call that is sent to both sides."""

    method: str
    path: str
    caller: str
    options: dict[str, Any]


def random_call(rng: random.Random) -> ComparedCall:
    """Return a random call, which is usually valid. Otherwise its path, parameters, body or headers contain an
    error."""
    route = rng.choice(COMPARED)
    path = route.path.replace("{id}", rng.choice(PRODUCTS)).replace("{version}", rng.choice(VERSIONS))
    path = path.replace("{channel}", rng.choice(("stable", "beta", "gamma")))
    for name in ("{sha256}", "{artifact_id}", "{token}", "{batch_id}", "{job_id}", "{media_id}"):
        path = path.replace(name, rng.choice(("0" * 64, "none", "00000000-0000-4000-8000-000000000000")))
    params: dict[str, str] = dict(QUERIES.get(key(route), {}))
    if rng.random() < 0.4 and route.query.__struct_fields__:
        params[rng.choice(route.query.__struct_fields__)] = rng.choice(ODD)
    if rng.random() < 0.1:
        params["no_such_parameter"] = "1"
    options: dict[str, Any] = {"params": params, "headers": {}}
    if route.body is not None:
        options["json"] = body_of(route, rng)
    if rng.random() < 0.1:
        options["headers"]["Idempotency-Key"] = rng.choice(("no uuid", "6f1b3f0e-2c55-4d7a-9c70-6b0d8c2f5a11"))
    if rng.random() < 0.05:
        options["headers"]["Accept"] = "image/png"
    if rng.random() < 0.05:
        options["headers"]["If-Match"] = '"none"'
    return ComparedCall(route.method, path, rng.choice(CALLERS), options)


def body_of(route: Route[Store], rng: random.Random) -> Any:
    """Return a body for the route. One of three bodies contains an error."""
    body = dict(BODIES.get(key(route), {}))
    if "slug" in body:
        body["slug"] = f"made-{rng.randrange(4)}"
    if "products" in body:
        body["products"] = ["made-0"]
    if "version" in body:
        body["version"] = rng.choice(("1.0.0", "1.1.0", "no version at all"))
    if rng.random() < 0.7 or route.body is None:
        return body
    _, shapes = msgspec.json.schema_components([route.body])
    members = shapes[route.body.__name__].get("properties", {})
    if not members or rng.random() < 0.2:
        return rng.choice(([], "text", {**body, "no_such_member": 1}))
    name = rng.choice(sorted(members))
    return {**body, name: rng.choice(list(wrong_values(members[name])))}


def comparable_response(answer: httpx.Response) -> Any:
    """Return what must be equal on both sides: the status, and the body without random names."""
    kind = answer.headers.get("content-type", "").partition(";")[0]
    if kind not in ("application/json", "application/problem+json"):
        return answer.status_code, kind
    body = answer.json()
    if not isinstance(body, dict) or answer.is_success:
        return answer.status_code, kind, sorted(body) if isinstance(body, dict) else len(body)
    instance = str(body.pop("instance", "")).replace("/sandbox", "")
    # The two differ on purpose in the hint for callers without a credential.
    if body.get("code") == "invalid_token":
        body.pop("resolution")
    return answer.status_code, kind, instance, body, sorted(name for name in answer.headers if name != APART)


APART = "content-security-policy"


async def owner_outside(world: World) -> str:
    """Return a token of a person outside with the same role that the owner of the key has inside."""
    await world.org(data_sets.ORGANISATION[0])
    return await world.person(data_sets.EMAIL, sandbox="owner")


async def test_random_calls_are_answered_alike_inside_and_outside(
    world: World, front: SandboxRouter, is_full: bool, figures: Figures
) -> None:
    await delete_organisations(world)
    assert await demo.seed(world.store)
    token = await owner_outside(world)
    sandbox = await SandboxCaller.create(world, front)
    rng = random.Random(8)
    service_headers = {"owner": {"X-API-Key": token}, "forged": {"Authorization": "Bearer eyJ.e30."}}
    sandbox_headers = {
        "owner": {"X-API-Key": sandbox.key},
        "forged": {"X-API-Key": sandbox.key, "Authorization": "Bearer eyJ.e30."},
    }
    statuses: Counter[int] = Counter()
    now = clock.now()

    for number in range(CALLS_FULL if is_full else CALLS):
        call = random_call(rng)
        headers = call.options.pop("headers")
        with clock.fixed(clock.later(now, seconds=number)):
            real_response = await world.http.request(
                call.method, f"/api/v1{call.path}", headers={**headers, **service_headers[call.caller]}, **call.options
            )
            tried_response = await world.http.request(
                call.method,
                f"/sandbox/api/v1{call.path}",
                headers={**headers, **sandbox_headers[call.caller]},
                **call.options,
            )
        assert comparable_response(tried_response) == comparable_response(real_response), (
            number,
            call,
            tried_response.text,
            real_response.text,
        )
        statuses[real_response.status_code] += 1

    assert not [status for status in statuses if status >= 500]
    assert sum(number for status, number in statuses.items() if status < 300) > 20
    assert len(statuses) >= 6
    figures |= {"calls": sum(statuses.values()), "statuses": dict(sorted(statuses.items()))}


async def delete_organisations(world: World) -> None:
    """Delete the organisations of the world, because the demonstration data is created only in an empty store."""
    async with world.store.database.transaction() as transaction:
        await transaction.run("DELETE FROM organisation")


async def test_calls_without_a_key_are_answered_alike(world: World) -> None:
    await delete_organisations(world)
    assert await demo.seed(world.store)
    rng = random.Random(9)

    for number in range(CALLS // 4):
        call = random_call(rng)
        real_response = await world.http.request(call.method, f"/api/v1{call.path}", **call.options)
        tried_response = await world.http.request(call.method, f"/sandbox/api/v1{call.path}", **call.options)
        assert comparable_response(tried_response) == comparable_response(real_response), (
            number,
            call,
            tried_response.text,
            real_response.text,
        )
