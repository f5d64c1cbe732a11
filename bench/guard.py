"""Six short comparisons of this working tree with the commit in `bench/baseline`, on SQLite: is anything slower?

    python bench/guard.py

Takes up to six minutes. A work that reaches 0.9 of the baseline's requests a second in one of three comparisons is
fast enough; the program fails when one does not. Without the baseline's commit, as in a shallow clone, it says so and
compares nothing. The baseline needs the same migrations, because both versions serve the same data.
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

SLOWEST = 0.9
ATTEMPTS = 3
PRODUCTS, PERSONS, CODES = 20_000, 2_000, 200_000
LEADS = 20_000
MIGRATIONS = ("src/countersign/store/migrations", "src/countersign/records/migrations")
QUICK = Options(("sqlite",), rounds=3, seconds=1, is_quick=True)

Trees = Mapping[str, Path]
Work = dict[str, Contender]


def contenders(workers: Mapping[str, Worker], requests: Callable[[str], Requests]) -> Work:
    """Both versions, each with requests of its own."""
    return {name: Contender(name, workers[name], requests(name)) for name in workers}


@contextmanager
def store(bench: Bench, trees: Trees) -> Iterator[dict[str, Work]]:
    """What is compared of the store: a page of the catalog, its 304, and redeem."""
    size = seed.Size(products=PRODUCTS, persons=PERSONS, codes=CODES)
    with ExitStack() as stack:
        seeded = stack.enter_context(seed.new("sqlite", size, bench.folder, None))
        workers: dict[str, Worker] = {}
        for name, tree in trees.items():
            copied = stack.enter_context(seed.copy(seeded, None))
            place = {"contender": "ours", "database_url": copied.database_url, "data": str(copied.data), "writes": True}
            workers[name] = stack.enter_context(worker(place, bench.folder, bench.cores, tree))
        pages = [harness.get(path) for path in catalog_page.requests(seeded)["ours"]]
        etags = {name: harness.ask(workers[name], catalog_page.PATH)[1]["etag"] for name in workers}
        yield {
            "catalog page": contenders(workers, lambda _: Requests(pages)),
            "304": contenders(
                workers, lambda name: Requests([harness.get(catalog_page.PATH, If_None_Match=etags[name])])
            ),
            "redeem": contenders(workers, lambda _: redeem.requests(seeded, "ours")),
        }


@contextmanager
def records(bench: Bench, trees: Trees) -> Iterator[dict[str, Work]]:
    """What is compared of records: a lead, a masked list of 50, and a call of an MCP tool."""
    with ExitStack() as stack:
        workers: dict[str, Worker] = {}
        seeds: dict[str, records_seed.Seeded] = {}
        for name, tree in trees.items():
            made = records_seed.new("sqlite", LEADS, bench.folder, None, name=f"records_{name}")
            seeds[name] = stack.enter_context(made)
            place = {"contender": "records", "database_url": seeds[name].database_url, "data": str(seeds[name].data)}
            workers[name] = stack.enter_context(worker(place, bench.folder, bench.cores, tree))

        def get(name: str) -> Requests:
            bodies: list[dict[str, object]] = [{"id": each} for each in seeds[name].leads[:5000]]
            return records_read.asked(seeds[name], "manager", "get", bodies)

        def masked_list(name: str) -> Requests:
            page: dict[str, object] = {**records_read.PAGE, "limit": 50}
            return records_read.asked(seeds[name], "agent of manager", "list", [page])

        yield {
            "get": contenders(workers, get),
            "masked list of 50": contenders(workers, masked_list),
            "MCP call": contenders(workers, lambda name: tools_mcp.over_mcp(seeds[name], "agent of manager")),
        }


def is_fast_enough(bench: Bench, name: str, work: Work) -> bool:
    """Whether one of three comparisons reaches the limit."""
    for _ in range(ATTEMPTS):
        ratio = bench.compare("sqlite", name, list(work.values())).ratios["ours/base"]
        if ratio >= SLOWEST:
            return True
    print(f"  SLOWER  {name}: below {SLOWEST} of the baseline in {ATTEMPTS} of {ATTEMPTS} comparisons", flush=True)
    return False


def missing(base: str) -> str:
    """Why the baseline cannot be compared with; empty if it can."""
    found = subprocess.run(["git", "cat-file", "-e", f"{base}^{{commit}}"], cwd=ROOT, capture_output=True, check=False)
    if found.returncode:
        return f"the baseline {base[:8]} is not in this clone (git fetch --unshallow brings it)"
    changed = subprocess.run(["git", "diff", "--quiet", base, "--", *MIGRATIONS], cwd=ROOT, check=False)
    if changed.returncode:
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
                with service(bench, {"base": tree, "ours": ROOT}) as works:
                    slower += [name for name, work in works.items() if not is_fast_enough(bench, name, work)]
    print(f"\nSlower than {base[:8]}: {', '.join(slower) or 'nothing'}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
