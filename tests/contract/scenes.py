"""The scene of the contract's tables: two organisations, their products, and every kind of caller."""

from dataclasses import dataclass, field
from typing import Any

from countersign.kernel import clock
from countersign.kernel.http.routing import Route
from countersign.store.app import ROUTES
from countersign.store.context import Store
from countersign.store.releases.schemas import ProductWrite
from tests.store.world import World

SCOPES = ("read:products", "write:products", "read:releases", "write:releases", "read:library", "admin:org")
OBJECTS = ("own draft", "own public", "other draft", "other public", "missing")
SLUGS = {
    "own draft": "north-draft",
    "own public": "north-public",
    "other draft": "south-draft",
    "other public": "south-public",
    "missing": "no-such-product",
}
PRODUCT: dict[str, Any] = {"slug": "written", "title": "Written", "kind": "tool", "platforms": ["linux"]}

# A body that each route accepts, by method and path. `signup` routes of pages take forms.
BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("POST", "/products"): PRODUCT,
    ("PUT", "/products/{id}"): PRODUCT,
    ("POST", "/products/{id}/releases"): {"version": "9.9.9", "channel": "beta"},
    ("PUT", "/products/{id}/releases/{version}"): {"notes": "new"},
    ("POST", "/products/{id}/releases/{version}/yank"): {"reason": "broken"},
    ("POST", "/products/{id}/releases/{version}/promote"): {"channel": "stable"},
    ("POST", "/products/{id}/media"): {"kind": "icon", "filename": "i.png", "size": 10, "alt": "an icon"},
    ("POST", "/products/{id}/releases/{version}/artifacts"): {"filename": "new.zip", "size": 10},
    ("POST", "/jobs"): {"type": "artifact.verify", "payload": {"artifact_id": "00000000-0000-4000-8000-000000000000"}},
    ("POST", "/ask"): {"query": "Which games run on Linux?"},
    ("POST", "ROOT/ask"): {"query": "Which games run on Linux?"},
    ("PATCH", "/library/{id}"): {"hidden": True},
    ("POST", "/me/collections"): {"name": "Later"},
    ("PATCH", "/me/collections/{collection_id}"): {"name": "Soon"},
    ("POST", "/me/notifications/seen"): {},
    ("POST", "/redeem"): {"code": "AAAA-BBBB-CCCC-DDDD"},
    ("POST", "/codes"): {"kind": "license", "products": ["north-public"], "count": 1},
    ("POST", "/codes/{batch_id}/revoke"): {},
    ("POST", "/batch"): {"operations": [{"method": "GET", "path": "/info"}]},
    ("PUT", "/org"): {"name": "North again"},
    ("POST", "/org/members"): {"email": "new@north.example", "role": "viewer"},
    ("POST", "/org/clients"): {"name": "ci", "scopes": ["read:products"]},
    ("POST", "/org/webhooks"): {"url": "https://hooks.example/countersign"},
    ("POST", "/org/webhooks/{webhook_id}/replay"): {"since": "2026-01-01T00:00:00Z"},
    ("POST", "/auth/session/token"): {},
    ("POST", "/auth/register"): {"type": "anonymous"},
    ("POST", "/auth/clients"): {"redirect_uris": ["https://app.example/back"]},
    ("POST", "/auth/me"): {"claim_token": "clm_none"},
    ("POST", "/auth/me/complete"): {"claim_token": "clm_none", "user_code": "000000"},
}
QUERIES: dict[tuple[str, str], dict[str, str]] = {
    ("DELETE", "/org/members"): {"email": "viewer@north.example"},
    ("DELETE", "/org/clients"): {"client_id": "cc_none"},
    ("GET", "/products/{id}/releases/{version}/delta"): {"from": "0.9.0"},
    ("GET", "/blobs/{sha256}"): {"expires": "1", "filename": "a", "signature": "b"},
    ("GET", "/ask"): {"q": "Which games run on Linux?"},
    ("GET", "/search/suggest"): {"q": "north"},
    ("GET", "/me/owned"): {"ids": "00000000-0000-4000-8000-000000000000"},
    ("GET", "ROOT/ask"): {"query": "Which games run on Linux?"},
    ("GET", "/auth/setup"): {"token": "none"},
    ("POST", "/auth/setup"): {"token": "none"},
}


_BELOW = {route.path for route in ROUTES if not route.at_root}


