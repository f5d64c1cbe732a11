"""Comparing contenders: interleaved rounds, medians, ratios within each round; a table, aims, stored figures."""

import argparse
import platform
import statistics
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import load
import msgspec
from load import Figures
from processes import ROOT, Cluster, Cores, Worker, pinned, postgres

RESULTS = ROOT / "docs" / "results"
ROUNDS, SECONDS, WARM_UP_S = 5, 3, 2


class Requests:
    """The raw requests that a contender is sent; each run goes on where the last one ended.

    Raises:
        LookupError: requests that may be sent `once` only are used up.
    """

    def __init__(self, made: Sequence[bytes], *, once: bool = False) -> None:
        self._made = made
        self._once = once
        self._place = 0

    def next(self, seconds: int) -> list[bytes]:
        """More than can be answered in this time; from the first again when they end, unless each may be sent once."""
        count = seconds * (12_000 if self._once else 25_000)
        if len(self._made) == 1:
            return [self._made[0]]
        if self._once and self._place + count > len(self._made):
            raise LookupError(f"all {len(self._made)} requests are used up: seed more")
        rest = [*self._made[self._place : self._place + count]]
        return [*rest, *self._made[: max(0, min(count - len(rest), self._place))]]

    def used(self, count: int) -> None:
        """So many were sent."""
        self._place = self._place + count if self._once else (self._place + count) % len(self._made)


@dataclass(frozen=True, slots=True)
class Contender:
    """One of those compared: its server and what it is asked."""

    name: str
    worker: Worker
    requests: Requests


class Measured(msgspec.Struct, kw_only=True):
    """Medians of one contender; CPU in microseconds a request, of the worker and of PostgreSQL's processes."""

    name: str
    req_s: float
    p50_ms: float
    p99_ms: float
    cpu_us: float
    database_cpu_us: float
    rounds_req_s: list[float]


class Table(msgspec.Struct, kw_only=True):
    """One comparison. `ratios` maps "a/b" to the median of the rounds' ratios of requests per second.

    `skipped` says of contenders that could not take part why.
    """

    database: str
    variant: str
    contenders: list[Measured]
    ratios: dict[str, float]
    skipped: dict[str, str] = {}


class Aim(msgspec.Struct):
    """What was wanted, what was measured, and whether that is enough."""

    text: str
    wanted: float
    measured: float
    met: bool


@dataclass(frozen=True, slots=True)
class Options:
    """How long and on which databases to measure."""

    databases: tuple[str, ...]
    rounds: int
    seconds: int
    is_quick: bool
    is_resumed: bool = False


def options(purpose: str) -> Options:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=purpose)
    parser.add_argument("--database", choices=("sqlite", "postgres", "both"), default="both")
    parser.add_argument("--quick", action="store_true", help="short rounds; nothing is written to docs/results")
    parser.add_argument("--rounds", type=int, help=f"rounds of each contender (default {ROUNDS})")
    parser.add_argument("--resume", action="store_true", help="nothing where docs/results has a run of this commit")
    given = parser.parse_args()
    databases = ("sqlite", "postgres") if given.database == "both" else (given.database,)
    rounds = given.rounds or (3 if given.quick else ROUNDS)
    return Options(databases, rounds, 1 if given.quick else SECONDS, given.quick, given.resume)


