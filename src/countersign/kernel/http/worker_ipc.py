"""Communication between a server, its workers and systemd: shared memory, mailboxes, and sd_notify(3).

The scoreboard is memory that all processes share. It is allocated before the first fork. A worker writes only its own
heartbeat, and the supervisor writes everything else, so no lock is needed. A process that reads a value while another
process writes it may get a wrong value. This does no harm, because readers only show values or check whether values
have changed.

A mailbox is a pair of datagram sockets, created before the workers are forked. A question is sent together with one
socket of a new pair. The worker writes its answer to this socket from its event loop, so an answer proves that the loop
runs. The sockets have no names in the file system. Because each question has its own socket, late bytes of a dead
worker cannot be read as an answer to a later question.
"""

import asyncio
import mmap
import os
import socket
import struct
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple

from countersign.kernel import clock

_HEAD_BYTES = 8
_BEAT = struct.Struct("=Q")
_SLOT = struct.Struct("=IIIIqq")
"""The format of a slot: process id, state, restarts, stalls, and the times of the start and of the last stall in µs
since 1970."""
_SLOT_BYTES = _BEAT.size + _SLOT.size
_IS_STOPPING = 1


class State(IntEnum):
    """The state of a worker, as known to the supervisor."""

    WAITING = 0
    """The worker has no process; the next process is started after a pause."""
    STARTING = 1
    SERVING = 2


class Slot(NamedTuple):
    """One worker: its current process, and the number of times that its process was replaced."""

    pid: int = 0
    state: State = State.WAITING
    restarts: int = 0
    stalls: int = 0
    started_at: int = 0
    stalled_at: int = 0


class Scoreboard:
    """A slot for every worker. `programs` contains the name of each worker's program."""

    def __init__(self, programs: Sequence[str]) -> None:
        self.programs = tuple(programs)
        self._memory = mmap.mmap(-1, _HEAD_BYTES + max(1, len(programs)) * _SLOT_BYTES)

    def beat(self, number: int) -> None:
        """Count one heartbeat of the worker's event loop."""
        offset = self._slot_offset(number)
        (count,) = _BEAT.unpack_from(self._memory, offset)
        _BEAT.pack_into(self._memory, offset, count + 1)

    def beats(self, number: int) -> int:
        """Return the number of heartbeats of this worker, including those of its earlier processes."""
        return int(_BEAT.unpack_from(self._memory, self._slot_offset(number))[0])

    def __getitem__(self, number: int) -> Slot:
        pid, state, *more = _SLOT.unpack_from(self._memory, self._slot_offset(number) + _BEAT.size)
        return Slot(pid, State(state), *more)

    def note_start(self, number: int, pid: int) -> None:
        """Record that a process was started for the worker."""
        slot = self[number]
        is_restart = bool(slot.started_at)
        self._put(number, slot._replace(
            pid=pid, state=State.STARTING, restarts=slot.restarts + is_restart, started_at=clock.now()
        ))  # fmt: skip

    def note_serving(self, number: int) -> None:
        """Record that the worker accepts requests."""
        self._put(number, self[number]._replace(state=State.SERVING))

    def note_stall(self, number: int) -> None:
        """Record that the event loop of the worker stalled."""
        slot = self[number]
        self._put(number, slot._replace(stalls=slot.stalls + 1, stalled_at=clock.now()))

    def note_end(self, number: int) -> None:
        """Record that the process of the worker ended."""
        self._put(number, self[number]._replace(pid=0, state=State.WAITING))

    def note_stopping(self) -> None:
        """Record that the server stops."""
        self._memory[0] = _IS_STOPPING

    @property
    def is_stopping(self) -> bool:
        """Return whether the server stops."""
        return self._memory[0] == _IS_STOPPING

    def _put(self, number: int, slot: Slot) -> None:
        _SLOT.pack_into(self._memory, self._slot_offset(number) + _BEAT.size, *slot)

    def _slot_offset(self, number: int) -> int:
        return _HEAD_BYTES + range(len(self.programs))[number] * _SLOT_BYTES


class StallDetector:
    """Measures for how long the event loop of one process has not run although it could have run.

    Each call of `stalled_s` counts the time since the last call, but at most one tick. A longer time means that the
    machine, the container or the process with this detector was suspended. On Linux, time in which the observed process
    is stopped by a signal or a debugger is not counted. Other systems do not expose whether a process is stopped.
    """

    def __init__(self, pid: int, tick_s: float) -> None:
        self._pid = pid
        self._tick_s = tick_s
        self._beats = -1
        self._checked_at_s = clock.monotonic_s()
        self._stalled_s = 0.0

    def stalled_s(self, beats: int) -> float:
        """Return the seconds since the last heartbeat. `beats` is the current number of heartbeats."""
        now_s = clock.monotonic_s()
        elapsed_s, self._checked_at_s = min(now_s - self._checked_at_s, self._tick_s), now_s
        if beats != self._beats:
            self._beats, self._stalled_s = beats, 0.0
        elif not is_stopped(self._pid):
            self._stalled_s += elapsed_s
        return self._stalled_s


