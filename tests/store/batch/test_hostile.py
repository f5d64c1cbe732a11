"""Attacks with batches: operations that a batch must not contain, data that it must not return, and excessive cost."""

from typing import Any
from urllib.parse import urlencode

import pytest

from countersign.kernel.http.response import JSON
from countersign.store import app as distribution
from countersign.store import batch
from tests.contract.scenes import BODIES, BY_KEY, QUERIES, key
from tests.store.batch.conftest import Batches, codes, get, operation_of, post, product, put, statuses
from tests.store.conftest import ROOT_URL

modes = pytest.mark.parametrize("mode", ["parallel", "atomic"])

INNER = {"operations": [{"method": "POST", "path": "/products", "body": product("deep")}]}
SPELLINGS = {
    "/batch": "not_batchable",
    "/batch?": "not_batchable",
    "/batch?mode=atomic": "not_batchable",
    "/api/v1/batch": "not_batchable",
    f"{ROOT_URL}/api/v1/batch": "not_batchable",
    "/./batch": "route_not_found",
    "/../v1/batch": "route_not_found",
    "//batch": "route_not_found",
    "/batch/": "route_not_found",
    "/%62atch": "route_not_found",
    "/Batch": "route_not_found",
    "/batch;x=1": "route_not_found",
    "/api/v1//batch": "route_not_found",
    "/api/v1/api/v1/batch": "route_not_found",
    "/b\u0430tch": "route_not_found",
}


@modes
@pytest.mark.parametrize("path", SPELLINGS)
async def test_a_batch_in_a_batch_is_refused_in_any_spelling(batches: Batches, mode: str, path: str) -> None:
    rows_before = await batches.all_rows()

    (result,) = await batches.results([post(path, INNER)], mode=mode)

    assert result["body"]["code"] == SPELLINGS[path]
    assert await batches.all_rows() == rows_before


REFUSED = sorted(
    key(route)
    for route in distribution.ROUTES
    if route.method in ("GET", "POST", "PUT")
    and not route.at_root
    and (route.path.startswith(("/auth", "/batch")) or route.streams or JSON not in route.produces)
)


@modes
async def test_sign_ins_batches_and_streams_cannot_be_in_a_batch(batches: Batches, mode: str) -> None:
    rows_before = await batches.all_rows()
    assert ("POST", "/auth/token") in REFUSED
    assert ("GET", "/jobs/{job_id}/events") in REFUSED
    assert ("PUT", "/artifacts/uploads/{token}") in REFUSED
    for method, path in REFUSED:
        body = BODIES.get((method, path)) or ({} if method == "POST" else None)
        address = path.replace("{", "").replace("}", "")
        (result,) = await batches.results([operation_of(method, address, body)], mode=mode)
        assert (result["status"], result["body"]["code"]) == (400, "not_batchable"), (method, path)

    assert await batches.all_rows() == rows_before


@modes
async def test_nothing_at_the_root_is_reached(batches: Batches, mode: str) -> None:
    for path in ("/../../healthz", "/auth/signin", "/auth/session/token", "/../../auth/session/token", "/mcp"):
        (result,) = await batches.results([post(path, {})], mode=mode)
        assert result["body"]["code"] in ("route_not_found", "not_batchable"), path


@modes
async def test_every_other_route_may_be_called_in_a_batch(batches: Batches, mode: str) -> None:
    for name, route in BY_KEY.items():
        if name in REFUSED or route.at_root or route.method not in ("GET", "POST", "PUT"):
            continue
        path = route.path.replace("{id}", "none").replace("{version}", "1.0.0").replace("{channel}", "stable")
        query = urlencode(QUERIES.get(name, {}))
        address = f"{path.replace('{', '').replace('}', '')}?{query}"
        (result,) = await batches.results([operation_of(route.method, address, BODIES.get(name))], mode=mode)
        assert result["status"] != 500, (name, result)
        assert result["body"].get("code") != "not_batchable", name


@modes
async def test_an_answer_that_is_not_json_is_refused(batches: Batches, mode: str) -> None:
    results = await batches.results([get("/health?format=html")], mode=mode)

    assert codes(results) == ["not_batchable"]
    assert "text/html" in results[0]["body"]["detail"]


@modes
async def test_answers_may_not_be_longer_than_their_share(
    batches: Batches, mode: str, monkeypatch: pytest.MonkeyPatch, is_full: bool
) -> None:
    """Fifty catalogs, or fifty times many codes: each response would be permitted, but not all together."""
    world = batches.world
    for number in range(30):
        await world.product("north", f"game-{number}", description="x" * 300)
    monkeypatch.setattr(batch, "MAX_RESPONSES_BYTES", 100_000)
    long_operation = post("/codes", {"kind": "license", "products": ["game-1"], "count": 5_000 if is_full else 500})
    rows_before = await batches.all_rows()

    lone_results = await batches.results([get("/catalog")], mode=mode)
    catalogs = await batches.results([get("/catalog")] * 50, mode=mode)
    issued_results = await batches.results([long_operation] * 50, mode=mode)

    assert statuses(lone_results) == [200]
    refusal_codes = {("not_batchable" if mode == "parallel" else "batch_rolled_back"), "not_batchable"}
    assert {*codes(catalogs)} == {*codes(issued_results)} == refusal_codes
    if mode == "atomic":
        assert await batches.all_rows() == rows_before
    # Codes whose response could not be sent are not valid.
    assert (await world.call("GET", "/codes", batches.owner)).json() == []


async def test_a_header_of_the_batch_does_not_apply_to_its_operations(batches: Batches) -> None:
    await batches.world.product("north", "one")
    etag = (await batches.world.call("GET", "/products/one")).headers["etag"]
    request_options: dict[str, Any] = {
        "headers": {"If-None-Match": etag, "If-Match": '"x"', "Prefer": "respond-async", "Accept": "*/*"}
    }

    results = await batches.results([get("/products/one"), put("/products/one", product("one"))], **request_options)

    assert statuses(results) == [200, 200]


@modes
async def test_texts_that_no_database_keeps_do_not_get_in(batches: Batches, mode: str) -> None:
    rows_before = await batches.all_rows()
    product_json = '{"slug":"x","title":"%s","kind":"game","platforms":["linux"]}'
    batch_json = '{"mode":"%s","operations":[{"method":"POST","path":"/products","body":%s}]}'
    for title in ("a\\u0000b", "a\\ud800b"):
        content = batch_json % (mode, product_json % title)
        answer = await batches.world.call(
            "POST", "/batch", batches.owner, content=content.encode(), headers={"Content-Type": "application/json"}
        )
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")

    assert await batches.all_rows() == rows_before


async def test_a_body_nested_beyond_reason_is_refused(batches: Batches) -> None:
    deep = (
        b'{"operations":[{"method":"POST","path":"/products","body":{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}}]}"
    )

    answer = await batches.world.call(
        "POST", "/batch", batches.owner, content=deep, headers={"Content-Type": "application/json"}
    )

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
