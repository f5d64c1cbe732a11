"""Files of questions asked of the catalog of catalog.json, and what became of each."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import httpx

from countersign.kernel import clock
from countersign.settings import Settings
from countersign.store import app as distribution
from countersign.store.context import Store
from tests.ask import judging
from tests.ask.stocked import stock
from tests.servers.countersign import MASTER_KEY

NOON = clock.from_datetime(datetime(2026, 11, 20, 12, tzinfo=UTC))
ROOT_URL = "http://127.0.0.1:8480"
OUTCOMES: tuple[judging.Outcome, ...] = ("right", "partial", "refused", "wrong")
Ask = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


class Judged(NamedTuple):
    """A question, its answer, and what became of it."""

    line: dict[str, Any]
    answer: dict[str, Any]
    outcome: judging.Outcome

    @property
    def voice(self) -> str:
        """Who asks."""
        return str(self.line.get("voice", "builders"))


@asynccontextmanager
async def asking(store: Store) -> AsyncIterator[Ask]:
    """Asks the store over HTTP."""
    transport = httpx.ASGITransport(distribution.create(store))
    async with httpx.AsyncClient(transport=transport, base_url=ROOT_URL) as client:

        async def ask(line: dict[str, Any]) -> dict[str, Any]:
            body = {"query": line["question"], **({"prev": line["prev"]} if line.get("prev") else {})}
            answer = await client.post("/api/v1/ask", json=body)
            assert answer.status_code == 200, (line, answer.text)
            found: dict[str, Any] = answer.json()
            return found

        yield ask


async def judged(ask: Ask, lines: Sequence[dict[str, Any]]) -> list[Judged]:
    """What became of the questions, asked at the moment of the catalog."""
    known = judging.catalog()
    found: list[Judged] = []
    with clock.fixed(NOON):
        for line in lines:
            answer = await ask(line)
            expected = line if "kind" in line else {**line, "kind": "refused", "expect": None}
            found.append(Judged(line, answer, judging.outcome(expected, answer, known)))
    return found


def counted(found: Sequence[Judged]) -> dict[str, Counter[judging.Outcome]]:
    """How many of each outcome, by voice, and of all together."""
    voices: dict[str, Counter[judging.Outcome]] = {}
    for each in found:
        voices.setdefault(each.voice, Counter())[each.outcome] += 1
    return voices | {"all": Counter(each.outcome for each in found)}


def worst(found: Sequence[Judged]) -> list[Judged]:
    """What is not right, the wrong ones first."""
    return [each for outcome in reversed(OUTCOMES[1:]) for each in found if each.outcome == outcome]


async def _of_file(path: Path, settings: Settings) -> list[Judged]:
    async with distribution.open_store(settings, ROOT_URL, is_loopback=True) as store:
        await stock(store)
        async with asking(store) as ask:
            return await judged(ask, judging.questions(str(path.resolve())))


def of_file(path: Path) -> list[Judged]:
    """What became of the questions of a file, in a store of its own."""
    with TemporaryDirectory() as folder:
        settings = Settings(data=folder, master_key=MASTER_KEY, reserve_mib=0, rate_anonymous=1_000_000)
        return asyncio.run(_of_file(path, settings))
