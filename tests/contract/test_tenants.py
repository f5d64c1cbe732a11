"""Every route with every kind of caller and every kind of object: allowed, forbidden, or hidden."""

from typing import Any

import httpx
import pytest

from countersign.store import app as store_app
from countersign.store.app import ROUTES
from tests.contract.scenes import BY_KEY, OBJECTS, QUERIES, SCOPES, SLUGS, Scene, all_rows, key

SANDBOX = ("", "/api/v1/health", "/api/v1/telemetry")
# All callers may use these; the tests of the catalog and the artifacts check what each caller sees.
PUBLIC = {
    ("GET", "/api/v1"),
    ("GET", "/health"),
    ("GET", "/info"),
    # Each operation is checked like a single request (see tests/attacks/test_batch.py).
    ("POST", "/batch"),
    ("GET", "/healthz"),
    ("GET", "/products"),
    ("GET", "/catalog"),
    ("GET", "/store/home"),
    ("GET", "/search/suggest"),
    ("GET", "/publishers"),
    ("GET", "/publishers/{slug}"),
    ("GET", "/ask"),
    ("POST", "/ask"),
    ("GET", "ROOT/ask"),
    ("POST", "ROOT/ask"),
    ("GET", "/media/{sha256}"),
    ("GET", "/artifacts/{artifact_id}"),
    ("GET", "/.well-known/oauth-protected-resource"),
    ("GET", "/.well-known/oauth-protected-resource/api/v1"),
    ("GET", "/.well-known/oauth-protected-resource/mcp"),
    ("GET", "/.well-known/oauth-authorization-server"),
    ("GET", "/.well-known/oauth-authorization-server/api/v1"),
    ("GET", "/auth.md"),
    ("GET", "/logo.svg"),
    ("GET", "/.well-known/jwks.json"),
    ("GET", "/auth/signin"),
    ("GET", "/auth/signup"),
    ("GET", "/auth/reset"),
    *(("GET", f"{prefix}/sandbox{path}") for prefix in ("", "ROOT") for path in SANDBOX),
}
# All callers may get a key, a few in an hour (see tests/store/auth/api_keys/test_keys.py).
API_KEY_ROUTES = {(method, f"{prefix}/api/keys") for method in ("GET", "POST") for prefix in ("", "ROOT")}
# The address itself, a form's contents, or the session cookie gives access.
OWN_CREDENTIALS = {
    ("GET", "/"),
    ("PUT", "/media/uploads/{token}"),
    ("GET", "/media/uploads/{token}"),
    ("PUT", "/artifacts/uploads/{token}"),
    ("GET", "/artifacts/uploads/{token}"),
    ("GET", "/blobs/{sha256}"),
    ("POST", "/auth/token"),
    ("POST", "/auth/login"),
    ("POST", "/auth/revoke"),
    ("POST", "/auth/register"),
    ("POST", "/auth/clients"),
    ("POST", "/auth/me"),
    ("POST", "/auth/me/complete"),
    ("GET", "/auth/claim"),
    ("POST", "/auth/claim"),
    ("POST", "/healthz"),
    # Each message is checked like its tool's own request (see tests/store/tools/test_tools.py).
    ("POST", "/mcp"),
    ("GET", "/auth/authorize"),
    ("POST", "/auth/authorize"),
    ("GET", "/auth/agents"),
    ("POST", "/auth/agents"),
    ("POST", "/auth/session/token"),
    ("POST", "/auth/signin"),
    ("POST", "/auth/signout"),
    ("GET", "/auth/setup"),
    ("POST", "/auth/setup"),
    ("POST", "/auth/signup"),
    ("POST", "/auth/reset"),
    ("GET", "/auth/prove"),
    ("POST", "/auth/prove"),
}
PRODUCT_SUBPATHS = ("", "/releases", "/feed", "/cover.svg", "/related")
READS_OF_PRODUCTS = {("GET", f"/products/{{id}}{subpath}") for subpath in PRODUCT_SUBPATHS}
DRAFTS = ("GET", "/products/{id}/drafts")
READS_OF_BUILDS = {
    ("GET", "/products/{id}/channels/{channel}"): "nothing_built",
    ("GET", "/products/{id}/releases/{version}/manifest"): "not_processed",
    ("GET", "/products/{id}/releases/{version}/chunks"): "not_processed",
    ("GET", "/products/{id}/releases/{version}/delta"): "not_processed",
    ("GET", "/products/{id}/releases/{version}/sbom"): "not_processed",
}
WRITES_OF_PRODUCTS = {
    ("PUT", "/products/{id}"): "write:products",
    ("DELETE", "/products/{id}"): "write:products",
    ("POST", "/products/{id}/media"): "write:products",
    ("DELETE", "/products/{id}/media/{media_id}"): "write:products",
    ("POST", "/products/{id}/releases"): "write:releases",
    ("PUT", "/products/{id}/releases/{version}"): "write:releases",
    ("DELETE", "/products/{id}/releases/{version}"): "write:releases",
    ("POST", "/products/{id}/releases/{version}/publish"): "write:releases",
    ("POST", "/products/{id}/releases/{version}/yank"): "write:releases",
    ("POST", "/products/{id}/releases/{version}/promote"): "write:releases",
    ("POST", "/products/{id}/releases/{version}/artifacts"): "write:releases",
}
ORGANISATION_ROUTE_SCOPES = {
    ("POST", "/products"): "write:products",
    ("POST", "/codes"): "admin:org",
    ("GET", "/codes"): "admin:org",
    ("POST", "/codes/{batch_id}/revoke"): "admin:org",
    ("GET", "/org"): "admin:org",
    ("PUT", "/org"): "admin:org",
    ("GET", "/org/usage"): "admin:org",
    ("GET", "/org/members"): "admin:org",
    ("POST", "/org/members"): "admin:org",
    ("DELETE", "/org/members"): "admin:org",
    ("GET", "/org/clients"): "admin:org",
    ("POST", "/org/clients"): "admin:org",
    ("DELETE", "/org/clients"): "admin:org",
    ("GET", "/org/signing-keys"): "admin:org",
    ("POST", "/org/signing-keys"): "admin:org",
    ("GET", "/org/webhooks"): "admin:org",
    ("POST", "/org/webhooks"): "admin:org",
    ("DELETE", "/org/webhooks/{webhook_id}"): "admin:org",
    ("POST", "/org/webhooks/{webhook_id}/rotate"): "admin:org",
    ("POST", "/org/webhooks/{webhook_id}/ping"): "admin:org",
    ("POST", "/org/webhooks/{webhook_id}/replay"): "admin:org",
    ("GET", "/org/webhooks/{webhook_id}/deliveries"): "admin:org",
    ("POST", "/org/webhooks/{webhook_id}/deliveries/{event_id}/replay"): "admin:org",
}
# For the ownership of jobs, see tests/store/jobs/test_look.py.
PERSONAL_ROUTE_SCOPES = {
    ("GET", "/library"): "read:library",
    ("PATCH", "/library/{id}"): "read:library",
    ("GET", "/me/owned"): "read:library",
    ("GET", "/me/follows"): "read:library",
    ("PUT", "/me/follows/product/{id}"): "read:library",
    ("DELETE", "/me/follows/product/{id}"): "read:library",
    ("PUT", "/me/follows/org/{slug}"): "read:library",
    ("DELETE", "/me/follows/org/{slug}"): "read:library",
    ("GET", "/me/collections"): "read:library",
    ("POST", "/me/collections"): "read:library",
    ("PATCH", "/me/collections/{collection_id}"): "read:library",
    ("DELETE", "/me/collections/{collection_id}"): "read:library",
    ("PUT", "/me/collections/{collection_id}/items/{id}"): "read:library",
    ("DELETE", "/me/collections/{collection_id}/items/{id}"): "read:library",
    ("GET", "/me/notifications"): "read:library",
    ("POST", "/me/notifications/seen"): "read:library",
    ("POST", "/redeem"): "read:library",
    # For people with a role, and for tokens with admin:org (see tests/store/statistics/test_statistics.py).
    ("GET", "/org/stats"): None,
    ("GET", "/org/stats.csv"): None,
    # Only for browser sessions (see tests/store/personal/test_sessions.py).
    ("GET", "/me/sessions"): None,
    ("DELETE", "/me/sessions"): None,
    ("DELETE", "/me/sessions/{session_id}"): None,
    ("GET", "/me/export"): None,
    ("GET", "/auth/me"): None,
    ("POST", "/jobs"): None,
    ("GET", "/jobs"): None,
    ("GET", "/jobs/{job_id}"): None,
    ("DELETE", "/jobs/{job_id}"): None,
    ("GET", "/jobs/{job_id}/events"): None,
}

