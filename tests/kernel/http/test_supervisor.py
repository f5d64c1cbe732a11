"""The supervisor of workers, in process: what it does when the system refuses, and when no worker ends."""

import errno
import os
from pathlib import Path

import pytest

from countersign.kernel.http import workers
from countersign.kernel.http.scoreboard import Scoreboard
from countersign.kernel.http.workers import Program, Supervised, _Bell, _Supervisor

GRACE_S = 5.0


class Bell(_Bell):
    """Without signals, so that this process keeps its own handlers."""

    def __init__(self) -> None:
        pass


def supervisor(*programs: Program) -> _Supervisor:
    """A supervisor of these programs that has started nothing."""
    names = [each.name for each in programs for _ in range(each.workers)]
    return _Supervisor(
        Supervised(
            work=lambda number, ready: None,
            programs=programs,
            scoreboard=Scoreboard(names),
            on_ready=lambda: None,
            on_stop=lambda: None,
            explain=lambda error: None,
            grace_s=GRACE_S,
            watchdog_s=10.0,
        ),
        Bell(),
    )


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts descriptors in /proc")
@pytest.mark.parametrize("refused", ["fork", "memfd_create"])
def test_a_worker_that_cannot_be_started_leaves_no_descriptor_open(
    monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    def refuse(*_: object) -> int:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    one = supervisor(Program("store", 1))
    (worker,) = one._workers
    worker.was_ready = True
    before = set(os.listdir("/proc/self/fd"))
    with monkeypatch.context() as patched:
        patched.setattr(os, refused, refuse)
        for _ in range(3):
            worker.due_s = 0.0
            one._start_due()

    assert worker.due_s > workers.clock.monotonic_s()
    assert set(os.listdir("/proc/self/fd")) == before
