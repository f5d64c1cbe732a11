"""How the main operations grow with the data: p50, p99 and processor time at 10^5 and 10^6 rows, and the growth's
exponent.

    python bench/growth.py [--database sqlite|postgres]
    BENCH_SIZES=100000,1000000,10000000 python bench/growth.py

A store of N products has N entitlements, a tenth as many persons, and N codes up to a million; records have N leads and
N audit entries. Each operation is one client's requests, one after the other, with other parameters each time. The
exponent is the slope of log(time) over log(rows) between the smallest and the largest size: 0 is flat, 1 is linear.
`index` names the indexes that the plans of the operation's statements use at the largest size.

A finished size of an engine is kept in docs/results/growth.jsonl; a run that was interrupted continues after it.
"""

import asyncio
import http.client
import json
import math
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import quote

import growth_plans
import harness
import records_seed
import seed
from harness import Bench
from processes import Worker, worker

from countersign.store.app import open_store

SIZES = tuple(int(word) for word in os.environ.get("BENCH_SIZES", "100000,1000000").split(","))
REQUESTS, QUICK_REQUESTS = 400, 40
WARM_UP = 20
MAX_CODES = 1_000_000
WANTED_GROWTH = 1.3
"""The maximum ratio of an operation's time at the largest size to its time at the smallest size."""
UNBOUNDED = ("records: search with its exact total",)
"""Operations that count rows, which are measured without an aim."""
STORED = harness.RESULTS / "growth.jsonl"


@dataclass(frozen=True, slots=True)
class Call:
    """One request: its method, path, body and the bearer token of its caller."""

    method: str
    path: str
    body: dict[str, object] | None = None
    token: str = ""

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the request."""
        headers = {"Content-Type": "application/json"}
        return {**headers, "Authorization": f"Bearer {self.token}"} if self.token else headers

    @property
    def content(self) -> bytes | None:
        """The encoded body."""
        return None if self.body is None else json.dumps(self.body).encode()


Operations = dict[str, Callable[[], Call]]
"""Names of operations, and functions that return the next request of each."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Milliseconds and microseconds of processor time per request."""

    p50_ms: float
    p99_ms: float
    cpu_us: float
    database_cpu_us: float


def store_operations(seed_data: seed.Seeded) -> Operations:
    """Return the operations of the store's pages and of a customer."""
    rng = random.Random(1)
    codes = iter(seed_data.codes)
    person = lambda: rng.choice(seed_data.tokens)  # noqa: E731

    def page() -> Call:
        return Call("GET", f"/api/v1/products?cursor={quote(rng.choice(seed_data.cursors))}")

    def number() -> str:
        return rng.choice(seed_data.pages)[0][-6:]

    # Another limit each time, so that fewer answers are repeated from memory.
    def limited(query: str) -> Call:
        return Call("GET", f"/api/v1/products?{query}&limit={rng.randrange(1, 100)}")

    return {
        "store: page of 20 at a random place": page,
        "store: page of a tag": lambda: limited("tag=river"),
        "store: page of a tag, newest first": lambda: limited("tag=river&sort=-published_at"),
        "store: page of a tag and a rare word": lambda: limited(f"tag=river&q={number()}"),
        "store: search for a rare word": lambda: limited(f"q={number()}"),
        "store: search for a common word": lambda: limited("q=lantern"),
        "store: search for a common word, best first": lambda: limited("q=lantern&sort=relevance"),
        "store: facets with counts": lambda: limited("tag=river&facets=kind,platform,access,since,tag"),
        "store: suggestions": lambda: Call("GET", f"/api/v1/search/suggest?q={number()[:-1]}"),
        "store: one product": lambda: Call("GET", f"/api/v1/products/{rng.choice(seed_data.slugs)}"),
        "store: related products": lambda: Call("GET", f"/api/v1/products/{rng.choice(seed_data.slugs)}/related"),
        "store: a library of 10": lambda: Call("GET", "/api/v1/library", token=person()),
        "store: redeem a code": lambda: Call("POST", "/api/v1/redeem", {"code": next(codes)}, person()),
    }


