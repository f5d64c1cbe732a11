"""What all batches guarantee in any mode: order, formats, scopes, limits, and the Idempotency-Key."""

import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from countersign.kernel import clock
from countersign.settings import Settings
from countersign.store import app as store_app
from countersign.store.batch import MAX_OPERATIONS
from tests.servers.transaction_waits import TransactionWaits
from tests.store.batch.conftest import Batches, codes, get, post, product, put, statuses
from tests.store.conftest import ROOT_URL
from tests.store.world import World

modes = pytest.mark.parametrize("mode", ["parallel", "atomic"])


def idempotency_headers() -> dict[str, str]:
    """Return headers with a new Idempotency-Key."""
    return {"Idempotency-Key": str(uuid.uuid4())}


@modes
async def test_each_result_equals_the_response_to_the_operation_alone(batches: Batches, mode: str) -> None:
    for slug in ("one", "two"):
        await batches.world.product("north", slug)
    paths = ("/products/two", "/products", "/products/one/releases", "/library", "/info", "/products?limit=1")

    results = await batches.results([get(path) for path in paths], mode=mode)

    for path, result in zip(paths, results, strict=True):
        lone_answer = await batches.world.call("GET", path, batches.owner)
        body = lone_answer.json()
        assert result["status"] == lone_answer.status_code == 200
        assert result["body"] == (body if isinstance(body, dict) else {"items": body})
        assert result.get("headers", {}).get("ETag") == lone_answer.headers.get("etag")


@modes
async def test_a_path_may_be_the_whole_address(batches: Batches, mode: str) -> None:
    await batches.world.product("north", "one", title="Käse")
    paths = (
        "/products/one",
        "/api/v1/products/one",
        f"{ROOT_URL}/api/v1/products/one",
        "/products?q=käse",
        "/products?q=k%C3%A4se",
    )

    results = await batches.results([get(path) for path in paths], mode=mode)

    assert statuses(results) == [200] * 5
    assert results[0]["body"] == results[1]["body"] == results[2]["body"]
    assert results[3]["body"] == results[4]["body"]
    assert len(results[4]["body"]["items"]) == 1


async def test_operations_of_a_parallel_batch_do_not_hinder_each_other(batches: Batches) -> None:
    operations = [
        post("/products", product("one")),
        post("/products", product("two", kind="no-kind")),
        get("/products/nothing"),
        post("/redeem", {"code": "AAAA-BBBB-CCCC-DDDD"}),
        get("/nowhere"),
        post("/info", {}),
        post("/products", product("three")),
    ]

    results = await batches.results(operations)

    assert statuses(results) == [201, 400, 404, 404, 404, 405, 201]
    assert codes(results)[1:6] == [
        "invalid_request", "resource_not_found", "code_not_found", "route_not_found", "method_not_allowed",
    ]  # fmt: skip
    assert results[0]["headers"] == {
        "Location": f"{ROOT_URL}/api/v1/products/one",
        "ETag": results[0]["headers"]["ETag"],
    }
    assert results[1]["body"]["errors"][0]["pointer"] == "/kind"


@modes
async def test_the_body_of_a_result_without_content_is_an_empty_object(batches: Batches, mode: str) -> None:
    await batches.world.product("north", "one")
    etag = (await batches.world.call("GET", "/products/one", batches.owner)).headers["etag"]

    (result,) = await batches.results([get("/products/one", If_None_Match=etag)], mode=mode)

    assert (result["status"], result["body"]) == (304, {})


@modes
async def test_an_operation_may_have_a_precondition(batches: Batches, mode: str) -> None:
    await batches.world.product("north", "one")
    etag = (await batches.world.call("GET", "/products/one", batches.owner)).headers["etag"]

    for etag_given, status in ((etag, 200), ('"another"', 412)):
        conditional_put = put("/products/one", product("one", title="Again"), If_Match=etag_given)
        assert statuses(await batches.results([conditional_put], mode=mode)) == [status]


