"""Compares reading and writing leads, as a person and as a masked agent, with hand-written SQL and with a server that
sends constant bytes."""

import http.client
import json
import os
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import harness
import records_seed
from harness import Bench, Contender, Requests
from processes import Worker, worker
from records_seed import Seeded

LEADS = int(os.environ.get("BENCH_LEADS", "1000000"))
NEW_LEADS_QUERY = {"filter": [{"field": "stage", "op": "eq", "value": "new"}], "order": [{"field": "expected_close"}]}


def requests_of(
    seed_data: Seeded, user: str, command: str, bodies: list[dict[str, object]], *, is_single_pass: bool = False
) -> Requests:
    """Return a request of this caller with the command for each body."""
    headers = {"Authorization": f"Bearer {seed_data.tokens[user]}"}
    path = f"/api/lead/{command}"
    return Requests(
        [harness.post(path, json.dumps(body).encode(), **headers) for body in bodies], is_single_pass=is_single_pass
    )


@dataclass(frozen=True, slots=True)
class Servers:
    """Servers on one seeded database: ours, ours without audit, and hand-written SQL (the floor)."""

    seed_data: Seeded
    ours: Worker
    unaudited: Worker
    floor: Worker


def measure(bench: Bench, database: str) -> None:
    """Measure all variants on one database."""
    with ExitStack() as stack:
        seed_data = stack.enter_context(records_seed.new(database, LEADS, bench.folder, bench.cluster))
        worker_config = {"database_url": seed_data.database_url, "data": str(seed_data.data)}

        def serve(name: str) -> Worker:
            return stack.enter_context(worker({"contender": name, **worker_config}, bench.folder, bench.cores))

        records_servers = Servers(seed_data, serve("records"), serve("records-unaudited"), serve("records-floor"))
        read(bench, database, records_servers)
        read_all(bench, database, records_servers)
        write(bench, database, records_servers)


def read(bench: Bench, database: str, records_servers: Servers) -> None:
    """Measure responses with one record, with 50 and with 5,000, with a total and without."""
    seed_data, own_server = records_servers.seed_data, records_servers.ours
    get_bodies: list[dict[str, object]] = [{"id": lead} for lead in seed_data.leads[:5000]]
    variants: dict[str, tuple[str, list[dict[str, object]]]] = {
        "get": ("get", get_bodies),
        "list of 50": ("list", [{**NEW_LEADS_QUERY, "limit": 50}]),
        "search of 50 with total": ("search", [{**NEW_LEADS_QUERY, "limit": 50}]),
        "list of 5,000": ("list", [{**NEW_LEADS_QUERY, "limit": 5000}]),
    }
    for variant, (command, bodies) in variants.items():
        with serve_constant_bytes(bench, records_servers, command, bodies[0]) as bare_server:
            table = bench.compare(
                database,
                f"{variant}, {LEADS:,} leads",
                [
                    Contender("bare", bare_server, requests_of(seed_data, "manager", command, bodies)),
                    Contender("floor", records_servers.floor, requests_of(seed_data, "manager", command, bodies)),
                    Contender("ours", own_server, requests_of(seed_data, "manager", command, bodies)),
                    Contender("ours masked", own_server, requests_of(seed_data, "agent of manager", command, bodies)),
                ],
            )
        if variant in ("get", "list of 50"):
            bench.aim(f"{database}, {variant} to the floor", table.ratios["ours/floor"], 0.6)
        bench.aim(f"{database}, {variant}, throughput masked / clear", table.ratios["ours masked/ours"], 0.8)
    clerk_table = bench.compare(
        database,
        "list of 50 as a restricted role",
        [
            Contender(
                "ours", own_server, requests_of(seed_data, "agent of clerk", "list", [{**NEW_LEADS_QUERY, "limit": 50}])
            )
        ],
    )
    bench.aim(f"{database}, 50 ms / p99 of a restricted list", 50 / clerk_table.contenders[0].p99_ms, 1)


