"""Measures the CPU time of a request with 1, 2 and 4 worker processes of the store, and what the workers wait for.

Two cores cannot show how throughput scales. The CPU time per request shows whether more workers cost more work: locks,
reads of versions, and retries. `waits` are reads and transactions per request, and their durations, from /metrics."""

import re
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import harness
import redeem
import seed
from harness import Bench, Contender, Requests
from processes import ROOT, Worker, listening

COUNTS = (1, 2, 4)
SIZE = seed.Size(products=10_000, persons=2_000, owned=10, codes=200_000)
WANTED_CPU = 1.1
"""The maximum ratio of the CPU time per request with several workers to that with one worker."""
_SUMS = re.compile(
    r'^countersign_database_(read|transaction|commit)_seconds_(sum|count)\{.*"distribution".*\} (\S+)$', re.MULTILINE
)


@contextmanager
def serve_workers(bench: Bench, seed_data: seed.Seeded, count: int) -> Iterator[tuple[Worker, int]]:
    """Serve the store with this number of workers. Return the server, whose CPU time includes its workers, and the port
    of the operator."""
    from tests.servers.process import free_port

    port, operator = free_port(), free_port()
    settings = seed.settings_of(seed_data)
    environment = {
        "PYTHONPATH": str(ROOT / "src"),
        "COUNTERSIGN_MASTER_KEY": settings.master_key,
        "COUNTERSIGN_DISTRIBUTION_URL": seed.ROOT_URL,
        "COUNTERSIGN_OPERATOR_PORT": str(operator),
        "COUNTERSIGN_JOB_WORKERS": "0",
        **{f"COUNTERSIGN_RATE_{name}": "2000000000" for name in ("ANONYMOUS", "PERSON", "TOKEN")},
    }
    if settings.database_url:
        environment["COUNTERSIGN_DATABASE_URL"] = settings.database_url
    command = [sys.executable, "-m", "countersign.cli.main", "serve", "store", "--data", seed_data.data]
    command += ["--port", str(port), "--workers", str(count)]
    with listening(command, port, log=bench.folder / f"workers-{port}.log", environment=environment) as server:
        yield server, operator


def waits(operator: int) -> dict[str, float]:
    """Return the sums and counts of reads, transactions and commits so far, of all workers."""
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
        f"http://127.0.0.1:{operator}/metrics", timeout=10
    ) as answer:
        text = answer.read().decode()
    totals: dict[str, float] = {}
    for lock_name, part_name, value in _SUMS.findall(text):
        totals[f"{lock_name} {part_name}"] = totals.get(f"{lock_name} {part_name}", 0.0) + float(value)
    return totals


def requests_of(seed_data: seed.Seeded) -> dict[str, Requests]:
    """Return the requests of each kind: random pages, libraries, and codes that are redeemed once."""
    pages = [harness.get(f"/api/v1/products?limit=20&cursor={cursor}") for cursor in seed_data.cursors]
    libraries = [harness.get("/api/v1/library", Authorization=f"Bearer {token}") for token in seed_data.tokens]
    return {
        "random page": Requests(pages),
        "library": Requests(libraries),
        "redeem": redeem.requests(seed_data, "ours"),
    }


def measure(bench: Bench, database: str) -> None:
    """Measure all numbers of workers on copies of one store, in turn."""
    with ExitStack() as stack:
        seed_data = stack.enter_context(seed.new(database, SIZE, bench.folder, bench.cluster))
        servers: dict[int, tuple[Worker, int]] = {}
        requests: dict[int, dict[str, Requests]] = {}
        for count in COUNTS:
            seed_copy = stack.enter_context(seed.copy(seed_data, bench.cluster))
            servers[count] = stack.enter_context(serve_workers(bench, seed_copy, count))
            requests[count] = requests_of(seed_copy)
        for kind in ("random page", "library", "redeem"):
            waits_before = {count: waits(operator) for count, (_, operator) in servers.items()}
            contenders = [
                Contender(f"{count} workers", servers[count][0], requests[count][kind]) for count in COUNTS
            ]
            table = bench.compare(database, kind, contenders)
            for count, contender in zip(COUNTS, table.contenders, strict=True):
                bench.other[f"{database}, {kind}, {count} workers: waits"] = difference(
                    waits_before[count], waits(servers[count][1])
                )
                if count > 1:
                    cpu_growth = (contender.cpu_us + contender.database_cpu_us) / (
                        table.contenders[0].cpu_us + table.contenders[0].database_cpu_us
                    )
                    bench.aim(f"{database}, {kind}: {WANTED_CPU} over CPU of {count} to 1", WANTED_CPU / cpu_growth, 1)


def difference(values_before: dict[str, float], values_after: dict[str, float]) -> dict[str, float]:
    """Return, for each wait, how often it happened meanwhile and its mean in microseconds."""
    figures: dict[str, float] = {}
    for lock_name in ("read", "transaction", "commit"):
        count, total_s = (
            values_after.get(f"{lock_name} {part_name}", 0.0) - values_before.get(f"{lock_name} {part_name}", 0.0)
            for part_name in ("count", "sum")
        )
        figures[f"{lock_name}s"] = count
        figures[f"{lock_name} µs"] = round(total_s / count * 1e6, 1) if count else 0.0
    return figures


if __name__ == "__main__":
    with harness.bench("workers", "the CPU time of a request with several workers") as running:
        for database in running.options.databases:
            measure(running, database)
