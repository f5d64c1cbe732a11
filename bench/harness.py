"""Compares contenders (servers that do the same work) in interleaved rounds. Prints tables and aims, and stores
them."""

import argparse
import platform
import statistics
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import load
import msgspec
from load import Figures
from processes import ROOT, Cluster, Cores, Worker, pin_prefix, postgres

RESULTS = ROOT / "docs" / "results"
ROUNDS, SECONDS, WARM_UP_S = 5, 3, 2


class Requests:
    """The raw requests for a contender. Each run continues after the last request of the run before.

    Raises:
        LookupError: all requests were sent, and `is_single_pass` is set.
    """

    def __init__(self, requests: Sequence[bytes], *, is_single_pass: bool = False) -> None:
        self._requests = requests
        self._once = is_single_pass
        self._position = 0

    def next(self, seconds: int) -> list[bytes]:
        """Return more requests than a contender can handle in this time. After the last request, they start again with
        the first, unless each may be sent only once."""
        count = seconds * (12_000 if self._once else 25_000)
        if len(self._requests) == 1:
            return [self._requests[0]]
        if self._once and self._position + count > len(self._requests):
            raise LookupError(f"all {len(self._requests)} requests are used up: seed more")
        requests_until_end = [*self._requests[self._position : self._position + count]]
        return [*requests_until_end, *self._requests[: max(0, min(count - len(requests_until_end), self._position))]]

    def mark_sent(self, count: int) -> None:
        """Record that this number of requests was sent."""
        self._position = self._position + count if self._once else (self._position + count) % len(self._requests)


@dataclass(frozen=True, slots=True)
class Contender:
    """One server in a comparison, with its requests."""

    name: str
    worker: Worker
    requests: Requests


class Measured(msgspec.Struct, kw_only=True):
    """The medians of one contender. `cpu_us` and `database_cpu_us` are CPU microseconds per request, of the worker and
    of PostgreSQL's processes."""

    name: str
    req_s: float
    p50_ms: float
    p99_ms: float
    cpu_us: float
    database_cpu_us: float
    rounds_req_s: list[float]


class Table(msgspec.Struct, kw_only=True):
    """One comparison. `ratios` maps "a/b" to the median, over all rounds, of a's requests per second divided by b's.

    `skipped` maps each contender that could not take part to the reason.
    """

    database: str
    variant: str
    contenders: list[Measured]
    ratios: dict[str, float]
    skipped: dict[str, str] = {}


