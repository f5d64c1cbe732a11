"""Measures a list of a million leads as the page requests it, for a person who sees only some of them: opening the
list, and jumping to positions in it."""

import http.client
import json
import os
import random
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import harness
import records_seed
from harness import Bench
from processes import Worker, worker
from records_seed import Seeded

LEADS = int(os.environ.get("BENCH_LEADS", "1000000"))
JUMPS, QUICK_JUMPS = 200, 40
PAGE = 100
ATTEMPTS = 10
JUMP_MS, OPEN_MS = 100, 150
SORTED_FIELDS = ("title", "stage", "expected_revenue_minor", "expected_close")
"""The fields by which the page sorts the list of the restricted person."""

ORDERS: dict[str, list[dict[str, str]]] = {
    "by id": [],
    **{f"by {field}": [{"field": field}] for field in SORTED_FIELDS},
    **{f"by {field}, last first": [{"field": field, "dir": "desc"}] for field in SORTED_FIELDS},
}


class Client:
    """An API client that sends one call after the other on one connection."""

    def __init__(self, server: Worker, token: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def run(self, command: str, **body: object) -> tuple[Any, float]:
        """Run a command on leads. Return its value and the milliseconds that it took.

        Raises:
            RuntimeError: the command was refused.
        """
        started_s = time.perf_counter()
        self._connection.request("POST", f"/api/lead/{command}", json.dumps(body), self._headers)
        answer = self._connection.getresponse()
        content = answer.read()
        took_ms = (time.perf_counter() - started_s) * 1000
        if answer.status != 200:
            raise RuntimeError(f"lead.{command}: {answer.status} {content[:200]!r}")
        return json.loads(content)["value"], took_ms


def total_of(client: Client, order: list[dict[str, str]]) -> int:
    """Return the number of leads that the client sees."""
    list_answer, _ = client.run("search", order=order, limit=1)
    return int(list_answer["total"])


def measure(bench: Bench, database: str) -> None:
    """Measure all orders on one database."""
    with ExitStack() as stack:
        seed_data = stack.enter_context(records_seed.new(database, LEADS, bench.folder, bench.cluster))
        worker_config = {"database_url": seed_data.database_url, "data": str(seed_data.data)}
        server = stack.enter_context(worker({"contender": "records", **worker_config}, bench.folder, bench.cores))
        jumps: list[float] = []
        opening_times: list[float] = []
        for name, order in ORDERS.items():
            figures = walk(bench, seed_data, server, order)
            jumps += figures["jump"]
            opening_times += figures["open"]
            show(bench, database, name, figures)
    for label, wanted_ms, durations in (("jump", JUMP_MS, jumps), ("opening", OPEN_MS, opening_times)):
        bench.aim(
            f"{database}, {wanted_ms} ms over p95 of a restricted {label}", wanted_ms / quantile(durations, 0.95), 1
        )


def to_the_end(client: Client, order: list[dict[str, str]], last_offset: int) -> float:
    """Request the last row, and repeat the request if a busy machine was too slow. Return the milliseconds of all
    requests.

    Raises:
        RuntimeError: all requests were refused.
    """
    started_s = time.perf_counter()
    for attempts_left in range(ATTEMPTS, 0, -1):
        try:
            client.run("list", order=order, limit=1, offset=last_offset)
            break
        except RuntimeError:
            if attempts_left == 1:
                raise
    return (time.perf_counter() - started_s) * 1000


def walk(bench: Bench, seed_data: Seeded, server: Worker, order: list[dict[str, str]]) -> dict[str, list[float]]:
    """Return the milliseconds of each opening and each jump. Before that, do what the page does right after it is
    opened: request the total and the last row."""
    clerk_client, manager_client = (Client(server, seed_data.tokens[user]) for user in ("clerk", "manager"))
    end_by_client = {client: total_of(client, order) - 1 for client in (clerk_client, manager_client)}
    durations_by_label: dict[str, list[float]] = {"to the end": [], "open": [], "jump": [], "jump of who sees all": []}
    for client, last_offset in end_by_client.items():
        durations_by_label["to the end"].append(to_the_end(client, order, last_offset))
    rng = random.Random(1)

    def jump(client: Client) -> float:
        offset = rng.randrange(end_by_client[client] // PAGE) * PAGE
        return client.run("list", order=order, limit=PAGE, offset=offset)[1]

    measured_steps: dict[str, Callable[[], float]] = {
        "open": lambda: clerk_client.run("list", order=order, limit=PAGE, offset=0)[1],
        "jump": lambda: jump(clerk_client),
        "jump of who sees all": lambda: jump(manager_client),
    }
    for _ in range(QUICK_JUMPS if bench.options.is_quick else JUMPS):
        for name, turn in measured_steps.items():
            durations_by_label[name].append(turn())
    return durations_by_label


def show(bench: Bench, database: str, order: str, durations_by_label: dict[str, list[float]]) -> None:
    """Print and store the figures of one order."""
    figures = {
        f"{name} {percentile} ms": round(quantile(each, share), 1)
        for name, each in durations_by_label.items()
        for percentile, share in (("p50", 0.5), ("p95", 0.95))
    }
    figures["jump p50 to opening's"] = round(
        statistics.median(durations_by_label["jump"]) / statistics.median(durations_by_label["open"]), 2
    )
    figures["jump p50 to that of who sees all"] = round(
        statistics.median(durations_by_label["jump"]) / statistics.median(durations_by_label["jump of who sees all"]), 2
    )
    bench.other[f"{database}, {LEADS:,} leads {order}"] = figures
    print(f"\n{database}, {LEADS:,} leads {order}: {figures}", flush=True)


def quantile(values: list[float], share: float) -> float:
    """Return the value that this share of the values does not exceed."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


if __name__ == "__main__":
    with harness.bench("jump", "a long list of who sees a part: opening, jumping", needs_load=False) as running:
        for database in running.options.databases:
            measure(running, database)
