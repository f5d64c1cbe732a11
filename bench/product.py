"""Measures GET /products/{slug} with 100,000 products: products that are not cached, and one cached product."""

import json
import random
from contextlib import ExitStack

import harness
import seed
from harness import Bench, Contender, Requests
from processes import Worker, worker

PRODUCTS = 100_000


def check(workers: dict[str, Worker], slugs: list[str]) -> None:
    """Require that all contenders respond with the same product. The other contenders may omit members of our
    response."""
    for slug in slugs[:3]:
        paths = {"ours": f"/api/v1/products/{slug}", "floor": f"/products/{slug}", "peer": f"/products/{slug}"}
        answers = [json.loads(harness.ask(workers[name], path)[0]) for name, path in paths.items()]
        own_product = harness.restrict(answers[0], answers[1])
        assert own_product == answers[1] == answers[2], "the contenders answer differently"


def measure(bench: Bench, database: str) -> None:
    """Measure all variants on one database."""
    with ExitStack() as stack:
        seed_data = stack.enter_context(seed.new(database, seed.Size(PRODUCTS), bench.folder, bench.cluster))
        worker_config = {"database_url": seed_data.database_url, "data": str(seed_data.data)}
        # The store caches fewer products than these, so no product is in its cache when it is requested again.
        slugs = random.Random(1).sample(seed_data.slugs, len(seed_data.slugs))

        def serve(name: str, **options: object) -> Worker:
            return stack.enter_context(
                worker({"contender": name, **worker_config, **options}, bench.folder, bench.cores)
            )

        workers = {name: serve(name) for name in ("ours", "floor", "peer")}
        check(workers, slugs)
        body, _ = harness.ask(workers["ours"], f"/api/v1/products/{slugs[0]}")
        workers["bare"] = serve("bare", body_bytes=len(body))
        prefixes = {"bare": "/products", "floor": "/products", "ours": "/api/v1/products", "peer": "/products"}
        requests_by_name = {
            name: [harness.get(f"{prefix}/{slug}") for slug in slugs] for name, prefix in prefixes.items()
        }
        first_comparison = bench.compare(
            database,
            "random products",
            [Contender(name, workers[name], Requests(requests_by_name[name])) for name in prefixes],
        )
        second_comparison = bench.compare(
            database,
            "one product repeated",
            [Contender(name, workers[name], Requests(requests_by_name[name][:1])) for name in requests_by_name],
        )
        bench.aim(f"{database}, random products to the floor", first_comparison.ratios["ours/floor"], 0.7)
        bench.aim(f"{database}, repeated product to bare", second_comparison.ratios["ours/bare"], 0.35)
        bench.aim(f"{database}, random products to FastAPI + SQLAlchemy", first_comparison.ratios["ours/peer"], 4)


if __name__ == "__main__":
    with harness.bench("product", "GET /products/{slug} over 100,000 products") as running:
        for database in running.options.databases:
            measure(running, database)