class Aim(msgspec.Struct):
    """A target: the wanted value, the measured value, and whether the measured value reaches it."""

    text: str
    wanted: float
    measured: float
    met: bool


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a run: the databases, the number of rounds, and the seconds of each."""

    databases: tuple[str, ...]
    rounds: int
    seconds: int
    is_quick: bool
    is_resumed: bool = False


def options(purpose: str) -> Options:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=purpose)
    parser.add_argument("--database", choices=("sqlite", "postgres", "both"), default="both")
    parser.add_argument("--quick", action="store_true", help="short rounds; nothing is written to docs/results")
    parser.add_argument("--rounds", type=int, help=f"rounds of each contender (default {ROUNDS})")
    resume_help = "skip the benchmark if docs/results already has a run of this commit"
    parser.add_argument("--resume", action="store_true", help=resume_help)
    arguments = parser.parse_args()
    databases = ("sqlite", "postgres") if arguments.database == "both" else (arguments.database,)
    rounds = arguments.rounds or (3 if arguments.quick else ROUNDS)
    return Options(databases, rounds, 1 if arguments.quick else SECONDS, arguments.quick, arguments.resume)


@dataclass
class Bench:
    """A running benchmark, with its results so far."""

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
        skipped_reasons: Mapping[str, str] = MappingProxyType({}),
    ) -> Table:
        """Measure the contenders in turn (A B C A B C …), print and store the table, and return it. For
        `skipped_reasons`, see `Table`.

        Raises:
            RuntimeError: a contender responded with an error.
        """
        for contender in contenders:
            self._run(contender, min(WARM_UP_S, self.options.seconds))
        rounds: dict[str, list[tuple[Figures, float, float]]] = {contender.name: [] for contender in contenders}
        for _ in range(self.options.rounds):
            for contender in contenders:
                rounds[contender.name].append(self._run(contender, self.options.seconds))
        measurements = [_medians(name, runs) for name, runs in rounds.items()]
        ratios = _ratios(measurements)
        table = Table(
            database=database, variant=variant, contenders=measurements, ratios=ratios, skipped=dict(skipped_reasons)
        )
        self.tables.append(table)
        _show(table)
        return table

    def _run(self, contender: Contender, seconds: int) -> tuple[Figures, float, float]:
        """Measure one run. Return its figures, and the CPU microseconds per request of the worker and of the
        database."""
        cpu_before = contender.worker.cpu_s(), self.cluster.cpu_s() if self.cluster else 0.0
        requests = contender.requests.next(seconds)
        figures = load.play(requests, contender.worker.port, seconds, pin_prefix(self.cores.rest), self.folder)
        cpu_after = contender.worker.cpu_s(), self.cluster.cpu_s() if self.cluster else 0.0
        # On each connection, one more request may have been sent than is counted. Wait until the contender has handled
        # these requests, so that it does not slow down the next contender.
        contender.worker.settle()
        contender.requests.mark_sent(figures.requests + load.CONNECTIONS)
        if figures.failed or not figures.requests:
            raise RuntimeError(f"{contender.name}: {figures.failed} of {figures.requests} requests failed")
        worker_s, database_s = (cpu_end - sooner for cpu_end, sooner in zip(cpu_after, cpu_before, strict=True))
        return figures, worker_s / figures.requests * 1e6, database_s / figures.requests * 1e6

    def aim(self, text: str, measured: float, aim_value: float) -> None:
        """Compare a figure with the minimum that is wanted, and print the result."""
        self.aims.append(Aim(text, aim_value, measured, measured >= aim_value))
        print(
            f"  {'met   ' if measured >= aim_value else 'MISSED'}  {text}: {measured:,.3g}, wanted {aim_value:,g}"
        )

    def finish(self) -> None:
        """Write the results to docs/results, unless this was a quick run."""
        if self.options.is_quick:
            return
        RESULTS.mkdir(parents=True, exist_ok=True)
        timestamp = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        record = {
            "benchmark": self.name,
            "at": timestamp,
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
        encoded_record = msgspec.json.format(msgspec.json.encode(record), indent=1)
        results_file(self.name, self.options).write_bytes(encoded_record + b"\n")
        met = sum(aim.met for aim in self.aims)
        figures = "; ".join(f"{aim.text} {aim.measured:,.3g}" for aim in self.aims)
        with (RESULTS / "runs.md").open("a", encoding="utf-8") as file:
            file.write(f"- {timestamp} `{self.name}`: {met} of {len(self.aims)} aims met. {figures}\n")


def results_file(name: str, options: Options) -> Path:
    """Return the results file of a benchmark. A run on only one database has its own file, so that it does not
    overwrite the results of both."""
    return RESULTS / (f"{name}.json" if len(options.databases) > 1 else f"{name}-{options.databases[0]}.json")


def commit() -> str:
    """Return the commit on which the results depend, with a "+" if files have uncommitted changes."""
    from tests.figures import commit_of

    return commit_of("src", "bench", "requirements", "pyproject.toml")


def is_done(name: str, options: Options) -> bool:
    """Return whether the results file contains results of this commit."""
    file = results_file(name, options)
    stored_record = msgspec.json.decode(file.read_bytes(), type=dict[str, object]) if file.exists() else {}
    return not commit().endswith("+") and stored_record.get("commit") == commit()


def _exit_if_done(name: str, purpose: str, options: Options) -> None:
    if options.is_resumed and is_done(name, options):
        print(f"{purpose}\nmeasured at this commit: see {results_file(name, options).relative_to(ROOT)}")
        sys.exit()


@contextmanager
def bench(name: str, purpose: str, *, needs_load: bool = True) -> Iterator[Bench]:
    """Run a benchmark until the block ends, and write its results. PostgreSQL is started if the options name it, and is
    left out if it is not installed. With --resume, the program ends here if this commit has been measured."""
    import pytest

    selection = options(purpose)
    _exit_if_done(name, purpose, selection)
    cores = Cores.of_machine()
    print(f"{purpose}\n{'; '.join(f'{key} {value}' for key, value in machine(None).items())}", flush=True)
    if needs_load:
        load.generator()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=f"countersign-bench-{name}-")))
        cluster = None
        if "postgres" in selection.databases:
            try:
                cluster = stack.enter_context(postgres(cores))
            except pytest.skip.Exception as missing:
                print(f"without PostgreSQL: {missing}", file=sys.stderr)
                selection = replace(selection, databases=("sqlite",))
                # A benchmark of SQLite alone has another results file.
                _exit_if_done(name, purpose, selection)
        running_bench = Bench(name, selection, folder, cores, cluster)
        yield running_bench
        running_bench.finish()


def get(path: str, **headers: str) -> bytes:
    """Return a GET request as raw HTTP."""
    return _raw("GET", path, headers)


def post(path: str, body: bytes, **headers: str) -> bytes:
    """Return a POST request with a JSON body as raw HTTP."""
    return _raw("POST", path, {**headers, "Content-Type": "application/json", "Content-Length": str(len(body))}) + body


def _raw(method: str, path: str, headers: Mapping[str, str]) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: store.bench"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def restrict(answer: Any, reference: Any) -> Any:
    """Return the answer with only the members that `reference` has, at every level. A contender may omit members."""
    if isinstance(answer, dict) and isinstance(reference, dict):
        return {name: restrict(answer[name], reference[name]) for name in reference if name in answer}
    if isinstance(answer, list) and isinstance(reference, list) and len(answer) == len(reference):
        return [restrict(each, like) for each, like in zip(answer, reference, strict=True)]
    return answer


def ask(worker: Worker, path: str, **headers: str) -> tuple[bytes, Mapping[str, str]]:
    """Send a GET request and return the body and the headers of the response."""
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


def _ratios(measurements: Sequence[Measured]) -> dict[str, float]:
    """Compare each contender whose name begins with "ours" with every other contender. The ratio is the median, over
    all rounds, of our requests per second divided by those of the other contender. Both run one after the other in each
    round."""
    ratios: dict[str, float] = {}
    for ours in (each for each in measurements if each.name.startswith("ours")):
        for compared in measurements:
            if compared is not ours:
                pairs = zip(ours.rounds_req_s, compared.rounds_req_s, strict=True)
                ratios[f"{ours.name}/{compared.name}"] = round(statistics.median(a / b for a, b in pairs), 3)
    return ratios


def _show(table: Table) -> None:
    print(f"\n{table.variant} on {table.database}")
    print(f"  {'':14}{'req/s':>9}{'p50 ms':>9}{'p99 ms':>9}{'CPU µs':>9}{'db µs':>8}   ratio of ours to it")
    for contender in table.contenders:
        ratios = [f"{ratio:.2f}" for name, ratio in table.ratios.items() if name.endswith(f"/{contender.name}")]
        print(
            f"  {contender.name:14}{contender.req_s:9,.0f}{contender.p50_ms:9.2f}{contender.p99_ms:9.2f}"
            f"{contender.cpu_us:9.1f}{contender.database_cpu_us:8.1f}   {' '.join(ratios)}",
            flush=True,
        )
    for name, reason in table.skipped.items():
        print(f"  {name:14}skipped: {reason}", flush=True)


def machine(cluster: Cluster | None) -> dict[str, str]:
    """Return a description of the machine and its software."""
    import apsw

    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
    memory_kib = int(Path("/proc/meminfo").read_text().split()[1])
    machine_facts = {
        "processor": f"{model}, {sum(line.startswith('processor') for line in lines)} cores",
        "memory": f"{memory_kib >> 20} GiB",
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "load_average": Path("/proc/loadavg").read_text().split()[0],
    }
    if cluster is not None:
        machine_facts["postgresql"] = cluster.sql("SHOW server_version")
    return machine_facts
