"""Runs worker processes. One supervisor starts, monitors, replaces and stops them.

Each program (a service, the management port) has its own workers, so that a hanging one does not affect the others.
The supervisor runs no event loop and answers no request.
"""

import ctypes
import faulthandler
import os
import select
import signal
import sys
import tempfile
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import IO, NamedTuple, NoReturn, TypeAlias

import msgspec

from countersign.kernel import clock, telemetry
from countersign.kernel.errors import Refused
from countersign.kernel.http.worker_ipc import SD_ALIVE, Scoreboard, StallDetector, sd_notify, sd_watchdog_s

Work: TypeAlias = Callable[[int, Callable[[], None]], None]
"""The main function of a worker. It takes the worker's number and a callback for readiness, and returns after
SIGTERM."""

CLOSING_S = 3.0
"""Time beyond the grace time for a running worker to cancel requests and to close its application."""
_KILLED_WITHIN_S = 4.0
STOPPING_S = 2 * CLOSING_S + _KILLED_WITHIN_S
"""The maximum time of a shutdown beyond the grace time. In this time, programs that outlast the others close, and
killed processes end. The service manager must wait longer than the grace time plus this time."""
BEAT_S = 0.5
"""Interval of a worker's heartbeats."""
TICK_S, STOP_TICK_S = 1.0, 0.25
"""The interval of the supervisor's checks while the server runs, and while it shuts down."""
STILL_S = 3 * BEAT_S
"""An event loop without a heartbeat for this time is stalled, and does not react to SIGTERM."""

_READY, _FAILED = b"+", b"!"
_PR_SET_PDEATHSIG = 1
_MIN_PAUSE_S, _MAX_PAUSE_S = 0.25, 10.0
_STEADY_S = 60.0
_POLL_S = 0.05
_STACK_SIGNAL = signal.SIGUSR1
_STACK_WITHIN_S, _STACK_PAUSE_S, _MAX_STACK_BYTES = 1.0, 0.1, 32_768
_STOPS = {signal.SIGTERM, signal.SIGINT}
_HEEDED = (*_STOPS, signal.SIGCHLD)


class WorkerFailed(Refused):
    """A worker could not start or continue, so the other workers were stopped. `explanation` comes from `explain`."""

    status = 500
    code = "worker_failed"
    title = "A worker failed to start"
    explanation: bytes = b""


class Unrecoverable(Exception):
    """A worker cannot continue, and a replacement could not continue either. The server ends."""


class Program(NamedTuple):
    """A program and its number of workers. A program that `outlasts` the others is stopped after them."""

    name: str
    workers: int
    outlasts: bool = False


class SupervisorConfig(NamedTuple):
    """The configuration of a supervisor.

    on_ready     called once, when the first worker of every program is ready
    on_stop      called when the shutdown begins, before the workers are stopped
    explain      encodes an error of a worker for the parent; None: a fault, which is logged with its stack
    watchdog_s   a worker without a heartbeat for this time is replaced; 0: never
    """

    work: Work
    programs: Sequence[Program]
    scoreboard: Scoreboard
    on_ready: Callable[[], None]
    on_stop: Callable[[], None]
    explain: Callable[[Exception], bytes | None]
    grace_s: float
    watchdog_s: float


class _Stop(Exception):
    """SIGTERM or SIGINT reached the supervisor."""

    def __init__(self, number: signal.Signals) -> None:
        super().__init__(number.name)
        self.number = number


class _Failure(msgspec.Struct):
    """The message of a failing worker to the supervisor."""

    text: str
    is_final: bool
    explanation: bytes = b""


def supervise(wanted: SupervisorConfig) -> None:
    """Run the workers until SIGTERM or SIGINT. A worker that dies or stalls is replaced, with exponential backoff.

    The first worker of each program is started before the program's other workers, so that it can migrate the database
    before they open it. During the shutdown, a second SIGINT kills the workers at once.

    Raises:
        WorkerFailed: a worker cannot start or continue.
    """
    supervisor = _Supervisor(wanted, _SignalPipe())
    try:
        supervisor.run()
    except _Stop as stop:
        telemetry.logger("serve").info("stop", reason=stop.number.name)
    finally:
        supervisor.stop()