@modes
async def test_scopes_are_checked_for_each_operation_as_without_a_batch(batches: Batches, mode: str) -> None:
    world = batches.world
    await world.product("north", "one")
    customer = await world.person("customer@example.com")
    publisher = await world.person("publisher@north.example", north="publisher")
    reader = await world.client_token("north", "read:products")
    south = await world.person("owner@south.example", south="owner")
    everyone = {"anonymous": None, "customer": customer, "publisher": publisher, "reader": reader, "south": south}
    for name, token in everyone.items():
        for operation in (
            get("/products/one"), get("/library"), get("/codes"), get("/org/members"), get("/jobs"),
            post("/products", product(f"{name}-made-{mode}")), put("/products/one", product("one")),
            post("/codes", {"kind": "license", "products": ["one"], "count": 1}),
            post("/redeem", {"code": "AAAA-BBBB-CCCC-DDDD"}),
        ):  # fmt: skip
            (result,) = (await batches.send([operation], token, mode=mode)).json()["results"]
            if operation["path"] == "/products" and result["status"] == 201:
                operation["body"]["slug"] += "-alone"
            single_response = await world.call(
                operation["method"], operation["path"], token, json=operation.get("body")
            )
            assert result["status"] == single_response.status_code, (name, operation, result, single_response.text)
            if single_response.status_code >= 400:
                batch_body, body = result["body"], single_response.json()
                assert {**batch_body, "instance": ""} == {**body, "instance": ""}
                assert result.get("headers", {}).get("WWW-Authenticate") == single_response.headers.get(
                    "www-authenticate"
                )


async def test_a_bad_token_is_refused_for_the_whole_batch(batches: Batches) -> None:
    answer = await batches.send([get("/info")], "forged")

    assert (answer.status_code, answer.json()["code"]) == (401, "invalid_token")


MALFORMED_OPERATIONS: list[tuple[Any, str]] = [
    ({"method": "DELETE", "path": "/products/one"}, "/method"),
    ({"method": "PATCH", "path": "/products/one"}, "/method"),
    ({"method": "get", "path": "/products"}, "/method"),
    ({"path": "/products"}, "/method"),
    ({"method": "GET"}, "/path"),
    ({"method": "GET", "path": ""}, "/path"),
    ({"method": "GET", "path": "products"}, "/path"),
    ({"method": "GET", "path": "http://elsewhere.example/api/v1/products"}, "/path"),
    ({"method": "GET", "path": f"{ROOT_URL}/healthz"}, "/path"),
    ({"method": "GET", "path": f"{ROOT_URL}.evil.example/api/v1/products"}, "/path"),
    ({"method": "GET", "path": "/products HTTP/1.1\r\nHost: x"}, "/path"),
    ({"method": "GET", "path": "/products\x00"}, ""),
    ({"method": "GET", "path": "/products#top"}, "/path"),
    ({"method": "GET", "path": "/" + "a" * 9000}, "/path"),
    ({"method": "GET", "path": 7}, "/path"),
    ({"method": "POST", "path": "/products", "body": []}, "/body"),
    ({"method": "POST", "path": "/products", "body": "{}"}, "/body"),
    ({"method": "GET", "path": "/products", "more": 1}, "/more"),
    ({"method": "GET", "path": "/products", "headers": {"Authorization": "Bearer x"}}, "/headers"),
    ({"method": "GET", "path": "/products", "headers": {"Cookie": "a=b"}}, "/headers"),
    ({"method": "GET", "path": "/products", "headers": {"X-Forwarded-For": "10.0.0.1"}}, "/headers"),
    ({"method": "GET", "path": "/products", "headers": {"Accept": "text/csv"}}, "/headers"),
    ({"method": "GET", "path": "/products", "headers": {"Content-Type": "text/plain"}}, "/headers"),
    ({"method": "GET", "path": "/products", "headers": {"Prefer": "a\r\nAuthorization: Bearer x"}}, "/headers"),
    ({"method": "GET", "path": "/products", "headers": {"Prefer": "ä"}}, "/headers"),
    ({"method": "GET", "path": "/products", "headers": {"Prefer": "a", "prefer": "b"}}, "/headers"),
    ({"method": "GET", "path": "/products", "headers": {"Prefer": 7}}, "/headers"),
    (7, ""),
    (None, ""),
]  # fmt: skip