def records_operations(seed_data: records_seed.Seeded, size: int) -> Operations:
    """Return the operations of a salesperson, and of an agent who reads without seeing personal data."""
    rng = random.Random(1)
    manager, agent = seed_data.tokens["manager"], seed_data.tokens["agent of manager"]
    stage = [{"field": "stage", "op": "eq", "value": "new"}]
    order = [{"field": "expected_close"}]

    def call(command: str, token: str = manager, **body: object) -> Call:
        return Call("POST", f"/api/lead/{command}", body, token)

    def lead() -> str:
        return rng.choice(seed_data.leads)

    def title() -> str:
        return f"Order {rng.randrange(size):07d} of a lead"

    by_title = lambda: [{"field": "title", "op": "eq", "value": title()}]  # noqa: E731
    return {
        "records: get": lambda: call("get", id=lead()),
        "records: get, masked": lambda: call("get", agent, id=lead()),
        "records: first page of 50 of a stage": lambda: call("list", filter=stage, order=order, limit=50),
        "records: the same, masked": lambda: call("list", agent, filter=stage, order=order, limit=50),
        "records: find by title": lambda: call("list", filter=by_title(), limit=50),
        "records: history of a lead": lambda: call("history", id=lead()),
        "records: create": lambda: call("create", title=title(), stage="new"),
        "records: update": lambda: call("update", id=lead(), title=title()),
        "records: search with its exact total": lambda: call("search", filter=stage, order=order, limit=50),
    }


