"""Many worst-case requests at once, each within its limits: both services keep answering, and a stop ends them in
time."""

import asyncio
import json
import os
import random
import signal
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import NamedTuple

import pytest

from countersign.kernel.http.workers import CLOSING_S
from tests.faults import worst_cases
from tests.faults.wire import WireResponse, call
from tests.faults.worst_cases import WorstCaseRequest
from tests.figures import Figures
from tests.servers.countersign import Running, served
from tests.servers.process import children, is_running

SEED = 20_261_123
FULL = 10_000
ATTACKERS = 2
"""The number of concurrent requests for each service."""
PATIENCE_S = 120
HEALTHY_MS = 250
STALLED_MS = 10_000
"""The default time that a worker may block before the watchdog replaces it."""
GRACE_S = 5
ENDED_S = 120
"""The maximum duration of a stop on a busy machine."""
STOPS, STOPS_FULL = 1, 20
PROBE_EVERY_S = 0.02
UNANSWERED = 0
FAULTS = {UNANSWERED, 500, 501, 502, 504}
SETTINGS = {
    "COUNTERSIGN_GRACE_S": str(GRACE_S),
    "COUNTERSIGN_RATE_KEYS": "1000000",
    # A delay caused by other work on the machine is not a stall.
    "COUNTERSIGN_WATCHDOG_S": "60",
}


class AttackedServices(NamedTuple):
    """Both services, and the tokens of the attackers."""

    server: Running
    tokens: dict[str, str]
    lead: str

    def port(self, service: str) -> int:
        """Return the service's port."""
        return self.server.port if service == "store" else self.server.records_port

    def parent(self) -> int:
        """Return the process that was started."""
        process: int = json.loads((self.server.data / "serve.lock").read_text())["process"]
        return process

    async def send(self, worst: WorstCaseRequest) -> WireResponse:
        """Send the request."""
        return await call(
            self.port(worst.service),
            worst.method,
            worst.path,
            token=self.tokens.get(worst.caller, ""),
            headers=worst.headers,
            body=worst.body.replace(worst_cases.LEAD.encode(), self.lead.encode()),
            patience_s=PATIENCE_S,
        )