@dataclass
class Bench:
    """A benchmark under way: its folder, its PostgreSQL, what was measured so far."""

    name: str
    options: Options
    folder: Path
    cores: Cores
    cluster: Cluster | None
    tables: list[Table] = field(default_factory=lambda: list[Table]())
    aims: list[Aim] = field(default_factory=lambda: list[Aim]())
    other: dict[str, object] = field(default_factory=lambda: dict[str, object]())

    def compare(
        self,
        database: str,
        variant: str,
        contenders: Sequence[Contender],
        *,
        skipped: Mapping[str, str] = MappingProxyType({}),
    ) -> Table:
        """Measure the contenders in turn, A B C A B C …, print the table and keep it; `skipped`: see Table.

        Raises:
            RuntimeError: a contender answered with an error.
        """
        for each in contenders:
            self._run(each, min(WARM_UP_S, self.options.seconds))
        rounds: dict[str, list[tuple[Figures, float, float]]] = {each.name: [] for each in contenders}
        for _ in range(self.options.rounds):
            for each in contenders:
                rounds[each.name].append(self._run(each, self.options.seconds))
        measured = [_medians(name, runs) for name, runs in rounds.items()]
        ratios = _ratios(measured)
        table = Table(database=database, variant=variant, contenders=measured, ratios=ratios, skipped=dict(skipped))
        self.tables.append(table)
        _show(table)
        return table

    def _run(self, contender: Contender, seconds: int) -> tuple[Figures, float, float]:
        """One run: its figures, and CPU microseconds a request of worker and database."""
        before = contender.worker.cpu_s(), self.cluster.cpu_s() if self.cluster else 0.0
        requests = contender.requests.next(seconds)
        figures = load.play(requests, contender.worker.port, seconds, pinned(self.cores.rest), self.folder)
        after = contender.worker.cpu_s(), self.cluster.cpu_s() if self.cluster else 0.0
        # Up to one request of each connection was sent whose answer is not counted. A slow contender would still work
        # on those in the next one's round.
        contender.worker.settle()
        contender.requests.used(figures.requests + load.CONNECTIONS)
        if figures.failed or not figures.requests:
            raise RuntimeError(f"{contender.name}: {figures.failed} of {figures.requests} requests failed")
        worker_s, database_s = (later - sooner for later, sooner in zip(after, before, strict=True))
        return figures, worker_s / figures.requests * 1e6, database_s / figures.requests * 1e6

    def aim(self, text: str, measured: float, wanted: float) -> None:
        """Compare a figure with what is wanted at least, and print it."""
        self.aims.append(Aim(text, wanted, measured, measured >= wanted))
        print(f"  {'met   ' if measured >= wanted else 'MISSED'}  {text}: {measured:,.3g}, wanted {wanted:,g}")

    def finish(self) -> None:
        """Write what was measured to docs/results, unless this was a quick run."""
        if self.options.is_quick:
            return
        RESULTS.mkdir(parents=True, exist_ok=True)
        at = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        record = {
            "benchmark": self.name,
            "at": at,
            "commit": commit(),
            "machine": machine(self.cluster),
            "settings": {
                "rounds": self.options.rounds,
                "seconds": self.options.seconds,
                "connections": load.CONNECTIONS,
                "load": load.generator(),
                "worker_cores": self.cores.worker or "any",
                "other_cores": self.cores.rest or "any",
            },
            "tables": self.tables,
            "other": self.other,
            "aims": self.aims,
        }
        encoded = msgspec.json.format(msgspec.json.encode(record), indent=1)
        results(self.name, self.options).write_bytes(encoded + b"\n")
        met = sum(aim.met for aim in self.aims)
        figures = "; ".join(f"{aim.text} {aim.measured:,.3g}" for aim in self.aims)
        with (RESULTS / "runs.md").open("a", encoding="utf-8") as file:
            file.write(f"- {at} `{self.name}`: {met} of {len(self.aims)} aims met. {figures}\n")


def results(name: str, asked: Options) -> Path:
    """Where the figures of a benchmark stand. A run on one database alone leaves what was measured on the other."""
    return RESULTS / (f"{name}.json" if len(asked.databases) > 1 else f"{name}-{asked.databases[0]}.json")


def commit() -> str:
    """The commit that figures depend on, with a "+" when files differ from it."""
    from tests.figures import commit_of

    return commit_of("src", "bench", "requirements", "pyproject.toml")


def is_done(name: str, asked: Options) -> bool:
    """Whether this commit was measured."""
    file = results(name, asked)
    stored = msgspec.json.decode(file.read_bytes(), type=dict[str, object]) if file.exists() else {}
    return not commit().endswith("+") and stored.get("commit") == commit()


@contextmanager
def bench(name: str, purpose: str, *, needs_load: bool = True) -> Iterator[Bench]:
    """A benchmark of this name; PostgreSQL is started when it is asked for, and left out where it cannot be had. The
    program ends here where only what was not measured yet is asked for, and this was."""
    import pytest

    asked = options(purpose)
    if asked.is_resumed and is_done(name, asked):
        print(f"{purpose}\nmeasured at this commit: see {results(name, asked).relative_to(ROOT)}")
        sys.exit()
    cores = Cores.of_machine()
    print(f"{purpose}\n{'; '.join(f'{key} {value}' for key, value in machine(None).items())}", flush=True)
    if needs_load:
        load.generator()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=f"countersign-bench-{name}-")))
        cluster = None
        if "postgres" in asked.databases:
            try:
                cluster = stack.enter_context(postgres(cores))
            except pytest.skip.Exception as missing:
                print(f"without PostgreSQL: {missing}", file=sys.stderr)
                asked = Options(("sqlite",), asked.rounds, asked.seconds, asked.is_quick)
        made = Bench(name, asked, folder, cores, cluster)
        yield made
        made.finish()


