"""Runs the processes of a benchmark (contenders and PostgreSQL) on fixed cores until a block ends, and reads their CPU
time and memory."""

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
    """The processors for the processes: one for the worker, and the rest for the load generator and PostgreSQL.

    On a machine with one processor, processes are not pinned to processors.
    """

    worker: str | None
    rest: str | None

    @classmethod
    def of_machine(cls) -> "Cores":
        """Assign the last processor to the worker."""
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) < 2 or not shutil.which("taskset"):
            return cls(None, None)
        return cls(str(cores[-1]), ",".join(map(str, cores[:-1])))


def pin_prefix(cores: str | None) -> list[str]:
    """Return the prefix of a command that pins it to these processors."""
    return ["taskset", "-c", cores] if cores else []


@dataclass(slots=True)
class Worker:
    """The server of a contender: its port and its process."""

    port: int
    process: subprocess.Popen[bytes]

    def cpu_s(self) -> float:
        """Return the CPU seconds (user and system) that the process and its children have used so far."""
        pid = self.process.pid
        return (_cpu_ticks(pid) + _ticks_of_children(pid)) / TICKS_A_SECOND

    def settle(self) -> None:
        """Wait until the server is idle, for at most SETTLE_S."""
        deadline_s = time.monotonic() + SETTLE_S
        used_s = self.cpu_s()
        while time.monotonic() < deadline_s:
            time.sleep(0.1)
            before_s, used_s = used_s, self.cpu_s()
            if used_s - before_s < 0.02:
                return

    def rss_mib(self) -> float:
        """Return the current resident memory."""
        return rss_mib(serving_pid(self.process.pid))

    def own_mib(self) -> float:
        """Return the resident memory without mapped files, such as the pages of a database (see proc_pid_status(5))."""
        lines = Path(f"/proc/{serving_pid(self.process.pid)}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon:")) / 1024


def rss_mib(pid: int) -> float:
    """Return the resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def pss_mib(pid: int) -> float:
    """Return the proportional set size of a process: memory that n processes share counts as 1/n."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def tree(pid: int) -> list[int]:
    """Return the process and its direct and indirect children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(descendant for child in children for descendant in tree(int(child)))]


def serving_pid(pid: int) -> int:
    """Return the process that handles requests: the only worker of a supervisor, or the process itself."""
    return tree(pid)[:2][-1]


def _cpu_ticks(pid: int, *, with_ended_children: bool = False) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11 : 15 if with_ended_children else 13]))


def _ticks_of_children(parent: int) -> int:
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # the process has ended
        if int(fields[1]) == parent:
            ticks += int(fields[11]) + int(fields[12])
    return ticks


@contextmanager
def running(
    command: Sequence[str | Path],
    *,
    log: Path,
    stop: signal.Signals = signal.SIGTERM,
    environment: Mapping[str, str] | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run the command until the block ends. On Linux, the command also gets the signal `stop` if this process dies."""
    setpriv = shutil.which("setpriv")
    wrapped_command = [setpriv, f"--pdeathsig={stop.name[3:]}", "--", *command] if setpriv else [*command]
    with log.open("wb") as output:
        process = subprocess.Popen(
            wrapped_command,
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
    """Run a contender (see contenders/__main__.py) until the block ends, with the code of this tree or of another
    version.

    Raises:
        RuntimeError: the contender ended or did not listen within a minute. The text contains its log.
    """
    from tests.servers.process import free_port

    port = free_port()
    arguments = json.dumps({**configuration, "port": port})
    command = [*pin_prefix(cores.worker), sys.executable, "-m", "contenders", arguments]
    environment = {"PYTHONPATH": os.pathsep.join((str(tree / HERE.name), str(tree / "src")))}
    log = folder / f"{configuration['contender']}-{port}.log"
    with listening(command, port, log=log, environment=environment) as listening_worker:
        yield listening_worker


@contextmanager
def listening(
    command: Sequence[str | Path], port: int, *, log: Path, environment: Mapping[str, str]
) -> Iterator[Worker]:
    """Run the command until the block ends. The block starts when the command accepts connections on the loopback port.

    Raises:
        RuntimeError: the command ended or did not listen within a minute. The text contains its log.
    """
    from tests.servers.process import answers

    with running(command, log=log, environment=environment) as process:
        deadline_s = time.monotonic() + START_S
        while not answers(port):
            if process.poll() is not None or time.monotonic() > deadline_s:
                command_text = " ".join(map(str, command))
                raise RuntimeError(f"{command_text} does not serve:\n{log.read_text(errors='replace')[-4000:]}")
            time.sleep(0.02)
        yield Worker(port, process)


@dataclass(frozen=True, slots=True)
class Cluster:
    """A PostgreSQL server for this run: the folder of its programs, its port and its first process."""

    programs: Path
    port: int
    pid: int

    def url(self, database: str) -> str:
        """Return the address of a database of the server."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def sql(self, statement: str, url: str | None = None) -> str:
        """Run a statement as the superuser and return its output. The default database is `postgres`.

        Raises:
            RuntimeError: the statement failed.
        """
        command = [self.programs / "psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", url or self.url("postgres")]
        result = subprocess.run([*command, "-c", statement], capture_output=True, text=True, check=False)
        if result.returncode:
            raise RuntimeError(result.stderr)
        return result.stdout.strip()

    def cpu_s(self) -> float:
        """Return the CPU seconds of all processes of the server, including those that have ended."""
        return (_cpu_ticks(self.pid, with_ended_children=True) + _ticks_of_children(self.pid)) / TICKS_A_SECOND


@contextmanager
def postgres(cores: Cores) -> Iterator[Cluster]:
    """Run PostgreSQL 15 or newer on a loopback port until the block ends, with fsync as in production."""
    from tests.servers.process import free_port, installed_program, plain_user, user_group

    folders = sorted(Path("/usr/lib/postgresql").glob("1[5-9]/bin"), reverse=True)
    programs = installed_program("initdb", "postgresql", folders).resolve().parent
    user = plain_user()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="countersign-bench-postgres-")))
        if user:
            shutil.chown(folder, user, user_group(user))
        data = folder / "data"
        options = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        group = user_group(user) if user else None
        subprocess.run(
            [programs / "initdb", "-D", data, *options], user=user, group=group, cwd=folder, check=True,
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
        command: list[str | Path] = [*pin_prefix(cores.rest)]
        command += ["setpriv", *drop, "--pdeathsig=INT", "--"] if drop else []
        command += [programs / "postgres", "-D", data]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        process = stack.enter_context(running(command, log=folder / "log", stop=signal.SIGINT))
        ready_command = [programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)]
        deadline_s = time.monotonic() + START_S
        while subprocess.run(ready_command, check=False).returncode:
            if process.poll() is not None or time.monotonic() > deadline_s:
                raise RuntimeError((folder / "log").read_text(errors="replace")[-4000:])
            time.sleep(0.05)
        yield Cluster(programs, port, process.pid)
