"""The operator's port when hundreds ask at once: nobody is told that a healthy service is dead, nor is systemd."""

import asyncio
import socket
from collections import Counter
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from countersign.cli.operating import Mailboxes, watching
from countersign.kernel.http import operator
from countersign.settings import Settings
from tests.cli.test_operator import Systemd, watched
from tests.cli.test_serve import wait_until

CROWD = 300


def answers(url: str, path: str) -> Counter[str]:
    """The statuses of so many who all ask before one of them listens."""
    host, _, port = url.removeprefix("http://").partition(":")
    request = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()
    with ExitStack() as stack:
        crowd = [stack.enter_context(socket.create_connection((host, int(port)), timeout=60)) for _ in range(CROWD)]
        for each in crowd:
            each.sendall(request)
        return Counter(each.makefile("rb").readline().split()[1].decode() for each in crowd)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_hundreds_who_ask_at_once_are_all_told_how_it_is(tmp_path: Path, workers: str) -> None:
    with watched(tmp_path / "data", "--workers", workers, service="distribution") as server:
        wait_until(lambda: not server.silent())
        told = {path: answers(server.url, path) for path in ("/livez", "/readyz", "/metrics")}

    assert told == {path: Counter({"200": CROWD}) for path in ("/livez", "/readyz", "/metrics")}


async def test_systemd_hears_that_all_live_while_the_questions_of_others_fill_a_mailbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    monkeypatch.setenv("WATCHDOG_USEC", "300000")
    mailboxes, settings = Mailboxes(2), Settings(data=str(tmp_path))
    with closing(Systemd(tmp_path / "notify")) as systemd, closing(mailboxes):
        await asyncio.gather(*(mailboxes.asked.ask(operator.ALIVE, 0.1) for _ in range(CROWD)))
        async with watching(settings, mailboxes, 0, []), mailboxes.beats.answering(1, operator.tell(1)):
            assert await asyncio.to_thread(systemd.next) == "WATCHDOG=1"
