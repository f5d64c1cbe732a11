"""The management port, for the operator: liveness, readiness and metrics.

A separate process serves the port, so that it responds even when a service hangs. That process queries the workers of
the services. Each worker reports from its event loop that it runs, and one worker of each service reports on the
dependencies of the service.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

import msgspec

from countersign.kernel import clock, metrics, telemetry
from countersign.kernel.concurrency import SingleFlight
from countersign.kernel.errors import NotFound, Refused
from countersign.kernel.http import instrumentation
from countersign.kernel.http.exchange import Exchange, Scope
from countersign.kernel.http.problems import MethodNotAllowed, problem
from countersign.kernel.http.request import Receive, Send
from countersign.kernel.http.response import Response, json
from countersign.kernel.http.worker_ipc import Scoreboard, State, WorkerMailboxes
from countersign.kernel.log_redaction import redacted

PATIENCE_S = 2.0
"""The maximum time to wait for the answer of a worker."""
CHECK_S = 5.0
"""The maximum time of the checks, which run concurrently. A probe needs a longer timeout."""
MEASURE_S = 5.0
TEXT = "text/plain; version=0.0.4; charset=utf-8"
ALIVE, NUMBERS, CHECKS, MEASURES = "alive", "numbers", "checks", "measures"

RESTARTS = metrics.counter(
    "countersign_worker_restarts_total", "Worker processes that replaced one that died or stalled.", "service"
)
STALLS = metrics.counter(
    "countersign_worker_stalls_total", "Worker processes killed because their event loop stalled.", "service"
)
MEASURED = metrics.gauge(
    "countersign_measured", "1: the values that are read on demand were read; 0: they were not.", "of"
)


class Check(NamedTuple):
    """A precondition for answering requests. `run` returns the finding as text, or raises an exception if the check
    fails."""

    name: str
    run: Callable[[], Awaitable[str]]


class ServiceChecks(NamedTuple):
    """The checks of one service, and the function that reads those of its metrics that are computed on demand."""

    name: str
    checks: Sequence[Check]
    measure: Callable[[], Awaitable[Iterable[metrics.Sample]]]


class Finding(msgspec.Struct):
    """The result of a check."""

    name: str
    state: Literal["ok", "failed"]
    detail: str


class Readiness(msgspec.Struct):
    """The response of /readyz. `failing` names the checks that failed."""

    status: Literal["ready", "not ready"]
    failing: list[str]
    checks: list[Finding]


class WorkerState(msgspec.Struct, omit_defaults=True):
    """One worker in the response of /livez. `restarts` is the number of replacement processes, and `stalls` the number
    of processes that were killed because their event loop stalled."""

    worker: int
    service: str
    state: Literal["alive", "silent", "starting", "waiting"]
    process: int | None
    restarts: int
    stalls: int
    started_at: str | None = None
    stalled_at: str | None = None


class Liveness(msgspec.Struct):
    """The response of /livez. `silent` lists the numbers of the workers that do not answer."""

    status: Literal["alive", "not alive"]
    workers: int
    silent: list[int]
    processes: list[WorkerState]


class MeasuredValue(msgspec.Struct):
    """A value that a worker read, as sent to the management process."""

    family: str
    value: float
    labels: tuple[str, ...]


def worker_answers(number: int, watched: ServiceChecks) -> Callable[[str], Awaitable[bytes]]:
    """Return a function that answers the questions of the management process to a worker."""

    async def answer(question: str) -> bytes:
        if question == NUMBERS:
            instrumentation.update_process_metrics()
            return msgspec.json.encode(metrics.sample_lines((("worker", str(number)),)))
        if question == CHECKS:
            return msgspec.json.encode(await asyncio.gather(*(_run_check(check) for check in watched.checks)))
        if question == MEASURES:
            measures = [
                MeasuredValue(measured_value.family.name, measured_value.value, measured_value.labels)
                for measured_value in await _measured(watched)
            ]
            return msgspec.json.encode(measures)
        return ALIVE.encode()

    return answer


async def silent_workers(siblings: WorkerMailboxes) -> list[int]:
    """Return the numbers of the workers that do not answer."""
    answers = await siblings.ask(ALIVE, PATIENCE_S)
    return [index for index, answer in enumerate(answers) if answer is None]


def _host(authority: str) -> str:
    try:
        return urlsplit(f"//{authority}").hostname or ""
    except ValueError:
        return ""


class ManagementApp:
    """An ASGI application with three endpoints. It requires no authentication and exposes no secrets and no tenant
    data. Concurrent requests share one run of the checks, so that many requests cost the workers and the database as
    much as one."""

    def __init__(
        self,
        siblings: WorkerMailboxes,
        scoreboard: Scoreboard,
        machine: ServiceChecks,
        is_ours: Callable[[str], bool] | None = None,
    ) -> None:
        """`siblings` are the workers of the services, which come first in the scoreboard. The checks of `machine` run
        in this process. `is_ours` decides which host names are accepted; None accepts any name. The check is needed
        because a page in the operator's browser could reach a port on loopback under a host name of the page's site
        (DNS rebinding).
        """
        self._is_ours = is_ours
        self._siblings = siblings
        self._board = scoreboard
        self._machine = machine
        self._services = tuple(dict.fromkeys(scoreboard.programs[: siblings.count]))
        self._silent = SingleFlight(lambda: silent_workers(siblings))
        self._checked = SingleFlight(self._check)
        self._counted = SingleFlight(self._count)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request (ASGI 3)."""
        exchange = Exchange(scope, receive, send)
        try:
            answer = await self._answer(exchange)
        except Refused as refused:
            answer = problem(refused, "", exchange.target)
        answer.headers = (*answer.headers, ("Cache-Control", "no-store"))
        await exchange.answer(answer)

    async def _answer(self, exchange: Exchange) -> Response:
        path = exchange.raw_path
        if self._is_ours is not None and not self._is_ours(_host(exchange.headers.get("host") or "")):
            remedy = "Use a loopback address, or set COUNTERSIGN_OPERATOR_HOST to an address that others reach."
            raise NotFound("this port does not answer under this host name", resolution=remedy)
        if path not in (b"/livez", b"/readyz", b"/metrics"):
            raise NotFound("the endpoints are /livez, /readyz and /metrics")
        if exchange.method not in ("GET", "HEAD"):
            raise MethodNotAllowed(f"{exchange.method} is not offered here", headers={"Allow": "GET, HEAD"})
        if path == b"/livez":
            return await self._live()
        if path == b"/readyz":
            return await self._ready()
        return Response(200, await self._counted(), TEXT)

    async def _live(self) -> Response:
        silent_numbers = await self._silent()
        processes = [self._state(number, is_silent=number in silent_numbers) for number in range(self._siblings.count)]
        liveness = Liveness("not alive" if silent_numbers else "alive", self._siblings.count, silent_numbers, processes)
        return json(liveness, status=503 if silent_numbers else 200)

    def _state(self, number: int, *, is_silent: bool) -> WorkerState:
        slot = self._board[number]
        state: Literal["alive", "silent", "starting", "waiting"] = "silent" if is_silent else "alive"
        if is_silent and slot.state is State.STARTING:
            state = "starting"
        elif is_silent and slot.state is State.WAITING:
            state = "waiting"
        return WorkerState(
            number,
            self._board.programs[number],
            state,
            slot.pid or None,
            slot.restarts,
            slot.stalls,
            _rfc3339_or_none(slot.started_at),
            _rfc3339_or_none(slot.stalled_at),
        )

    async def _ready(self) -> Response:
        findings = [Finding("serving", "failed", "the service is stopping")] if self._board.is_stopping else []
        findings += await self._checked()
        failed_checks = [finding.name for finding in findings if finding.state == "failed"]
        readiness = Readiness("not ready" if failed_checks else "ready", failed_checks, findings)
        return json(readiness, status=503 if failed_checks else 200)

    async def _check(self) -> list[Finding]:
        missing, of_machine = await asyncio.gather(
            self._silent(), asyncio.gather(*(_run_check(check) for check in self._machine.checks))
        )
        of_services = await asyncio.gather(*(self._checked_by(service, missing) for service in self._services))
        return [self._workers(missing), *of_machine, *(finding for findings in of_services for finding in findings)]

    def _workers(self, missing: Sequence[int]) -> Finding:
        if missing:
            names = ", ".join(f"{number} ({self._board.programs[number]})" for number in missing)
            return Finding("workers", "failed", f"no answer from worker {names}")
        return Finding("workers", "ok", f"{self._siblings.count} of {self._siblings.count} answer")

    async def _checked_by(self, service: str, missing: Sequence[int]) -> list[Finding]:
        """Return the findings of one worker of the service. If all of its workers are silent, return no findings:
        another finding reports that."""
        worker = self._worker_of(service, missing)
        if worker is None:
            return []
        answer = await self._siblings.ask_one(worker, CHECKS, CHECK_S + PATIENCE_S)
        if answer is None:
            return [Finding(service, "failed", f"worker {worker} does not answer")]
        return msgspec.json.decode(answer, type=list[Finding])

    def _worker_of(self, service: str, missing: Sequence[int]) -> int | None:
        """Return the number of a worker of the service that answers, or None."""
        numbers = (number for number in range(self._siblings.count) if self._board.programs[number] == service)
        return next((number for number in numbers if number not in missing), None)

    async def _count(self) -> bytes:
        answers = await self._siblings.ask(NUMBERS, PATIENCE_S)
        silent_numbers = [number for number, answer in enumerate(answers) if answer is None]
        series_of_workers = [
            msgspec.json.decode(answer, type=dict[str, str]) for answer in answers if answer is not None
        ]
        sample_lists = await asyncio.gather(
            _measured(self._machine), *(self._measured_by(service, silent_numbers) for service in self._services)
        )
        samples = [sample for samples in sample_lists for sample in samples]
        return metrics.exposition(series_of_workers, [*samples, *self._replaced()]).encode()

    async def _measured_by(self, service: str, missing: Sequence[int]) -> list[metrics.Sample]:
        """Return the values that one worker of the service reads on demand."""
        worker = self._worker_of(service, missing)
        answer = None
        if worker is not None:
            answer = await self._siblings.ask_one(worker, MEASURES, MEASURE_S + PATIENCE_S)
        if answer is None:
            return [metrics.Sample(MEASURED, 0, (service,))]
        measures = msgspec.json.decode(answer, type=list[MeasuredValue])
        return [metrics.Sample(metrics.FAMILIES[measure.family], measure.value, measure.labels) for measure in measures]

    def _replaced(self) -> list[metrics.Sample]:
        """Return the numbers of restarts and stalls of each program."""
        samples: list[metrics.Sample] = []
        for program in dict.fromkeys(self._board.programs):
            slots = [self._board[number] for number, name in enumerate(self._board.programs) if name == program]
            samples.append(metrics.Sample(RESTARTS, sum(slot.restarts for slot in slots), (program,)))
            samples.append(metrics.Sample(STALLS, sum(slot.stalls for slot in slots), (program,)))
        return samples