SCOPES_BY_CALLER: dict[str, set[str]] = {
    "customer": {"read:products", "read:releases", "read:library"},
    "viewer of north": {"read:products", "read:releases", "read:library"},
    "publisher of north": set(SCOPES) - {"admin:org"},
    "owner of north": set(SCOPES),
    "owner of south": set(SCOPES),
    "client of north": set(SCOPES),
    **{f"client with {scope}": {scope} for scope in SCOPES},
}
SCOPES_BY_CALLER["client with admin:org"] = set(SCOPES)
WITHOUT_VALID_CREDENTIAL = ("anonymous", "forged", "revoked", "expired")
MEMBERS = tuple(caller for caller in SCOPES_BY_CALLER if "north" in caller or caller.startswith("client"))


def test_every_route_has_its_place_in_the_tables() -> None:
    other_tables = (PUBLIC, API_KEY_ROUTES, OWN_CREDENTIALS, READS_OF_PRODUCTS, {DRAFTS}, READS_OF_BUILDS)
    placed = [
        row
        for table in (*other_tables, WRITES_OF_PRODUCTS, ORGANISATION_ROUTE_SCOPES, PERSONAL_ROUTE_SCOPES)
        for row in table
    ]

    assert sorted(placed) == sorted(key(route) for route in ROUTES)


