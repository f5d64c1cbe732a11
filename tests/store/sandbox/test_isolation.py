"""Nothing that is done in the sandbox is visible outside of it, and the reverse: every route that writes, in both
directions."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import httpx

from countersign.store.sandbox.router import SandboxRouter
from tests.conftest import database_url  # noqa: F401
from tests.contract.scenes import BODIES, BY_KEY, QUERIES, create_scene, key
from tests.store.sandbox.data import PRODUCT, SandboxCaller, all_of
from tests.store.world import World

# Maps each route to the response to the owner of a data set, in the order of the calls. "page" marks routes that a
# sandbox does not offer. The test fails if a writing route is missing here.
WRITES: dict[tuple[str, str], int | str] = {
    ("POST", "/products"): 201,
    ("PUT", "/products/{id}"): 200,
    ("POST", "/products/{id}/media"): 201,
    ("DELETE", "/products/{id}/media/{media_id}"): 404,
    ("POST", "/products/{id}/releases"): 201,
    ("PUT", "/products/{id}/releases/{version}"): 200,
    ("POST", "/products/{id}/releases/{version}/artifacts"): 201,
    ("POST", "/products/{id}/releases/{version}/publish"): 200,
    ("POST", "/products/{id}/releases/{version}/promote"): 200,
    ("POST", "/products/{id}/releases/{version}/yank"): 200,
    ("DELETE", "/products/{id}/releases/{version}"): 409,
    ("DELETE", "/products/{id}"): 204,
    ("PUT", "/media/uploads/{token}"): 404,
    ("PUT", "/artifacts/uploads/{token}"): 404,
    ("POST", "/batch"): 200,
    ("POST", "/ask"): 200,
    ("POST", "/mcp"): 415,
    ("POST", "/jobs"): 404,
    ("DELETE", "/jobs/{job_id}"): 404,
    ("POST", "/redeem"): 404,
    ("PATCH", "/library/{id}"): 404,
    ("PUT", "/me/follows/product/{id}"): 200,
    ("DELETE", "/me/follows/product/{id}"): 204,
    ("PUT", "/me/follows/org/{slug}"): 404,
    ("DELETE", "/me/follows/org/{slug}"): 404,
    ("POST", "/me/collections"): 201,
    ("PATCH", "/me/collections/{collection_id}"): 404,
    ("PUT", "/me/collections/{collection_id}/items/{id}"): 404,
    ("DELETE", "/me/collections/{collection_id}/items/{id}"): 404,
    ("DELETE", "/me/collections/{collection_id}"): 404,
    ("POST", "/me/notifications/seen"): 204,
    ("DELETE", "/me/sessions"): 403,
    ("DELETE", "/me/sessions/{session_id}"): 403,
    ("POST", "/codes"): 201,
    ("POST", "/codes/{batch_id}/revoke"): 404,
    ("PUT", "/org"): 200,
    ("POST", "/org/members"): 201,
    ("DELETE", "/org/members"): 404,
    ("POST", "/org/clients"): 201,
    ("DELETE", "/org/clients"): 404,
    ("POST", "/org/signing-keys"): 201,
    ("POST", "/org/webhooks"): 201,
    ("DELETE", "/org/webhooks/{webhook_id}"): 404,
    ("POST", "/org/webhooks/{webhook_id}/rotate"): 404,
    ("POST", "/org/webhooks/{webhook_id}/ping"): 404,
    ("POST", "/org/webhooks/{webhook_id}/replay"): 404,
    ("POST", "/org/webhooks/{webhook_id}/deliveries/{event_id}/replay"): 404,
    ("POST", "/auth/token"): 400,
    ("POST", "/auth/login"): 400,
    ("POST", "/auth/revoke"): 400,
    ("POST", "/auth/register"): 200,
    ("POST", "/auth/clients"): "page",
    ("POST", "/auth/me"): 401,
    ("POST", "/auth/me/complete"): 401,
    ("POST", "/healthz"): "page",
    ("POST", "/auth/authorize"): "page",
    ("POST", "/auth/agents"): "page",
    ("POST", "/auth/claim"): "page",
    ("POST", "/auth/session/token"): "page",
    ("POST", "/auth/signin"): "page",
    ("POST", "/auth/signout"): "page",
    ("POST", "/auth/setup"): "page",
    ("POST", "/auth/signup"): "page",
    ("POST", "/auth/reset"): "page",
    ("POST", "/auth/prove"): "page",
    ("POST", "/api/keys"): 200,
}
NEVER_INSIDE = {("POST", "ROOT/api/keys"), ("POST", "ROOT/ask")}
"""Routes that exist only at the root, and therefore outside."""


def test_every_route_that_writes_has_its_place() -> None:
    writing = {name for name, route in BY_KEY.items() if route.method != "GET"}

    assert writing == WRITES.keys() | NEVER_INSIDE


def request_of(name: tuple[str, str], slug: str) -> tuple[str, dict[str, Any]]:
    """Return a valid request to the route about the product, below the root address of the sandbox or of the
    service."""
    route = BY_KEY[name]
    path = route.path.replace("{id}", slug).replace("{version}", "1.0.0").replace("{media_id}", "none")
    for parameter in (
        "{sha256}",
        "{artifact_id}",
        "{token}",
        "{batch_id}",
        "{job_id}",
        "{webhook_id}",
        "{event_id}",
        "{collection_id}",
        "{session_id}",
        "{slug}",
    ):
        path = path.replace(parameter, "0" * 64)
    options: dict[str, Any] = {"params": QUERIES.get(name)}
    if route.body is not None:
        slug_bodies = {("POST", "/codes"): {"products": [slug]}, ("PUT", "/products/{id}"): {"slug": slug}}
        options["json"] = {**BODIES.get(name, {}), **slug_bodies.get(name, {})}
    return path if route.at_root else f"/api/v1{path}", options


@dataclass
class DataSide:
    """One side, which is the service or a data set of its sandbox: how its owner calls it, and everything that it
    contains."""

    http: httpx.AsyncClient
    root: str
    headers: dict[str, str]
    everything: Callable[[], Awaitable[dict[str, Any]]]

    async def call(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send a request as the owner."""
        return await self.http.request(method, self.root + path, headers=self.headers, **options)

    async def write(self, name: tuple[str, str]) -> int | str:
        """Call the route, and return the status, or "page" if the route is not offered."""
        path, options = request_of(name, "sold" if name == ("DELETE", "/products/{id}") else "written-to")
        answer = await self.call(name[0], path, **options)
        is_page = answer.status_code == 404 and answer.json()["code"] == "route_not_found"
        return "page" if is_page else answer.status_code

    async def stock(self) -> None:
        """Create products with a published release for the writes."""
        for slug in ("written-to", "sold"):
            await self.call("POST", "/api/v1/products", json={**PRODUCT, "slug": slug})
            release = {"version": "1.0.0", "channel": "beta", "notes_only": True}
            created_response = await self.call("POST", f"/api/v1/products/{slug}/releases", json=release)
            assert created_response.status_code == 201, created_response.text
            await self.call("POST", f"/api/v1/products/{slug}/releases/1.0.0/publish")


