"""The mail room: letters that are written and sent once the answer to a request is out."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol, TypeAlias

from countersign.kernel import metrics
from countersign.kernel.errors import Refused, Unavailable
from countersign.kernel.mail.message import BadAddress
from countersign.kernel.mail.transports import Mail

MAX_WAITING = 1_000
MAX_CONCURRENT = 4
PAUSES_S = (0.05, 2.0, 15.0)
"""Before each try. The first lets the answer go out before any work that its time could tell about."""
CLOSING_S = 5.0

WAITING = metrics.gauge("countersign_mail_waiting", "Letters in memory that wait to be sent, or to be tried again.")
FAILED = metrics.counter("countersign_mail_failures_total", "Attempts to send a letter that failed.")


class Email(NamedTuple):
    """What is to be sent."""

    to: str
    subject: str
    text: str


ComposeEmail: TypeAlias = Callable[[], Awaitable[Email | None]]
"""Makes a letter; None when there is none to send."""


class Log(Protocol):
    """Where the room writes what became of letters."""

    def warning(self, event: str, **members: object) -> None:
        """Something an operator should look at."""
        ...

    def error(self, event: str, **members: object) -> None:
        """A fault; `exc_info` carries the exception."""
        ...


class MailQueue:
    """Sends letters over a Mail, now or after the answer. What waits is kept in memory alone: a letter that is lost
    with the process is one its reader asks for again."""

    def __init__(self, mail: Mail, log: Log) -> None:
        self.mail = mail
        self._tasks: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(MAX_CONCURRENT)
        self._log = log
        # Told as 0 until something is counted.
        WAITING.of()
        FAILED.of()

    async def send(self, to: str, subject: str, text: str) -> None:
        """Send one letter and wait until it is handed over.

        Raises:
            BadAddress, Unavailable, StorageFull: as Mail.
        """
        await self.mail.send(to, subject, text)

    def afterwards(self, write: ComposeEmail) -> None:
        """Write a letter and send it once the present answer is out, so that nothing about the answer, its time
        included, tells what was written or whether anything was. A failure is tried again twice, then logged.

        Raises:
            Unavailable: 1,000 letters wait already.
        """
        if len(self._tasks) >= MAX_WAITING:
            raise Unavailable("too many letters are waiting to be sent")
        task = asyncio.create_task(self._deliver(write))
        self._tasks.add(task)
        WAITING.of().value += 1
        task.add_done_callback(self._done)

    async def settled(self) -> None:
        """Wait until nothing is waiting to be sent."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        """Give what is waiting a few seconds, then let it go."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CLOSING_S)
        left = tuple(self._tasks)
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)
            self._log.warning("letters not sent", count=len(left))

    async def _deliver(self, write: ComposeEmail) -> None:
        letter: Email | None = None
        for number, pause_s in enumerate(PAUSES_S, 1):
            await asyncio.sleep(pause_s)
            async with self._slots:
                try:
                    letter = letter or await write()
                    if letter is not None:
                        await self.mail.send(*letter)
                    return
                except BadAddress:
                    raise
                except Refused as refused:
                    FAILED.of().value += 1
                    # Never the address: who is written to is nobody's business who reads a log.
                    self._log.warning("letter not sent", why=refused.detail, attempt=number, of=len(PAUSES_S))

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        WAITING.of().value -= 1
        if not task.cancelled() and (error := task.exception()) is not None:
            self._log.error("letter not written", exc_info=error)
