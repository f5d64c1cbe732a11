"""Atomic batches: all operations take effect or none, and no other caller sees a part."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from countersign.kernel import clock
from countersign.kernel.errors import Unavailable
from countersign.kernel.http.app import App
from countersign.store import app as distribution
from countersign.store import batch
from countersign.store.batch import NestedTransaction
from tests.figures import Figures
from tests.servers.transaction_waits import TransactionWaits
from tests.store.batch.conftest import Batches, codes, get, post, product, put, statuses
from tests.store.files import open_shop

SAMPLE, FULL = 60, 1_000

RELEASE = {"version": "1.0", "channel": "stable", "notes_only": True}
STORY = [
    post("/products", product("saga")),
    post("/products/saga/releases", RELEASE),
    get("/products/saga"),
    post("/products/saga/releases/1.0/publish"),
    get("/products/saga"),
    get("/products/saga/releases"),
    get("/products?q=saga"),
    get("/catalog"),
    post("/codes", {"kind": "license", "products": ["saga"], "count": 3}),
    get("/codes"),
]


async def test_later_operations_see_the_effects_of_earlier_operations(batches: Batches) -> None:
    results = await batches.results(STORY, mode="atomic")

    assert statuses(results) == [201, 201, 200, 200, 200, 200, 200, 200, 201, 200]
    assert [results[2]["body"]["status"], results[4]["body"]["status"]] == ["draft", "public"]
    assert [item["version"] for item in results[5]["body"]["items"]] == ["1.0"]
    assert [item["slug"] for item in results[6]["body"]["items"]] == ["saga"]
    assert [product["slug"] for product in results[7]["body"]["products"]] == ["saga"]
    assert results[9]["body"]["items"][0]["batch_id"] == results[8]["body"]["batch_id"]
    assert (await batches.world.call("GET", "/products/saga")).json()["status"] == "public"
    redeemed_response = await batches.world.call(
        "POST", "/redeem", batches.owner, json={"code": results[8]["body"]["codes"][0]}
    )
    assert redeemed_response.status_code == 200


async def test_the_first_failure_takes_everything_back_and_ends_the_batch(batches: Batches) -> None:
    rows_before = await batches.all_rows()

    results = await batches.results(
        [*STORY[:4], get("/products/nothing"), post("/products", product("never"))], mode="atomic"
    )

    assert statuses(results) == [424, 424, 424, 424, 404, 424]
    assert codes(results) == ["batch_rolled_back"] * 4 + ["resource_not_found", "batch_rolled_back"]
    assert {result["body"]["failed_index"] for result in results if result["status"] == 424} == {4}
    assert await batches.all_rows() == rows_before
    assert (await batches.world.call("GET", "/products/saga", batches.owner)).status_code == 404


async def test_an_anonymous_atomic_batch_that_writes_is_refused(batches: Batches) -> None:
    operations = [get("/info"), post("/products", product("one")), get("/info")]

    results = (await batches.send(operations, mode="atomic")).json()["results"]

    assert statuses(results) == [424, 401, 424]


async def test_no_route_writes_for_an_anonymous_caller() -> None:
    """An anonymous batch therefore needs no transaction."""
    exempt = {"/batch"}

    assert not [
        route.path
        for route in distribution.ROUTES
        if route.writes and route.scope is None and not route.signed_in and route.path not in exempt
    ]


@pytest.fixture
async def paused_batch(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[asyncio.Event, asyncio.Event]]:
    """Two events: the batch has run all its operations, and it may commit."""
    batch_begun, may_commit = asyncio.Event(), asyncio.Event()
    run_in_order = batch.run_in_order

    async def paused(*arguments: Any) -> Any:
        answer = await run_in_order(*arguments)
        batch_begun.set()
        await may_commit.wait()
        return answer

    monkeypatch.setattr(batch, "run_in_order", paused)
    yield batch_begun, may_commit
    may_commit.set()


@pytest.mark.parametrize("is_good", [True, False])
async def test_no_other_request_sees_the_changes_before_the_commit(
    batches: Batches,
    paused_batch: tuple[asyncio.Event, asyncio.Event],
    is_good: bool,
    transaction_waits: TransactionWaits,
) -> None:
    """Responses to anonymous callers are cached. The cache must never contain data that was not committed."""
    transaction_waits.allow("store/batch.py:run_atomically")
    batch_begun, may_commit = paused_batch
    world = batches.world
    reads = ("/products/saga", "/products/saga/releases", "/products", "/catalog")
    reads_before = [(await world.call("GET", path)).content for path in reads]
    operations = STORY[:8] if is_good else [*STORY[:8], get("/products/nothing")]

    running = asyncio.create_task(batches.results(operations, mode="atomic"))
    await batch_begun.wait()
    meanwhile = [(await world.call("GET", path)).content for path in reads for _ in range(3)][::3]
    may_commit.set()
    results = await running
    statuses_after = [(await world.call("GET", path)).status_code for path in reads]
    items = (await world.call("GET", "/products")).json()["items"]

    assert meanwhile == reads_before
    assert (results[0]["status"] == 201) == is_good
    assert statuses_after == ([200] * 4 if is_good else [404, 404, 200, 200])
    assert [item["slug"] for item in items] == (["saga"] if is_good else [])


async def test_a_batch_of_reads_opens_no_write_transaction(
    batches: Batches, paused_batch: tuple[asyncio.Event, asyncio.Event]
) -> None:
    batch_begun, may_commit = paused_batch
    reading_task = asyncio.create_task(batches.results([get("/products"), get("/library")], mode="atomic"))
    await batch_begun.wait()

    created_response = await batches.world.call("POST", "/products", batches.owner, json=product("meanwhile"))
    may_commit.set()

    assert created_response.status_code == 201
    assert statuses(await reading_task) == [200, 200]


async def test_jobs_are_created_only_if_the_batch_is_committed(batches: Batches) -> None:
    shop = await open_shop(batches.world)
    artifact = await shop.upload(b"a file", "a.bin")
    job = post("/jobs", {"type": "artifact.verify", "payload": {"artifact_id": artifact["id"]}}, Prefer="wait=20")
    rows_before = await batches.all_rows()

    failed = await batches.results([job, get("/products/nothing")], shop.token, mode="atomic")
    rows_after = await batches.all_rows()
    (kept_result,) = await batches.results([job], shop.token, mode="atomic")

    assert (statuses(failed), rows_after) == ([424, 404], rows_before)
    # No worker can run a job before the batch ends, so the batch does not wait for it.
    assert (kept_result["status"], kept_result["body"]["status"]) == (202, "queued")
    assert kept_result["headers"]["Location"].endswith(kept_result["body"]["job_id"])
    assert (await batches.world.call("GET", f"/jobs/{kept_result['body']['job_id']}", shop.token)).status_code == 200


async def test_a_batch_that_takes_too_long_is_undone(
    batches: Batches, monkeypatch: pytest.MonkeyPatch, transaction_waits: TransactionWaits
) -> None:
    """On SQLite, every other writer waits for the batch."""
    # A million codes are derived in a thread. A batch must not issue so many.
    transaction_waits.allow("redeem/codes.py:prepare_batch")
    await batches.world.product("north", "one")
    rows_before = await batches.all_rows()
    monkeypatch.setattr(batch, "MAX_ATOMIC_S", 0.25)
    slow_operation = post("/codes", {"kind": "license", "products": ["one"], "count": 1_000_000})

    results = await batches.results([post("/products", product("two")), *[slow_operation] * 49], mode="atomic")

    failed = next(result for result in results if result["status"] != 424)
    assert (failed["status"], failed["body"]["code"]) == (503, "unavailable")
    assert results[0]["status"] == 424
    assert await batches.all_rows() == rows_before


async def test_a_fault_inside_takes_everything_back(batches: Batches, monkeypatch: pytest.MonkeyPatch) -> None:
    rows_before = await batches.all_rows()
    original_read = App._read  # pyright: ignore[reportPrivateUsage]

    async def broken(app: Any, route: Any, call: Any, exchange: Any) -> Any:
        if route.path == "/library":
            raise RuntimeError("the secret of the house")
        return await original_read(app, route, call, exchange)

    monkeypatch.setattr(App, "_read", broken)

    results = await batches.results([*STORY[:2], get("/library")], mode="atomic")

    assert statuses(results) == [424, 424, 500]
    assert "secret" not in str(results)
    assert await batches.all_rows() == rows_before


async def test_one_of_two_batches_with_the_same_name_is_applied_completely(batches: Batches) -> None:
    world = batches.world
    for number in range(10):
        both_batches = [
            [post("/products", product(f"{side}-{number}")), post("/products", product(f"same-{number}")),
             post(f"/products/{side}-{number}/releases", RELEASE)]
            for side in ("left", "right")
        ]  # fmt: skip
        results = await asyncio.gather(*(batches.results(batch, mode="atomic") for batch in both_batches))

        statuses_by_batch = [statuses(result) for result in results]
        assert sorted(statuses_by_batch) == [[201, 201, 201], [424, 409, 424]]
        for side, batch_statuses in zip(("left", "right"), statuses_by_batch, strict=True):
            response = await world.call("GET", f"/products/{side}-{number}", batches.owner)
            assert response.status_code == (200 if batch_statuses[0] == 201 else 404)


async def test_batches_beside_other_writers_end_whole_and_soon(batches: Batches) -> None:
    """The test runs more batches at the same time than the pool has connections, on the same products."""
    world = batches.world
    for slug in ("one", "two"):
        await world.product("north", slug)

    async def batch(number: int, *order: str) -> list[dict[str, Any]]:
        operations = [put(f"/products/{slug}", product(slug, title=f"Batch {number}")) for slug in order]
        return await batches.results([*operations, get("/products/one"), get("/catalog")], mode="atomic")

    async def write_alone(number: int, slug: str) -> httpx.Response:
        body = product(slug, title=f"Alone {number}")
        return await world.call("PUT", f"/products/{slug}", batches.owner, json=body)

    orders = [("one", "two"), ("two", "one")]
    async with asyncio.timeout(30):
        batch_results, other_responses = await asyncio.gather(
            asyncio.gather(*(batch(number, *order) for number, order in enumerate(orders * 12))),
            asyncio.gather(*(write_alone(number, slug) for number, slug in enumerate(orders[0] * 6))),
        )

    kinds = Counter(tuple(sorted(statuses(results))) for results in batch_results)
    # If two transactions wait for each other, PostgreSQL ends one of them, which may be retried.
    assert kinds.keys() <= {(200, 200, 200, 200), (424, 424, 424, 503)}
    assert kinds[200, 200, 200, 200]
    assert {response.status_code for response in other_responses} <= {200, 503}


async def create_products(batches: Batches) -> tuple[str, str]:
    """Create what the mix needs: products, releases, an artifact and a code. Return the id of the artifact."""
    shop = await open_shop(batches.world)
    world = batches.world
    await world.product("north", "hill")
    await world.product("south", "south-game")
    await world.call("POST", "/products/river/releases", batches.owner, json={"version": "0.9.0", "channel": "beta"})
    artifact = await shop.upload(b"a file", "a.bin")
    promo = {"kind": "promo", "products": ["hill"], "count": 1, "max_uses": 1000}
    (code,) = (await world.call("POST", "/codes", batches.owner, json=promo)).json()["codes"]
    return artifact["id"], code


class RandomBatch:
    """Random operations, each of which would succeed after the operations before it."""

    def __init__(self, seed: int, artifact_id: str, code: str) -> None:
        self.rng = random.Random(seed)
        self.seed = seed
        self.artifact_id = artifact_id
        self.code = code
        self.made: list[str] = []

    def good(self) -> dict[str, Any]:
        """Return an operation that succeeds after the previous ones."""
        number = len(self.made)
        slug = f"mix-{self.seed}-{number}"
        self.made.append(slug)
        return self.rng.choice([self._writing, self._reading])(slug)

    def _writing(self, slug: str) -> dict[str, Any]:
        verify = {"type": "artifact.verify", "payload": {"artifact_id": self.artifact_id}}
        media = {"kind": "icon", "filename": "i.png", "size": 10, "alt": "an icon"}
        return self.rng.choice(
            [
                post("/products", product(slug)),
                post("/products", product(slug, status="public", tags=["new"])),
                put("/products/river", product("river", title=slug)),
                post("/products/river/releases", {"version": f"2.{len(self.made)}", "channel": "beta"}),
                put("/products/river/releases/1.0.0", {"notes": slug}),
                post("/products/river/releases/1.0.0/promote", {"channel": "beta"}),
                post("/products/river/media", media),
                post("/products/river/releases/0.9.0/artifacts", {"filename": f"{slug}.zip", "size": 10}),
                post("/codes", {"kind": "promo", "products": ["river"], "count": 2, "max_uses": 5}),
                post("/redeem", {"code": self.code}),
                post("/jobs", verify),
                put("/org", {"name": slug}),
                post("/org/members", {"email": f"{slug}@north.example", "role": "viewer"}),
                post("/org/clients", {"name": slug, "scopes": ["read:products"]}),
                post("/org/signing-keys"),
            ]
        )

    def _reading(self, _slug: str) -> dict[str, Any]:
        paths = (
            "/products",
            "/products/river",
            "/catalog",
            "/library",
            "/codes",
            "/org",
            "/org/usage",
            "/jobs",
            "/info",
        )
        return get(self.rng.choice(paths))

    def bad(self) -> dict[str, Any]:
        """Return an operation that fails, in various ways and as late as possible."""
        return self.rng.choice(
            [
                get("/products/nothing"),
                get("/nowhere"),
                get("/products?limit=0"),
                post("/products", product("river")),
                put("/products/river", product("hill")),
                put("/products/river", product("river"), If_Match='"other"'),
                post("/products/river/releases", {"version": "1.0.0", "channel": "beta"}),
                put("/products/south-game", product("south-game")),
                post("/products/river/releases/0.9.0/yank", {"reason": "x"}),
                post("/codes", {"kind": "license", "products": ["nothing"], "count": 1}),
                post("/jobs", {"type": "no.such", "payload": {}}),
                post("/info", {}),
                post("/batch", {"operations": [get("/info")]}),
                post("/auth/token", {}),
                post("/products", {}),
            ]
        )


async def test_a_batch_that_fails_anywhere_leaves_the_database_as_it_was(
    batches: Batches, is_full: bool, figures: Figures
) -> None:
    artifact_id, code = await create_products(batches)
    rows_before = await batches.all_rows()
    seed_count = FULL if is_full else SAMPLE
    ran = 0

    for seed in range(seed_count):
        mix = RandomBatch(seed, artifact_id, code)
        failing_index = mix.rng.randrange(8)
        operations = [mix.good() for _ in range(failing_index)]
        operations += [mix.bad(), *(mix.good() for _ in range(mix.rng.randrange(4)))]
        results = await batches.results(operations, mode="atomic")

        expected_codes = ["batch_rolled_back"] * len(operations)
        assert [code for index, code in enumerate(codes(results)) if index != failing_index] == expected_codes[1:], (
            seed,
            results,
        )
        assert 400 <= statuses(results)[failing_index] < 500
        assert results[failing_index]["body"]["code"] != "batch_rolled_back"
        assert await batches.all_rows() == rows_before, (seed, operations)
        ran += failing_index
    figures |= {"batches": seed_count, "operations_undone": ran, "differences": 0}


async def test_every_operation_of_the_mix_has_an_effect_when_the_batch_is_good(batches: Batches) -> None:
    """This ensures that the test above rolls something back."""
    artifact_id, code = await create_products(batches)
    for seed in range(12):
        mix = RandomBatch(seed, artifact_id, code)
        # Other batches use other versions.
        mix.made = [""] * seed * 8
        rows_before = await batches.all_rows()

        results = await batches.results([mix.good() for _ in range(8)], mode="atomic")

        assert all(status < 300 for status in statuses(results)), results
        assert await batches.all_rows() != rows_before


async def test_a_nested_database_is_no_longer_used_when_its_time_is_over(batches: Batches) -> None:
    async with batches.world.store.database.transaction() as transaction:
        nested = NestedTransaction(batches.world.store.database.dialect, transaction, until_s=clock.monotonic_s() - 1)
        for nested_read in (nested.fetch("SELECT 1"), nested.fetch_one("SELECT 1"), nested.scan("SELECT 1")):
            with pytest.raises(Unavailable):
                await nested_read
        with pytest.raises(Unavailable):
            async with nested.transaction():
                raise AssertionError("the block was entered")
