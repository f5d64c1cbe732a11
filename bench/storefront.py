"""Measures the front page and lists with facet counts with 100,000 products, as p50 and p95 of one caller.

The catalog changes before each request for the front page. Each list, with different filters and facets, is requested
once.
"""

import argparse
import asyncio
import json
import random
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import harness
import httpx
import seed
from processes import Cluster, Cores, postgres

from countersign.kernel.database import versions
from countersign.store.app import create, open_store

PRODUCTS = 100_000
REQUESTS = 400
AIM_P95_MS = 30.0
RESULTS = harness.RESULTS / "storefront.json"
FACETS = "kind,platform,access,since,tag"


def lists() -> list[str]:
    """Return queries with no filter, one filter or two filters. Every call returns the same queries."""
    rng = random.Random(1)
    queries: list[str] = []
    for number in range(REQUESTS):
        filters = {
            "kind": ("game", "app", "tool"),
            "platform": ("linux", "windows", "macos"),
            "tag": ("quiet", "harbor", "river", "signal"),
            "access": ("entitled", "free"),
            "published_since": ("2026-01-01", "2026-01-02"),
        }
        selected_filters = rng.sample(sorted(filters), rng.randrange(0, 3))
        parameters = [f"{name}={rng.choice(filters[name])}" for name in selected_filters]
        queries.append("&".join([*parameters, f"limit={20 + number % 20}"]))
    return queries


def paths() -> dict[str, list[str]]:
    """Map each kind of request to its paths."""
    return {
        "home": ["/store/home"] * 100,
        "facets": [f"/products?facets={FACETS}&{query}" for query in lists()],
        "the same lists without": [f"/products?{query}" for query in lists()],
        "searches without": [f"/products?q={number:06d}" for number in range(0, 100_000, 2_000)],
        "facets of a search": [f"/products?facets={FACETS}&q={number:06d}" for number in range(0, 100_000, 2_000)],
    }


async def measure(seed_data: seed.Seeded, cluster: Cluster | None) -> dict[str, list[float]]:
    """Map each kind of request to the milliseconds of its responses."""
    if cluster is not None:
        await asyncio.to_thread(cluster.sql, "VACUUM ANALYZE", seed_data.database_url)
    durations_by_name: dict[str, list[float]] = {}
    async with open_store(seed.settings_of(seed_data), seed.ROOT_URL, is_loopback=True) as store:
        transport = httpx.ASGITransport(create(store))
        async with httpx.AsyncClient(transport=transport, base_url=seed.ROOT_URL) as client:
            began_s = time.perf_counter()
            await client.get(f"/api/v1/products?facets={FACETS}")
            durations_by_name["the first use of the sets"] = [(time.perf_counter() - began_s) * 1000]
            for name, page_paths in paths().items():
                durations_by_name[name] = []
                for path in page_paths:
                    if name == "home":
                        async with store.database.transaction() as transaction:
                            await versions.bump(transaction, "catalog")
                    began_s = time.perf_counter()
                    answer = await client.get(f"/api/v1{path}")
                    durations_by_name[name].append((time.perf_counter() - began_s) * 1000)
                    assert answer.status_code == 200, (path, answer.text)
    return durations_by_name


async def prepare(seed_data: seed.Seeded) -> None:
    """Fill the tables that counts of lists and searches use."""
    async with open_store(seed.settings_of(seed_data), seed.ROOT_URL, is_loopback=True) as store:
        await seed.index_catalog(store.database)


def main() -> None:
    """Measure each engine, print the figures and write them to docs/results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engines", nargs="*", default=["sqlite", "postgres"])
    engines = parser.parse_args().engines
    results: dict[str, object] = {"benchmark": "storefront", "products": PRODUCTS, "aim_p95_ms": AIM_P95_MS}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cluster = stack.enter_context(postgres(Cores.of_machine())) if "postgres" in engines else None
        for engine in engines:
            with seed.new(engine, seed.Size(PRODUCTS), folder, cluster) as seed_data:
                seed.add(seed_data, seed.search_tables(seed_data))
                asyncio.run(prepare(seed_data))
                durations_by_name = asyncio.run(measure(seed_data, cluster if engine == "postgres" else None))
            figures: dict[str, dict[str, float]] = {}
            for name, times in durations_by_name.items():
                p95 = statistics.quantiles(times, n=20)[-1] if len(times) > 1 else times[0]
                figures[name] = {"p50_ms": round(statistics.median(times), 1), "p95_ms": round(p95, 1)}
                sys.stdout.write(f"{engine}, {name}: p50 {statistics.median(times):.1f} ms, p95 {p95:.1f} ms\n")
            results[engine] = figures
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
