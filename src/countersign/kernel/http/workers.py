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
_MAX_KILL_S = 4.0
"""The maximum time until killed processes have ended."""
STOPPING_S = 2 * CLOSING_S + _MAX_KILL_S
"""The maximum time of a shutdown beyond the grace time: `CLOSING_S` for most programs, again `CLOSING_S` for the
programs that outlast them, and the time to kill processes. The service manager must wait longer than the grace time
plus this time."""
BEAT_S = 0.5
"""Interval of a worker's heartbeats."""
TICK_S, STOP_TICK_S = 1.0, 0.25
"""The interval of the supervisor's checks while the server runs, and while it shuts down."""
STALLED_AFTER_S = 3 * BEAT_S
"""An event loop without a heartbeat for this time is stalled, and does not react to SIGTERM."""

_READY, _FAILED = b"+", b"!"
_PR_SET_PDEATHSIG = 1
_MIN_PAUSE_S, _MAX_PAUSE_S = 0.25, 10.0
_STABLE_AFTER_S = 60.0
"""A worker that dies after this time is replaced after the minimum pause."""
_POLL_S = 0.05
_STACK_SIGNAL = signal.SIGUSR1
_STACK_WITHIN_S, _STACK_PAUSE_S, _MAX_STACK_BYTES = 1.0, 0.1, 32_768
_STOP_SIGNALS = {signal.SIGTERM, signal.SIGINT}
_HANDLED_SIGNALS = (*_STOP_SIGNALS, signal.SIGCHLD)


class WorkerFailed(Refused):
    """A worker could not start or continue, so the other workers were stopped. `explanation` is the result of
    `SupervisorConfig.explain`."""

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
    explain      returns the explanation of a worker's error as bytes; None: an unexpected error, which is logged with
                 its stack trace
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


def supervise(config: SupervisorConfig) -> None:
    """Run the workers until SIGTERM or SIGINT. A worker that dies or stalls is replaced, with exponential backoff.

    The first worker of each program is started before the program's other workers, so that it can migrate the database
    before they open it. During the shutdown, a second SIGINT kills the workers at once.

    Raises:
        WorkerFailed: a worker cannot start or continue.
    """
    supervisor = _Supervisor(config, _SignalPipe())
    try:
        supervisor.run()
    except _Stop as stop:
        telemetry.logger("serve").info("stop", reason=stop.number.name)
    finally:
        supervisor.stop()


class _SignalPipe:
    """Receives signals through a pipe. Only `wait` returns signals, so a signal does not interrupt any other step."""

    def __init__(self) -> None:
        self._read_end, write_end = os.pipe()
        for end in (self._read_end, write_end):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
        for number in _HANDLED_SIGNALS:
            signal.signal(number, _ignore_signal)

    def wait(self, others: Sequence[int], timeout_s: float) -> tuple[list[int], bytes]:
        """Wait for a signal, for a readable descriptor, or for the timeout. Return the readable descriptors and the
        signals."""
        readable, _, _ = select.select([self._read_end, *others], [], [], max(0.0, timeout_s))
        signals = b""
        if self._read_end in readable:
            readable.remove(self._read_end)
            with suppress(BlockingIOError):
                signals = os.read(self._read_end, 4096)
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
    stack_file: IO[bytes] | None = None
    stall_detector: StallDetector | None = None
    is_ready: bool = False
    was_ever_ready: bool = False
    is_stalled: bool = False
    ready_at_s: float = 0.0
    pause_s: float = _MIN_PAUSE_S
    start_at_s: float | None = None
    """The time at which the worker's next process is started, or None if a process is running or no process should
    run."""

    @property
    def log_fields(self) -> dict[str, object]:
        """Return the fields of a log line that identify the worker."""
        return {"service": self.program.name, "worker": self.number}