class _SignalPipe:
    """Receives signals through a pipe. Only `wait` returns signals, so a signal does not interrupt any other step."""

    def __init__(self) -> None:
        self._reading, writing = os.pipe()
        for end in (self._reading, writing):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        for number in _HEEDED:
            signal.signal(number, _ignore_signal)

    def wait(self, others: Sequence[int], timeout_s: float) -> tuple[list[int], bytes]:
        """Wait for a signal, for a readable descriptor, or for the timeout. Return the readable descriptors and the
        signals."""
        readable, _, _ = select.select([self._reading, *others], [], [], max(0.0, timeout_s))
        signals = b""
        if self._reading in readable:
            readable.remove(self._reading)
            with suppress(BlockingIOError):
                signals = os.read(self._reading, 4096)
        return readable, signals


def _ignore_signal(number: int, frame: object) -> None:
    """Do nothing. This handler is needed because Python writes only signals that have a handler to the pipe."""


@dataclass(slots=True, eq=False)
class _Worker:
    """One worker, with its current process."""

    number: int
    program: Program
    pid: int = 0
    pipe: int = -1
    received: bytearray = field(default_factory=bytearray)
    stacks: IO[bytes] | None = None
    stall: StallDetector | None = None
    is_ready: bool = False
    was_ready: bool = False
    is_stalled: bool = False
    ready_s: float = 0.0
    pause_s: float = _MIN_PAUSE_S
    due_s: float | None = None
    """The time at which the worker's next process is started, or None if a process is running or no process should
    run."""

    @property
    def name(self) -> dict[str, object]:
        """Return the members that identify the worker in log lines."""
        return {"service": self.program.name, "worker": self.number}


