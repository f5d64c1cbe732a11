"""The documents of the store about itself match its behaviour: health, problem pages, the API description."""

import re
import shutil
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from countersign.kernel.http.routing import Route
from countersign.store import app as distribution
from countersign.store.apidocs.operations import address_of
from countersign.store.app import ROUTES
from countersign.store.context import PREFIX, Store
from tests.contract.scenes import BODIES
from tests.store.world import World
from tools.reference import EVERY_ROUTE

ROOT = "http://127.0.0.1:8480"


@pytest.fixture
def database_url(tmp_path: Path) -> str:
    """Documents are generated from declarations, so one kind of database is sufficient."""
    return f"sqlite:///{tmp_path}/test.db"


@pytest.fixture
async def description(http: httpx.AsyncClient) -> dict[str, Any]:
    """Return the API description as the server sends it."""
    return (await http.get("/openapi.json")).json()


def served_routes(store: Store) -> dict[tuple[str, str], Route[Store]]:
    """Map method and address to every route of the application."""
    routes = distribution.create(store).routes
    return {(route.method, route.path if route.at_root else PREFIX + route.path): route for route in routes}


@pytest.mark.parametrize("path", ["/health", "/info"])
async def test_health_and_info_have_four_formats_and_json_by_default(world: World, path: str) -> None:
    plain_response = await world.call("GET", path)
    members = plain_response.json()

    for form, kind in (("text", "text/plain"), ("yaml", "application/yaml"), ("html", "text/html")):
        answer = await world.call("GET", path, params={"format": form})
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith(kind)
        assert all(str(value) in answer.text for value in members.values())
    for form in ("json", "JSON", "xml", "", "x" * 500, "<script>"):
        answer = await world.call("GET", path, params={"format": form})
        assert answer.json() == members, form
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["x-content-type-options"] == "nosniff"


async def test_health_and_info_have_the_documented_members(world: World) -> None:
    health, info = (await world.call("GET", "/health")).json(), (await world.call("GET", "/info")).json()
    alive = await world.call("GET", "/healthz")

    assert set(health) == {"status", "version"}
    assert set(info) == {"service", "version", "storage"}
    assert health["version"] == info["version"] == "1.0.0"
    assert alive.status_code == 200


async def test_health_is_503_when_nothing_can_be_written(world: World) -> None:
    blobs = Path(world.store.settings.data) / "blobs"
    shutil.rmtree(blobs)
    blobs.write_text("no folder")

    answer = await world.call("GET", "/health")

    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert int(answer.headers["retry-after"]) > 0
    assert (await world.call("GET", "/healthz")).status_code == 200


async def test_every_problem_a_route_declares_has_a_page(world: World) -> None:
    codes = {refusal.code for served_route in served_routes(world.store).values() for refusal in served_route.refusals}
    codes |= {"route_not_found", "method_not_allowed", "rate_limit_exceeded", "internal_error", "endpoint_gone"}
    codes |= {"idempotency_key_reused", "idempotency_in_progress", "insufficient_scope", "invalid_token"}
    for code in codes:
        path = f"/problems/{code.replace('_', '-')}"
        answer = await world.call("GET", path)
        page = await world.call("GET", path, headers={"Accept": "text/html,*/*;q=0.1"})
        assert answer.json()["code"] == code
        assert answer.json()["meaning"]
        assert page.headers["content-type"].startswith("text/html")
        assert code in page.text
    unknown_response = await world.call("GET", "/problems/no-such-thing")
    assert unknown_response.status_code == 404
    assert (await world.http.get(unknown_response.json()["type"])).status_code == 200


async def test_the_type_of_every_problem_leads_to_its_page(world: World) -> None:
    token = await world.client_token("north", "read:products")
    problems = [
        await world.call("GET", "/products?limit=0"),
        await world.call("GET", "/products?cursor=x"),
        await world.call("GET", "/products/none"),
        await world.call("GET", "/library"),
        await world.call("GET", "/library", token),
        await world.call("GET", "/nowhere"),
        await world.call("DELETE", "/products"),
        await world.call("GET", "/products", headers={"Accept": "image/png"}),
        await world.http.post("/auth/signin", data={}),
    ]
    for answer in problems:
        assert answer.status_code >= 400
        page = await world.http.get(answer.json()["type"])
        assert (page.status_code, page.json()["code"]) == (200, answer.json()["code"])
        assert page.json()["status"] == answer.status_code


def test_the_description_is_valid(description: dict[str, Any]) -> None:
    OpenAPIV31SpecValidator(description).validate()
    assert description["openapi"].startswith("3.1")


async def test_the_description_lists_the_existing_routes(store: Store, description: dict[str, Any]) -> None:
    methods = ("get", "post", "put", "delete", "patch", "head", "options")
    described_routes = {(m.upper(), path) for path, item in description["paths"].items() for m in item if m in methods}

    assert described_routes == set(served_routes(store)) == {(route.method, address_of(route)) for route in EVERY_ROUTE}
    assert {(route.method, address_of(route)) for route in ROUTES} < described_routes


# The headers that the document's section on authentication names.
AUTHENTICATION = {
    ("get", "/.well-known/oauth-protected-resource"),
    ("get", "/.well-known/oauth-authorization-server"),
    ("get", "/.well-known/jwks.json"),
    ("get", "/auth.md"),
    ("get", "/auth/authorize"),
    ("get", f"{PREFIX}/auth/me"),
    ("post", f"{PREFIX}/auth/login"),
    ("post", f"{PREFIX}/auth/register"),
    ("post", f"{PREFIX}/auth/token"),
    ("post", "/auth/revoke"),
    ("post", "/healthz"),
}