class _Supervisor:
    """All workers of this server."""

    def __init__(self, config: SupervisorConfig, signal_pipe: _SignalPipe) -> None:
        self._config = config
        self._signal_pipe = signal_pipe
        self._scoreboard = config.scoreboard
        programs = [program for program in config.programs for _ in range(program.workers)]
        self._workers = [_Worker(number, program) for number, program in enumerate(programs)]
        starts = [sum(program.workers for program in config.programs[:index]) for index in range(len(config.programs))]
        self._first_workers = [self._workers[number] for number in starts]
        self._is_ready = False
        systemd_s = sd_watchdog_s()
        self._tick_s = min((TICK_S, *(timeout_s / 4 for timeout_s in (config.watchdog_s, systemd_s) if timeout_s)))
        self._checked_at_s = clock.monotonic_s()
        self._notifies_systemd = systemd_s is not None

    def run(self) -> None:
        """Start and monitor the workers until a signal.

        Raises:
            _Stop: SIGTERM or SIGINT was received.
            WorkerFailed: see `supervise`.
        """
        for first_worker in self._first_workers:
            first_worker.start_at_s = 0.0
        while True:
            self._start_due()
            start_times_s = [worker.start_at_s for worker in self._workers if worker.start_at_s is not None]
            self._wait_and_handle(start_times_s, is_running=True)
            if not self._is_ready and all(first_worker.was_ever_ready for first_worker in self._first_workers):
                self._is_ready = True
                self._config.on_ready()
                for worker in self._workers:
                    if worker not in self._first_workers:
                        worker.start_at_s = 0.0

    def _wait_and_handle(self, start_times_s: Iterable[float], *, is_running: bool) -> bytes:
        """Wait for an event, for the next start of a worker, or for the next check of the heartbeats, and handle it.
        Return the received signals."""
        until_s = min((self._checked_at_s + self._tick_s, *start_times_s))
        pipes = {worker.pipe: worker for worker in self._workers if worker.pipe >= 0}
        readable, signals = self._signal_pipe.wait(list(pipes), until_s - clock.monotonic_s())
        if is_running and (stop_signals := _STOP_SIGNALS.intersection(signals)):
            raise _Stop(signal.Signals(min(stop_signals)))
        for pipe in readable:
            self._read_message(pipes[pipe])
        self._reap(can_replace=is_running)
        if clock.monotonic_s() - self._checked_at_s >= self._tick_s:
            self._check_heartbeats(kill_stalled=is_running)
        return signals

    def _start_due(self) -> None:
        for worker in self._workers:
            if worker.start_at_s is None or worker.start_at_s > clock.monotonic_s():
                continue
            try:
                self._start(worker)
            except OSError as error:
                if not worker.was_ever_ready:
                    raise
                telemetry.logger("workers").error("a worker cannot be started", **worker.log_fields, exc_info=error)
                worker.start_at_s = clock.monotonic_s() + _MAX_PAUSE_S

    def _start(self, worker: _Worker) -> None:
        """Fork the worker's process. The process may take any time until it is ready, since it may migrate data."""
        # `on_failure` runs only if the fork fails; `on_exit` always runs.
        with ExitStack() as on_failure, ExitStack() as on_exit:
            read_end, write_end = os.pipe()
            on_failure.callback(os.close, read_end)
            on_exit.callback(os.close, write_end)
            os.set_blocking(read_end, False)
            stack_file = on_failure.enter_context(_create_stack_file())
            pid = self._fork(worker, read_end, write_end, stack_file)
            on_failure.pop_all()
        worker.pid, worker.pipe, worker.stack_file, worker.start_at_s = pid, read_end, stack_file, None
        worker.is_ready = worker.is_stalled = False
        worker.received.clear()
        worker.stall_detector = StallDetector(pid, self._tick_s)
        self._scoreboard.note_start(worker.number, pid)

    def _fork(self, worker: _Worker, read_end: int, write_end: int, stack_file: IO[bytes]) -> int:
        """Fork, and return the id of the new process. The new process never returns from this call."""
        inherited_pipes = [worker.pipe for worker in self._workers if worker.pipe >= 0]
        parent = os.getpid()
        # Block signals, so that those between the fork and the installation of the worker's own handlers stay pending.
        signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED_SIGNALS)
        try:
            pid = os.fork()
            if pid == 0:
                for pipe in (read_end, *inherited_pipes):
                    os.close(pipe)
                _run_worker(self._config, worker.number, write_end, stack_file, parent)
            return pid
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDLED_SIGNALS)

    def _read_message(self, worker: _Worker) -> bool:
        """Read a worker's message, which reports its readiness or its failure. Return whether there may be more
        messages."""
        try:
            data = os.read(worker.pipe, 65536)
        except BlockingIOError:
            return False
        if not data:
            os.close(worker.pipe)
            worker.pipe = -1
            return False
        worker.received += data
        if worker.received.startswith(_READY):
            del worker.received[: len(_READY)]
            worker.is_ready = worker.was_ever_ready = True
            worker.ready_at_s = clock.monotonic_s()
            self._scoreboard.note_serving(worker.number)
        return True

    def _reap(self, *, can_replace: bool) -> None:
        """Handle processes that have ended. As the first process of a container, this one also inherits orphans of
        workers.

        Raises:
            WorkerFailed: with `can_replace`, a worker cannot be replaced.
        """
        with suppress(ChildProcessError):
            while (exit_status := os.waitpid(-1, os.WNOHANG))[0]:
                for worker in self._workers:
                    if worker.pid == exit_status[0]:
                        self._note_end(worker, exit_status[1], can_replace=can_replace)

    def _note_end(self, worker: _Worker, status: int, *, can_replace: bool) -> None:
        """Handle the end of the worker's process.

        Raises:
            WorkerFailed: with `can_replace`, the worker cannot be replaced.
        """
        while worker.pipe >= 0 and self._read_message(worker):
            pass
        failure = _failure(bytes(worker.received))
        if worker.pipe >= 0:
            os.close(worker.pipe)
        if worker.stack_file is not None:
            worker.stack_file.close()
        worker.pid, worker.pipe, worker.stack_file = 0, -1, None
        self._scoreboard.note_end(worker.number)
        if not can_replace:
            return
        if self._ends_server(worker, failure):
            raise _worker_failed(failure)
        why = failure.text if failure else ""
        code = os.waitstatus_to_exitcode(status)
        was_stable = worker.is_ready and clock.monotonic_s() - worker.ready_at_s > _STABLE_AFTER_S
        worker.pause_s = _MIN_PAUSE_S if was_stable else min(worker.pause_s * 2, _MAX_PAUSE_S)
        worker.start_at_s = clock.monotonic_s() + worker.pause_s
        how = {"exit_code": code, "why": why, "pause_s": worker.pause_s}
        telemetry.logger("workers").error("a worker died and is replaced", **worker.log_fields, **how)

    def _ends_server(self, worker: _Worker, failure: _Failure | None) -> bool:
        """Return whether the failure of this worker ends the server: the worker reported that the failure is final, it
        failed before it was ever ready, or it is the first worker of a program and the server was never ready."""
        if failure is None:
            return not self._is_ready and worker in self._first_workers
        return failure.is_final or not worker.was_ever_ready

    def _check_heartbeats(self, *, kill_stalled: bool) -> None:
        """Check the heartbeats. If `kill_stalled` is true, kill stalled workers."""
        self._checked_at_s = clock.monotonic_s()
        if self._notifies_systemd:
            sd_notify(SD_ALIVE)
        stalled_workers: list[tuple[_Worker, str]] = []
        for worker in self._workers:
            if not worker.pid or not worker.is_ready or worker.stall_detector is None:
                continue
            stalled_s = worker.stall_detector.stalled_s(self._scoreboard.beats(worker.number))
            worker.is_stalled = stalled_s > STALLED_AFTER_S
            if kill_stalled and self._config.watchdog_s and stalled_s >= self._config.watchdog_s:
                self._scoreboard.note_stall(worker.number)
                stalled_workers.append((worker, f"its event loop has been blocked for {stalled_s:.0f} s"))
        _end_stalled(stalled_workers, _STACK_WITHIN_S)

    def stop(self) -> None:
        """Stop the workers with SIGTERM, and kill those that take too long. Workers of programs that outlast the others
        are stopped last."""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self._scoreboard.note_stopping()
        self._config.on_stop()
        self._tick_s = STOP_TICK_S
        for worker in self._workers:
            worker.stall_detector = StallDetector(worker.pid, self._tick_s)
        grace_deadline_s = clock.monotonic_s() + self._config.grace_s
        for outlasts in (False, True):
            workers = [worker for worker in self._workers if worker.program.outlasts is outlasts]
            if not self._stop(workers, grace_deadline_s):
                telemetry.logger("workers").warning("a second ctrl-C ends the workers at once")
                break
        self._kill()

    def _stop(self, workers: Sequence[_Worker], grace_deadline_s: float) -> bool:
        """Stop the workers, and kill those that do not end in time. Returns False if a second ctrl-C interrupted the
        wait."""
        for worker in _alive(workers):
            os.kill(worker.pid, signal.SIGTERM)
        deadline_s = max(grace_deadline_s, clock.monotonic_s()) + CLOSING_S
        while live_workers := _alive(workers):
            now_s = clock.monotonic_s()
            if now_s >= deadline_s:
                log = telemetry.logger("workers")
                for worker in live_workers:
                    log.error("a worker did not stop in time and was killed", **worker.log_fields)
                    os.kill(worker.pid, signal.SIGKILL)
                return True
            if now_s >= grace_deadline_s:
                stalled_workers = [
                    (worker, "it did not stop within the grace time") for worker in live_workers if worker.is_stalled
                ]
                _end_stalled(stalled_workers, min(_STACK_WITHIN_S, deadline_s - now_s))
            next_deadline_s = deadline_s if now_s >= grace_deadline_s else grace_deadline_s
            if signal.SIGINT in self._wait_and_handle([next_deadline_s], is_running=False):
                return False
        return True

    def _kill(self) -> None:
        """Kill the remaining workers. The wait is bounded: a process that waits for a disk cannot end before the disk
        responds."""
        for worker in _alive(self._workers):
            os.kill(worker.pid, signal.SIGKILL)
        until_s = clock.monotonic_s() + _MAX_KILL_S
        while _alive(self._workers) and clock.monotonic_s() < until_s:
            self._reap(can_replace=False)
            clock.sleep(_POLL_S)