def get(path: str, **headers: str) -> bytes:
    """A GET as raw HTTP."""
    return _raw("GET", path, headers)


def post(path: str, body: bytes, **headers: str) -> bytes:
    """A POST of JSON as raw HTTP."""
    return _raw("POST", path, {**headers, "Content-Type": "application/json", "Content-Length": str(len(body))}) + body


def _raw(method: str, path: str, headers: Mapping[str, str]) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: store.bench"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def restrict(answer: Any, members_of: Any) -> Any:
    """The answer with only those members, at every level, that `members_of` has: a contender may leave some out."""
    if isinstance(answer, dict) and isinstance(members_of, dict):
        return {name: restrict(answer[name], members_of[name]) for name in members_of if name in answer}
    if isinstance(answer, list) and isinstance(members_of, list) and len(answer) == len(members_of):
        return [restrict(each, like) for each, like in zip(answer, members_of, strict=True)]
    return answer


def ask(worker: Worker, path: str, **headers: str) -> tuple[bytes, Mapping[str, str]]:
    """The body and headers of a GET, to look at an answer before measuring it."""
    request = urllib.request.Request(f"http://127.0.0.1:{worker.port}{path}", headers=headers)
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as answer:
        return answer.read(), {name.lower(): value for name, value in answer.headers.items()}


def _medians(name: str, runs: Sequence[tuple[Figures, float, float]]) -> Measured:
    rates = [figures.requests / figures.seconds for figures, _, _ in runs]
    return Measured(
        name=name,
        req_s=round(statistics.median(rates), 1),
        p50_ms=round(statistics.median(figures.p50_ms for figures, _, _ in runs), 3),
        p99_ms=round(statistics.median(figures.p99_ms for figures, _, _ in runs), 3),
        cpu_us=round(statistics.median(cpu for _, cpu, _ in runs), 1),
        database_cpu_us=round(statistics.median(cpu for _, _, cpu in runs), 1),
        rounds_req_s=[round(rate, 1) for rate in rates],
    )


def _ratios(measured: Sequence[Measured]) -> dict[str, float]:
    """Ours to every other, each the median over the rounds, in which both ran right after one another."""
    found: dict[str, float] = {}
    for ours in (each for each in measured if each.name.startswith("ours")):
        for other in measured:
            if other is not ours:
                pairs = zip(ours.rounds_req_s, other.rounds_req_s, strict=True)
                found[f"{ours.name}/{other.name}"] = round(statistics.median(a / b for a, b in pairs), 3)
    return found


def _show(table: Table) -> None:
    print(f"\n{table.variant} on {table.database}")
    print(f"  {'':14}{'req/s':>9}{'p50 ms':>9}{'p99 ms':>9}{'CPU µs':>9}{'db µs':>8}   ratio of ours to it")
    for each in table.contenders:
        ratios = [f"{ratio:.2f}" for name, ratio in table.ratios.items() if name.endswith(f"/{each.name}")]
        print(
            f"  {each.name:14}{each.req_s:9,.0f}{each.p50_ms:9.2f}{each.p99_ms:9.2f}{each.cpu_us:9.1f}"
            f"{each.database_cpu_us:8.1f}   {' '.join(ratios)}",
            flush=True,
        )
    for name, reason in table.skipped.items():
        print(f"  {name:14}skipped: {reason}", flush=True)


def machine(cluster: Cluster | None) -> dict[str, str]:
    """What the figures were measured on."""
    import apsw

    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
    memory_kib = int(Path("/proc/meminfo").read_text().split()[1])
    found = {
        "processor": f"{model}, {sum(line.startswith('processor') for line in lines)} cores",
        "memory": f"{memory_kib >> 20} GiB",
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "load_average": Path("/proc/loadavg").read_text().split()[0],
    }
    if cluster is not None:
        found["postgresql"] = cluster.sql("SHOW server_version")
    return found
