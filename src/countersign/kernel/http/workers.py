"""Several worker processes on the same sockets: started, watched, replaced, stopped together."""

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

CLOSING_S = 3.0
"""What a worker may take beyond its grace time, to end what is left and to close its application."""

_READY, _FAILED = b"+", b"!"
_PR_SET_PDEATHSIG = 1
_LEAST_PAUSE_S, _MOST_PAUSE_S = 0.25, 10.0
_STEADY_S = 60.0
_POLL_S = 0.1
_STOPS = {signal.SIGTERM, signal.SIGINT}
_HEEDED = {*_STOPS, signal.SIGCHLD}


class WorkerFailed(Refused):
    """A worker could not start; the others were stopped."""

    status = 500
    code = "worker_failed"
    title = "A worker failed to start"


class _Stop(Exception):
    """SIGTERM or SIGINT reached the parent."""

    def __init__(self, number: signal.Signals) -> None:
        super().__init__(number.name)
        self.number = number


def log_stop(number: signal.Signals) -> None:
    """Log that the process stops, and by which signal."""
    telemetry.logger("serve").info("stop", reason=number.name)


def supervise(
    work: Work, count: int, on_ready: Callable[[], None], on_stop: Callable[[], None], grace_s: float
) -> None:
    """Run `count` workers until SIGTERM or SIGINT; one that dies is replaced after a pause that grows.

    The first is started alone, so that it can bring the database up to date before the others look at it.
    `on_stop` is called once the stop begins, before the workers are told. From then on both signals are ignored.

    Raises:
        WorkerFailed: a worker ended before it was ready.
    """
    workers = _Workers(work, _Bell())
    try:
        for index in range(count):
            workers.start(index)
            if index == 0:
                on_ready()
        workers.watch()
    except _Stop as stop:
        log_stop(stop.number)
    finally:
        for number in _STOPS:
            signal.signal(number, signal.SIG_IGN)
        on_stop()
        workers.stop(grace_s + CLOSING_S)


class _Bell:
    """Signals, noticed where they are waited for and nowhere in between, so that no step is left half done."""

    def __init__(self) -> None:
        self._reading, writing = os.pipe()
        for end in (self._reading, writing):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        for number in _HEEDED:
            signal.signal(number, _noted)

    def wait(self, other: int | None = None, timeout_s: float | None = None) -> bool:
        """Wait for a signal, for `other` to have something to read, or for the time to pass; whether `other` has.

        Raises:
            _Stop: SIGTERM or SIGINT came.
        """
        others = [] if other is None else [other]
        readable, _, _ = select.select([self._reading, *others], [], [], timeout_s)
        if self._reading in readable:
            stops = _STOPS.intersection(os.read(self._reading, 4096))
            if stops:
                raise _Stop(signal.Signals(min(stops)))
        return other in readable

    def rest(self, seconds: float) -> None:
        """Do nothing for a while, unless told to stop."""
        until_s = clock.monotonic_s() + seconds
        while (left_s := until_s - clock.monotonic_s()) > 0:
            self.wait(timeout_s=left_s)


def _noted(number: int, frame: object) -> None:
    """A handler has to be there for the system to tell; the bell's pipe has the signal by now."""


class _Workers:
    """The workers of this process, by process id."""

    def __init__(self, work: Work, bell: _Bell) -> None:
        self._work = work
        self._bell = bell
        self._running: dict[int, int] = {}

    def start(self, index: int) -> None:
        """Fork a worker and wait until it is ready, however long that takes: it may have data to bring up to date."""
        reading, writing = os.pipe()
        parent = os.getpid()
        # What comes between the fork and the worker's own handlers waits for them.
        signal.pthread_sigmask(signal.SIG_BLOCK, _HEEDED)
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            _be_worker(self._work, index, writing, parent)
        self._running[pid] = index
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEEDED)
        os.close(writing)
        try:
            told = self._told(reading)
        finally:
            os.close(reading)
        if told != _READY:
            os.waitpid(pid, 0)
            del self._running[pid]
            raise WorkerFailed(told[1:].decode(errors="replace") or "it ended without a word")

    def _told(self, reading: int) -> bytes:
        """What a worker says: that it is ready, or why it is not; everything until it ends."""
        told = b""
        while not told.startswith(_READY):
            if not self._bell.wait(reading):
                continue
            piece = os.read(reading, 65536)
            if not piece:
                return told
            told += piece
        return _READY

    def watch(self) -> None:
        """Replace whoever ends, until told to stop."""
        pause_s, last_s = _LEAST_PAUSE_S, clock.monotonic_s()
        while True:
            ended = self._ended()
            for index, code in ended:
                telemetry.logger("workers").error("a worker died and is replaced", worker=index, exit_code=code)
                was_steady = clock.monotonic_s() - last_s > _STEADY_S
                pause_s = _LEAST_PAUSE_S if was_steady else min(pause_s * 2, _MOST_PAUSE_S)
                self._bell.rest(pause_s)
                self.start(index)
                last_s = clock.monotonic_s()
            # Whoever ended while another was replaced has rung already.
            if not ended:
                self._bell.wait(timeout_s=_STEADY_S)

    def _ended(self) -> list[tuple[int, int]]:
        """Numbers and exit codes of those who ended since; they are workers no longer."""
        asked = [os.waitpid(pid, os.WNOHANG) for pid in self._running]
        return [(self._running.pop(pid), os.waitstatus_to_exitcode(status)) for pid, status in asked if pid]

    def stop(self, within_s: float) -> None:
        """End the workers: asked first, killed when they take longer."""
        for pid in self._running:
            os.kill(pid, signal.SIGTERM)
        deadline_s = clock.monotonic_s() + within_s
        while self._running and clock.monotonic_s() < deadline_s:
            if not self._ended():
                clock.sleep(_POLL_S)
        for pid, index in self._running.items():
            telemetry.logger("workers").error("a worker did not stop in time and was killed", worker=index)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _be_worker(work: Work, index: int, writing: int, parent: int) -> None:
    """The worker's whole life; never returns."""
    exit_code = 1
    try:
        signal.set_wakeup_fd(-1)
        for number in _HEEDED:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEEDED)
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
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