def _alive(workers: Sequence[_Worker]) -> list[_Worker]:
    return [worker for worker in workers if worker.pid]


def _create_stack_file() -> IO[bytes]:
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
    """Kill stalled processes. Log the reason, and the stack trace that each process writes within this time."""
    stacks = _stacks([worker for worker, _ in workers], within_s)
    for (worker, why), stack in zip(workers, stacks, strict=True):
        worker.stall_detector, worker.is_stalled = None, False
        telemetry.logger("workers").error("a worker stalled and is killed", **worker.log_fields, why=why, stack=stack)
        with suppress(ProcessLookupError):
            os.kill(worker.pid, signal.SIGKILL)


def _stacks(workers: Sequence[_Worker], within_s: float) -> list[list[str]]:
    """Return the stack traces of each worker as lines. All processes write their stack traces at the same time, in
    signal handlers."""
    for worker in workers:
        with suppress(ProcessLookupError):
            os.kill(worker.pid, _STACK_SIGNAL)
    sizes, until_s = [-1] * len(workers), clock.monotonic_s() + within_s
    while workers and (left_s := until_s - clock.monotonic_s()) > 0:
        previous_sizes, sizes = sizes, [_stack_bytes(worker) for worker in workers]
        if sizes == previous_sizes and all(sizes):
            break
        clock.sleep(min(_STACK_PAUSE_S, left_s))
    return [_stack(worker) for worker in workers]


