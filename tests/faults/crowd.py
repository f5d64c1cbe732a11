"""Many clients that run errands against a served service at once, while the service fails and restarts."""

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable

from tests.faults import office_errand, store_errand, wire
from tests.faults.errands import ErrandClient, Request, Say, StepLedger, WriteRefused
from tests.faults.frail import ErrandRun
from tests.faults.lives import RestartableService
from tests.faults.office_errand import RecordsClients
from tests.faults.places import FilledDirectory
from tests.faults.store_errand import Tokens
from tests.faults.wire import WireResponse

REST_S = 0.01
AGAIN = 0.3
"""The probability that a finished errand is checked again before the next errand begins."""


def over_the_wire(port: int) -> Say:
    """Send requests to a served service, each on a connection of its own."""

    async def send(request: Request) -> WireResponse:
        headers = {"Idempotency-Key": request.key} if request.key else {}
        return await wire.call(
            port, request.method, request.path, token=request.token, headers=headers, body=request.body
        )

    return send


def errand_of(filled: FilledDirectory) -> Callable[[ErrandClient, int], Awaitable[None]]:
    """Return the errand for the service at this place."""
    if filled.service == "distribution":
        tokens = Tokens(*filled.tokens)
        return lambda client, number: store_errand.publish_and_sell(client, tokens, number)
    desk = RecordsClients(*filled.tokens)
    return lambda client, number: office_errand.write_and_decide(client, desk, number)


class ClientPool:
    """Clients that run one errand after the other, each to its end, with a pause in between, until they are stopped."""

    def __init__(self, lives: RestartableService, filled: FilledDirectory, seed: int, pause_s: float = 0) -> None:
        self.about = ErrandRun(filled.service, lives.data, filled.tokens, filled.database_url)
        self.is_over = False
        self._say = over_the_wire(lives.port)
        self._errand = errand_of(filled)
        self._numbers = itertools.count(seed * 100_000)
        self._chance = random.Random(seed)
        self._finished: list[int] = []
        self._pause_s = pause_s

    async def work(self) -> None:
        """Run errands as one client."""
        while not self.is_over:
            await asyncio.sleep(self._pause_s)
            if self._finished and self._chance.random() < AGAIN:
                await self.run_errand(self._chance.choice(self._finished))
                continue
            number = next(self._numbers)
            self.about.ledgers[number] = StepLedger()
            await self.run_errand(number)
            self._finished.append(number)

    async def try_once(self) -> WriteRefused | None:
        """Run one errand until a write is refused, and return that refusal."""
        number = next(self._numbers)
        self.about.ledgers[number] = StepLedger()
        try:
            await self._errand(ErrandClient(self._say, self.about.ledgers[number]), number)
        except WriteRefused as refusal:
            return refusal
        return None

    async def run_errand(self, number: int) -> None:
        """Run the errand to its end, and restart it after a failure."""
        await self._errand(ErrandClient(self._say, self.about.ledgers[number], _rest), number)

    async def look_at_all(self) -> None:
        """Check again every answer that was ever received."""
        for number in self.about.ledgers:
            await self.run_errand(number)


async def _rest() -> None:
    await asyncio.sleep(REST_S)
