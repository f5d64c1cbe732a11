"""Questions to the workers of one server: a question goes into a mailbox, with the way its answer comes back.

A mailbox is a pair of datagram sockets made before the workers are forked. Whoever asks sends one end of a fresh pair
along, and the worker writes its answer into it from its event loop: an answer proves that the loop turns. Nothing has
a name in the file system, and nothing of a worker that died is ever taken for an answer.
"""

import asyncio
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import ExitStack, asynccontextmanager, suppress
from typing import Any

MAX_QUESTION_BYTES = 64
MAX_BYTES = 64 << 20
TRIED_AGAIN_S = 0.01


class Siblings:
    """The mailboxes of `count` workers, to be made before the fork. One worker may ask itself as well."""

    def __init__(self, count: int) -> None:
        self._boxes = [socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(count)]
        for box in self._boxes:
            for end in box:
                end.setblocking(False)

    @property
    def count(self) -> int:
        """How many workers there are, or should be."""
        return len(self._boxes)

    @asynccontextmanager
    async def answering(self, index: int, tell: Callable[[str], Awaitable[bytes]]) -> AsyncGenerator[None]:
        """While the block lasts, this worker answers what it is asked."""
        reading = self._boxes[index][0]
        loop = asyncio.get_running_loop()
        tasks: set[asyncio.Task[None]] = set()

        def come() -> None:
            with suppress(BlockingIOError):
                question, handles, _, _ = socket.recv_fds(reading, MAX_QUESTION_BYTES, 1)
                for handle in handles:
                    _keep(tasks, _answer(socket.socket(fileno=handle), tell, question.decode()))

        loop.add_reader(reading.fileno(), come)
        try:
            yield
        finally:
            loop.remove_reader(reading.fileno())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def ask(self, question: str, patience_s: float) -> list[bytes | None]:
        """What each worker answers, by its number; None of one that does not in time."""
        return list(await asyncio.gather(*(self.ask_one(each, question, patience_s) for each in range(self.count))))

    async def ask_one(self, index: int, question: str, patience_s: float) -> bytes | None:
        """What the worker of this number answers; None when it does not in time."""
        box = self._boxes[index][1]
        mine, theirs = socket.socketpair()
        with suppress(TimeoutError, OSError):
            async with asyncio.timeout(patience_s):
                with theirs, ExitStack() as unless_put:
                    unless_put.callback(mine.close)
                    await _put(box, question, theirs)
                    unless_put.pop_all()
                return await _read(mine)
        return None

    def close(self) -> None:
        """Close the mailboxes, in this process."""
        for box in self._boxes:
            for end in box:
                end.close()


async def _put(box: socket.socket, question: str, back: socket.socket) -> None:
    """Put the question into the mailbox, with the way back. One that is full is no silence: it holds some hundred, and
    whoever looks into it makes room."""
    while True:
        try:
            socket.send_fds(box, [question.encode()], [back.fileno()])
        except OSError:
            await asyncio.sleep(TRIED_AGAIN_S)
        else:
            return


async def _read(mine: socket.socket) -> bytes | None:
    reader, writer = await asyncio.open_unix_connection(sock=mine, limit=MAX_BYTES)
    try:
        return await reader.read() or None
    finally:
        writer.close()


def _keep(tasks: set[asyncio.Task[None]], work: Coroutine[Any, Any, None]) -> None:
    task = asyncio.create_task(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)


async def _answer(back: socket.socket, tell: Callable[[str], Awaitable[bytes]], question: str) -> None:
    """Write the answer; whoever asked may be gone by then."""
    back.setblocking(False)
    _, writer = await asyncio.open_unix_connection(sock=back)
    with suppress(OSError):
        writer.write(await tell(question))
        await writer.drain()
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
