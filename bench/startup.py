"""How long a start takes until the first answer, and the memory after it: ours on a new and a known database, peer."""

import statistics
import sys
import time
import urllib.error
import urllib.request
from contextlib import ExitStack
from pathlib import Path

import harness
import seed
from harness import Bench
from processes import ROOT, rss_mib, running, worker

LONGEST_S = 60


def start(data: Path, url: str, log: Path) -> tuple[float, float]:
    """Seconds until the first answer, and MiB of memory then."""
    from tests.servers.process import free_port

    port = free_port()
    command = [sys.executable, "-m", "countersign.cli.main", "serve", "distribution", "--data", str(data)]
    environment = {"PYTHONPATH": str(ROOT / "src")}
    if url:
        environment |= {"COUNTERSIGN_DATABASE_URL": url, "COUNTERSIGN_MASTER_KEY": seed.MASTER_KEY}
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    began_s = time.monotonic()
    with running([*command, "--port", str(port)], log=log, environment=environment) as process:
        while True:
            try:
                opener.open(f"http://127.0.0.1:{port}/api/v1/health", timeout=5).close()
                return time.monotonic() - began_s, rss_mib(process.pid)
            except (urllib.error.URLError, ConnectionError) as error:
                if process.poll() is not None or time.monotonic() - began_s > LONGEST_S:
                    raise RuntimeError(log.read_text()) from error
            time.sleep(0.005)


def peer(bench: Bench, seeded: seed.Seeded) -> tuple[float, float]:
    """The same of the peer."""
    began_s = time.monotonic()
    wanted = {"contender": "peer", "database_url": seeded.database_url, "data": str(seeded.data)}
    with worker(wanted, bench.folder, bench.cores) as started:
        harness.ask(started, "/products?limit=1")
        return time.monotonic() - began_s, started.rss_mib()


def measure(bench: Bench, database: str) -> None:
    """New database, the same again, and the peer."""
    found: dict[str, list[tuple[float, float]]] = {"new database": [], "known database": [], "peer": []}
    with ExitStack() as stack:
        seeded = stack.enter_context(seed.new(database, seed.Size(100), bench.folder, bench.cluster))
        for number in range(bench.options.rounds):
            data, url = bench.folder / f"start-{database}-{number}", ""
            if bench.cluster is not None and database == "postgres":
                bench.cluster.sql(f"CREATE DATABASE start_{number} TEMPLATE template0")
                url = bench.cluster.url(f"start_{number}")
            for name in ("new database", "known database"):
                found[name].append(start(data, url, bench.folder / "start.log"))
            found["peer"].append(peer(bench, seeded))
    print(f"\nstart on {database}")
    for name, each in found.items():
        seconds, memory = (statistics.median(values) for values in zip(*each, strict=True))
        print(f"  {name:16}{seconds * 1000:7.0f} ms until the first answer {memory:7.0f} MiB")
        bench.other[f"{database}, {name}"] = {"ms": round(seconds * 1000), "rss_mib": round(memory)}


if __name__ == "__main__":
    with harness.bench("startup", "Start and memory", needs_load=False) as current:
        for engine in current.options.databases:
            measure(current, engine)
