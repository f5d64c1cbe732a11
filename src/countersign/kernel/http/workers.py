"""Several worker processes on the same sockets: started, watched, replaced, stopped together."""

import contextlib
import ctypes
import os
import select
import signal
import sys
from collections.abc import Callable
from typing import TypeAlias

from countersign.kernel import clock, telemetry
from countersign.kernel.errors import Refused

Work: TypeAlias = Callable[[int, Callable[[], None]], None]
"""What a worker does, given its number and what to call when it is ready; returns when told to stop by SIGTERM."""

_READY, _FAILED = b"+", b"!"
_PR_SET_PDEATHSIG = 1
_LEAST_PAUSE_S, _MOST_PAUSE_S = 0.25, 10.0
_POLL_S = 0.1


class WorkerFailed(Refused):
    """A worker could not start; the others were stopped."""

    status = 500
    code = "worker_failed"
    title = "A worker failed to start"


class _Stop(Exception):
    """SIGTERM or SIGINT reached the parent."""


def supervise(work: Work, count: int, on_ready: Callable[[], None], grace_s: float) -> None:
    """Run `count` workers until SIGTERM or SIGINT; one that dies is replaced after a pause that grows.

    The first is started alone, so that it can bring the database up to date before the others look at it.

    Raises:
        WorkerFailed: a worker ended before it was ready.
    """
    running: dict[int, int] = {}
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _raise_stop)
    try:
        with contextlib.suppress(_Stop):
            for index in range(count):
                running[_started(work, index)] = index
                if index == 0:
                    on_ready()
            _watch(work, running)
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        _stop(running, grace_s)


def _raise_stop(number: int, frame: object) -> None:
    raise _Stop


def _watch(work: Work, running: dict[int, int]) -> None:
    pause_s = _LEAST_PAUSE_S
    while True:
        started_s = clock.monotonic_s()
        pid, status = os.waitpid(-1, 0)
        index = running.pop(pid, None)
        if index is None:
            continue
        code = os.waitstatus_to_exitcode(status)
        telemetry.logger("workers").error("a worker died and is replaced", worker=index, exit_code=code)
        pause_s = _LEAST_PAUSE_S if clock.monotonic_s() - started_s > 60 else min(pause_s * 2, _MOST_PAUSE_S)
        clock.sleep(pause_s)
        running[_started(work, index)] = index


def _started(work: Work, index: int) -> int:
    """Fork a worker and wait until it is ready; its process id."""
    reading, writing = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _be_worker(work, index, writing, parent)
    os.close(writing)
    try:
        told = _told(reading)
    finally:
        os.close(reading)
    if told != _READY:
        os.waitpid(pid, 0)
        raise WorkerFailed(told[1:].decode(errors="replace") or "it ended without a word")
    return pid


def _told(reading: int) -> bytes:
    """What the worker says: that it is ready, or why it is not; everything until then."""
    told = b""
    while not told.startswith(_READY):
        readable, _, _ = select.select([reading], [], [], 60)
        piece = os.read(reading, 65536) if readable else b""
        if not piece:
            return told
        told += piece
    return _READY


def _be_worker(work: Work, index: int, writing: int, parent: int) -> None:
    """The worker's whole life; never returns."""
    exit_code = 1
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        if os.getppid() == parent:
            work(index, lambda: _say(writing, _READY))
            exit_code = 0
    except Exception as error:  # the process edge: said to the parent, which tells the operator
        _say(writing, _FAILED + f"{error}".encode())
        telemetry.logger("workers").error("a worker failed", worker=index, exc_info=error)
    finally:
        sys.stderr.flush()
        os._exit(exit_code)


def _say(writing: int, words: bytes) -> None:
    os.write(writing, words)


def _stop(running: dict[int, int], grace_s: float) -> None:
    """End the workers: asked first, killed when they take longer than the grace time and a second."""
    for pid in running:
        os.kill(pid, signal.SIGTERM)
    deadline_s = clock.monotonic_s() + grace_s + 1
    left = set(running)
    while left and clock.monotonic_s() < deadline_s:
        ended = {pid for pid in left if os.waitpid(pid, os.WNOHANG)[0]}
        left -= ended
        if left and not ended:
            clock.sleep(_POLL_S)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
