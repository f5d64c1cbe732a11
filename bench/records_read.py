"""Reading and writing leads: get, list, search, create, as a person and as a masked agent, to SQL by hand."""

import json
import os
from contextlib import ExitStack

import harness
import records_seed
from harness import Bench, Contender, Requests
from processes import Worker, worker
from records_seed import Seeded

LEADS = int(os.environ.get("BENCH_LEADS", "1000000"))
PAGE = {"filter": [{"field": "stage", "op": "eq", "value": "new"}], "order": [{"field": "expected_close"}]}


def asked(seeded: Seeded, who: str, command: str, bodies: list[dict[str, object]], *, once: bool = False) -> Requests:
    """The command with each body, by somebody."""
    headers = {"Authorization": f"Bearer {seeded.tokens[who]}"}
    path = f"/api/lead/{command}"
    return Requests([harness.post(path, json.dumps(body).encode(), **headers) for body in bodies], once=once)


def measure(bench: Bench, database: str) -> None:
    """All variants on one database."""
    with ExitStack() as stack:
        seeded = stack.enter_context(records_seed.new(database, LEADS, bench.folder, bench.cluster))
        place = {"database_url": seeded.database_url, "data": str(seeded.data)}

        def serve(name: str, **more: object) -> Worker:
            return stack.enter_context(worker({"contender": name, **place, **more}, bench.folder, bench.cores))

        ours, floor = serve("records"), serve("records-floor")
        gets: list[dict[str, object]] = [{"id": each} for each in seeded.leads[:5000]]
        variants: dict[str, tuple[str, list[dict[str, object]]]] = {
            "get": ("get", gets),
            "list of 50": ("list", [{**PAGE, "limit": 50}]),
            "search of 50 with total": ("search", [{**PAGE, "limit": 50}]),
            "list of 5,000": ("list", [{**PAGE, "limit": 5000}]),
        }
        for variant, (command, bodies) in variants.items():
            table = bench.compare(
                database,
                f"{variant}, {LEADS:,} leads",
                [
                    Contender("floor", floor, asked(seeded, "manager", command, bodies)),
                    Contender("ours", ours, asked(seeded, "manager", command, bodies)),
                    Contender("ours masked", ours, asked(seeded, "agent of manager", command, bodies)),
                ],
            )
            if variant in ("get", "list of 50"):
                bench.aim(f"{database}, {variant} to the floor", table.ratios["ours/floor"], 0.6)
            bench.aim(f"{database}, {variant}, masked to clear", table.ratios["ours masked/ours"], 0.8)
        restricted = bench.compare(
            database,
            "list of 50 as a restricted role",
            [Contender("ours", ours, asked(seeded, "agent of clerk", "list", [{**PAGE, "limit": 50}]))],
        )
        bench.aim(f"{database}, 50 ms over p99 of a restricted list", 50 / restricted.contenders[0].p99_ms, 1)
        bodies = [{"title": f"New {n}", "contact_email": f"n{n}@new.example"} for n in range(60_000)]
        unaudited = serve("records-unaudited")
        written = bench.compare(
            database,
            "create, durable, 32 clients",
            [
                Contender("floor", floor, asked(seeded, "manager", "create", bodies)),
                Contender("ours", ours, asked(seeded, "manager", "create", bodies)),
                Contender("ours without audit", unaudited, asked(seeded, "manager", "create", bodies)),
            ],
        )
        rate = next(each.req_s for each in written.contenders if each.name == "ours")
        bench.aim(f"{database}, creates a second", rate, 2000 if database == "sqlite" else 0)
        bench.aim(f"{database}, audit on to off", written.ratios["ours/ours without audit"], 0.85)


if __name__ == "__main__":
    with harness.bench("records_read", "leads: get, list, search, create, by persons and agents") as running:
        for each in running.options.databases:
            measure(running, each)
