"""Wrong input, derived from each route's declaration, is refused with the name of the wrong field and changes
nothing."""

import os
import shutil
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import msgspec
import pytest
import pytest_asyncio

from countersign.kernel.http import cursor
from countersign.kernel.http.cursor import Position
from countersign.kernel.http.routing import Route
from countersign.settings import Settings
from countersign.store import app as distribution
from countersign.store.app import ROUTES
from countersign.store.context import Store
from tests.contract.conftest import stage
from tests.contract.error_texts import complaint
from tests.contract.scenes import BODIES, BY_KEY, QUERIES, Scene, all_rows, key
from tests.servers.postgres import Cluster
from tests.store.conftest import ROOT_URL, settings_of
from tests.store.world import World

ADMINISTRATOR = "owner of north"
JSON_BODIES = sorted(
    name for name, route in BY_KEY.items() if route.body is not None and not route.form and not route.oauth
)
WRITES = sorted(name for name, route in BY_KEY.items() if route.writes)
# Unknown OAuth parameters are ignored (RFC 6749 §3.2), those of an authorization request too (RFC 6749 §3.1); uploads
# and forms have tests of their own.
LENIENT = ("GET", "/auth/authorize")
STRICT_QUERIES = sorted(name for name, route in BY_KEY.items() if not route.oauth and name != LENIENT)


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(params=["sqlite", "postgres"], scope="module")
def staged_settings(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """The settings of a store with the scene, for this file only."""
    cluster: Cluster | None = request.getfixturevalue("postgres_cluster") if request.param == "postgres" else None
    staged = stage(cluster)
    data = tmp_path_factory.mktemp("refusing") / "data"
    shutil.copytree(staged.data, data, ignore=shutil.ignore_patterns("counters.*"))
    if cluster is None:
        yield settings_of(data)
    else:
        name = f"refusing_{os.getpid()}"
        yield settings_of(data, cluster.create(name, staged.database))
        cluster.drop(name)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(staged_settings: Settings, request: pytest.FixtureRequest) -> AsyncIterator[Scene]:
    """The scene, which all tests of this file share, because refused requests change nothing."""
    cluster: Cluster | None = request.getfixturevalue("postgres_cluster") if staged_settings.database_url else None
    async with distribution.open_store(staged_settings, ROOT_URL, is_loopback=True) as store:
        transport = httpx.ASGITransport(distribution.create(store), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=ROOT_URL) as client:
            yield Scene(World(store, client), dict(stage(cluster).tokens))


def schema_of(shape: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON Schema of a struct's own members."""
    _, components = msgspec.json.schema_components([shape])
    return components[shape.__name__]


def alternatives(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the schema's alternatives without null."""
    return [variant for variant in schema.get("anyOf", [schema]) if variant.get("type") != "null"]


def wrong_values(schema: dict[str, Any]) -> Iterator[Any]:
    """Yield values of a wrong type, out of range, too long, or outside the choices."""
    options = alternatives(schema)
    kinds = {option.get("type", "string" if "enum" in option else None) for option in options}
    yield {"an": "object"}
    if "string" not in kinds:
        yield "text"
    if not {"integer", "number"} & kinds:
        yield 7
    if "boolean" not in kinds:
        yield True
    for option in options:
        yield from out_of_range(option)


def out_of_range(option: dict[str, Any]) -> Iterator[Any]:
    """Yield values beyond each limit of the schema."""
    if "minimum" in option:
        yield option["minimum"] - 1
    if "maximum" in option:
        yield option["maximum"] + 1
    if "maxLength" in option:
        yield "a" * (option["maxLength"] + 1)
    if option.get("minLength"):
        yield ""
    if "enum" in option:
        yield "none-of-these"
    if "pattern" in option:
        yield "\n \n"
    if option.get("type") == "array":
        if option.get("minItems"):
            yield []
        if "maxItems" in option:
            yield ["x"] * (option["maxItems"] + 1)
        yield [7.5]


def bad_bodies(route: Route[Store]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield bodies with one error each, and the pointer that the answer must name."""
    assert route.body is not None
    valid_body = BODIES[key(route)]
    schema = schema_of(route.body)
    # Agents may send unknown members, which are ignored (agent-auth 7.4).
    if route.body.__struct_config__.forbid_unknown_fields:
        yield {**valid_body, "no_such_member": 1}, "/no_such_member"
    for name in schema.get("required", []):
        yield {member: value for member, value in valid_body.items() if member != name}, f"/{name}"
    for name, member in schema["properties"].items():
        for value in wrong_values(member):
            yield {**valid_body, name: value}, f"/{name}"


def assert_named(answer: Any, expected_place: str, kind: str) -> None:
    """Require the documented refusal: 400 invalid_request as problem details that name the place."""
    problem = answer.json()
    assert answer.status_code == 400, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert problem["code"] == "invalid_request"
    assert problem["type"] == "http://127.0.0.1:8480/problems/invalid-request"
    assert problem["message"] == problem["detail"]
    assert complaint(problem["detail"]) is None, problem["detail"]
    assert {"title", "status", "resolution"} <= set(problem)
    error_place = problem["errors"][0][kind]
    assert error_place == expected_place or error_place.startswith(expected_place + "/"), problem


@pytest.mark.parametrize("name", JSON_BODIES)
async def test_a_body_with_one_invalid_member_is_refused_with_a_pointer_to_the_member(
    scene: Scene, name: tuple[str, str]
) -> None:
    route = BY_KEY[name]
    caller = "anonymous" if name[1].startswith("/auth") else ADMINISTRATOR
    rows_before = await all_rows(scene.world.store)
    for body, pointer in bad_bodies(route):
        origin = {"Origin": "http://127.0.0.1:8480"}
        answer = await scene.send(route, caller, "north-draft", json=body, headers=origin)
        assert_named(answer, pointer, "pointer")

    assert await all_rows(scene.world.store) == rows_before


@pytest.mark.parametrize("name", JSON_BODIES)
async def test_a_body_that_is_not_a_json_object_is_refused(scene: Scene, name: tuple[str, str]) -> None:
    route = BY_KEY[name]
    rows_before = await all_rows(scene.world.store)
    json = {"Content-Type": "application/json"}
    for content in (b"{", b"[]", b"null", b'"text"', b"\xff\xfe", b"[" * 50_000, b'{"a":"\\ud800"}', b'{"a":NaN}'):
        answer = await scene.send(route, ADMINISTRATOR, "north-draft", json=None, content=content, headers=json)
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request"), content[:20]
    answer = await scene.send(
        route, ADMINISTRATOR, "north-draft", json=None, content=b"a=b", headers={"Content-Type": "text/plain"}
    )
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")
    huge = b'{"a":"' + b"x" * route.body_limit + b'"}'
    answer = await scene.send(route, ADMINISTRATOR, "north-draft", json=None, content=huge, headers=json)
    assert (answer.status_code, answer.json()["code"]) == (413, "content_too_large")

    assert await all_rows(scene.world.store) == rows_before


@pytest.mark.parametrize("name", STRICT_QUERIES)
async def test_a_parameter_that_is_wrong_is_refused_by_name(scene: Scene, name: tuple[str, str]) -> None:
    route = BY_KEY[name]
    valid_query = QUERIES.get(name, {})
    if route.streams:
        pytest.skip("an upload address is looked up before anything else")
    rows_before = await all_rows(scene.world.store)
    unknown_response = await scene.send(
        route, ADMINISTRATOR, "north-draft", params={**valid_query, "no_such_parameter": "1"}
    )
    assert_named(unknown_response, "no_such_parameter", "parameter")
    for parameter, schema in schema_of(route.query).get("properties", {}).items():
        repeated_response = await scene.send(
            route, ADMINISTRATOR, "north-draft", params={**valid_query, parameter: ["1", "1"]}
        )
        assert_named(repeated_response, parameter, "parameter")
        for option in alternatives(schema):
            for value in [*out_of_range(option), *(["text"] if option.get("type") == "integer" else [])]:
                answer = await scene.send(
                    route, ADMINISTRATOR, "north-draft", params={**valid_query, parameter: str(value)}
                )
                assert_named(answer, parameter, "parameter")
        if parameter in schema_of(route.query).get("required", []):
            less = {
                parameter_name: value for parameter_name, value in valid_query.items() if parameter_name != parameter
            }
            assert_named(await scene.send(route, ADMINISTRATOR, "north-draft", params=less), parameter, "parameter")

    assert await all_rows(scene.world.store) == rows_before


NO_KEYS = ("", "text", "123", "{}", "6f1b3f0e-2c55-4d7a-9c70-6b0d8c2f5a11" * 2, '"6f1b3f0e-2c55-4d7a-9c70-6b0d8c2f5a11')


async def test_an_idempotency_key_that_is_not_a_uuid_is_refused(scene: Scene) -> None:
    rows_before = await all_rows(scene.world.store)
    for name in WRITES:
        for value in NO_KEYS:
            answer = await scene.send(BY_KEY[name], ADMINISTRATOR, "north-draft", headers={"Idempotency-Key": value})
            assert_named(answer, "Idempotency-Key", "parameter")

    assert await all_rows(scene.world.store) == rows_before


LISTS = {
    "/api/v1/products": "products",
    "/api/v1/catalog": "catalog",
    "/api/v1/products/north-public/releases": "releases",
    "/api/v1/library": "library",
    "/api/v1/codes": "codes",
}


@pytest.mark.parametrize("path", sorted(LISTS))
async def test_a_cursor_that_was_not_made_for_this_list_is_refused(scene: Scene, path: str) -> None:
    signer = scene.world.store.cursors
    kinds = [kind for kind in ("products", "catalog", "elsewhere") if kind != LISTS[path]]
    other_cursors = [cursor.write(signer, Position(kind, [], ["a", "b"])) for kind in kinds]
    headers = {"Authorization": f"Bearer {scene.tokens[ADMINISTRATOR]}"}
    for text in ("x", "AAAA", "_" * 100, "é", other_cursors[0][:-1], other_cursors[0] + "A", *other_cursors):
        answer = await scene.world.http.get(path, params={"cursor": text, "limit": "1"}, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_cursor"), (text, answer.text)
        assert answer.json()["errors"][0]["parameter"] == "cursor"


async def test_a_cursor_belongs_to_its_filter_its_product_and_its_owner(scene: Scene) -> None:
    world, signer = scene.world, scene.world.store.cursors
    page = (await world.call("GET", "/products", params={"limit": "1", "kind": "game"})).json()
    other_response = await world.call(
        "GET", "/products", params={"limit": "1", "kind": "tool", "cursor": page["next_cursor"]}
    )
    same_response = await world.call(
        "GET", "/products", params={"limit": "1", "kind": "game", "cursor": page["next_cursor"]}
    )
    single_response = await world.call("GET", "/products", params={"limit": "1", "cursor": page["next_cursor"]})
    foreign = cursor.write(signer, Position("library", ["person:somebody-else"], [1, "a"]))
    library = await world.call("GET", "/library", scene.tokens["customer"], params={"cursor": foreign})

    assert other_response.json()["code"] == library.json()["code"] == "invalid_cursor"
    assert same_response.json() == single_response.json()
    assert same_response.is_success


@pytest.mark.parametrize(("method", "path", "allow"), [("PATCH", "/api/v1/products", "GET, HEAD, OPTIONS, POST")])
async def test_another_method_is_refused_with_the_allowed_methods(
    scene: Scene, method: str, path: str, allow: str
) -> None:
    answer = await scene.world.http.request(method, path)

    assert (answer.status_code, answer.headers["allow"]) == (405, allow)
    assert answer.json()["code"] == "method_not_allowed"


async def test_trace_is_refused(scene: Scene) -> None:
    for path in ("/api/v1/products", "/healthz", "/auth/signin"):
        answer = await scene.world.http.request("TRACE", path, headers={"X-Said": "marker"})
        assert answer.status_code == 405, path
        assert "marker" not in answer.text


async def test_no_answer_is_to_be_sniffed(scene: Scene) -> None:
    for path, status in (("/api/v1/products", 200), ("/api/v1/library", 401), ("/api/v2", 404), ("/auth/signin", 200)):
        answer = await scene.world.http.get(path)
        assert (answer.status_code, answer.headers["x-content-type-options"]) == (status, "nosniff"), path


async def test_an_address_that_does_not_exist_is_a_problem_too(scene: Scene) -> None:
    for path in ("/api/v1/", "/api/v1/productz", "/api/v2/products", "/api/v1/products/a/b/c"):
        answer = await scene.world.http.get(path)
        assert (answer.status_code, answer.json()["code"]) == (404, "route_not_found"), path


async def test_an_answer_that_is_not_acceptable_is_406(scene: Scene) -> None:
    for accept in ("text/html", "image/*", "application/json;q=0"):
        answer = await scene.world.http.get("/api/v1/products", headers={"Accept": accept})
        assert (answer.status_code, answer.json()["code"]) == (406, "not_acceptable"), accept
    page = await scene.world.http.get("/", headers={"Accept": "application/json"})
    assert (page.status_code, page.json()["resolution"]) == (406, "Accept text/html, or omit Accept.")
    for accept in ("application/json", "application/*", "text/html, */*;q=0.1", "*/*"):
        assert (await scene.world.http.get("/api/v1/products", headers={"Accept": accept})).is_success, accept


async def test_a_request_with_two_credentials_is_refused(scene: Scene) -> None:
    headers = [("Authorization", f"Bearer {scene.tokens[ADMINISTRATOR]}"), ("X-API-Key", "csk_community_x")]

    answer = await scene.world.http.get("/api/v1/products", headers=headers)

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")


async def test_every_body_has_a_good_example() -> None:
    for route in ROUTES:
        if route.body is not None and not route.form:
            assert key(route) in BODIES
            msgspec.convert(BODIES[key(route)], route.body)