@modes
@pytest.mark.parametrize(("bad_operation", "pointer_prefix"), MALFORMED_OPERATIONS)
async def test_a_malformed_operation_is_refused_with_its_index_before_any_operation_runs(
    batches: Batches, mode: str, bad_operation: Any, pointer_prefix: str
) -> None:
    rows_before = await batches.all_rows()

    answer = await batches.send([post("/products", product("one")), bad_operation], batches.owner, mode=mode)

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request"), answer.text
    pointer = answer.json()["errors"][0]["pointer"]
    assert pointer.startswith(f"/operations/1{pointer_prefix}") or pointer_prefix == ""
    assert await batches.all_rows() == rows_before


@pytest.mark.parametrize("count", [0, MAX_OPERATIONS + 1])
async def test_a_batch_has_one_to_fifty_operations(batches: Batches, count: int) -> None:
    answer = await batches.send([get("/info")] * count, batches.owner)

    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "/operations")
    assert len(await batches.results([get("/info")] * MAX_OPERATIONS)) == MAX_OPERATIONS


async def test_another_mode_is_refused(batches: Batches) -> None:
    answer = await batches.send([get("/info")], batches.owner, mode="both")

    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "/mode")


@modes
async def test_a_repeated_batch_has_no_second_effect_and_the_same_answer(batches: Batches, mode: str) -> None:
    await batches.world.product("north", "one")
    operations = [
        post("/products", product("two")),
        post("/products/one/releases", {"version": "1.0", "channel": "beta"}),
        post("/codes", {"kind": "license", "products": ["one"], "count": 2}),
        get("/products/one"),
    ]
    headers = idempotency_headers()
    first_answer = await batches.send(operations, batches.owner, mode=mode, headers=headers)
    rows_after = await batches.all_rows()

    second_answer = await batches.send(operations, batches.owner, mode=mode, headers=headers)
    other_answer = await batches.send(operations[:1], batches.owner, mode=mode, headers=headers)

    assert statuses(first_answer.json()["results"]) == [201, 201, 201, 200]
    assert second_answer.content == first_answer.content
    assert second_answer.headers["idempotency-replayed"] == "true"
    assert other_answer.json()["code"] == "idempotency_key_reused"
    assert await batches.all_rows() == rows_after


async def test_a_repeated_batch_has_no_second_effect_if_the_first_response_was_not_stored(batches: Batches) -> None:
    """As after a crash, the operations have taken effect, but the record of the batch is lost."""
    await batches.world.product("north", "one")
    operations = [
        post("/products", product("two")),
        post("/codes", {"kind": "license", "products": ["one"], "count": 2}),
        post("/products/one/releases", {"version": "1.0", "channel": "beta"}),
    ]
    headers = idempotency_headers()
    first_results = await batches.results(operations, headers=headers)
    rows_after = await batches.all_rows()
    async with batches.world.store.database.transaction() as transaction:
        deleted_count = await transaction.run(
            "DELETE FROM idempotency WHERE created_at = (SELECT max(created_at) FROM idempotency)"
        )

    second_results = await batches.results(operations, headers=headers)

    assert deleted_count == 1
    assert [result["body"] for result in second_results] == [result["body"] for result in first_results]
    assert [result["headers"].get("Idempotency-Replayed") for result in second_results] == ["true"] * 3
    assert await batches.all_rows() == rows_after


@modes
async def test_an_operation_may_have_a_key_of_its_own(batches: Batches, mode: str) -> None:
    own_key = str(uuid.uuid4())
    operation = post("/products", product("one"), Idempotency_Key=own_key)
    (first_result,) = await batches.results([operation], mode=mode, headers=idempotency_headers())

    (second_result,) = await batches.results([operation], mode=mode, headers=idempotency_headers())
    lone_answer = await batches.world.call(
        "POST", "/products", batches.owner, json=product("one"), headers={"Idempotency-Key": own_key}
    )

    assert first_result["body"] == second_result["body"] == lone_answer.json()
    assert lone_answer.headers["idempotency-replayed"] == second_result["headers"]["Idempotency-Replayed"] == "true"


