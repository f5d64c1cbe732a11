"""Measures the time from the start of a server until its first response, and its memory then: ours with a new database
(with and without demonstration data) and with an existing database, and the peer."""

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
from processes import ROOT, pss_mib, running, tree, worker

MAX_START_S = 60


def start(data: Path, url: str, log: Path, *arguments: str) -> tuple[float, float]:
    """Start our server. Return the seconds until the first response, and the memory (PSS) of all its processes in
    MiB."""
    from tests.servers.process import free_port

    port = free_port()
    command = [sys.executable, "-m", "countersign.cli.main", "serve", "distribution", "--data", str(data)]
    environment = {"PYTHONPATH": str(ROOT / "src")}
    if url:
        environment |= {"COUNTERSIGN_DATABASE_URL": url, "COUNTERSIGN_MASTER_KEY": seed.MASTER_KEY}
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    began_s = time.monotonic()
    with running([*command, "--port", str(port), *arguments], log=log, environment=environment) as process:
        while True:
            try:
                opener.open(f"http://127.0.0.1:{port}/api/v1/health", timeout=5).close()
                return time.monotonic() - began_s, sum(map(pss_mib, tree(process.pid)))
            except (urllib.error.URLError, ConnectionError) as error:
                if process.poll() is not None or time.monotonic() - began_s > MAX_START_S:
                    raise RuntimeError(log.read_text()) from error
            time.sleep(0.005)


def peer(bench: Bench, seed_data: seed.Seeded) -> tuple[float, float]:
    """Start the peer. Return the seconds until the first response, and its memory in MiB."""
    began_s = time.monotonic()
    configuration = {"contender": "peer", "database_url": seed_data.database_url, "data": str(seed_data.data)}
    with worker(configuration, bench.folder, bench.cores) as started_worker:
        harness.ask(started_worker, "/products?limit=1")
        return time.monotonic() - began_s, started_worker.rss_mib()


def _new(bench: Bench, database: str, name: str) -> tuple[Path, str]:
    """Return the path of a new data directory, and the address of an empty database (empty: SQLite in the
    directory)."""
    data = bench.folder / f"{database}-{name}"
    if bench.cluster is None or database != "postgres":
        return data, ""
    bench.cluster.sql(f"CREATE DATABASE {name} TEMPLATE template0")
    return data, bench.cluster.url(name)


def measure(bench: Bench, database: str) -> None:
    """Measure a new database, the same database again, a new database with demonstration data, and the peer."""
    names = ("new database", "known database", "new, with --demo", "peer")
    times_by_name: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    with ExitStack() as stack:
        seed_data = stack.enter_context(seed.new(database, seed.Size(100), bench.folder, bench.cluster))
        for number in range(bench.options.rounds):
            log = bench.folder / "start.log"
            demo_folder = _new(bench, database, f"start_{number}")
            for name in ("new database", "known database"):
                times_by_name[name].append(start(*demo_folder, log))
            demo_time = _new(bench, database, f"demo_{number}")
            times_by_name["new, with --demo"].append(start(*demo_time, log, "--demo"))
            times_by_name["peer"].append(peer(bench, seed_data))
    print(f"\nstart on {database}")
    for name, name_times in times_by_name.items():
        seconds, memory = (statistics.median(values) for values in zip(*name_times, strict=True))
        print(f"  {name:16}{seconds * 1000:7.0f} ms until the first answer {memory:7.0f} MiB")
        bench.other[f"{database}, {name}"] = {"ms": round(seconds * 1000), "pss_mib": round(memory)}
    pairs = zip(times_by_name["new, with --demo"], times_by_name["new database"], strict=True)
    seeding_s = statistics.median(demo_time - empty_time for (demo_time, _), (empty_time, _) in pairs)
    print(f"  demonstration data takes {seeding_s:.2f} s")
    bench.other[f"{database}, demonstration data"] = {"ms": round(seeding_s * 1000)}


if __name__ == "__main__":
    with harness.bench("startup", "Start and memory", needs_load=False) as current:
        for engine in current.options.databases:
            measure(current, engine)
