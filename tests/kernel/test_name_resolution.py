"""Names are resolved in separate threads: a name without an answer does not delay others."""

import asyncio
import socket
from collections import Counter
from collections.abc import Iterator
from threading import Event
from typing import Any

import pytest

from countersign.kernel import safe_http_client


class SilentResolver:
    """A resolver that answers for names ending in `.silent` only when the test permits it."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.answering = Event()
        self._real = socket.getaddrinfo

    def __call__(self, host: str, *arguments: Any, **options: Any) -> Any:
        self.asked[host] += 1
        if not host.endswith(".silent"):
            return self._real(host, *arguments, **options)
        self.answering.wait(60)
        raise socket.gaierror(socket.EAI_AGAIN, "no answer")


@pytest.fixture
def silent_resolver(monkeypatch: pytest.MonkeyPatch) -> Iterator[SilentResolver]:
    """The resolver, which answers everything when the test ends."""
    resolver = SilentResolver()
    monkeypatch.setattr(socket, "getaddrinfo", resolver)
    yield resolver
    resolver.answering.set()


async def start_lookups(silence: SilentResolver, names: list[str]) -> list[asyncio.Task[list[str]]]:
    """Start to resolve the names, and return the running lookups."""
    tasks = [asyncio.create_task(safe_http_client.resolve(name, 443)) for name in names]
    async with asyncio.timeout(30):
        while any(not silence.asked[name] for name in names):
            await asyncio.sleep(0)
    return tasks


async def test_silent_names_delay_no_other_lookup(silent_resolver: SilentResolver) -> None:
    silent = await start_lookups(
        silent_resolver, [f"{number}.silent" for number in range(safe_http_client.MAX_LOOKUPS - 1)]
    )

    async with asyncio.timeout(30):
        assert await safe_http_client.resolve("127.0.0.1", 443) == ["127.0.0.1"]

    assert not any(task.done() for task in silent)
    silent_resolver.answering.set()
    assert all(isinstance(outcome, OSError) for outcome in await asyncio.gather(*silent, return_exceptions=True))


async def test_lookups_beyond_the_limit_are_refused_at_once(silent_resolver: SilentResolver) -> None:
    silent = await start_lookups(
        silent_resolver, [f"{number}.silent" for number in range(safe_http_client.MAX_LOOKUPS)]
    )

    with pytest.raises(OSError, match="name lookups are running already"):
        await safe_http_client.resolve("127.0.0.1", 443)

    silent_resolver.answering.set()
    await asyncio.gather(*silent, return_exceptions=True)
    assert await safe_http_client.resolve("127.0.0.1", 443) == ["127.0.0.1"]


async def test_anyone_who_stops_waiting_does_not_begin_another_lookup_of_the_name(
    silent_resolver: SilentResolver,
) -> None:
    (first_lookup,) = await start_lookups(silent_resolver, ["a.silent"])
    first_lookup.cancel()
    second_lookup = asyncio.create_task(safe_http_client.resolve("a.silent", 443))
    finished_tasks, _ = await asyncio.wait([second_lookup], timeout=0.1)
    assert not finished_tasks
    silent_resolver.answering.set()

    with pytest.raises(socket.gaierror):
        await second_lookup
    assert first_lookup.cancelled()
    assert silent_resolver.asked["a.silent"] == 1