def comparable(answer: Any) -> dict[str, Any]:
    """Return an answer without the address of its request."""
    body = answer.json()
    body.pop("instance", None)
    volatile_headers = ("x-request-id", "ratelimit-remaining", "ratelimit-reset", "content-length")
    headers = {name: value for name, value in answer.headers.items() if name not in volatile_headers}
    return {"status": answer.status_code, "body": body, "headers": headers}


async def test_non_public_routes_answer_401_without_a_valid_credential(scene: Scene) -> None:
    for name in (*WRITES_OF_PRODUCTS, *ORGANISATION_ROUTE_SCOPES, *PERSONAL_ROUTE_SCOPES):
        for caller in WITHOUT_VALID_CREDENTIAL:
            answer = await scene.send(BY_KEY[name], caller)
            assert answer.status_code == 401, (name, caller)
            assert answer.json()["code"] == "invalid_token"
            challenge = answer.headers["www-authenticate"]
            assert challenge.startswith("Bearer ")
            assert 'resource_metadata="http://127.0.0.1:8480/.well-known/oauth-protected-resource"' in challenge
            assert ("error=" in challenge) == (caller != "anonymous")


@pytest.mark.parametrize("name", sorted(PUBLIC - {("GET", "/artifacts/{artifact_id}"), ("GET", "/media/{sha256}")}))
async def test_an_invalid_credential_is_refused_on_public_routes(scene: Scene, name: tuple[str, str]) -> None:
    assert (await scene.send(BY_KEY[name], "anonymous")).is_success
    for caller in ("forged", "revoked", "expired"):
        assert (await scene.send(BY_KEY[name], caller)).status_code == 401, caller


@pytest.mark.parametrize("name", sorted(READS_OF_PRODUCTS))
async def test_drafts_are_seen_only_by_members_of_their_organisation(scene: Scene, name: tuple[str, str]) -> None:
    for caller in ("anonymous", *SCOPES_BY_CALLER):
        is_member = caller in MEMBERS and bool({"read:products", "admin:org"} & SCOPES_BY_CALLER.get(caller, set()))
        missing = comparable(await scene.send(BY_KEY[name], caller, SLUGS["missing"]))
        for kind in OBJECTS:
            answer = await scene.send(BY_KEY[name], caller, SLUGS[kind])
            sees = "public" in kind or (kind == "own draft" and is_member)
            sees = sees or (kind == "other draft" and caller == "owner of south")
            assert answer.is_success == sees, (caller, kind, answer.text)
            if not sees:
                assert comparable(answer) == missing, (caller, kind)