def is_stopped(pid: int) -> bool:
    """Return whether the process is stopped by a signal or a debugger. The result is False if the system does not
    expose this."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return stat.rpartition(b")")[2].split()[:1] in ([b"T"], [b"t"])


MAX_QUESTION_BYTES = 64
MAX_ANSWER_BYTES = 64 << 20
RETRY_S = 0.01


class WorkerMailboxes:
    """The mailboxes of `count` workers, created before the fork. A worker may also ask itself."""

    def __init__(self, count: int) -> None:
        self._boxes = [socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(count)]
        for box in self._boxes:
            for end in box:
                end.setblocking(False)

    @property
    def count(self) -> int:
        """Return the configured number of workers."""
        return len(self._boxes)

    @asynccontextmanager
    async def answering(self, index: int, answer: Callable[[str], Awaitable[bytes]]) -> AsyncGenerator[None]:
        """Answer questions to this worker while the block lasts."""
        question_socket = self._boxes[index][0]
        loop = asyncio.get_running_loop()
        tasks: set[asyncio.Task[None]] = set()

        def receive_question() -> None:
            with suppress(BlockingIOError):
                question, handles, _, _ = socket.recv_fds(question_socket, MAX_QUESTION_BYTES, 1)
                for handle in handles:
                    _start_task(tasks, _write_answer(socket.socket(fileno=handle), answer, question.decode()))

        loop.add_reader(question_socket.fileno(), receive_question)
        try:
            yield
        finally:
            loop.remove_reader(question_socket.fileno())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def ask(self, question: str, patience_s: float) -> list[bytes | None]:
        """Return the answers in the order of the workers' numbers, with None for a worker that did not answer in
        time."""
        return list(await asyncio.gather(*(self.ask_one(number, question, patience_s) for number in range(self.count))))

    async def ask_one(self, index: int, question: str, patience_s: float) -> bytes | None:
        """Return the answer of one worker, or None if it did not answer in time."""
        box = self._boxes[index][1]
        answer_socket, far_end = socket.socketpair()
        with suppress(TimeoutError, OSError):
            async with asyncio.timeout(patience_s):
                with far_end, ExitStack() as close_unless_sent:
                    close_unless_sent.callback(answer_socket.close)
                    await _send_question(box, question, far_end)
                    close_unless_sent.pop_all()
                return await _read_answer(answer_socket)
        return None

    def close(self) -> None:
        """Close the mailboxes, in this process."""
        for box in self._boxes:
            for end in box:
                end.close()


async def _send_question(box: socket.socket, question: str, reply_socket: socket.socket) -> None:
    """Send the question to the mailbox, with the socket for its answer. If the mailbox is full, send it again and
    again until the worker has read a question."""
    while True:
        try:
            socket.send_fds(box, [question.encode()], [reply_socket.fileno()])
        except OSError:
            await asyncio.sleep(RETRY_S)
        else:
            return


async def _read_answer(answer_socket: socket.socket) -> bytes | None:
    reader, writer = await asyncio.open_unix_connection(sock=answer_socket, limit=MAX_ANSWER_BYTES)
    try:
        return await reader.read() or None
    finally:
        writer.close()


def _start_task(tasks: set[asyncio.Task[None]], work: Coroutine[Any, Any, None]) -> None:
    task = asyncio.create_task(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)


async def _write_answer(reply_socket: socket.socket, answer: Callable[[str], Awaitable[bytes]], question: str) -> None:
    """Write the answer. The sender of the question may have closed its socket in the meantime."""
    reply_socket.setblocking(False)
    _, writer = await asyncio.open_unix_connection(sock=reply_socket)
    with suppress(OSError):
        writer.write(await answer(question))
        await writer.drain()
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


SD_READY = "READY=1"
SD_STOPPING = "STOPPING=1"
SD_ALIVE = "WATCHDOG=1"


def sd_notify(state: str) -> None:
    """Send the state to NOTIFY_SOCKET, without checking that it was received."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as notify_socket:
        notify_socket.setblocking(False)
        notify_socket.sendto(state.encode(), "\0" + address[1:] if address.startswith("@") else address)


def sd_watchdog_s() -> float | None:
    """Return the watchdog interval of systemd (sd_watchdog_enabled(3)), or None if there is no watchdog."""
    interval_us, watchdog_pid = os.environ.get("WATCHDOG_USEC", ""), os.environ.get("WATCHDOG_PID", "")
    if not interval_us.isdecimal() or not int(interval_us):
        return None
    if watchdog_pid and watchdog_pid != str(os.getpid()):
        return None
    return int(interval_us) / 1_000_000
