"""Processes of a benchmark: contenders and PostgreSQL, each on its cores, ended with their block, their CPU read."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
START_S = 60
SETTLE_S = 10


@dataclass(frozen=True, slots=True)
class Cores:
    """Which processor each process gets: the worker one for itself, the rest to load generator and PostgreSQL.

    With one processor nothing is pinned.
    """

    worker: str | None
    rest: str | None

    @classmethod
    def of_machine(cls) -> "Cores":
        """The last processor for the worker."""
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) < 2 or not shutil.which("taskset"):
            return cls(None, None)
        return cls(str(cores[-1]), ",".join(map(str, cores[:-1])))


def pinned(cores: str | None) -> list[str]:
    """What goes before a command so that it runs on these processors alone."""
    return ["taskset", "-c", cores] if cores else []


@dataclass(slots=True)
class Worker:
    """A contender's server: where it listens, and its process."""

    port: int
    process: subprocess.Popen[bytes]

    def cpu_s(self) -> float:
        """CPU seconds used so far, in user and system; of a server that works in a child, the child's too."""
        pid = self.process.pid
        return (_cpu_ticks(pid) + _ticks_of_children(pid)) / TICKS_A_SECOND

    def settle(self) -> None:
        """Wait until it does no more work, SETTLE_S at most."""
        deadline_s = time.monotonic() + SETTLE_S
        used_s = self.cpu_s()
        while time.monotonic() < deadline_s:
            time.sleep(0.1)
            sooner_s, used_s = used_s, self.cpu_s()
            if used_s - sooner_s < 0.02:
                return

    def rss_mib(self) -> float:
        """Resident memory now."""
        return rss_mib(serving(self.process.pid))

    def own_mib(self) -> float:
        """Resident memory that is no file's: without the pages of a database that is mapped (proc_pid_status(5))."""
        lines = Path(f"/proc/{serving(self.process.pid)}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon:")) / 1024


def rss_mib(pid: int) -> float:
    """Resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def pss_mib(pid: int) -> float:
    """Resident memory of a process, of which what it shares with others is counted in parts."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def tree(pid: int) -> list[int]:
    """The process and all that it has started."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(each for child in children for each in tree(int(child)))]


def serving(pid: int) -> int:
    """The process that answers requests: the only worker of a supervisor, or the process itself."""
    return tree(pid)[:2][-1]


def _cpu_ticks(pid: int, *, with_ended_children: bool = False) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11 : 15 if with_ended_children else 13]))


def _ticks_of_children(parent: int) -> int:
    found = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended while we looked
        if int(fields[1]) == parent:
            found += int(fields[11]) + int(fields[12])
    return found


@contextmanager
def running(
    command: Sequence[str | Path],
    *,
    log: Path,
    stop: signal.Signals = signal.SIGTERM,
    environment: Mapping[str, str] | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """The command until the block ends; it gets `stop` when this process dies, however it dies (Linux)."""
    setpriv = shutil.which("setpriv")
    wrapped = [setpriv, f"--pdeathsig={stop.name[3:]}", "--", *command] if setpriv else [*command]
    with log.open("wb") as output:
        process = subprocess.Popen(
            wrapped,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, **(environment or {})},
        )
    try:
        yield process
    finally:
        process.send_signal(stop)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def worker(
    configuration: Mapping[str, object], folder: Path, cores: Cores, tree: Path = ROOT
) -> Iterator[Worker]:
    """A contender (see contenders/__main__.py) that accepts connections, from this tree or that of another version.

    Raises:
        RuntimeError: it ended, or did not listen within a minute; the text holds its log.
    """
    from tests.servers.process import free_port

    port = free_port()
    asked = json.dumps({**configuration, "port": port})
    command = [*pinned(cores.worker), sys.executable, "-m", "contenders", asked]
    environment = {"PYTHONPATH": os.pathsep.join((str(tree / HERE.name), str(tree / "src")))}
    log = folder / f"{configuration['contender']}-{port}.log"
    with listening(command, port, log=log, environment=environment) as started:
        yield started


@contextmanager
def listening(
    command: Sequence[str | Path], port: int, *, log: Path, environment: Mapping[str, str]
) -> Iterator[Worker]:
    """The command, once it accepts connections on the loopback port, until the block ends.

    Raises:
        RuntimeError: it ended, or did not listen within a minute; the text holds its log.
    """
    from tests.servers.process import answers

    with running(command, log=log, environment=environment) as process:
        deadline_s = time.monotonic() + START_S
        while not answers(port):
            if process.poll() is not None or time.monotonic() > deadline_s:
                called = " ".join(map(str, command))
                raise RuntimeError(f"{called} does not serve:\n{log.read_text(errors='replace')[-4000:]}")
            time.sleep(0.02)
        yield Worker(port, process)


@dataclass(frozen=True, slots=True)
class Cluster:
    """A private PostgreSQL: its programs, port and first process."""

    programs: Path
    port: int
    pid: int

    def url(self, database: str) -> str:
        """The address of one of its databases."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def sql(self, statement: str, url: str | None = None) -> str:
        """Run one statement as the superuser, in the given database or outside of all; what it prints.

        Raises:
            RuntimeError: it was refused.
        """
        command = [self.programs / "psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", url or self.url("postgres")]
        done = subprocess.run([*command, "-c", statement], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return done.stdout.strip()

    def cpu_s(self) -> float:
        """CPU seconds of all its processes, those that ended too."""
        return (_cpu_ticks(self.pid, with_ended_children=True) + _ticks_of_children(self.pid)) / TICKS_A_SECOND


@contextmanager
def postgres(cores: Cores) -> Iterator[Cluster]:
    """A PostgreSQL 15 or newer of this run alone on a loopback port, durable as in production (fsync)."""
    from tests.servers.process import free_port, installed, plain_user, user_group

    folders = sorted(Path("/usr/lib/postgresql").glob("1[5-9]/bin"), reverse=True)
    programs = installed("initdb", "postgresql", folders).resolve().parent
    user = plain_user()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="countersign-bench-postgres-")))
        if user:
            shutil.chown(folder, user, user_group(user))
        data = folder / "data"
        choices = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        group = user_group(user) if user else None
        subprocess.run(
            [programs / "initdb", "-D", data, *choices], user=user, group=group, cwd=folder, check=True,
            capture_output=True, extra_groups=[] if user else None,
        )  # fmt: skip
        port = free_port()
        settings = {
            "port": str(port),
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "max_connections": "100",
            "shared_buffers": "512MB",
            "max_wal_size": "4GB",
            "dynamic_shared_memory_type": "mmap",
            "autovacuum_naptime": "10s",
        }
        drop = [f"--reuid={user}", f"--regid={group}", "--clear-groups"] if user else []
        command: list[str | Path] = [*pinned(cores.rest)]
        command += ["setpriv", *drop, "--pdeathsig=INT", "--"] if drop else []
        command += [programs / "postgres", "-D", data]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        process = stack.enter_context(running(command, log=folder / "log", stop=signal.SIGINT))
        ready = [programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)]
        deadline_s = time.monotonic() + START_S
        while subprocess.run(ready, check=False).returncode:
            if process.poll() is not None or time.monotonic() > deadline_s:
                raise RuntimeError((folder / "log").read_text(errors="replace")[-4000:])
            time.sleep(0.05)
        yield Cluster(programs, port, process.pid)