def _stack_bytes(worker: _Worker) -> int:
    return 0 if worker.stack_file is None else os.fstat(worker.stack_file.fileno()).st_size


def _stack(worker: _Worker) -> list[str]:
    if worker.stack_file is None:
        return []
    return os.pread(worker.stack_file.fileno(), _MAX_STACK_BYTES, 0).decode(errors="replace").splitlines()


def _run_worker(config: SupervisorConfig, number: int, write_end: int, stack_file: IO[bytes], parent: int) -> NoReturn:
    """Run a worker process to its end."""
    exit_code = 1
    try:
        signal.set_wakeup_fd(-1)
        for handled_signal in _HANDLED_SIGNALS:
            signal.signal(handled_signal, signal.SIG_DFL)
        # Ctrl-C sends SIGINT to every process of a terminal. Only the supervisor handles it.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        faulthandler.register(_STACK_SIGNAL, stack_file, all_threads=True)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDLED_SIGNALS)
        if sys.platform == "linux":
            # Kill this process when the supervisor ends, because an orphan must not keep using the port or the data.
            # SIGKILL is needed because a stalled loop would ignore SIGTERM.
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == parent:
            with _report_failure(config, number, write_end):
                config.work(number, lambda: _send(write_end, _READY))
            exit_code = 0
    except Exception:  # the process edge: the failure was already sent to the supervisor
        exit_code = 1
    finally:
        sys.stderr.flush()
        os._exit(exit_code)


@contextmanager
def _report_failure(config: SupervisorConfig, number: int, write_end: int) -> Generator[None]:
    """Send the exception that ends the block to the supervisor. Log an unexpected exception, which `explain` does not
    explain, with its stack trace."""
    try:
        yield
    except Exception as error:
        explanation = config.explain(error)
        if explanation is None:
            telemetry.logger("workers").error("a worker failed", worker=number, exc_info=error)
        failure = _Failure(f"{error}", isinstance(error, Unrecoverable), explanation or b"")
        _send(write_end, _FAILED + msgspec.json.encode(failure))
        raise


def _send(write_end: int, data: bytes) -> None:
    while data:
        data = data[os.write(write_end, data) :]