class _Supervisor:
    """All workers of this server."""

    def __init__(self, wanted: SupervisorConfig, bell: _SignalPipe) -> None:
        self._wanted = wanted
        self._bell = bell
        self._board = wanted.scoreboard
        programs = [each for each in wanted.programs for _ in range(each.workers)]
        self._workers = [_Worker(number, each) for number, each in enumerate(programs)]
        starts = [sum(each.workers for each in wanted.programs[:index]) for index in range(len(wanted.programs))]
        self._firsts = [self._workers[number] for number in starts]
        self._is_up = False
        systemd_s = sd_watchdog_s()
        self._tick_s = min((TICK_S, *(each / 4 for each in (wanted.watchdog_s, systemd_s) if each)))
        self._ticked_s = clock.monotonic_s()
        self._beats_systemd = systemd_s is not None

    def run(self) -> None:
        """Start and monitor the workers until a signal.

        Raises:
            _Stop: SIGTERM or SIGINT was received.
            WorkerFailed: see `supervise`.
        """
        for each in self._firsts:
            each.due_s = 0.0
        while True:
            self._start_due()
            self._turn([each.due_s for each in self._workers if each.due_s is not None], stops=True)
            if not self._is_up and all(each.was_ready for each in self._firsts):
                self._is_up = True
                self._wanted.on_ready()
                for each in self._workers:
                    if each not in self._firsts:
                        each.due_s = 0.0

    def _turn(self, dues_s: Iterable[float], *, stops: bool) -> bytes:
        """Wait for an event, a due start, or the next tick, and handle it. Return the signals."""
        until_s = min((self._ticked_s + self._tick_s, *dues_s))
        pipes = {each.pipe: each for each in self._workers if each.pipe >= 0}
        readable, signals = self._bell.wait(list(pipes), until_s - clock.monotonic_s())
        if stops and (stop_signals := _STOPS.intersection(signals)):
            raise _Stop(signal.Signals(min(stop_signals)))
        for pipe in readable:
            self._read_message(pipes[pipe])
        self._reap(replaces=stops)
        if clock.monotonic_s() - self._ticked_s >= self._tick_s:
            self._tick(ends=stops)
        return signals

    def _start_due(self) -> None:
        for each in self._workers:
            if each.due_s is None or each.due_s > clock.monotonic_s():
                continue
            try:
                self._start(each)
            except OSError as error:
                if not each.was_ready:
                    raise
                telemetry.logger("workers").error("a worker cannot be started", **each.name, exc_info=error)
                each.due_s = clock.monotonic_s() + _MAX_PAUSE_S

    def _start(self, worker: _Worker) -> None:
        """Fork the worker's process. The process may take any time until it is ready, since it may migrate data."""
        with ExitStack() as unless_started, ExitStack() as finally_closed:
            reading, writing = os.pipe()
            unless_started.callback(os.close, reading)
            finally_closed.callback(os.close, writing)
            os.set_blocking(reading, False)
            stacks = unless_started.enter_context(_nameless_file())
            pid = self._fork(worker, reading, writing, stacks)
            unless_started.pop_all()
        worker.pid, worker.pipe, worker.stacks, worker.due_s = pid, reading, stacks, None
        worker.is_ready = worker.is_stalled = False
        worker.received.clear()
        worker.stall = StallDetector(pid, self._tick_s)
        self._board.note_start(worker.number, pid)

    def _fork(self, worker: _Worker, reading: int, writing: int, stacks: IO[bytes]) -> int:
        """Fork, and return the id of the new process. The new process never returns from this call."""
        inherited_pipes = [each.pipe for each in self._workers if each.pipe >= 0]
        parent = os.getpid()
        # Block signals, so that those between the fork and the installation of the worker's own handlers stay pending.
        signal.pthread_sigmask(signal.SIG_BLOCK, _HEEDED)
        try:
            pid = os.fork()
            if pid == 0:
                for pipe in (reading, *inherited_pipes):
                    os.close(pipe)
                _run_worker(self._wanted, worker.number, writing, stacks, parent)
            return pid
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEEDED)

    def _read_message(self, worker: _Worker) -> bool:
        """Read a worker's message, which reports its readiness or its failure. Return whether there may be more
        messages."""
        try:
            piece = os.read(worker.pipe, 65536)
        except BlockingIOError:
            return False
        if not piece:
            os.close(worker.pipe)
            worker.pipe = -1
            return False
        worker.received += piece
        if worker.received.startswith(_READY):
            del worker.received[: len(_READY)]
            worker.is_ready = worker.was_ready = True
            worker.ready_s = clock.monotonic_s()
            self._board.note_serving(worker.number)
        return True

    def _reap(self, *, replaces: bool) -> None:
        """Handle processes that have ended. As the first process of a container, this one also inherits orphans of
        workers.

        Raises:
            WorkerFailed: with `replaces`, a worker cannot be replaced.
        """
        with suppress(ChildProcessError):
            while (exit_status := os.waitpid(-1, os.WNOHANG))[0]:
                for each in self._workers:
                    if each.pid == exit_status[0]:
                        self._note_end(each, exit_status[1], replaces=replaces)

    def _note_end(self, worker: _Worker, status: int, *, replaces: bool) -> None:
        """Handle the end of the worker's process.

        Raises:
            WorkerFailed: with `replaces`, the worker cannot be replaced.
        """
        while worker.pipe >= 0 and self._read_message(worker):
            pass
        failure = _failure(bytes(worker.received))
        if worker.pipe >= 0:
            os.close(worker.pipe)
        if worker.stacks is not None:
            worker.stacks.close()
        worker.pid, worker.pipe, worker.stacks = 0, -1, None
        self._board.note_end(worker.number)
        if not replaces:
            return
        if self._ends_server(worker, failure):
            raise _worker_failed(failure)
        why = failure.text if failure else ""
        code = os.waitstatus_to_exitcode(status)
        was_steady = worker.is_ready and clock.monotonic_s() - worker.ready_s > _STEADY_S
        worker.pause_s = _MIN_PAUSE_S if was_steady else min(worker.pause_s * 2, _MAX_PAUSE_S)
        worker.due_s = clock.monotonic_s() + worker.pause_s
        how = {"exit_code": code, "why": why, "pause_s": worker.pause_s}
        telemetry.logger("workers").error("a worker died and is replaced", **worker.name, **how)

    def _ends_server(self, worker: _Worker, failure: _Failure | None) -> bool:
        """Return whether a worker that ended cannot be replaced, because the worker reported this, because it could not
        start, or because the server was never ready."""
        if failure is None:
            return not self._is_up and worker in self._firsts
        return failure.is_final or not worker.was_ready

    def _tick(self, *, ends: bool) -> None:
        """Check the heartbeats. If `ends` is true, kill stalled workers."""
        self._ticked_s = clock.monotonic_s()
        if self._beats_systemd:
            sd_notify(SD_ALIVE)
        stalled_workers: list[tuple[_Worker, str]] = []
        for each in self._workers:
            if not each.pid or not each.is_ready or each.stall is None:
                continue
            stalled_s = each.stall.stalled_s(self._board.beats(each.number))
            each.is_stalled = stalled_s > STILL_S
            if ends and self._wanted.watchdog_s and stalled_s >= self._wanted.watchdog_s:
                self._board.note_stall(each.number)
                stalled_workers.append((each, f"its event loop has been blocked for {stalled_s:.0f} s"))
        _end_stalled(stalled_workers, _STACK_WITHIN_S)

    def stop(self) -> None:
        """Stop the workers with SIGTERM, and kill those that take too long. Workers of programs that outlast the others
        are stopped last."""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self._board.note_stopping()
        self._wanted.on_stop()
        self._tick_s = STOP_TICK_S
        for each in self._workers:
            each.stall = StallDetector(each.pid, self._tick_s)
        grace_ends_s = clock.monotonic_s() + self._wanted.grace_s
        for outlasts in (False, True):
            workers = [each for each in self._workers if each.program.outlasts is outlasts]
            if not self._stop(workers, grace_ends_s):
                telemetry.logger("workers").warning("a second ctrl-C ends the workers at once")
                break
        self._kill()

    def _stop(self, workers: Sequence[_Worker], grace_ends_s: float) -> bool:
        """Stop the workers, and kill those that do not end in time. Returns False if a second ctrl-C interrupted the
        wait."""
        for each in _alive(workers):
            os.kill(each.pid, signal.SIGTERM)
        ends_s = max(grace_ends_s, clock.monotonic_s()) + CLOSING_S
        while live_workers := _alive(workers):
            now_s = clock.monotonic_s()
            if now_s >= ends_s:
                for each in live_workers:
                    telemetry.logger("workers").error("a worker did not stop in time and was killed", **each.name)
                    os.kill(each.pid, signal.SIGKILL)
                return True
            if now_s >= grace_ends_s:
                stalled_workers = [
                    (each, "it did not stop within the grace time") for each in live_workers if each.is_stalled
                ]
                _end_stalled(stalled_workers, min(_STACK_WITHIN_S, ends_s - now_s))
            if signal.SIGINT in self._turn([ends_s if now_s >= grace_ends_s else grace_ends_s], stops=False):
                return False
        return True

    def _kill(self) -> None:
        """Kill the remaining workers. The wait is bounded: a process that waits for a disk cannot end before the disk
        responds."""
        for each in _alive(self._workers):
            os.kill(each.pid, signal.SIGKILL)
        until_s = clock.monotonic_s() + _KILLED_WITHIN_S
        while _alive(self._workers) and clock.monotonic_s() < until_s:
            self._reap(replaces=False)
            clock.sleep(_POLL_S)