class HealthProber:
    """Requests a health address again and again, in a thread of its own."""

    def __init__(self, port: int, path: str) -> None:
        self.waits_ms: list[float] = []
        self.wrong: list[object] = []
        self._port, self._path = port, path
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "HealthProber":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ends.wait(PROBE_EVERY_S):
            connection = HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE_S)
            began_s = time.monotonic()
            try:
                connection.request("GET", self._path)
                status = connection.getresponse().status
            except OSError as error:
                self.wrong.append(error)
            else:
                self.waits_ms.append((time.monotonic() - began_s) * 1000)
                if status != 200:
                    self.wrong.append(status)
            finally:
                connection.close()

    def p99_ms(self) -> float:
        """Return the 99th percentile of the waits."""
        return sorted(self.waits_ms)[int(len(self.waits_ms) * 0.99)]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with the demonstration."""
    folder = tmp_path_factory.mktemp("worst") / "data"
    with served(folder, "--demo", service="both", settings=SETTINGS):
        pass
    return folder


@pytest.fixture
def site(data: Path) -> Iterator[AttackedServices]:
    """Both services on that data directory."""
    with served(data, service="both", settings=SETTINGS) as server:
        yield asyncio.run(_site(server))


async def _site(server: Running) -> AttackedServices:
    login = json.dumps({"username": "alice", "password": "countersign-demo"}).encode()
    alice = json.loads((await call(server.records_port, "POST", "/api/auth/login", body=login)).body)["token"]
    token_request = json.dumps({"label": "attacker", "scopes": ["*"]}).encode()
    agent_answer = await call(server.records_port, "POST", "/api/auth/agent-token", token=alice, body=token_request)
    agent = json.loads(agent_answer.body)["token"]
    form = b"grant_type=client_credentials&client_id=demo-publisher&client_secret=demo-publisher-secret"
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    token_answer = await call(server.port, "POST", "/api/v1/auth/token", headers=kind, body=form)
    lead_list = await call(server.records_port, "POST", "/api/lead/list", token=alice, body=b'{"limit":1}')
    tokens = {"alice": alice, "agent": agent, "publisher": json.loads(token_answer.body)["access_token"]}
    return AttackedServices(server, tokens, json.loads(lead_list.body)["value"][0]["id"])


def _loop_turns(seed: int, variants: int, service: str) -> Iterator[WorstCaseRequest]:
    return (case for case in worst_cases.endless(seed, variants) if case.service == service)


class AttackCounter:
    """A count of requests to each service, a few at a time."""

    def __init__(self, site: AttackedServices, seed: int, count: int, variants: int) -> None:
        self.site = site
        self.statuses: dict[str, Counter[int]] = defaultdict(Counter)
        self.slowest_s: dict[str, float] = defaultdict(float)
        self.sent: Counter[str] = Counter()
        self._count = count
        self._turns = {service: _loop_turns(seed, variants, service) for service in ("store", "records")}

    async def run(self) -> None:
        """Send all requests; each attacker waits for the answer before the next request."""
        attackers = [self._attack(service) for service in ("store", "records") for _ in range(ATTACKERS)]
        await asyncio.gather(*attackers)

    async def _attack(self, service: str) -> None:
        service_turns = self._turns[service]
        while self.sent[service] < self._count:
            worst = next(service_turns)
            self.sent[service] += 1
            began_s = time.monotonic()
            try:
                status = (await self.site.send(worst)).status
            except (OSError, EOFError, TimeoutError):
                status = UNANSWERED
            self.statuses[worst.kind][status] += 1
            self.slowest_s[worst.kind] = max(self.slowest_s[worst.kind], time.monotonic() - began_s)


def test_worst_case_requests_leave_both_services_well(site: AttackedServices, is_full: bool, figures: Figures) -> None:
    variants = worst_cases.VARIANTS if is_full else 1
    kinds = worst_cases.worst_case_requests(SEED, variants)
    services = Counter(kind.service for kind in kinds)
    attack = AttackCounter(site, SEED, FULL // 2 if is_full else max(services.values()), variants)
    with (
        HealthProber(site.server.port, "/api/v1/health") as store,
        HealthProber(site.server.records_port, "/healthz") as records,
    ):
        asyncio.run(attack.run())

    assert set(attack.statuses) == {kind.kind for kind in kinds}
    assert not [kind for kind, statuses in attack.statuses.items() if set(statuses) & FAULTS], attack.statuses
    assert not store.wrong
    assert not records.wrong
    assert "a worker" not in site.server.log.read_text()
    figures |= {
        "requests": attack.sent.total(),
        "kinds": len(attack.statuses),
        "probes": len(store.waits_ms) + len(records.waits_ms),
        "store_health_p99_ms": round(store.p99_ms(), 1),
        "store_health_max_ms": round(max(store.waits_ms), 1),
        "records_health_p99_ms": round(records.p99_ms(), 1),
        "records_health_max_ms": round(max(records.waits_ms), 1),
    }
    if is_full:
        assert store.p99_ms() < HEALTHY_MS, figures
        assert records.p99_ms() < HEALTHY_MS, figures
        assert max(*store.waits_ms, *records.waits_ms) < STALLED_MS, figures


def test_a_stop_at_any_moment_of_the_attack_ends_both_services_in_time(
    data: Path, is_full: bool, figures: Figures
) -> None:
    rng, took_s = random.Random(SEED), []
    for _ in range(STOPS_FULL if is_full else STOPS):
        with served(data, service="both", settings=SETTINGS) as server:
            site = asyncio.run(_site(server))
            everyone = [site.parent(), *children(site.parent())]
            took_s.append(asyncio.run(_stop_seconds(site, everyone, rng)))

    figures |= {"stops": len(took_s), "grace_s": GRACE_S, "stopped_within_max_s": round(max(took_s), 2)}
    if is_full:
        assert max(took_s) < GRACE_S + CLOSING_S, figures


async def _stop_seconds(site: AttackedServices, everyone: list[int], rng: random.Random) -> float:
    """Stop in the middle of the attack, and return how long it took until all processes had ended."""
    attack = AttackCounter(site, rng.randrange(1 << 30), FULL, variants=1)
    attacking_task = asyncio.create_task(attack.run())
    until = rng.randrange(5, 40)
    while attack.sent.total() < until and not attacking_task.done():
        await asyncio.sleep(0.005)
    began_s = time.monotonic()
    os.kill(everyone[0], signal.SIGTERM)
    while any(is_running(pid) for pid in everyone):
        assert time.monotonic() - began_s < ENDED_S
        await asyncio.sleep(0.01)
    took_s = time.monotonic() - began_s
    attacking_task.cancel()
    await asyncio.gather(attacking_task, return_exceptions=True)
    return took_s
