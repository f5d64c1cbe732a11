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
        ours = harness.restrict(answers[0], answers[1])
        assert ours == answers[1] == answers[2], "the contenders answer differently"


def measure(bench: Bench, database: str) -> None:
    """Measure all variants on one database."""
    with ExitStack() as stack:
        seeded = stack.enter_context(seed.new(database, seed.Size(PRODUCTS), bench.folder, bench.cluster))
        place = {"database_url": seeded.database_url, "data": str(seeded.data)}
        # The store caches fewer products than these, so no product is in its cache when it is requested again.
        slugs = random.Random(1).sample(seeded.slugs, len(seeded.slugs))

        def serve(name: str, **more: object) -> Worker:
            return stack.enter_context(worker({"contender": name, **place, **more}, bench.folder, bench.cores))

        workers = {name: serve(name) for name in ("ours", "floor", "peer")}
        check(workers, slugs)
        body, _ = harness.ask(workers["ours"], f"/api/v1/products/{slugs[0]}")
        workers["bare"] = serve("bare", body_bytes=len(body))
        prefixes = {"bare": "/products", "floor": "/products", "ours": "/api/v1/products", "peer": "/products"}
        made = {name: [harness.get(f"{prefix}/{slug}") for slug in slugs] for name, prefix in prefixes.items()}
        once = bench.compare(
            database, "random products", [Contender(name, workers[name], Requests(made[name])) for name in prefixes]
        )
        again = bench.compare(
            database,
            "one product repeated",
            [Contender(name, workers[name], Requests(made[name][:1])) for name in made],
        )
        bench.aim(f"{database}, random products to the floor", once.ratios["ours/floor"], 0.7)
        bench.aim(f"{database}, repeated product to bare", again.ratios["ours/bare"], 0.35)
        bench.aim(f"{database}, random products to FastAPI + SQLAlchemy", once.ratios["ours/peer"], 4)


if __name__ == "__main__":
    with harness.bench("product", "GET /products/{slug} over 100,000 products") as running:
        for each in running.options.databases:
            measure(running, each)
