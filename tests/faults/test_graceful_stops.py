"""A stop under load: running requests are answered, waiting and streaming clients are informed, and the process ends
soon."""

import asyncio
import itertools
import json
import statistics
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.faults import places, wire
from tests.faults.crowd import errand_of, over_the_wire
from tests.faults.errands import ErrandClient, Request, StepLedger, WriteRefused
from tests.faults.lives import RestartableService
from tests.faults.places import FilledDirectory
from tests.faults.wire import WireResponse
from tests.figures import Figures

HANDS = 12
STOPS, STINTS_FULL, STOPS_A_STINT = 1, 5, 5
"""5 × 5 stops are 25 of each service. More stops of one data directory would leave too many plans for one agent."""
ANSWERED_FIRST = 60
WAIT_S = 25
LATER = 4 * 10**15
"""A time after every change of a plan (in 2096), in microseconds since 1970."""


class StoppableService:
    """A served place, and the outcome of the requests to it."""

    def __init__(self, lives: RestartableService, filled: FilledDirectory) -> None:
        self.lives = lives
        self.place = filled
        self.answered = 0
        self.failed: list[str] = []
        self.numbers = itertools.count()
        self._errand = errand_of(filled)
        self._say = over_the_wire(lives.port)

    async def say(self, request: Request) -> WireResponse:
        """Send the request; any outcome except an answer or a refused connection is a failure."""
        try:
            answer = await self._say(request)
        except ConnectionRefusedError:
            raise
        except (OSError, EOFError) as error:
            if isinstance(error, ConnectionResetError) and "Connect call failed" in str(error):
                # The listening socket was closed before it accepted the connection.
                raise ConnectionRefusedError(str(error)) from error
            self.failed.append(f"{request.method} {request.path}: {error!r}")
            raise
        self.answered += 1
        if answer.status >= 500:
            self.failed.append(f"{request.method} {request.path}: {answer}")
        return answer

    async def work(self) -> None:
        """Run one errand after the other until the server no longer accepts connections."""
        with suppress(WriteRefused):
            while True:
                await self._errand(ErrandClient(self.say, StepLedger()), next(self.numbers))

    async def run_first(self) -> StepLedger:
        """Run one errand."""
        ledger = StepLedger()
        await self._errand(ErrandClient(self.say, ledger), next(self.numbers))
        return ledger


@pytest.fixture(params=["distribution", "records"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StoppableService]:
    """Each service, which is not started yet."""
    lives = RestartableService(tmp_path / "data", request.param)
    yield StoppableService(lives, places.fill_for(lives))
    lives.kill()


async def start_waiting_requests(site: StoppableService) -> list[asyncio.Task[WireResponse]]:
    """Start requests that wait for an event that never comes: in records for a plan, by REST and by MCP, and in the
    store for a job that no worker takes."""
    person, agent = site.place.tokens
    port = site.lives.port
    if site.place.service == "records":
        since = {"since": LATER, "wait_s": WAIT_S}
        call = {"name": "plan__watch", "arguments": since}
        tool = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}).encode()
        accept = {"Accept": "application/json, text/event-stream"}
        watch = json.dumps(since).encode()
        calls = [
            wire.call(port, "POST", "/api/plan/watch", token=person, body=watch),
            wire.call(port, "POST", "/mcp", token=agent, headers=accept, body=tool),
        ]
    else:
        artifact = (await site.run_first()).heard["upload"].value["id"]
        body = json.dumps({"type": "artifact.verify", "payload": {"artifact_id": artifact}}).encode()
        job = json.loads((await site.say(Request("POST", "/api/v1/jobs", person, body))).body)
        prefer = {"Prefer": f"wait={WAIT_S}"}
        calls = [
            wire.call(port, "GET", f"/api/v1/jobs/{job['job_id']}/events", token=person),
            wire.call(port, "POST", "/api/v1/jobs", token=person, headers=prefer, body=body),
        ]
    return [asyncio.create_task(call) for call in calls]


async def measure_stop(site: StoppableService) -> float:
    """Start, put under load, stop; how long the stop took."""
    site.lives.start()
    waiting_requests = await start_waiting_requests(site)
    answered_before = site.answered
    client_tasks = [asyncio.create_task(site.work()) for _ in range(HANDS)]
    while site.answered < answered_before + ANSWERED_FIRST:
        await asyncio.sleep(0.005)
    began_s = time.monotonic()
    code = await asyncio.to_thread(site.lives.stop)
    took_s = time.monotonic() - began_s
    assert code == 0
    await asyncio.gather(*client_tasks)
    # A stream or a wait that was cut off has no complete answer.
    answers = await asyncio.gather(*waiting_requests)
    assert [answer.status for answer in answers] in ([200, 200], [200, 202]), answers
    return took_s


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run one stint, or all stints with --full."""
    if "stint" in metafunc.fixturenames:
        metafunc.parametrize("stint", range(STINTS_FULL if metafunc.config.getoption("--full") else 1))


def test_a_stop_under_load_fails_no_request_and_informs_waiting_clients(
    site: StoppableService, stint: int, is_full: bool, figures: Figures
) -> None:
    took_s = [asyncio.run(measure_stop(site)) for _ in range(STOPS_A_STINT if is_full else STOPS)]

    assert not site.failed
    assert "cut off" not in site.lives.log.read_text()
    figures |= {
        "stops": len(took_s),
        "answered": site.answered,
        "failed": 0,
        "stopped_within_p50_s": round(statistics.median(took_s), 2),
        "stopped_within_max_s": round(max(took_s), 2),
    }
