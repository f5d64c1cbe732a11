"""What only the operator may ask, on a port of its own: does it live, can it work, what are its numbers.

The answers are about all workers of the server, whichever of them is asked.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

import msgspec

from countersign.kernel import metrics, telemetry
from countersign.kernel.errors import NotFound, Refused
from countersign.kernel.http import vitals
from countersign.kernel.http.answer import Answer, json
from countersign.kernel.http.call import Receive, Send
from countersign.kernel.http.exchange import Exchange, Scope
from countersign.kernel.http.problems import MethodNotAllowed, problem
from countersign.kernel.http.sharing import Shared
from countersign.kernel.http.siblings import Siblings

PATIENCE_S = 2.0
"""What a worker has to answer the others."""
CHECK_S = 5.0
"""What the checks may take, which run side by side; a probe waits longer."""
MEASURE_S = 5.0
TEXT = "text/plain; version=0.0.4; charset=utf-8"
ALIVE, NUMBERS = "alive", "numbers"

MEASURED = metrics.gauge("countersign_measured", "1: the numbers that are looked up could be; 0: they could not.", "of")


class Check(NamedTuple):
    """Something that has to be so before requests can be answered; `run` says what it found, or raises."""

    name: str
    run: Callable[[], Awaitable[str]]


class Watched(NamedTuple):
    """What one service is watched by: its checks, and the numbers that are looked up when they are asked for."""

    name: str
    checks: Sequence[Check]
    measure: Callable[[], Awaitable[Iterable[metrics.Sample]]]


class Finding(msgspec.Struct):
    """What a check found."""

    name: str
    state: Literal["ok", "failed"]
    detail: str


class Readiness(msgspec.Struct):
    """The answer of /readyz; `failing` names the checks that failed."""

    status: Literal["ready", "not ready"]
    failing: list[str]
    checks: list[Finding]


class Liveness(msgspec.Struct):
    """The answer of /livez; `silent` are the numbers of the workers that do not answer."""

    status: Literal["alive", "not alive"]
    workers: int
    silent: list[int]


def tell(index: int) -> Callable[[str], bytes]:
    """How the worker of this number answers the others."""

    def told(question: str) -> bytes:
        if question != NUMBERS:
            return ALIVE.encode()
        vitals.look()
        return msgspec.json.encode(metrics.counted((("worker", str(index)),)))

    return told


async def silent(siblings: Siblings) -> list[int]:
    """The workers that do not answer, by their numbers."""
    answers = await siblings.ask(ALIVE, PATIENCE_S)
    return [index for index, answer in enumerate(answers) if answer is None]


def _host(authority: str) -> str:
    try:
        return urlsplit(f"//{authority}").hostname or ""
    except ValueError:
        return ""


class Operator:
    """An ASGI application of three addresses, for whoever can reach its port; nothing it tells is anybody's secret or
    names a tenant or a person. Whoever asks while the same is being found out gets what is found, so that many at once
    are to the workers and the database as one."""

    def __init__(
        self, siblings: Siblings, watched: Sequence[Watched], is_ours: Callable[[str], bool] | None = None
    ) -> None:
        """`is_ours` says whether the port may be asked for under a host's name: where it listens on loopback alone, a
        page in the operator's browser could reach it under a name of its own (DNS rebinding). None: under any."""
        self._is_ours = is_ours
        self._siblings = siblings
        self._watched = watched
        self._silent = Shared(lambda: silent(siblings))
        self._checked = Shared(self._check)
        self._counted = Shared(self._count)
        self._log = telemetry.logger("operator")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request (ASGI 3)."""
        exchange = Exchange(scope, receive, send)
        try:
            answer = await self._answer(exchange)
        except Refused as refused:
            answer = problem(refused, "", exchange.target)
        answer.headers = (*answer.headers, ("Cache-Control", "no-store"))
        await exchange.answer(answer)

    async def _answer(self, exchange: Exchange) -> Answer:
        path = exchange.raw_path
        if self._is_ours is not None and not self._is_ours(_host(exchange.headers.get("host") or "")):
            remedy = "Ask by a loopback address, or set COUNTERSIGN_OPERATOR_HOST to one that others reach."
            raise NotFound("here it is answered under no other name than its own", resolution=remedy)
        if path not in (b"/livez", b"/readyz", b"/metrics"):
            raise NotFound("here are /livez, /readyz and /metrics")
        if exchange.method not in ("GET", "HEAD"):
            raise MethodNotAllowed(f"{exchange.method} is not offered here", headers={"Allow": "GET, HEAD"})
        if path == b"/livez":
            return await self._live()
        if path == b"/readyz":
            return await self._ready(is_stopping=exchange.stopping is not None and exchange.stopping.is_set())
        return Answer(200, await self._counted(), TEXT)

    async def _live(self) -> Answer:
        missing = await self._silent()
        said = Liveness("not alive" if missing else "alive", self._siblings.count, missing)
        return json(said, status=503 if missing else 200)

    async def _ready(self, *, is_stopping: bool) -> Answer:
        findings = [Finding("serving", "failed", "the service is stopping")] if is_stopping else []
        findings += await self._checked()
        failing = [each.name for each in findings if each.state == "failed"]
        said = Readiness("not ready" if failing else "ready", failing, findings)
        return json(said, status=503 if failing else 200)

    async def _check(self) -> list[Finding]:
        checks = [each for watched in self._watched for each in watched.checks]
        return list(await asyncio.gather(self._workers(), *(self._found(each) for each in checks)))

    async def _workers(self) -> Finding:
        missing = await self._silent()
        if missing:
            return Finding("workers", "failed", f"no answer from worker {', '.join(map(str, missing))}")
        return Finding("workers", "ok", f"{self._siblings.count} of {self._siblings.count} answer")

    async def _found(self, check: Check) -> Finding:
        try:
            async with asyncio.timeout(CHECK_S):
                return Finding(check.name, "ok", await check.run())
        except Refused as refused:
            # What callers of the API are not told is noted on the exception.
            detail = " ".join((refused.detail, *getattr(refused, "__notes__", ())))
            return Finding(check.name, "failed", str(telemetry.redacted(detail)))
        except TimeoutError:
            return Finding(check.name, "failed", f"no answer within {CHECK_S:.0f} s")
        except Exception as error:  # the edge of a check: whatever is wrong with what it looks at, it failed
            self._log.error("check failed", check=check.name, exc_info=error)
            return Finding(check.name, "failed", "the check itself failed; the log has the reason")

    async def _count(self) -> bytes:
        answers = await self._siblings.ask(NUMBERS, PATIENCE_S)
        parts = [msgspec.json.decode(answer, type=dict[str, str]) for answer in answers if answer is not None]
        samples = [each for watched in self._watched for each in await self._measured(watched)]
        return metrics.text(parts, samples).encode()

    async def _measured(self, watched: Watched) -> list[metrics.Sample]:
        try:
            async with asyncio.timeout(MEASURE_S):
                found = list(await watched.measure())
        except (Refused, TimeoutError, OSError) as error:
            self._log.warning("numbers could not be looked up", of=watched.name, why=type(error).__name__)
            return [metrics.Sample(MEASURED, 0, (watched.name,))]
        return [*found, metrics.Sample(MEASURED, 1, (watched.name,))]