def inside_of(sandbox_caller: SandboxCaller) -> DataSide:
    """Return the side of the data set of a key."""
    return DataSide(
        sandbox_caller.world.http, "/sandbox", {"X-API-Key": sandbox_caller.key}, sandbox_caller.all_content
    )


async def outside_of(world: World) -> DataSide:
    """Return the side of the service with the owner of an organisation."""
    scene = await create_scene(world)
    return DataSide(
        world.http, "", {"Authorization": f"Bearer {scene.tokens['owner of north']}"}, lambda: all_of(world)
    )


async def run_every_write(acting: DataSide, watched: DataSide) -> dict[tuple[str, str], int | str]:
    """Run every write on one side, compare the other side before and after, and return the responses."""
    await acting.stock()
    await watched.call("GET", "/api/v1/products")
    content_before, own_content = await watched.everything(), await acting.everything()
    statuses_by_route: dict[tuple[str, str], int | str] = {}
    effects = 0
    for name in WRITES:
        statuses_by_route[name] = await acting.write(name)
        assert await watched.everything() == content_before, name
        now = await acting.everything()
        effects += now != own_content
        own_content = now
    assert effects >= 12
    return statuses_by_route


async def test_no_write_in_the_sandbox_is_seen_by_the_service(world: World, front: SandboxRouter) -> None:
    sandbox_side, service_side = inside_of(await SandboxCaller.create(world, front)), await outside_of(world)

    statuses_by_route = await run_every_write(sandbox_side, service_side)

    assert not {name: status for name, status in statuses_by_route.items() if status != WRITES[name]}


async def test_no_write_to_the_service_is_seen_in_the_sandbox(world: World, front: SandboxRouter) -> None:
    sandbox_side, service_side = inside_of(await SandboxCaller.create(world, front)), await outside_of(world)

    statuses_by_route = await run_every_write(service_side, sandbox_side)

    assert sum(status in (200, 201, 204) for status in statuses_by_route.values()) > 10


async def test_one_key_does_not_see_the_changes_of_another_key(world: World, front: SandboxRouter) -> None:
    first_caller, second_caller = (
        await SandboxCaller.create(world, front),
        await SandboxCaller.create(world, front, "agent"),
    )

    statuses_by_route = await run_every_write(inside_of(first_caller), inside_of(second_caller))

    assert not {name: status for name, status in statuses_by_route.items() if status != WRITES[name]}


def test_the_tables_name_routes_as_the_contract_does() -> None:
    assert all(key(route) == name for name, route in BY_KEY.items())