def _alive(workers: Sequence[_Worker]) -> list[_Worker]:
    return [each for each in workers if each.pid]


def _nameless_file() -> IO[bytes]:
    """Return an anonymous file for one process's stack traces. It is in memory if the system supports this."""
    if sys.platform == "linux":
        return os.fdopen(os.memfd_create("stacks"), "w+b", buffering=0)
    return tempfile.TemporaryFile(buffering=0)


def _failure(received: bytes) -> _Failure | None:
    """Return the failure that a worker sent, or None if it sent no failure."""
    if not received.startswith(_FAILED):
        return None
    try:
        return msgspec.json.decode(received[len(_FAILED) :], type=_Failure)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None


def _worker_failed(failure: _Failure | None) -> WorkerFailed:
    error = WorkerFailed((failure.text if failure else "") or "it ended without a reason")
    error.explanation = failure.explanation if failure else b""
    return error


def _end_stalled(workers: Sequence[tuple[_Worker, str]], within_s: float) -> None:
    """Kill stalled processes, and log the stack trace of each, as far as it writes one in time, and the reason."""
    stacks = _stacks([each for each, _ in workers], within_s)
    for (worker, why), stack in zip(workers, stacks, strict=True):
        worker.stall, worker.is_stalled = None, False
        telemetry.logger("workers").error("a worker stalled and is killed", **worker.name, why=why, stack=stack)
        with suppress(ProcessLookupError):
            os.kill(worker.pid, signal.SIGKILL)