async def test_routes_missing_from_the_api_document_are_marked(description: dict[str, Any]) -> None:
    documented = {
        ("get", f"{PREFIX}/{path}")
        for path in (
            "health",
            "info",
            "products",
            "products/{id}",
            "products/{id}/releases",
            "library",
            "jobs/{job_id}",
            "api/keys",
            "sandbox",
            "sandbox/api/v1/health",
            "sandbox/api/v1/telemetry",
            "ask",
        )
    } | {*(("post", f"{PREFIX}/{path}") for path in ("redeem", "jobs", "batch", "ask")), *AUTHENTICATION}
    for path, item in description["paths"].items():
        for method, operation in item.items():
            assert operation.get("x-addition", False) == ((method, path) not in documented), (method, path)


def assert_described(operation: dict[str, Any], route: Route[Store], method_and_path: tuple[str, str]) -> None:
    """Require that the operation describes the route correctly."""
    named_parameters = {(parameter["in"], parameter["name"]) for parameter in operation["parameters"]}
    path = {("path", name) for name in re.findall(r"\{(\w+)\}", method_and_path[1])}
    query = {("query", name) for name in route.query.__struct_encode_fields__}
    assert path | query <= named_parameters
    assert (("header", "Idempotency-Key") in named_parameters) == route.writes, method_and_path
    needed = [scheme["OAuth2"] for scheme in operation.get("security", []) if scheme.get("OAuth2")]
    assert needed == ([[route.scope]] if route.scope else []), method_and_path
    assert ("requestBody" in operation) == (route.body is not None or route.streams)
    assert {"400", "429", "500"} <= set(operation["responses"])


async def test_the_description_of_scopes_parameters_and_bodies_matches_the_code(
    store: Store, description: dict[str, Any]
) -> None:
    ids = [operation["operationId"] for item in description["paths"].values() for operation in item.values()]
    assert len(set(ids)) == len(ids)
    for (method, path), served_route in served_routes(store).items():
        operation = description["paths"].get(path, {}).get(method.lower())
        if operation is not None:
            assert_described(operation, served_route, (method, path))


async def test_bodies_that_work_are_valid_by_the_description(description: dict[str, Any]) -> None:
    for (method, path), body in BODIES.items():
        is_at_root = path.startswith("ROOT") or path in description["paths"]
        address = path.removeprefix("ROOT") if is_at_root else PREFIX + path
        content = description["paths"][address][method.lower()]["requestBody"]["content"]["application/json"]
        schema = {**content["schema"], "components": description["components"]}
        jsonschema.validate(body, schema)


async def test_answers_are_valid_by_the_description(world: World, description: dict[str, Any]) -> None:
    await world.person("owner@north.example", north="owner")
    owner = await world.session_token("owner@north.example")
    product = await world.product("north", "one", tags=["a"])
    await world.grant("owner@north.example", product)
    released = {"version": "1.0", "channel": "beta", "notes_only": True}
    await world.call("POST", "/products/one/releases", owner, json=released)
    await world.call("POST", "/products/one/releases/1.0/publish", owner)
    await world.call("POST", "/codes", owner, json={"kind": "license", "products": ["one"], "count": 1})
    checked = 0
    for path, item in description["paths"].items():
        if "get" not in item or "{" in path.replace("{id}", "") or not path.startswith(PREFIX):
            continue
        query = {"q": "How many games are there?"} if path.endswith(("/ask", "/suggest")) else {}
        query = {"ids": product} if path.endswith("/owned") else query
        address = path.replace("{id}", "one")
        answer = await world.http.get(address, params=query, headers={"Authorization": f"Bearer {owner}"})
        assert answer.status_code == 200, (path, answer.text)
        described_answer = item["get"]["responses"]["200"]
        if "$ref" in described_answer:
            described_answer = description["components"]["responses"][described_answer["$ref"].rpartition("/")[2]]
        if path.endswith(("/feed", "/cover.svg", ".csv")):
            continue  # XML and CSV, which JSON Schema does not describe.
        schema = described_answer["content"]["application/json"]["schema"]
        jsonschema.validate(answer.json(), {**schema, "components": description["components"]})
        checked += 1
    problem = (await world.call("GET", "/products?limit=0")).json()
    jsonschema.validate(problem, {"$ref": "#/components/schemas/Problem", "components": description["components"]})
    assert checked >= 10


async def test_the_protected_resource_describes_itself_at_both_addresses(world: World) -> None:
    for suffix, resource in (("", ROOT), ("/api/v1", f"{ROOT}/api/v1")):
        answer = await world.http.get(f"/.well-known/oauth-protected-resource{suffix}")
        document = answer.json()
        assert document["resource"] == resource
        assert document["authorization_servers"] == [ROOT]
        assert document["bearer_methods_supported"] == ["header"]
        assert len(document["scopes_supported"]) == 6
        assert answer.headers["cache-control"] == "public, max-age=300"
        assert answer.headers["access-control-allow-origin"] == "*"
    with_query = await world.http.get("/.well-known/oauth-protected-resource/api/v1?")
    assert with_query.json()["resource"] == f"{ROOT}/api/v1"


async def test_tokens_can_be_checked_with_the_published_keys_which_hold_nothing_private(world: World) -> None:
    keys = (await world.http.get("/.well-known/jwks.json")).json()["keys"]

    assert keys
    for key in keys:
        assert (key["kty"], key["alg"], key["use"]) == ("EC", "ES256", "sig")
        assert "d" not in key
