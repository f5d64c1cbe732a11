"""Errands: what a caller asks of a service step by step, and a ledger of what it was told, by which every loss shows.

A step that was begun and not answered is in doubt. It is asked about (`find`) or sent again with its Idempotency-Key,
and has then happened exactly once. A step that was answered must be found, or be answered the same, for ever after.
"""

import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.faults.wire import Answer

UNAVAILABLE = 503
FULL = 507


class Request(NamedTuple):
    """One request of a step; with a key it may be sent again."""

    method: str
    path: str
    token: str = ""
    body: bytes = b""
    key: str = ""


class Heard(NamedTuple):
    """An answer, and when it came (seconds of this machine's steady clock, which all its processes share)."""

    status: int
    text: str
    at_s: float

    @property
    def value(self) -> Any:
        """The body."""
        return json.loads(self.text) if self.text else None


class Lost(AssertionError):
    """Something acknowledged is not there, or not the same."""


class Doubled(AssertionError):
    """Something happened twice."""


class Turned(Exception):
    """The service could not write (503, 507), and the caller does not wait for better times."""

    step = ""


Say = Callable[[Request], Awaitable[Answer]]
"""Sends a request once. Raises OSError or EOFError where the answer is not whole."""

Find = Callable[[Any], Awaitable[Any]]
"""What the step left behind, or None; given its answer where there was one."""


@dataclass
class Ledger:
    """What was begun and what was heard of one errand, by step."""

    begun: set[str] = field(default_factory=set[str])
    heard: dict[str, Heard] = field(default_factory=dict[str, Heard])
    held: int = 0
    found_unheard: int = 0
    note: Callable[[str, Heard | None], None] = lambda step, heard: None

    def begin(self, step: str) -> None:
        """The step's request is about to be sent."""
        self.begun.add(step)
        self.note(step, None)

    def hear(self, step: str, status: int, text: str) -> Heard:
        """The step was answered."""
        heard = self.heard[step] = Heard(status, text, time.monotonic())
        self.note(step, heard)
        return heard

    def doubt(self, since_s: float) -> int:
        """Forget what was heard from this moment on; how many answers that were."""
        late = [step for step, heard in self.heard.items() if heard.at_s >= since_s]
        for step in late:
            del self.heard[step]
        return len(late)


@dataclass
class Hand:
    """Does errands. `rest` is waited for between two tries; without it the first refusal to write is `Turned`."""

    say: Say
    ledger: Ledger
    rest: Callable[[], Awaitable[None]] | None = None

    async def step(self, name: str, request: Request, find: Find | None = None, *, until: str = "") -> Any:
        """Have it done once, and give the body of its answer. What was answered before is looked at again, unless the
        step `until`, which takes it back, has been begun.

        Raises:
            Lost: it was acknowledged, and is not there.
            Turned: see above.
        """
        first = self.ledger.heard.get(name)
        if first is not None:
            if until not in self.ledger.begun:
                await self._hold(name, request, find, first)
            return first.value
        is_in_doubt = name in self.ledger.begun
        self.ledger.begin(name)
        while True:
            if is_in_doubt and find is not None:
                found = await self._look(find, None)
                if found is not None:
                    self.ledger.found_unheard += 1
                    return self.ledger.hear(name, 200, json.dumps(found)).value
            try:
                answer = await self._try(request)
            except Turned as turned:
                turned.step = name
                raise
            if answer is not None:
                assert 200 <= answer.status < 300, (name, answer)
                self.ledger.found_unheard += "idempotency-replayed" in answer.headers
                return self.ledger.hear(name, answer.status, answer.body.decode()).value
            is_in_doubt = True

    async def ask(self, request: Request) -> Answer:
        """The answer to a request that may be sent as often as need be."""
        while (answer := await self._try(request)) is None:
            pass
        return answer

    async def _try(self, request: Request) -> Answer | None:
        """The answer, or None where there was none that tells the outcome."""
        try:
            answer = await self.say(request)
        except (OSError, EOFError) as error:
            if self.rest is None:
                raise Turned from error
        else:
            if answer.status not in (UNAVAILABLE, FULL) and b"idempotency_in_progress" not in answer.body:
                return answer
            if self.rest is None:
                raise Turned(answer.status)
        await self.rest()
        return None

    async def _look(self, find: Find, first: Any) -> Any:
        return await find(first)

    async def _hold(self, name: str, request: Request, find: Find | None, first: Heard) -> None:
        if find is not None:
            if await self._look(find, first.value) is None:
                raise Lost(f"{name} is not there, though it was answered {first.status}: {first.text[:200]}")
        elif request.key:
            again = await self.ask(request)
            if (again.status, again.body.decode()) != (first.status, first.text):
                raise Lost(f"{name} was answered {first.status} {first.text[:200]}, and now {again}")
            assert "idempotency-replayed" in again.headers, name
        self.ledger.held += 1