@contextmanager
def serve_constant_bytes(
    bench: Bench, records_servers: Servers, command: str, body: dict[str, object]
) -> Iterator[Worker]:
    """Run a server that sends as many constant bytes as the response to the command has."""
    with send_command(records_servers, "manager", command, body) as answer:
        size = len(answer.read())
    with worker({"contender": "bare", "body_bytes": size}, bench.folder, bench.cores) as bare_server:
        yield bare_server


@contextmanager
def send_command(
    records_servers: Servers, user: str, command: str, body: dict[str, object]
) -> Iterator[http.client.HTTPResponse]:
    """Send a command to our service, and provide the response before its body is read."""
    connection = http.client.HTTPConnection("127.0.0.1", records_servers.ours.port, timeout=120)
    headers = {"Authorization": f"Bearer {records_servers.seed_data.tokens[user]}", "Content-Type": "application/json"}
    connection.request("POST", f"/api/lead/{command}", json.dumps(body), headers)
    try:
        yield connection.getresponse()
    finally:
        connection.close()


def read_all(bench: Bench, database: str, records_servers: Servers) -> None:
    """Measure a list without limit: the time until its first byte, and the memory that it takes."""
    for user in ("manager", "agent of manager"):
        first_byte_times_ms: list[float] = []
        for _ in range(bench.options.rounds):
            started_s = time.perf_counter()
            with send_command(records_servers, user, "list", {}) as answer:
                answer.read(1)
                first_byte_times_ms.append((time.perf_counter() - started_s) * 1000)
        before_mib = peak_mib = records_servers.ours.own_mib()
        started_s, size = time.perf_counter(), 0
        with send_command(records_servers, user, "list", {}) as answer:
            while piece := answer.read(1 << 20):
                size += len(piece)
                peak_mib = max(peak_mib, records_servers.ours.own_mib())
        seconds = time.perf_counter() - started_s
        figures = {
            "first_byte_ms": round(statistics.median(first_byte_times_ms), 1),
            "seconds": round(seconds, 2),
            "body_mib": round(size / 2**20, 1),
            "grown_mib": round(peak_mib - before_mib, 1),
        }
        bench.other[f"{database}, list without limit, {user}"] = figures
        print(f"\nlist of all {LEADS:,} on {database}, {user}: {figures}")
        bench.aim(
            f"{database}, {user}: 50 ms / time to the first byte of the list of all leads",
            50 / figures["first_byte_ms"],
            1,
        )
        bench.aim(
            f"{database}, {user}: 32 MiB / memory for the list of all leads", 32 / max(figures["grown_mib"], 0.1), 1
        )


def write(bench: Bench, database: str, records_servers: Servers) -> None:
    """Measure creating and changing leads. Each change is durable before the response."""
    contenders = (
        ("floor", records_servers.floor, "manager"),
        ("ours", records_servers.ours, "manager"),
        ("ours masked", records_servers.ours, "agent of manager"),
        ("ours without audit", records_servers.unaudited, "manager"),
    )
    for command in ("create", "update"):
        table = bench.compare(
            database,
            f"{command}, durable, 32 clients",
            [
                Contender(
                    name,
                    server,
                    requests_of(
                        records_servers.seed_data, user, command, _bodies(records_servers.seed_data, command, name)
                    ),
                )
                for name, server, user in contenders
            ],
        )
        rate = next(contender.req_s for contender in table.contenders if contender.name == "ours")
        if command == "create" and database == "sqlite":
            bench.aim(f"{database}, creates a second", rate, 2000)
        bench.aim(f"{database}, {command}, throughput masked / clear", table.ratios["ours masked/ours"], 0.8)
        bench.aim(f"{database}, {command}, audit on to off", table.ratios["ours/ours without audit"], 0.85)


def _bodies(seed_data: Seeded, command: str, contender: str) -> list[dict[str, object]]:
    """Return the bodies for a contender. Each contender has different bodies, so that every update changes a value."""
    if command == "create":
        return [{"title": f"New {n}", "contact_email": f"n{n}@new.example"} for n in range(60_000)]
    return [{"id": lead, "title": f"{contender} {turn}"} for turn in range(6) for lead in seed_data.leads[:10_000]]


if __name__ == "__main__":
    with harness.bench("records_read", "leads: get, list, search, create, by persons and agents") as bench:
        for database in bench.options.databases:
            measure(bench, database)
