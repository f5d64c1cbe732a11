"""What a server and its workers know of each other, in memory that they share: heartbeats, states, restarts.

Made before the first fork. A worker writes its own heartbeat alone and the supervisor everything else, so that no lock
is needed. Readers compare values for change only, or show them.
"""

import mmap
import struct
from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

from countersign.kernel import clock

_HEAD_BYTES = 8
_BEAT = struct.Struct("=Q")
_SLOT = struct.Struct("=IIIIqq")
"""Process id, state, restarts, stalls; when it was started and when it last stalled, in µs since 1970."""
_SLOT_BYTES = _BEAT.size + _SLOT.size
_IS_STOPPING = 1


class State(IntEnum):
    """What a worker is doing, as far as the supervisor knows."""

    WAITING = 0
    """No process: the next one is started after a pause."""
    STARTING = 1
    SERVING = 2


class Slot(NamedTuple):
    """One worker's place: its present process, and how often that was replaced."""

    pid: int = 0
    state: State = State.WAITING
    restarts: int = 0
    stalls: int = 0
    started_at: int = 0
    stalled_at: int = 0


class Scoreboard:
    """A slot for every worker; `programs` names what each of them serves."""

    def __init__(self, programs: Sequence[str]) -> None:
        self.programs = tuple(programs)
        self._memory = mmap.mmap(-1, _HEAD_BYTES + max(1, len(programs)) * _SLOT_BYTES)

    def beat(self, number: int) -> None:
        """Count one turn of the event loop of this worker."""
        place = self._place(number)
        (count,) = _BEAT.unpack_from(self._memory, place)
        _BEAT.pack_into(self._memory, place, count + 1)

    def beats(self, number: int) -> int:
        """How many turns this worker and those before it have counted."""
        return int(_BEAT.unpack_from(self._memory, self._place(number))[0])

    def __getitem__(self, number: int) -> Slot:
        pid, state, *more = _SLOT.unpack_from(self._memory, self._place(number) + _BEAT.size)
        return Slot(pid, State(state), *more)

    def note_start(self, number: int, pid: int) -> None:
        """A process was started for this worker."""
        slot = self[number]
        again = bool(slot.started_at)
        self._put(number, slot._replace(
            pid=pid, state=State.STARTING, restarts=slot.restarts + again, started_at=clock.now()
        ))  # fmt: skip

    def note_serving(self, number: int) -> None:
        """The process of this worker answers requests."""
        self._put(number, self[number]._replace(state=State.SERVING))

    def note_stall(self, number: int) -> None:
        """The event loop of this worker has not turned for too long."""
        slot = self[number]
        self._put(number, slot._replace(stalls=slot.stalls + 1, stalled_at=clock.now()))

    def note_end(self, number: int) -> None:
        """The process of this worker is gone."""
        self._put(number, self[number]._replace(pid=0, state=State.WAITING))

    def stop(self) -> None:
        """Note that the server stops."""
        self._memory[0] = _IS_STOPPING

    @property
    def is_stopping(self) -> bool:
        """Whether the server stops."""
        return self._memory[0] == _IS_STOPPING

    def _put(self, number: int, slot: Slot) -> None:
        _SLOT.pack_into(self._memory, self._place(number) + _BEAT.size, *slot)

    def _place(self, number: int) -> int:
        return _HEAD_BYTES + range(len(self.programs))[number] * _SLOT_BYTES


class StallClock:
    """How long the event loop of one process has not turned, in time in which it could have.

    A look counts the time since the last look, and never more than one tick: while the machine, the container or this
    process was stopped nothing looked. Time in which the process itself was stopped (SIGSTOP, a debugger) is left out
    where the system shows it (Linux).
    """

    def __init__(self, pid: int, tick_s: float) -> None:
        self._pid = pid
        self._tick_s = tick_s
        self._beats = -1
        self._looked_s = clock.monotonic_s()
        self._stalled_s = 0.0

    def look(self, beats: int) -> float:
        """How many seconds the loop has not turned, given the heartbeats that were counted by now."""
        now_s = clock.monotonic_s()
        elapsed_s, self._looked_s = min(now_s - self._looked_s, self._tick_s), now_s
        if beats != self._beats:
            self._beats, self._stalled_s = beats, 0.0
        elif not is_stopped(self._pid):
            self._stalled_s += elapsed_s
        return self._stalled_s


def is_stopped(pid: int) -> bool:
    """Whether the process is stopped by a signal or a debugger; False where the system does not show it."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return stat.rpartition(b")")[2].split()[:1] in ([b"T"], [b"t"])