async def test_the_list_of_drafts_is_only_for_members(scene: Scene) -> None:
    route = BY_KEY[DRAFTS]
    draft_list_scopes = {"read:products", "read:releases", "write:releases", "admin:org"}
    for caller, held_scopes in SCOPES_BY_CALLER.items():
        if caller == "owner of south":
            continue
        missing = comparable(await scene.send(route, caller, SLUGS["missing"]))
        sees_products = caller in MEMBERS and bool({"read:products", "admin:org"} & held_scopes)
        for kind in ("other draft", *(() if sees_products else ("own draft",))):
            assert comparable(await scene.send(route, caller, SLUGS[kind])) == missing, (caller, kind)
        assert (await scene.send(route, caller, SLUGS["other public"])).json()["code"] == "insufficient_scope", caller
        own_answer = await scene.send(route, caller, SLUGS["own public"])
        assert own_answer.is_success == (caller in MEMBERS and bool(draft_list_scopes & held_scopes)), caller
        if sees_products:
            of_draft = (await scene.send(route, caller, SLUGS["own draft"])).json()
            assert [release["version"] for release in of_draft] == ["1.0.0"]
    for caller in WITHOUT_VALID_CREDENTIAL:
        assert (await scene.send(route, caller)).status_code == 401, caller


@pytest.mark.parametrize("name", sorted(READS_OF_BUILDS))
async def test_a_missing_build_is_reported_only_to_callers_who_see_the_product(
    scene: Scene, name: tuple[str, str]
) -> None:
    for caller in ("anonymous", *SCOPES_BY_CALLER):
        is_member = caller in MEMBERS and bool({"read:products", "admin:org"} & SCOPES_BY_CALLER.get(caller, set()))
        missing = comparable(await scene.send(BY_KEY[name], caller, SLUGS["missing"]))
        for kind in OBJECTS:
            answer = await scene.send(BY_KEY[name], caller, SLUGS[kind])
            assert answer.status_code == 404
            sees = "public" in kind or (kind == "own draft" and is_member)
            if sees or (kind == "other draft" and caller == "owner of south"):
                assert answer.json()["code"] == READS_OF_BUILDS[name], (caller, kind)
            else:
                assert comparable(answer) == missing, (caller, kind)


@pytest.mark.parametrize("name", sorted(WRITES_OF_PRODUCTS))
async def test_products_are_written_only_by_their_organisation(scene: Scene, name: tuple[str, str]) -> None:
    needed = WRITES_OF_PRODUCTS[name]
    for caller, held_scopes in SCOPES_BY_CALLER.items():
        if caller == "owner of south":
            continue
        missing = comparable(await scene.send(BY_KEY[name], caller, SLUGS["missing"]))
        for kind in ("missing", "other draft", "other public"):
            answer = await scene.send(BY_KEY[name], caller, SLUGS[kind])
            if needed not in held_scopes:
                assert answer.json()["code"] == "insufficient_scope", (caller, kind)
            elif kind == "other public":
                assert answer.status_code == 403, (caller, kind)
            else:
                assert comparable(answer) == missing, (caller, kind)
                assert answer.status_code == 404
        if needed not in held_scopes:
            assert (await scene.send(BY_KEY[name], caller, SLUGS["own draft"])).status_code == 403
    allowed_answer = await scene.send(BY_KEY[name], "publisher of north", SLUGS["own draft"])
    assert allowed_answer.status_code not in (401, 403), allowed_answer.text
    assert allowed_answer.json().get("detail") != "no product has this id or slug" if allowed_answer.content else True


@pytest.mark.parametrize("name", sorted(ORGANISATION_ROUTE_SCOPES))
async def test_organisation_routes_require_their_scope(scene: Scene, name: tuple[str, str]) -> None:
    needed = ORGANISATION_ROUTE_SCOPES[name]
    for caller, held_scopes in SCOPES_BY_CALLER.items():
        if needed not in held_scopes:
            answer = await scene.send(BY_KEY[name], caller)
            assert (answer.status_code, answer.json()["code"]) == (403, "insufficient_scope"), caller
            assert f'scope="{needed}"' in answer.headers["www-authenticate"]
    for stranger in ("client of north", "owner of north"):
        answer = await scene.send(BY_KEY[name], stranger, params={"org": "south"})
        if name[0] == "DELETE":
            continue
        assert answer.status_code == 403, (stranger, answer.text)
    assert (await scene.send(BY_KEY[name], "client with admin:org")).status_code not in (401, 403)


