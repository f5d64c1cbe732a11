"""Errands: a caller's requests to a service step by step, and a ledger of the answers, which shows every loss.

A step that was begun and not answered is in doubt. The caller looks for its result (`find`) or sends it again with its
Idempotency-Key, and then it must have happened exactly once. A step that was answered must always be found again, or
get the same answer again.
"""

import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.faults.wire import WireResponse

UNAVAILABLE = 503
FULL = 507


class Request(NamedTuple):
    """One request of a step. A request with a key can be sent again."""

    method: str
    path: str
    token: str = ""
    body: bytes = b""
    key: str = ""


class TimedResponse(NamedTuple):
    """An answer, and when it came (seconds of the monotonic clock, which all processes of this machine share)."""

    status: int
    text: str
    at_s: float

    @property
    def value(self) -> Any:
        """The body."""
        return json.loads(self.text) if self.text else None


class WriteLost(AssertionError):
    """Something acknowledged is missing or has changed."""


class WriteDoubled(AssertionError):
    """Something happened twice."""


class WriteRefused(Exception):
    """The service could not write (503, 507), and the caller does not retry."""

    step = ""


Say = Callable[[Request], Awaitable[WireResponse]]
"""Sends a request once. Raises OSError or EOFError when the answer is incomplete."""

Find = Callable[[Any], Awaitable[Any]]
"""Returns the result of the step, or None. The argument is the step's answer, if there was one."""


@dataclass
class StepLedger:
    """The begun steps of one errand and their answers."""

    begun: set[str] = field(default_factory=set[str])
    heard: dict[str, TimedResponse] = field(default_factory=dict[str, TimedResponse])
    held: int = 0
    found_unheard: int = 0
    note: Callable[[str, TimedResponse | None], None] = lambda step, response: None

    def begin(self, step: str) -> None:
        """Record that the step's request is about to be sent."""
        self.begun.add(step)
        self.note(step, None)

    def hear(self, step: str, status: int, text: str) -> TimedResponse:
        """Record the answer to the step."""
        response = self.heard[step] = TimedResponse(status, text, time.monotonic())
        self.note(step, response)
        return response

    def doubt(self, since_s: float) -> int:
        """Forget the answers that came after this time, and return their count."""
        late_steps = [step for step, response in self.heard.items() if response.at_s >= since_s]
        for step in late_steps:
            del self.heard[step]
        return len(late_steps)


@dataclass
class ErrandClient:
    """A client that runs errands. It waits `rest` between two tries; without `rest` the first refused write raises
    `WriteRefused`."""

    say: Say
    ledger: StepLedger
    rest: Callable[[], Awaitable[None]] | None = None

    async def step(self, name: str, request: Request, find: Find | None = None, *, until: str = "") -> Any:
        """Run the step exactly once, and return the body of its answer. An answer from before is checked again, unless
        the step `until`, which reverses it, has begun.

        Raises:
            WriteLost: an acknowledged write is missing. WriteRefused: the service could not write.
        """
        first_response = self.ledger.heard.get(name)
        if first_response is not None:
            if until not in self.ledger.begun:
                await self._hold(name, request, find, first_response)
            return first_response.value
        is_in_doubt = name in self.ledger.begun
        self.ledger.begin(name)
        while True:
            if is_in_doubt and find is not None:
                effect = await self._look(find, None)
                if effect is not None:
                    self.ledger.found_unheard += 1
                    return self.ledger.hear(name, 200, json.dumps(effect)).value
            try:
                answer = await self._try(request)
            except WriteRefused as refusal:
                refusal.step = name
                raise
            if answer is not None:
                assert 200 <= answer.status < 300, (name, answer)
                self.ledger.found_unheard += "idempotency-replayed" in answer.headers
                return self.ledger.hear(name, answer.status, answer.body.decode()).value
            is_in_doubt = True

    async def ask(self, request: Request) -> WireResponse:
        """Return the answer to a request that may be sent any number of times."""
        while (answer := await self._try(request)) is None:
            pass
        return answer

    async def _try(self, request: Request) -> WireResponse | None:
        """Return the answer, or None if no answer shows the outcome."""
        try:
            answer = await self.say(request)
        except (OSError, EOFError) as error:
            if self.rest is None:
                raise WriteRefused from error
        else:
            if answer.status not in (UNAVAILABLE, FULL) and b"idempotency_in_progress" not in answer.body:
                return answer
            if self.rest is None:
                raise WriteRefused(answer.status)
        await self.rest()
        return None

    async def _look(self, find: Find, first_value: Any) -> Any:
        return await find(first_value)

    async def _hold(self, name: str, request: Request, find: Find | None, first_response: TimedResponse) -> None:
        if find is not None:
            if await self._look(find, first_response.value) is None:
                raise WriteLost(
                    f"{name} is not there, though it was answered {first_response.status}: {first_response.text[:200]}"
                )
        elif request.key:
            repeated_response = await self.ask(request)
            if (repeated_response.status, repeated_response.body.decode()) != (
                first_response.status,
                first_response.text,
            ):
                raise WriteLost(
                    f"{name} was answered {first_response.status} {first_response.text[:200]}, "
                    f"and now {repeated_response}"
                )
            assert "idempotency-replayed" in repeated_response.headers, name
        self.ledger.held += 1
