"""Finds out whether this working tree is slower than the commit in `bench/baseline`, with six short comparisons on
SQLite.

    python bench/guard.py

The program takes up to six minutes. A task is fast enough if it reaches 0.9 of the baseline's requests per second in at
least one of three comparisons. The program fails if a task is not fast enough. If the clone does not contain the commit
of the baseline, the program reports this and compares nothing. Both versions serve the same data, so the baseline must
have the same migrations.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import catalog_page
import harness
import records_read
import records_seed
import redeem
import seed
import tools_mcp
import versions
from harness import Bench, Contender, Options, Requests
from processes import ROOT, Cores, Worker, worker

MIN_RATIO = 0.9
ATTEMPTS = 3
PRODUCTS, PERSONS, CODES = 20_000, 2_000, 200_000
LEADS = 20_000
MIGRATIONS = ("src/countersign/store/migrations", "src/countersign/records/migrations")
QUICK = Options(("sqlite",), rounds=3, seconds=1, is_quick=True)

Trees = Mapping[str, Path]
Task = dict[str, Contender]
"""What both versions are compared at: maps "ours" and "base" to the contenders."""


def contenders(workers: Mapping[str, Worker], requests: Callable[[str], Requests]) -> Task:
    """Return both versions as contenders. `requests` returns the requests for a version."""
    return {name: Contender(name, workers[name], requests(name)) for name in workers}


@contextmanager
def store(bench: Bench, trees: Trees) -> Iterator[dict[str, Task]]:
    """Serve both versions of the store, and provide its tasks: a page of the catalog, its 304, and redeem."""
    size = seed.Size(products=PRODUCTS, persons=PERSONS, codes=CODES)
    with ExitStack() as stack:
        seed_data = stack.enter_context(seed.new("sqlite", size, bench.folder, None))
        workers = versions.store_workers(bench, seed_data, trees, stack)
        pages = [harness.get(path) for path in catalog_page.requests(seed_data)["ours"]]
        etags = {name: harness.ask(workers[name], catalog_page.PATH)[1]["etag"] for name in workers}
        yield {
            "catalog page": contenders(workers, lambda _: Requests(pages)),
            "304": contenders(
                workers, lambda name: Requests([harness.get(catalog_page.PATH, If_None_Match=etags[name])])
            ),
            "redeem": contenders(workers, lambda _: redeem.requests(seed_data, "ours")),
        }


@contextmanager
def records(bench: Bench, trees: Trees) -> Iterator[dict[str, Task]]:
    """Serve both versions of the records service, and provide its tasks: a lead, a masked list of 50, and a call of an
    MCP tool."""
    with ExitStack() as stack:
        workers: dict[str, Worker] = {}
        seeds: dict[str, records_seed.Seeded] = {}
        for name, tree in trees.items():
            new_seed = records_seed.new("sqlite", LEADS, bench.folder, None, name=f"records_{name}")
            seeds[name] = stack.enter_context(new_seed)
            worker_config = {
                "contender": "records",
                "database_url": seeds[name].database_url,
                "data": str(seeds[name].data),
            }
            workers[name] = stack.enter_context(worker(worker_config, bench.folder, bench.cores, tree))

        def get(name: str) -> Requests:
            bodies: list[dict[str, object]] = [{"id": lead} for lead in seeds[name].leads[:5000]]
            return records_read.requests_of(seeds[name], "manager", "get", bodies)

        def masked_list(name: str) -> Requests:
            page: dict[str, object] = {**records_read.NEW_LEADS_QUERY, "limit": 50}
            return records_read.requests_of(seeds[name], "agent of manager", "list", [page])

        yield {
            "get": contenders(workers, get),
            "masked list of 50": contenders(workers, masked_list),
            "MCP call": contenders(workers, lambda name: tools_mcp.over_mcp(seeds[name], "agent of manager")),
        }


def is_fast_enough(bench: Bench, name: str, task: Task) -> bool:
    """Return whether at least one of three comparisons reaches the minimum ratio."""
    for _ in range(ATTEMPTS):
        ratio = bench.compare("sqlite", name, list(task.values())).ratios["ours/base"]
        if ratio >= MIN_RATIO:
            return True
    print(f"  SLOWER  {name}: below {MIN_RATIO} of the baseline in {ATTEMPTS} of {ATTEMPTS} comparisons", flush=True)
    return False


def missing(base: str) -> str:
    """Return the reason why the baseline cannot be compared, or an empty text."""
    result = subprocess.run(["git", "cat-file", "-e", f"{base}^{{commit}}"], cwd=ROOT, capture_output=True, check=False)
    if result.returncode:
        return f"the baseline {base[:8]} is not in this clone (git fetch --unshallow brings it)"
    changed_result = subprocess.run(["git", "diff", "--quiet", base, "--", *MIGRATIONS], cwd=ROOT, check=False)
    if changed_result.returncode:
        return f"the baseline {base[:8]} has other migrations: name a commit that has these in bench/baseline"
    return ""


def main() -> int:
    """Compare everything; return 1 if something is slower, and 0 otherwise."""
    base = versions.BASELINE.read_text().split()[0]
    if reason := missing(base):
        print(f"Nothing is compared: {reason}.")
        return 0
    harness.load.generator()
    with tempfile.TemporaryDirectory(prefix="countersign-guard-") as folder:
        bench = Bench("guard", QUICK, Path(folder), Cores.of_machine(), None)
        slower: list[str] = []
        with versions.checkout(base, bench.folder) as tree:
            for service in (store, records):
                with service(bench, {"base": tree, "ours": ROOT}) as tasks:
                    slower += [name for name, task in tasks.items() if not is_fast_enough(bench, name, task)]
    print(f"\nSlower than {base[:8]}: {', '.join(slower) or 'nothing'}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
