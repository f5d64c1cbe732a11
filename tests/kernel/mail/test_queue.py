"""E-mails are sent after the response. A failure is retried, and then logged without an e-mail address."""

import asyncio
from collections.abc import Iterator

import pytest

from countersign.kernel.errors import Unavailable
from countersign.kernel.mail import queue
from countersign.kernel.mail.queue import Email, MailQueue

LETTER = Email("ann@example.com", "Hello", "text")


class FlakyTransport:
    """A mail transport that fails the first few times."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.taken: list[tuple[str, str, str]] = []

    async def send(self, recipient: str, subject: str, text: str) -> None:
        if self.failures:
            self.failures -= 1
            raise Unavailable("the mail server does not answer in time")
        self.taken.append((recipient, subject, text))

    async def check(self) -> None:
        return None


class LineLog:
    """A log that stores its lines."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, dict[str, object]]] = []

    def warning(self, event: str, **members: object) -> None:
        self.lines.append(("warning", event, members))

    def error(self, event: str, **members: object) -> None:
        self.lines.append(("error", event, members))


async def letter() -> Email:
    return LETTER


async def do_nothing() -> None:
    return None


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(queue, "PAUSES_S", (0.0, 0.0, 0.0))
    return


async def test_an_email_is_written_after_the_caller_has_continued() -> None:
    mail, lines = FlakyTransport(), LineLog()
    rooms = MailQueue(mail, lines)

    rooms.enqueue(letter)
    assert mail.taken == []
    await rooms.drain()

    assert mail.taken == [LETTER]
    assert lines.lines == []


async def test_a_queued_task_without_an_email_sends_nothing() -> None:
    mail = FlakyTransport()
    rooms = MailQueue(mail, LineLog())

    rooms.enqueue(do_nothing)
    await rooms.drain()

    assert mail.taken == []


async def test_a_failed_email_is_sent_again_unchanged() -> None:
    mail, lines, writes = FlakyTransport(2), LineLog(), list[int]()
    rooms = MailQueue(mail, lines)

    async def write() -> Email:
        writes.append(1)
        return LETTER

    rooms.enqueue(write)
    await rooms.drain()

    assert (mail.taken, writes) == ([LETTER], [1])
    assert [event for _, event, _ in lines.lines] == ["e-mail not sent"] * 2


async def test_an_undeliverable_email_is_logged_without_its_address() -> None:
    mail, lines = FlakyTransport(99), LineLog()
    rooms = MailQueue(mail, lines)

    rooms.enqueue(letter)
    await rooms.drain()

    assert len(lines.lines) == 3
    assert "ann@" not in str(lines.lines)


async def test_a_fault_in_writing_an_email_is_logged_and_the_queue_continues() -> None:
    mail, lines = FlakyTransport(), LineLog()
    rooms = MailQueue(mail, lines)

    async def broken() -> Email:
        raise LookupError("a bug")

    rooms.enqueue(broken)
    rooms.enqueue(letter)
    await rooms.drain()

    assert mail.taken == [LETTER]
    assert [(level, event) for level, event, _ in lines.lines] == [("error", "e-mail not composed")]


async def test_more_than_can_wait_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "MAX_WAITING", 2)
    mail = FlakyTransport()
    rooms = MailQueue(mail, LineLog())

    rooms.enqueue(letter)
    rooms.enqueue(letter)
    with pytest.raises(Unavailable):
        rooms.enqueue(letter)
    await rooms.drain()

    assert len(mail.taken) == 2


async def test_closing_waits_for_running_deliveries_and_drops_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "CLOSING_S", 0.05)
    mail, lines = FlakyTransport(), LineLog()
    rooms = MailQueue(mail, lines)

    async def endless() -> Email:
        await asyncio.Event().wait()
        return LETTER

    rooms.enqueue(letter)
    rooms.enqueue(endless)
    await rooms.close()

    assert mail.taken == [LETTER]
    assert lines.lines == [("warning", "e-mails not sent", {"count": 1})]
