"""What a process gives up before it works on jobs: its place before requests, room, a life beyond its parent's."""

import ctypes
import os
import resource
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG = 1
KILLED_SOONER = "500"
"""Of 1,000: when memory runs out, a job goes before a server does."""


def step_back(*, nice: int, memory_mib: int) -> None:
    """Let requests go first, take `memory_mib` MiB of memory at most, leave no core behind, ignore ctrl-C, which the
    parent hears as well, and SIGHUP, which ends nothing."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.nice(nice)
    _bound(resource.RLIMIT_AS, memory_mib << 20)
    _bound(resource.RLIMIT_CORE, 0)
    # Only Linux has it, and a container may forbid it.
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(KILLED_SOONER)


def _bound(kind: int, most: int) -> None:
    _, hard = resource.getrlimit(kind)
    bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (bound, bound))


def die_with_parent(parent_pipe: int) -> None:
    """End this process, whatever it does, when its parent has ended: the pipe from there is at its end then.

    Linux tells the death of a parent by itself, which also reaches a process that can run no thread of its own.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=_end_at_end_of, args=(parent_pipe,), daemon=True).start()


def _end_at_end_of(pipe: int) -> None:
    while os.read(pipe, 4096):
        continue
    os._exit(1)
