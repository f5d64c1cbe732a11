"""Worker processes: the parent process supervises and restarts them, and limits their priority and memory. A worker
ends with its parent."""

import asyncio
import ctypes
import os
import resource
import signal
import sys
import threading
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from countersign.kernel import clock, telemetry

RESTART_CODE = 75
"""Exit code of a process that requests an immediate restart."""
NOT_STARTED = 127
CLOSING_S = 3.0
"""Time beyond the grace time, for a process to return its leases and to close."""
MIN_PAUSE_S, MAX_PAUSE_S = 0.25, 10.0
STEADY_S = 60.0


@asynccontextmanager
async def supervise(command: Sequence[str], orders: bytes, count: int, *, grace_s: float) -> AsyncGenerator[None]:
    """Run `count` processes of the command during the block; then send SIGTERM, and SIGKILL after the grace time.

    Each process gets `orders` as the first line of its standard input, which stays open as long as this process lives.
    A process that dies is restarted with exponential backoff.
    """
    processes = [_SupervisedProcess(command, orders, number) for number in range(count)]
    tasks = [asyncio.create_task(process.keep()) for process in processes]
    try:
        yield
    finally:
        for process in processes:
            process.stop()
        if tasks:
            _, late_tasks = await asyncio.wait(tasks, timeout=grace_s + CLOSING_S)
            for process in processes if late_tasks else ():
                process.kill()
            await asyncio.gather(*tasks)


class _SupervisedProcess:
    """One of the processes, with its restarts."""

    def __init__(self, command: Sequence[str], orders: bytes, number: int) -> None:
        self._command = command
        self._orders = orders
        self._number = number
        self._process: Process | None = None
        self._stopping = asyncio.Event()

    async def keep(self) -> None:
        """Start the process, and restart it until it is stopped."""
        pause_s = MIN_PAUSE_S
        while not self._stopping.is_set():
            began_s = clock.monotonic_s()
            code = await self._run_once()
            if self._stopping.is_set():
                return
            if code == RESTART_CODE:
                continue
            telemetry.logger("jobs").error("a worker died and is replaced", worker=self._number, exit_code=code)
            was_steady = clock.monotonic_s() - began_s > STEADY_S
            pause_s = MIN_PAUSE_S if was_steady else min(pause_s * 2, MAX_PAUSE_S)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause_s)

    async def _run_once(self) -> int:
        try:
            self._process = process = await asyncio.create_subprocess_exec(*self._command, stdin=PIPE)
        except OSError as error:
            telemetry.logger("jobs").error("a worker could not be started", worker=self._number, exc_info=error)
            return NOT_STARTED
        if process.stdin is not None:
            # The process may end before it has read the orders.
            with suppress(ConnectionError):
                process.stdin.write(self._orders + b"\n")
                await process.stdin.drain()
        if self._stopping.is_set():
            self._send(signal.SIGTERM)
        return await process.wait()

    def stop(self) -> None:
        """Stop the process with SIGTERM."""
        self._stopping.set()
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the process."""
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)


_PR_SET_PDEATHSIG = 1
OOM_SCORE_ADJ = "500"
"""The OOM score adjustment (at most 1,000). When memory runs out, the system kills a job before a server."""


def limit_process(*, nice: int, memory_mib: int) -> None:
    """Lower the priority of this process, limit its memory to `memory_mib` MiB, disable core dumps, and ignore SIGINT,
    which the parent handles, and SIGHUP."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.nice(nice)
    _set_limit(resource.RLIMIT_AS, memory_mib << 20)
    _set_limit(resource.RLIMIT_CORE, 0)
    # Ignore errors: the file exists on Linux only, and a container may forbid writing it.
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(OOM_SCORE_ADJ)


def _set_limit(kind: int, maximum: int) -> None:
    _, hard = resource.getrlimit(kind)
    soft_limit = maximum if hard == resource.RLIM_INFINITY else min(maximum, hard)
    resource.setrlimit(kind, (soft_limit, soft_limit))


def die_with_parent(parent_pipe: int) -> None:
    """End this process when its parent has ended, which closes the other end of the pipe.

    On Linux, the kernel also kills this process when the parent ends, even if the process cannot run a thread.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=_end_at_end_of, args=(parent_pipe,), daemon=True).start()


def _end_at_end_of(pipe: int) -> None:
    while os.read(pipe, 4096):
        continue
    os._exit(1)
