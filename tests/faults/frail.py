"""Processes on a disk that fails on purpose (frail.c), and the answers that they recorded before they ended."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.errands import StepLedger, TimedResponse
from tests.servers.countersign import SOURCE, environment


@dataclass
class ProcessExit:
    """How a process ended: "killed", or with this exit code. It includes the number of disk changes if the process
    recorded it."""

    ended: object = None
    changes: int = 0
    syncs: int = 0
    found_unheard: int = 0
    turned: list[str] = field(default_factory=list[str])
    still_writes: bool = True
    wrong: str = ""


@dataclass
class ErrandRun:
    """Errands at one service with one data directory, over several lives. `database_url` is set for PostgreSQL."""

    service: str
    data: Path
    tokens: tuple[str, str]
    database_url: str = ""
    ledgers: dict[int, StepLedger] = field(default_factory=dict[int, StepLedger])

    @property
    def answered_count(self) -> int:
        """The count of answered steps."""
        return sum(len(ledger.heard) for ledger in self.ledgers.values())

    @property
    def in_doubt(self) -> int:
        """The count of begun steps without an answer."""
        return sum(len(ledger.begun - ledger.heard.keys()) for ledger in self.ledgers.values())


class FaultyDiskWorker:
    """A process that has loaded all modules and forks a child for each life."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def live(self, errand_run: ErrandRun, mode: int = 0, at: int = 0) -> ProcessExit:
        """Run the remaining errands on a disk that fails in this mode, and record the answers in the ledgers."""
        known_steps = {
            number: {"begun": list(ledger.begun), "heard": ledger.heard}
            for number, ledger in errand_run.ledgers.items()
        }
        order = {
            "service": errand_run.service,
            "data": str(errand_run.data),
            "tokens": errand_run.tokens,
            "errands": known_steps,
            "mode": mode,
            "at": at,
        }
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        life = ProcessExit()
        while life.ended is None:
            self._take(self._line(), errand_run, life)
        return life

    def _line(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.endswith("\n"):
            raise RuntimeError("the process that forks is gone")
        members: dict[str, Any] = json.loads(line)
        return members

    def _take(self, line: dict[str, Any], errand_run: ErrandRun, life: ProcessExit) -> None:
        if "errand" in line:
            ledger, step = errand_run.ledgers[line["errand"]], line["step"]
            ledger.begun.add(step)
            if line["heard"] is not None:
                ledger.heard[step] = TimedResponse(*line["heard"])
        else:
            for name, value in line.items():
                setattr(life, name, value)


@contextmanager
def frail(library: Path, under: Path) -> Iterator[FaultyDiskWorker]:
    """Run a process whose disk fails below the folder."""
    variables = environment(LD_PRELOAD=str(library), FRAIL_UNDER=str(under))
    variables["PYTHONPATH"] = f"{SOURCE}:{SOURCE.parent}"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.frail_worker"],
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield FaultyDiskWorker(process)
    finally:
        process.kill()
        process.wait()
        for end in (process.stdin, process.stdout):
            if end is not None:
                end.close()