@pytest.mark.parametrize("name", sorted(name for name, scope in PERSONAL_ROUTE_SCOPES.items() if scope))
async def test_a_library_needs_its_scope(scene: Scene, name: tuple[str, str]) -> None:
    for caller, held_scopes in SCOPES_BY_CALLER.items():
        answer = await scene.send(BY_KEY[name], caller)
        assert (answer.status_code == 403) == ("read:library" not in held_scopes), (caller, answer.text)


async def test_batches_members_and_clients_of_one_organisation_are_hidden_from_another_organisation(
    scene: Scene,
) -> None:
    issued_codes = await scene.send(BY_KEY[("POST", "/codes")], "owner of north")
    batch = issued_codes.headers["batch-id"]
    south = scene.tokens["owner of south"]

    revoke_answer = await scene.world.call("POST", f"/codes/{batch}/revoke", south, json={})
    missing_response = await scene.world.call("POST", "/codes/no-such-batch/revoke", south, json={})
    listed_codes = await scene.world.call("GET", "/codes", south)
    members = await scene.world.call("GET", "/org/members", south)
    clients = await scene.world.call("GET", "/org/clients", south)

    assert comparable(revoke_answer) == comparable(missing_response)
    assert revoke_answer.status_code == 404
    assert listed_codes.json() == []
    assert [member["email"] for member in members.json()] == ["owner@south.example"]
    assert clients.json() == []


async def test_codes_are_issued_only_for_own_products(scene: Scene) -> None:
    route = BY_KEY[("POST", "/codes")]
    body = {"kind": "license", "count": 1}
    answers = {
        kind: await scene.send(route, "owner of north", json={**body, "products": [SLUGS[kind]]}) for kind in OBJECTS
    }

    assert {kind for kind, answer in answers.items() if answer.is_success} == {"own draft", "own public"}
    for kind in ("other draft", "other public"):
        assert answers[kind].json()["errors"][0]["pointer"] == "/products/0"
        assert comparable(answers[kind]) == comparable(answers["missing"])


@pytest.mark.parametrize("name", sorted(WRITES_OF_PRODUCTS))
async def test_a_role_in_one_organisation_gives_no_rights_in_another_organisation(
    scene: Scene, name: tuple[str, str]
) -> None:
    scene.tokens["both"] = await scene.world.person("both@example.com", north="viewer", south="owner")
    rows_before = await all_rows(scene.world.store)

    for kind in ("own draft", "own public"):
        answer = await scene.send(BY_KEY[name], "both", SLUGS[kind])
        assert (answer.status_code, answer.json()["code"]) == (403, "insufficient_scope"), kind

    assert await all_rows(scene.world.store) == rows_before
    allowed_answer = await scene.send(BY_KEY[name], "both", SLUGS["other draft"])
    assert allowed_answer.status_code not in (401, 403), allowed_answer.text


@pytest.mark.parametrize("name", sorted(name for name in ORGANISATION_ROUTE_SCOPES if name != ("POST", "/products")))
async def test_an_owner_of_one_organisation_cannot_administer_another_organisation(
    scene: Scene, name: tuple[str, str]
) -> None:
    scene.tokens["both"] = await scene.world.person("both@example.com", north="publisher", south="owner")
    rows_before = await all_rows(scene.world.store)

    parameters = {**QUERIES.get(name, {}), "org": "north"}
    answer = await scene.send(BY_KEY[name], "both", params=parameters)

    assert (answer.status_code, answer.json()["code"]) == (403, "insufficient_scope"), answer.text
    assert await all_rows(scene.world.store) == rows_before


async def test_a_deleted_client_is_refused_at_once_by_every_worker(scene: Scene) -> None:
    world = scene.world
    token = await world.client_token("north")
    claims = world.store.tokens.verify(token)
    transport = httpx.ASGITransport(store_app.create(world.store))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8480") as other_worker:
        workers = (world.http, other_worker)
        headers = {"Authorization": f"Bearer {token}"}
        for worker in workers:
            assert (await worker.get("/api/v1/org", headers=headers)).status_code == 200
        owner = scene.tokens["owner of north"]
        deletion = await world.call("DELETE", "/org/clients", owner, params={"client_id": claims.client_id})
        assert deletion.status_code == 204
        for worker in workers:
            assert (await worker.get("/api/v1/org", headers=headers)).status_code == 401
