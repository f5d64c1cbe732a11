"""Many hands at once that do errands at a served service, whatever becomes of it meanwhile."""

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable

from tests.faults import office_errand, store_errand, wire
from tests.faults.errands import Hand, Ledger, Request, Say, Turned
from tests.faults.frail import Errands
from tests.faults.lives import Lives
from tests.faults.office_errand import Desk
from tests.faults.places import Place
from tests.faults.store_errand import Trade
from tests.faults.wire import Answer

REST_S = 0.01
AGAIN = 0.3
"""How often an errand that is finished is looked at again before another is begun."""


def over_the_wire(port: int) -> Say:
    """Requests to a served service, each on a connection of its own."""

    async def send(request: Request) -> Answer:
        headers = {"Idempotency-Key": request.key} if request.key else {}
        return await wire.call(
            port, request.method, request.path, token=request.token, headers=headers, body=request.body
        )

    return send


def errand_of(place: Place) -> Callable[[Hand, int], Awaitable[None]]:
    """What is done at the place."""
    if place.service == "distribution":
        trade = Trade(*place.tokens)
        return lambda hand, number: store_errand.publish_and_sell(hand, trade, number)
    desk = Desk(*place.tokens)
    return lambda hand, number: office_errand.write_and_decide(hand, desk, number)


class Crowd:
    """Hands that do one errand after another, each to its end, with a pause between them, until told to stop."""

    def __init__(self, lives: Lives, place: Place, seed: int, pause_s: float = 0) -> None:
        self.about = Errands(place.service, lives.data, place.tokens, place.database_url)
        self.is_over = False
        self._say = over_the_wire(lives.port)
        self._errand = errand_of(place)
        self._numbers = itertools.count(seed * 100_000)
        self._chance = random.Random(seed)
        self._finished: list[int] = []
        self._pause_s = pause_s

    async def work(self) -> None:
        """One pair of hands."""
        while not self.is_over:
            await asyncio.sleep(self._pause_s)
            if self._finished and self._chance.random() < AGAIN:
                await self.do(self._chance.choice(self._finished))
                continue
            number = next(self._numbers)
            self.about.ledgers[number] = Ledger()
            await self.do(number)
            self._finished.append(number)

    async def try_once(self) -> Turned | None:
        """One errand up to the first refusal to write, which is given back."""
        number = next(self._numbers)
        self.about.ledgers[number] = Ledger()
        try:
            await self._errand(Hand(self._say, self.about.ledgers[number]), number)
        except Turned as turned:
            return turned
        return None

    async def do(self, number: int) -> None:
        """The errand to its end, or from its beginning once more."""
        await self._errand(Hand(self._say, self.about.ledgers[number], _rest), number)

    async def look_at_all(self) -> None:
        """Everything that was ever heard, once more."""
        for number in self.about.ledgers:
            await self.do(number)


async def _rest() -> None:
    await asyncio.sleep(REST_S)