@modes
@pytest.mark.parametrize(("count", "reads"), [(2_000, 30), (60_000, 1)])
async def test_an_answer_too_long_to_be_stored_is_made_again(
    batches: Batches, transaction_waits: TransactionWaits, mode: str, count: int, reads: int
) -> None:
    """The response consists of many long responses, or of one response that is too long by itself."""
    # Thousands of codes are derived in a thread, and read in parts.
    transaction_waits.allow("redeem/codes.py:prepare_batch", "kernel/http/subrequest.py:_collected")
    if (mode, count) == ("atomic", 60_000):
        pytest.skip("on a busy machine, so many codes may take longer than the time limit of an atomic batch")
    for number in range(20):
        await batches.world.product("north", f"game-{number}", description="x" * 2_000)
    issue_codes = post("/codes", {"kind": "license", "products": ["game-1"], "count": count})
    operations = [issue_codes, *[get("/catalog")] * reads]
    headers = idempotency_headers()
    first_answer = await batches.send(operations, batches.owner, mode=mode, headers=headers)
    rows_after = await batches.all_rows()

    second_answer = await batches.send(operations, batches.owner, mode=mode, headers=headers)

    assert len(first_answer.content) > 1 << 20
    assert statuses(first_answer.json()["results"]) == [201] + [200] * reads
    assert [result["body"] for result in second_answer.json()["results"]] == [
        result["body"] for result in first_answer.json()["results"]
    ]
    assert second_answer.headers["idempotency-replayed"] == "true"
    assert await batches.all_rows() == rows_after


@modes
async def test_no_cache_may_store_the_answer_to_a_batch(batches: Batches, mode: str) -> None:
    answer = await batches.send([get("/info")], mode=mode)

    assert answer.headers["cache-control"] == "no-store"


class TestLimits:
    """Batches that exceed the limit of requests per minute."""

    @pytest.fixture
    async def limited_batches(self, settings: Settings) -> AsyncIterator[Batches]:
        """Batches in a store that allows ten requests per minute to an anonymous caller, and twelve to a person."""
        limited = replace(settings, rate_anonymous=10, rate_person=12)
        async with store_app.open_store(limited, ROOT_URL, is_loopback=True) as store:
            transport = httpx.ASGITransport(store_app.create(store))
            async with httpx.AsyncClient(transport=transport, base_url=ROOT_URL) as http:
                world = World(store, http)
                await world.org("north")
                yield Batches(world, await world.person("owner@north.example", north="owner"))

    @modes
    async def test_every_operation_counts_against_the_limit(self, limited_batches: Batches, mode: str) -> None:
        results = (await limited_batches.send([get("/info")] * 20, mode=mode)).json()["results"]

        if mode == "parallel":
            assert sorted(statuses(results)) == [200] * 9 + [429] * 11
        else:
            assert statuses(results) == [424] * 9 + [429] + [424] * 10
        limited = next(result for result in results if result["status"] == 429)
        assert int(limited["headers"]["Retry-After"]) > 0
        assert (await limited_batches.world.call("GET", "/info")).status_code == 429

    @modes
    async def test_a_response_caused_by_the_quota_is_not_stored_for_repeated_requests(
        self, limited_batches: Batches, mode: str
    ) -> None:
        operations = [post("/products", product(f"slug-{number}")) for number in range(11)]
        headers = idempotency_headers()
        await limited_batches.results([get("/info")], headers=idempotency_headers())
        first_results = await limited_batches.results(operations, mode=mode, headers=headers)
        created_rows = await limited_batches.world.store.database.fetch("SELECT slug FROM product")
        with clock.fixed(clock.later(clock.now(), seconds=61)):
            second_results = await limited_batches.results(operations, mode=mode, headers=headers)

        assert 429 in statuses(first_results)
        assert len(created_rows) == (9 if mode == "parallel" else 0)
        assert statuses(second_results) == [201] * 11
        assert len(await limited_batches.world.store.database.fetch("SELECT slug FROM product")) == 11