def measure(bench: Bench, server: Worker, operation: Callable[[], Call], count: int) -> Figures:
    """Send this number of requests one after the other, after some requests that are not counted.

    Raises:
        RuntimeError: a request was refused.
    """
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)

    def send() -> float:
        call = operation()
        started_s = time.perf_counter()
        connection.request(call.method, call.path, call.content, call.headers)
        answer = connection.getresponse()
        content = answer.read()
        took_ms = (time.perf_counter() - started_s) * 1000
        if answer.status >= 400:
            raise RuntimeError(f"{call.method} {call.path}: {answer.status} {content[:300]!r}")
        return took_ms

    for _ in range(WARM_UP):
        send()
    server_s, database_s = server.cpu_s(), bench.cluster.cpu_s() if bench.cluster else 0.0
    durations = sorted(send() for _ in range(count))
    connection.close()
    server_s = server.cpu_s() - server_s
    database_s = bench.cluster.cpu_s() - database_s if bench.cluster else 0.0
    return Figures(
        round(durations[len(durations) // 2], 3),
        round(durations[min(len(durations) - 1, len(durations) * 99 // 100)], 3),
        round(server_s / count * 1e6, 1),
        round(database_s / count * 1e6, 1),
    )


def measure_all(bench: Bench, server: Worker, operations: Operations) -> Iterator[tuple[str, Figures]]:
    """Yield the figures of each operation, printed as they come."""
    count = QUICK_REQUESTS if bench.options.is_quick else REQUESTS
    for name, operation in operations.items():
        figures = measure(bench, server, operation, count)
        print(
            f"  {name:40}{figures.p50_ms:9.2f} ms p50{figures.p99_ms:9.2f} ms p99"
            f"{figures.cpu_us:10.0f} µs{figures.database_cpu_us:10.0f} µs database",
            flush=True,
        )
        yield name, figures


def figures_of(
    bench: Bench, contender: str, seed_data: seed.Seeded | records_seed.Seeded, operations: Operations
) -> dict[str, Figures]:
    """Return the figures of each operation, on a server of its own."""
    worker_config = {
        "contender": contender,
        "database_url": seed_data.database_url,
        "data": str(seed_data.data),
        "writes": True,
    }
    with worker(worker_config, bench.folder, bench.cores) as server:
        return dict(measure_all(bench, server, operations))


def next_calls(operations: Operations) -> dict[str, Call]:
    """Return the next request of each operation."""
    return {name: operation() for name, operation in operations.items()}


def measure_store(bench: Bench, database: str, size: int) -> dict[str, object]:
    """Return a store of this size: the figures, the indexes and the disk of each row."""
    amount = seed.Size(products=size, persons=size // 10, owned=10, codes=min(size, MAX_CODES))
    with ExitStack() as stack:
        seed_data = stack.enter_context(seed.new(database, amount, bench.folder, bench.cluster))
        seed.add(seed_data, seed.search_tables(seed_data))
        asyncio.run(_index_store(seed_data))
        growth_plans.run(bench, seed_data.database_url, "DROP INDEX bench_product_by_title")
        growth_plans.run(bench, seed_data.database_url, "ANALYZE")
        operations = store_operations(seed_data)
        figures = figures_of(bench, "ours", seed_data, operations)
        plans = growth_plans.of_store(seed_data, next_calls(operations))
        disk = growth_plans.disk(bench, seed_data.database_url)
    return {"figures": figures, "indexes": plans, "bytes_per_row": round(disk / size)}


async def _index_store(seed_data: seed.Seeded) -> None:
    async with open_store(seed.settings_of(seed_data), seed.ROOT_URL, is_loopback=True) as store:
        await seed.index_catalog(store.database)


def measure_records(bench: Bench, database: str, size: int) -> dict[str, object]:
    """Measure records of this size: the times, the indexes, and the disk space of each lead with its entry of the
    audit."""
    with ExitStack() as stack:
        seed_data = stack.enter_context(
            records_seed.new(database, size, bench.folder, bench.cluster, f"records_{size}")
        )
        records_seed.add_audit(seed_data, size)
        growth_plans.run(bench, seed_data.database_url, "ANALYZE")
        operations = records_operations(seed_data, size)
        figures = figures_of(bench, "records", seed_data, operations)
        plans = growth_plans.of_records(seed_data, next_calls(operations))
        disk = growth_plans.disk(bench, seed_data.database_url)
    return {"figures": figures, "indexes": plans, "bytes_per_row": round(disk / size)}


def exponent(smaller_size: int, larger_size: int, smaller_value: float, larger_value: float) -> float:
    """Return the slope of log(time) over log(rows)."""
    return round(math.log(larger_value / smaller_value) / math.log(larger_size / smaller_size), 3)


def measured_sizes_at_commit() -> list[dict[str, object]]:
    """Return the sizes that were measured at this commit."""
    lines = STORED.read_text().splitlines() if STORED.exists() else []
    return [entry for entry in map(json.loads, lines) if entry["commit"] == harness.commit()]


def size_of(bench: Bench, database: str, service: str, size: int) -> dict[str, object]:
    """Return the figures of this size: the stored figures, or newly measured ones."""
    wanted_values = {"commit": harness.commit(), "database": database, "service": service, "size": size}
    if not bench.options.is_quick and not harness.commit().endswith("+"):
        for entry in measured_sizes_at_commit():
            if entry.items() >= wanted_values.items():
                return entry
    print(f"\n{service} of {size:,} on {database}", flush=True)
    measures = {"store": measure_store, "records": measure_records}
    entry = wanted_values | json.loads(json.dumps(measures[service](bench, database, size), default=asdict))
    if not bench.options.is_quick:
        with STORED.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
    return entry


def growth(bench: Bench, database: str, service: str, sizes: Sequence[int]) -> None:
    """Measure a service at all sizes, and compare the largest with the smallest."""
    measurements: list[Any] = [size_of(bench, database, service, size) for size in sizes]
    largest = measurements[-1]
    for name in largest["figures"]:
        times = [measurement["figures"][name] for measurement in measurements]
        figures: dict[str, object] = {
            f"{size:,} rows, {percentile}": each[percentile]
            for size, each in zip(sizes, times, strict=True)
            for percentile in each
        }
        if len(sizes) > 1:
            for percentile in ("p50_ms", "p99_ms"):
                figures[f"exponent, {percentile}"] = exponent(
                    sizes[0], sizes[-1], times[0][percentile], times[-1][percentile]
                )
            growth_factor = times[-1]["p50_ms"] / times[0]["p50_ms"]
            if name not in UNBOUNDED:
                bench.aim(f"{database}, {name}: {WANTED_GROWTH} over its growth", WANTED_GROWTH / growth_factor, 1)
        figures["indexes"] = ", ".join(largest["indexes"][name])
        bench.other[f"{database}, {name}"] = figures
    bench.other[f"{service}, {database}: bytes per row"] = {f"{e['size']:,}": e["bytes_per_row"] for e in measurements}


if __name__ == "__main__":
    with harness.bench("growth", "how the main operations grow with the data", needs_load=False) as running:
        for database in running.options.databases:
            for part in ("store", "records"):
                growth(running, database, part, SIZES)
