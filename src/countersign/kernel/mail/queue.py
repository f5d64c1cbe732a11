"""The mail queue: e-mails that are composed and sent after the response to a request."""

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
"""The delay before each attempt. The first delay lets the response be sent before any work whose duration could reveal
something."""
CLOSING_S = 5.0

WAITING = metrics.gauge("countersign_mail_waiting", "E-mails in memory that wait to be sent or retried.")
FAILED = metrics.counter("countersign_mail_failures_total", "Failed attempts to send an e-mail.")


class Email(NamedTuple):
    """An e-mail to send."""

    to: str
    subject: str
    text: str


ComposeEmail: TypeAlias = Callable[[], Awaitable[Email | None]]
"""Composes an e-mail, or returns None if there is nothing to send."""


class Log(Protocol):
    """The logger for failures of the queue."""

    def warning(self, event: str, **members: object) -> None:
        """Log an event that an operator should look at."""
        ...

    def error(self, event: str, **members: object) -> None:
        """Log a fault; `exc_info` is the exception."""
        ...


class MailQueue:
    """Sends e-mails over a Mail, now or after the response. Queued e-mails are only in memory, so a crash loses them,
    and the user must request them again."""

    def __init__(self, mail: Mail, log: Log) -> None:
        self.mail = mail
        self._tasks: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(MAX_CONCURRENT)
        self._log = log
        # Export the metric as 0 until something is counted.
        WAITING.labels()
        FAILED.labels()

    async def send(self, recipient: str, subject: str, text: str) -> None:
        """Send one e-mail and wait until it is handed over.

        Raises:
            BadAddress, Unavailable, StorageFull: see `Mail.send`.
        """
        await self.mail.send(recipient, subject, text)

    def enqueue(self, write: ComposeEmail) -> None:
        """Compose an e-mail and send it after the current response, so that neither the response nor its duration
        reveals whether an e-mail was sent. A failure is retried twice, then logged.

        Raises:
            Unavailable: 1,000 e-mails are queued.
        """
        if len(self._tasks) >= MAX_WAITING:
            raise Unavailable("too many e-mails are waiting to be sent")
        task = asyncio.create_task(self._deliver(write))
        self._tasks.add(task)
        WAITING.labels().value += 1
        task.add_done_callback(self._forget_task)

    async def drain(self) -> None:
        """Wait until the queue is empty."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        """Wait a few seconds for queued e-mails, then drop them."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CLOSING_S)
        pending_tasks = tuple(self._tasks)
        for task in pending_tasks:
            task.cancel()
        if pending_tasks:
            await asyncio.wait(pending_tasks)
            self._log.warning("e-mails not sent", count=len(pending_tasks))

    async def _deliver(self, write: ComposeEmail) -> None:
        email: Email | None = None
        for number, pause_s in enumerate(PAUSES_S, 1):
            await asyncio.sleep(pause_s)
            async with self._slots:
                try:
                    email = email or await write()
                    if email is not None:
                        await self.mail.send(*email)
                    return
                except BadAddress:
                    raise
                except Refused as refused:
                    FAILED.labels().value += 1
                    # The line does not contain the address, since logs must not contain recipients.
                    self._log.warning("e-mail not sent", why=refused.detail, attempt=number, of=len(PAUSES_S))

    def _forget_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        WAITING.labels().value -= 1
        if not task.cancelled() and (error := task.exception()) is not None:
            self._log.error("e-mail not composed", exc_info=error)
