"""Measures GET /products?limit=20 with 100,000 products: pages that are not cached, one cached page, and its 304."""

import json
import random
from contextlib import ExitStack
from urllib.parse import urlencode

import harness
import seed
from contenders.peer import cursor_of
from harness import Bench, Contender, Requests
from processes import Worker, worker

PRODUCTS = 100_000
# The store caches fewer pages than this, so no page is in its cache when it is requested again.
PAGES = 40_000
PATH = "/api/v1/products?limit=20"


def requests(seed_data: seed.Seeded) -> dict[str, list[str]]:
    """Map each contender to its addresses of the same random pages."""
    positions = random.Random(1).sample(range(len(seed_data.pages) - 21), min(PAGES, len(seed_data.pages) - 21))
    keys = [seed_data.pages[position] for position in positions]
    floor = ["/products?" + urlencode({"limit": 20, "title": title, "id": each}) for title, each in keys]
    peer = ["/products?" + urlencode({"limit": 20, "cursor": cursor_of(*key)}) for key in keys]
    own_paths = [f"{PATH}&cursor={seed_data.cursors[position]}" for position in positions]
    return {"ours": own_paths, "floor": floor, "peer": peer, "bare": own_paths}


def check(workers: dict[str, Worker], paths: dict[str, list[str]]) -> None:
    """Require that all contenders respond with the same products. The other contenders may omit members of our
    response."""
    for number in (0, 1, 2):
        pages = [json.loads(harness.ask(workers[name], paths[name][number])[0]) for name in ("ours", "floor", "peer")]
        own_page = harness.restrict(pages[0]["items"], pages[1]["items"])
        assert own_page == pages[1]["items"] == pages[2]["items"], "the contenders answer differently"
        assert len(pages[0]["items"]) == 20


def measure(bench: Bench, database: str) -> None:
    """Measure all variants on one database."""
    with ExitStack() as stack:
        seed_data = stack.enter_context(seed.new(database, seed.Size(PRODUCTS), bench.folder, bench.cluster))
        worker_config = {"database_url": seed_data.database_url, "data": str(seed_data.data)}

        def serve(name: str, **options: object) -> Worker:
            return stack.enter_context(
                worker({"contender": name, **worker_config, **options}, bench.folder, bench.cores)
            )

        workers = {name: serve(name) for name in ("ours", "floor", "peer")}
        body, headers = harness.ask(workers["ours"], PATH)
        workers["bare"] = serve("bare", body_bytes=len(body))
        paths = requests(seed_data)
        check(workers, paths)
        requests_by_name = {name: [harness.get(path) for path in paths[name]] for name in workers}
        order = ("bare", "floor", "ours", "peer")
        pages = [Contender(name, workers[name], Requests(requests_by_name[name])) for name in order]
        random_pages = bench.compare(database, "random pages of 20", pages)
        first_requests = [Contender(name, workers[name], Requests(requests_by_name[name][:1])) for name in order]
        repeated = bench.compare(database, "one page repeated", first_requests)
        first_request = harness.get(PATH, If_None_Match=headers["etag"])
        empty = serve("bare", status=304)
        contenders = [
            Contender("bare 304", empty, Requests([first_request])),
            Contender("ours", workers["ours"], Requests([first_request])),
        ]
        not_modified = bench.compare(database, "one page, If-None-Match (304)", contenders)
        bench.aim(f"{database}, random pages to the floor", random_pages.ratios["ours/floor"], 0.7)
        bench.aim(f"{database}, repeated page to bare", repeated.ratios["ours/bare"], 0.35)
        bench.aim(f"{database}, 304 to bare", not_modified.ratios["ours/bare 304"], 0.35)
        bench.aim(f"{database}, random pages to FastAPI + SQLAlchemy", random_pages.ratios["ours/peer"], 4)


if __name__ == "__main__":
    with harness.bench("catalog_page", "GET /products?limit=20 over 100,000 products") as running:
        for database in running.options.databases:
            measure(running, database)
