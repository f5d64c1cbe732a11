"""Compares this version with an earlier one on the same data: catalog, redeem and records, in interleaved rounds.

    python bench/versions.py [--base COMMIT] [--quick] [--rounds N] [--database sqlite|postgres|both]

The base is a commit (default: the commit in `bench/baseline`), which is checked out into a temporary folder. It must
have the same migrations as this version. A ratio is the requests per second of this version divided by those of the
base.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import catalog_page
import harness
import records_read
import records_seed
import redeem
import seed
from harness import Bench, Contender, Requests
from processes import ROOT, Worker, worker

BASELINE = ROOT / "bench" / "baseline"
PRODUCTS, LEADS = 20_000, 100_000
MIN_RATIO = 0.95
"""The minimum ratio. Two runs of the same version differ by up to 5 %."""

Serve = Callable[[str, Path, dict[str, object]], Worker]


@contextmanager
def checkout(commit: str, folder: Path) -> Iterator[Path]:
    """Check out the commit into a separate folder until the block ends."""
    tree = folder / "base"
    subprocess.run(["git", "worktree", "add", "--detach", "--quiet", tree, commit], cwd=ROOT, check=True)
    try:
        yield tree
    finally:
        subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=ROOT, check=True)


def compare(
    bench: Bench, database: str, variant: str, workers: dict[str, Worker], requests: dict[str, Requests]
) -> None:
    """Measure both versions, and compare this version with the base."""
    contenders = [Contender(name, workers[name], requests[name]) for name in workers]
    table = bench.compare(database, variant, contenders)
    bench.aim(f"{database}, {variant}, this version to the base", table.ratios["ours/base"], MIN_RATIO)


def store(bench: Bench, database: str, trees: dict[str, Path], stack: ExitStack) -> None:
    """Compare pages of the catalog that are not cached, one cached page, and redemptions."""
    size = seed.Size(products=PRODUCTS, persons=2_000, codes=400_000)
    seed_data = stack.enter_context(seed.new(database, size, bench.folder, bench.cluster))
    workers = store_workers(bench, seed_data, trees, stack)
    pages = [harness.get(path) for path in catalog_page.requests(seed_data)["ours"]]
    compare(bench, database, "random pages of 20", workers, {name: Requests(pages) for name in workers})
    compare(bench, database, "one page repeated", workers, {name: Requests(pages[:1]) for name in workers})
    codes = {name: redeem.requests(seed_data, "ours") for name in workers}
    compare(bench, database, "a code each", workers, codes)


def store_workers(
    bench: Bench, seed_data: seed.Seeded, trees: Mapping[str, Path], stack: ExitStack
) -> dict[str, Worker]:
    """Serve the store of each tree on a copy of the same data, until the stack closes."""
    workers: dict[str, Worker] = {}
    for name, tree in trees.items():
        seed_copy = stack.enter_context(seed.copy(seed_data, bench.cluster))
        worker_config = {
            "contender": "ours",
            "database_url": seed_copy.database_url,
            "data": str(seed_copy.data),
            "writes": True,
        }
        workers[name] = stack.enter_context(worker(worker_config, bench.folder, bench.cores, tree))
    return workers


def records(bench: Bench, database: str, trees: dict[str, Path], stack: ExitStack) -> None:
    """Compare reads and writes of leads by a person, and by an agent who sees placeholder tokens."""
    workers: dict[str, Worker] = {}
    seeds: dict[str, records_seed.Seeded] = {}
    for name, tree in trees.items():
        seed_data = records_seed.new(database, LEADS, bench.folder, bench.cluster, name=f"records_{name}")
        seeds[name] = stack.enter_context(seed_data)
        worker_config = {"database_url": seeds[name].database_url, "data": str(seeds[name].data)}
        workers[name] = stack.enter_context(
            worker({"contender": "records", **worker_config}, bench.folder, bench.cores, tree)
        )
    for command in ("get", "list", "update"):
        for user in ("manager", "agent of manager"):
            requests: dict[str, Requests] = {}
            for name in workers:
                ids = seeds[name].leads[:10_000]
                bodies: dict[str, list[dict[str, object]]] = {
                    "get": [{"id": id_} for id_ in ids],
                    "list": [{**records_read.PAGE, "limit": 50}],
                    "update": [{"id": id_, "title": f"{user} {turn}"} for turn in range(6) for id_ in ids],
                }
                requests[name] = records_read.requests_of(seeds[name], user, command, bodies[command])
            compare(bench, database, f"{command} by {user}", workers, requests)


def measure(bench: Bench, base: str) -> None:
    """Compare both services on each database."""
    bench.other["base"] = base
    with checkout(base, bench.folder) as tree:
        trees = {"base": tree, "ours": ROOT}
        for database in bench.options.databases:
            for service in (store, records):
                with ExitStack() as stack:
                    service(bench, database, trees, stack)


def base_of(arguments: list[str]) -> str:
    """Remove `--base COMMIT` from the arguments and return the commit. The default is the commit in
    `bench/baseline`."""
    if "--base" not in arguments:
        return BASELINE.read_text().split()[0]
    base_index = arguments.index("--base")
    base = arguments[base_index + 1]
    del arguments[base_index : base_index + 2]
    return base


if __name__ == "__main__":
    base = base_of(sys.argv)
    with harness.bench("versions", "this version against an earlier one") as running:
        measure(running, base)
