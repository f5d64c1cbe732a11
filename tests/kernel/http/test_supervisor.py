"""The supervisor of workers in this process: refusals of the system, and workers that do not end."""

import errno
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from countersign.kernel.http import workers
from countersign.kernel.http.worker_ipc import Scoreboard, StallDetector
from countersign.kernel.http.workers import STOPPING_S, Program, SupervisorConfig, _SignalPipe, _Supervisor

GRACE_S = 5.0


class FakeWakeupPipe(_SignalPipe):
    """A pipe without signals, so that this process keeps its own handlers. A wait always takes its full time."""

    def __init__(self) -> None:
        self.signals = b""

    def wait(self, other_pids: Sequence[int], timeout_s: float) -> tuple[list[int], bytes]:
        """Let the time pass. A signal ends the wait at once."""
        signals, self.signals = self.signals, b""
        if not signals:
            workers.clock.sleep(max(0.0, timeout_s))
        return [], signals


class FakeSystem:
    """A clock that a sleep moves, and processes that never end and write no stack trace."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, files: ExitStack) -> None:
        self.files = files
        self.now_s = 1000.0
        self.sent: list[tuple[float, int, int]] = []
        monkeypatch.setattr(workers.clock, "monotonic_s", lambda: self.now_s)
        monkeypatch.setattr(workers.clock, "sleep", self.sleep)
        monkeypatch.setattr(os, "kill", lambda pid, number: self.sent.append((self.now_s, pid, number)))
        monkeypatch.setattr(os, "waitpid", lambda pid, options: (0, 0))
        monkeypatch.setattr(signal, "signal", lambda number, handler: None)

    def sleep(self, seconds: float) -> None:
        """Move the clock, at least a little."""
        self.now_s += max(seconds, 0.001)

    def sent_pids(self, number: int) -> set[int]:
        """Return the processes that got the signal."""
        return {pid for _, pid, sent_number in self.sent if sent_number == number}

    def serve(self, served_supervisor: _Supervisor) -> list[int]:
        """Let every worker serve in a process that does not exist, and return the ids."""
        for worker in served_supervisor._workers:
            worker.pid, worker.is_ready, worker.was_ever_ready = 1 << 30 | worker.number, True, True
            worker.stall_detector, worker.stack_file = (
                StallDetector(worker.pid, 1.0),
                self.files.enter_context(workers._create_stack_file()),
            )
        return [worker.pid for worker in served_supervisor._workers]


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSystem]:
    """The simulated system in place of the machine's."""
    with ExitStack() as files:
        yield FakeSystem(monkeypatch, files)


def supervisor(*programs: Program) -> _Supervisor:
    """Return a supervisor of these programs that has started nothing."""
    names = [program.name for program in programs for _ in range(program.workers)]
    return _Supervisor(
        SupervisorConfig(
            work=lambda number, report_ready: None,
            programs=programs,
            scoreboard=Scoreboard(names),
            on_ready=lambda: None,
            on_stop=lambda: None,
            explain=lambda error: None,
            grace_s=GRACE_S,
            watchdog_s=10.0,
        ),
        FakeWakeupPipe(),
    )


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts descriptors in /proc")
@pytest.mark.parametrize("refused_call", ["fork", "memfd_create"])
def test_a_worker_that_cannot_be_started_leaves_no_descriptor_open(
    monkeypatch: pytest.MonkeyPatch, refused_call: str
) -> None:
    def refuse(*_: object) -> int:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    failing_supervisor = supervisor(Program("store", 1))
    (worker,) = failing_supervisor._workers
    worker.was_ever_ready = True
    descriptors_before = set(os.listdir("/proc/self/fd"))
    with monkeypatch.context() as patched:
        patched.setattr(os, refused_call, refuse)
        for _ in range(3):
            worker.start_at_s = 0.0
            failing_supervisor._start_due()

    assert worker.start_at_s > workers.clock.monotonic_s()
    assert set(os.listdir("/proc/self/fd")) <= descriptors_before


def test_the_stacks_of_all_workers_that_stall_are_waited_for_together(system: FakeSystem) -> None:
    eight_workers = supervisor(Program("store", 8))
    everyone = system.serve(eight_workers)
    while not system.sent:
        system.sleep(1.0)
        began_s = system.now_s
        eight_workers._check_heartbeats(kill_stalled=True)

    assert system.sent_pids(signal.SIGUSR1) == system.sent_pids(signal.SIGKILL) == set(everyone)
    assert system.now_s - began_s < 1.5


def test_the_stack_of_each_worker_is_logged_as_its_own(system: FakeSystem) -> None:
    three_workers = supervisor(Program("store", 3))
    system.serve(three_workers)
    for worker in three_workers._workers[:2]:
        assert worker.stack_file is not None
        os.write(worker.stack_file.fileno(), b"one\n%d\n" % worker.number)

    assert workers._stacks(three_workers._workers, 1.0) == [["one", "0"], ["one", "1"], []]


@pytest.mark.parametrize("stalls", [False, True])
def test_a_stop_is_bounded_though_no_worker_ends(system: FakeSystem, stalls: bool) -> None:
    two_programs = supervisor(Program("store", 4), Program("operator", 1, outlasts=True))
    everyone = system.serve(two_programs)
    if not stalls:
        for worker in two_programs._workers:
            worker.is_ready = False
    began_s = system.now_s

    two_programs.stop()

    assert system.now_s - began_s <= GRACE_S + STOPPING_S + 0.1
    assert system.sent_pids(signal.SIGTERM) == system.sent_pids(signal.SIGKILL) == set(everyone)
    assert system.sent_pids(signal.SIGUSR1) == (set(everyone) if stalls else set())
    first_s = {pid: at_s for at_s, pid, number in reversed(system.sent) if number == signal.SIGTERM}
    assert first_s[everyone[-1]] > max(first_s[pid] for pid in everyone[:-1])
    assert min(at_s for at_s, _, number in system.sent if number == signal.SIGKILL) >= began_s + GRACE_S


def test_a_second_ctrl_c_also_kills_the_programs_that_outlast_the_others(system: FakeSystem) -> None:
    two_programs = supervisor(Program("store", 2), Program("operator", 1, outlasts=True))
    everyone = system.serve(two_programs)
    two_programs._signal_pipe.signals = bytes([signal.SIGINT])
    began_s = system.now_s

    two_programs.stop()

    assert {pid for at_s, pid, number in system.sent if number == signal.SIGKILL and at_s == began_s} == set(everyone)