def _stacks(workers: Sequence[_Worker], within_s: float) -> list[list[str]]:
    """Return the stack traces of each worker as lines. All processes write their stack traces at the same time, in
    signal handlers."""
    for each in workers:
        with suppress(ProcessLookupError):
            os.kill(each.pid, _STACK_SIGNAL)
    sizes, until_s = [-1] * len(workers), clock.monotonic_s() + within_s
    while workers and (left_s := until_s - clock.monotonic_s()) > 0:
        previous_sizes, sizes = sizes, [_stack_bytes(each) for each in workers]
        if sizes == previous_sizes and all(sizes):
            break
        clock.sleep(min(_STACK_PAUSE_S, left_s))
    return [_stack(each) for each in workers]


def _stack_bytes(worker: _Worker) -> int:
    return 0 if worker.stacks is None else os.fstat(worker.stacks.fileno()).st_size


def _stack(worker: _Worker) -> list[str]:
    if worker.stacks is None:
        return []
    return os.pread(worker.stacks.fileno(), _MAX_STACK_BYTES, 0).decode(errors="replace").splitlines()


def _run_worker(wanted: SupervisorConfig, number: int, writing: int, stacks: IO[bytes], parent: int) -> NoReturn:
    """Run a worker process to its end."""
    exit_code = 1
    try:
        signal.set_wakeup_fd(-1)
        for each in _HEEDED:
            signal.signal(each, signal.SIG_DFL)
        # Ctrl-C sends SIGINT to every process of a terminal. Only the supervisor handles it.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        faulthandler.register(_STACK_SIGNAL, stacks, all_threads=True)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEEDED)
        if sys.platform == "linux":
            # Kill this process when the supervisor ends, because an orphan must not keep using the port or the data.
            # SIGKILL is needed because a stalled loop would ignore SIGTERM.
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == parent:
            with _report_failure(wanted, number, writing):
                wanted.work(number, lambda: _send(writing, _READY))
            exit_code = 0
    except Exception:  # the process edge: the failure was already sent to the supervisor
        exit_code = 1
    finally:
        sys.stderr.flush()
        os._exit(exit_code)


@contextmanager
def _report_failure(wanted: SupervisorConfig, number: int, writing: int) -> Generator[None]:
    """Send the exception that ends the block to the supervisor. If the exception is a fault, also log it."""
    try:
        yield
    except Exception as error:
        explanation = wanted.explain(error)
        if explanation is None:
            telemetry.logger("workers").error("a worker failed", worker=number, exc_info=error)
        failure = _Failure(f"{error}", isinstance(error, Unrecoverable), explanation or b"")
        _send(writing, _FAILED + msgspec.json.encode(failure))
        raise


def _send(writing: int, words: bytes) -> None:
    while words:
        words = words[os.write(writing, words) :]