def key(route: Route[Store]) -> tuple[str, str]:
    """Return the name of a route in the tables. Routes that also exist at the root have their own names."""
    return route.method, f"ROOT{route.path}" if route.at_root and route.path in _BELOW else route.path


BY_KEY: dict[tuple[str, str], Route[Store]] = {key(route): route for route in ROUTES}


@dataclass
class Scene:
    """The world with its callers' tokens, by their names in the tables."""

    world: World
    tokens: dict[str, str | None] = field(default_factory=lambda: dict[str, str | None]())

    async def send(self, route: Route[Store], caller: str, slug: str = "north-public", **options: Any) -> Any:
        """Return a well-formed request of the caller to the route, about the product with this slug."""
        path = route.path.replace("{id}", slug).replace("{version}", "1.0.0").replace("{media_id}", "none")
        path = path.replace("{channel}", "stable").replace("{slug}", "north").replace("{collection_id}", "none")
        path = path.replace("{session_id}", "none")
        for name in ("{sha256}", "{artifact_id}", "{token}", "{batch_id}", "{job_id}", "{webhook_id}", "{event_id}"):
            path = path.replace(name, "0" * 64)
        request_options: dict[str, Any] = {"params": QUERIES.get(key(route))}
        if route.body is not None and not route.form:
            request_options["json"] = BODIES[key(route)]
        request_options.update(options)
        address = path if route.at_root else f"/api/v1{path}"
        headers = dict(request_options.pop("headers", {}))
        token = self.tokens[caller]
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        return await self.world.http.request(route.method, address, headers=headers, **request_options)


async def create_scene(world: World) -> Scene:
    """Create two organisations with a draft and a public product, each with a release 1.0.0, and a caller of each
    kind."""
    scene = Scene(world)
    for org in ("north", "south"):
        owner = await world.person(f"owner@{org}.example", **{org: "owner"})
        scene.tokens[f"owner of {org}"] = owner
        for status in ("draft", "public"):
            slug = f"{org}-{status}"
            await world.product(org, slug, status=status)
            release = {"version": "1.0.0", "channel": "beta", "notes_only": True}
            assert (await world.call("POST", f"/products/{slug}/releases", owner, json=release)).is_success
            if status == "public":
                path = f"/products/{slug}/releases/1.0.0/publish"
                assert (await world.call("POST", path, owner)).is_success
    scene.tokens["anonymous"] = None
    scene.tokens["forged"] = "eyJhbGciOiJub25lIn0.e30."
    scene.tokens["customer"] = await world.person("customer@example.com")
    scene.tokens["viewer of north"] = await world.person("viewer@north.example", north="viewer")
    scene.tokens["publisher of north"] = await world.person("publisher@north.example", north="publisher")
    scene.tokens["client of north"] = await world.client_token("north")
    for scope in SCOPES:
        scene.tokens[f"client with {scope}"] = await world.client_token("north", scope)
    revoked_token = await world.client_token("north")
    claims = world.store.tokens.verify(revoked_token)
    await world.call("DELETE", "/org/clients", scene.tokens["owner of north"], params={"client_id": claims.client_id})
    scene.tokens["revoked"] = revoked_token
    with clock.fixed(clock.later(clock.now(), seconds=-world.store.settings.token_ttl_s - 61)):
        scene.tokens["expired"] = await world.person_token("owner@north.example", " ".join(SCOPES))
    return scene


def writable_members(**changes: Any) -> ProductWrite:
    """Return a product's writable members."""
    body = ProductWrite(slug="written", title="Written", kind="tool", platforms=["linux"])
    for name, value in changes.items():
        setattr(body, name, value)
    return body


async def all_rows(store: Store) -> dict[str, list[str]]:
    """Return every row of every table, except tables that count requests or store answers."""
    if store.database.dialect == "sqlite":
        names = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
    else:
        names = "SELECT tablename FROM pg_tables WHERE schemaname = 'distribution' ORDER BY tablename"
    passing = ("idempotency", "schema_migration", "session")
    tables = [name for (name,) in await store.database.fetch(names) if name not in passing]
    # Most tables are empty; one statement finds those that are not.
    filled = " UNION ALL ".join(f"SELECT '{name}' WHERE EXISTS (SELECT 1 FROM {name})" for name in tables)
    rows_by_table: dict[str, list[str]] = {name: [] for name in tables}
    for (name,) in await store.database.fetch(filled):
        rows_by_table[name] = sorted(map(str, map(tuple, await store.database.fetch("SELECT * FROM " + name))))
    return rows_by_table
