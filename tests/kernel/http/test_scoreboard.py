"""Heartbeats in shared memory, and the time in which an event loop could have run and did not."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from countersign.kernel import clock
from countersign.kernel.http.worker_ipc import Scoreboard, StallDetector, State, is_stopped
from tests.kernel.http.server_process import wait_until

HERE = os.getpid()


class ManualClock:
    """A clock that the test controls."""

    def __init__(self) -> None:
        self.s = 0.0

    def monotonic_s(self) -> float:
        """Return the time of this clock."""
        return self.s


@pytest.fixture
def manual_clock(monkeypatch: pytest.MonkeyPatch) -> ManualClock:
    """This clock in place of the clock of the machine."""
    manual = ManualClock()
    monkeypatch.setattr(clock, "monotonic_s", manual.monotonic_s)
    return manual


@pytest.fixture
def stopped_pid() -> Iterator[int]:
    """A process that is stopped by a signal."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        os.kill(process.pid, signal.SIGSTOP)
        yield process.pid
        os.kill(process.pid, signal.SIGKILL)


def test_a_loop_that_turns_never_stalls(manual_clock: ManualClock) -> None:
    stall = StallDetector(HERE, 1.0)
    for beats in range(100):
        manual_clock.s += 1
        assert stall.stalled_s(beats) == 0


def test_a_loop_that_does_not_turn_stalls_for_the_time_that_passes(manual_clock: ManualClock) -> None:
    stall = StallDetector(HERE, 1.0)
    stall.stalled_s(7)
    stalls: list[float] = []
    for _ in range(4):
        manual_clock.s += 0.5
        stalls.append(stall.stalled_s(7))

    assert stalls == [0.5, 1.0, 1.5, 2.0]
    assert stall.stalled_s(8) == 0


def test_time_without_checks_counts_as_one_tick(manual_clock: ManualClock) -> None:
    stall = StallDetector(HERE, 1.0)
    stall.stalled_s(7)
    manual_clock.s += 3600

    assert stall.stalled_s(7) == 1


def test_time_in_which_the_process_was_stopped_does_not_count(manual_clock: ManualClock, stopped_pid: int) -> None:
    wait_until(lambda: is_stopped(stopped_pid))
    stall = StallDetector(stopped_pid, 1.0)
    for _ in range(100):
        manual_clock.s += 1
        assert stall.stalled_s(7) == 0


def test_a_worker_counts_its_heartbeats_and_the_supervisor_the_processes_in_its_place() -> None:
    board = Scoreboard(["store", "records"])
    for pid in (11, 12):
        board.note_start(1, pid)
        board.note_serving(1)
        board.beat(1)
    board.note_stall(1)

    assert (board.beats(0), board.beats(1)) == (0, 2)
    slot = board[1]
    assert (slot.pid, slot.state, slot.restarts, slot.stalls) == (12, State.SERVING, 1, 1)
    assert board[0].state is State.WAITING
    board.note_end(1)
    assert (board[1].pid, board[1].state, board[1].restarts) == (0, State.WAITING, 1)
    with pytest.raises(IndexError):
        board.beat(2)


def test_a_process_reads_the_values_of_another_process() -> None:
    board = Scoreboard(["store"])
    pid = os.fork()
    if pid == 0:
        board.beat(0)
        board.note_stopping()
        os._exit(0)
    os.waitpid(pid, 0)

    assert board.beats(0) == 1
    assert board.is_stopping