def _rfc3339_or_none(moment: int) -> str | None:
    return clock.rfc3339(clock.Instant(moment)) if moment else None


async def _run_check(check: Check) -> Finding:
    try:
        async with asyncio.timeout(CHECK_S):
            return Finding(check.name, "ok", await check.run())
    except Refused as refused:
        # Add the notes of the exception. Callers of the API do not see them, but the operator should.
        detail = " ".join((refused.detail, *getattr(refused, "__notes__", ())))
        return Finding(check.name, "failed", str(redacted(detail)))
    except TimeoutError:
        return Finding(check.name, "failed", f"no answer within {CHECK_S:.0f} s")
    except Exception as error:  # the edge of a check: any exception is a failure
        telemetry.logger("operator").error("check failed", check=check.name, exc_info=error)
        return Finding(check.name, "failed", f"{type(error).__name__}: the log has the fault")


async def _measured(watched: ServiceChecks) -> list[metrics.Sample]:
    try:
        async with asyncio.timeout(MEASURE_S):
            samples = list(await watched.measure())
    except (Refused, TimeoutError, OSError) as error:
        why = type(error).__name__
        telemetry.logger("operator").warning("metrics could not be read", of=watched.name, why=why)
        return [metrics.Sample(MEASURED, 0, (watched.name,))]
    return [*samples, metrics.Sample(MEASURED, 1, (watched.name,))]
