"""Measures GET /library of 1,000 persons with 1,000,000 entitlements in the table (100,000 owners of 10 products
each)."""

import json
from contextlib import ExitStack
from urllib.parse import quote

import harness
import seed
from contenders.peer import token_of
from harness import Bench, Contender, Requests
from processes import Worker, worker

SIZE = seed.Size(products=100_000, persons=100_000, owned=10)
CALLERS = 1_000


def measure(bench: Bench, database: str) -> None:
    """Measure one database."""
    with ExitStack() as stack:
        seed_data = stack.enter_context(seed.new(database, SIZE, bench.folder, bench.cluster))
        worker_config = {"database_url": seed_data.database_url, "data": str(seed_data.data)}
        persons = seed_data.persons[:CALLERS]
        tokens = {"ours": seed_data.tokens[:CALLERS], "peer": [token_of(person) for person in persons]}
        owners = [quote(f"person:{person}") for person in persons]

        def serve(name: str, **options: object) -> Worker:
            return stack.enter_context(
                worker({"contender": name, **worker_config, **options}, bench.folder, bench.cores)
            )

        workers = {name: serve(name) for name in ("ours", "floor", "peer")}
        first_tokens = {name: f"Bearer {each[0]}" for name, each in tokens.items()}
        body, _ = harness.ask(workers["ours"], "/api/v1/library", Authorization=first_tokens["ours"])
        floor, _ = harness.ask(workers["floor"], f"/library?owner={owners[0]}")
        peer, _ = harness.ask(workers["peer"], "/library", Authorization=first_tokens["peer"])
        own_library, floor_library = json.loads(body), json.loads(floor)
        assert harness.restrict(own_library, floor_library) == floor_library == json.loads(peer), (
            "the contenders answer differently"
        )
        assert len(own_library) == SIZE.owned
        workers["bare"] = serve("bare", body_bytes=len(body))
        own_requests = [harness.get("/api/v1/library", Authorization=f"Bearer {token}") for token in tokens["ours"]]
        requests_by_name = {
            "bare": own_requests,
            "floor": [harness.get(f"/library?owner={owner}") for owner in owners],
            "ours": own_requests,
            "peer": [harness.get("/library", Authorization=f"Bearer {token}") for token in tokens["peer"]],
        }
        table = bench.compare(
            database,
            "libraries of 1,000 persons",
            [Contender(name, workers[name], Requests(requests_by_name[name])) for name in requests_by_name],
        )
        bench.aim(f"{database}, to the floor", table.ratios["ours/floor"], 0.7)
        bench.aim(f"{database}, to FastAPI + SQLAlchemy", table.ratios["ours/peer"], 4)


if __name__ == "__main__":
    with harness.bench("library", "GET /library with 1,000,000 entitlements in the table") as running:
        for database in running.options.databases:
            measure(running, database)
