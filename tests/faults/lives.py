"""A served store that is killed and started again on the same directory, port and database."""

import os
import shutil
import subprocess
import time
from pathlib import Path

from tests.servers.countersign import COMMAND, MASTER_KEY, environment
from tests.servers.process import START_S, answers, children, free_port, is_running


class RestartableService:
    """The processes that serve one data directory, one after the other. `settings` may change before a start."""

    def __init__(self, data: Path, service: str = "distribution") -> None:
        self.data = data
        self.service = service
        self.port = free_port()
        self.log = data.with_name(data.name + ".log")
        self.settings = {
            "COUNTERSIGN_MASTER_KEY": MASTER_KEY,
            "COUNTERSIGN_JOB_WORKERS": "0",
            # Request counters would make tests depend on their speed.
            **{f"COUNTERSIGN_RATE_{kind}": "100000000" for kind in ("ANONYMOUS", "PERSON", "TOKEN")},
        }
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def root_url(self) -> str:
        """The address, the same for every process."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def supervisor(self) -> int:
        """The process that was started."""
        assert self._process is not None
        return self._process.pid

    @property
    def pid(self) -> int:
        """The process that serves: the only worker of the supervisor."""
        (worker,) = children(self.supervisor)
        return worker

    def begin(self, *options: str) -> None:
        """Start a process without waiting for it. It ends with the tests (Linux)."""
        command = [*COMMAND, "serve", self.service, "--data", str(self.data), "--port", str(self.port), *options]
        setpriv = shutil.which("setpriv")
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [setpriv, "--pdeathsig=KILL", "--", *command] if setpriv else command,
                env=environment(**self.settings),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def start(self, *options: str) -> None:
        """Start a process and wait until it answers.

        Raises:
            RuntimeError: the service ended, or did not answer in time.
        """
        self.begin(*options)
        deadline_s = time.monotonic() + START_S
        while not answers(self.port):
            self.require_alive()
            if time.monotonic() > deadline_s:
                raise RuntimeError("the store does not answer")
            time.sleep(0.02)

    def require_alive(self) -> None:
        """Raise RuntimeError with the end of the log when the process ended by itself."""
        if self._process is None or self._process.poll() is not None:
            raise RuntimeError(f"the store ended by itself:\n{self.log.read_text(errors='replace')[-4000:]}")

    def stop(self) -> int:
        """Stop the process, and return its exit code."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(timeout=START_S)

    def end(self) -> int:
        """Wait until the process has ended by itself, and return its exit code."""
        assert self._process is not None
        return self._process.wait(timeout=START_S)

    def kill(self) -> None:
        """Kill the processes with SIGKILL."""
        if self._process is not None:
            workers = children(self._process.pid)
            self._process.kill()
            self._process.wait()
            deadline_s = time.monotonic() + START_S
            # The threads of a killed process may hold its port for a moment.
            while any(is_running(worker) for worker in workers) or answers(self.port):
                if time.monotonic() > deadline_s:
                    raise RuntimeError("a worker has outlived its supervisor")
                time.sleep(0.002)

    def cpu_s(self) -> float:
        """Return the processor time that the process has used so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss_kib(self, kind: str = "VmRSS") -> int:
        """Return the process's resident memory, or its peak with VmHWM."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(kind + ":"):
                return int(line.split()[1])
        raise RuntimeError(f"the system does not tell {kind}")
