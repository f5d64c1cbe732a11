"""Measures how long statements of other applications wait for Countersign: four writers update rows of a connected
table with the statements of an ORM, first alone, then beside twenty callers who change the same rows."""

import asyncio
import random
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from itertools import count
from json import dumps, loads

import connected
import harness
import psycopg
from contenders.wanted import Wanted
from harness import Bench
from processes import Worker, worker

ROWS = 10_000
SHARED_ROWS = 20
"""The number of rows that both change."""
WRITERS, CALLERS = 4, 20
CALLS_A_SECOND = 1
AIM_MS = 50

MODULE = connected.MODULE.replace('Table("customer", key="id")', 'Table("customer", key="id", writable=True)')


def _write(url: str, seconds: float) -> list[float]:
    """Read, lock and update rows, one transaction for each, and return the milliseconds of each locking statement."""
    times_ms: list[float] = []
    ends_s = time.perf_counter() + seconds
    with psycopg.connect(url) as connection:
        while time.perf_counter() < ends_s:
            row = random.randint(1, SHARED_ROWS)
            connection.execute("SELECT amount FROM customer WHERE id = %s", [row])
            began_s = time.perf_counter()
            connection.execute("UPDATE customer SET amount = amount + 1 WHERE id = %s", [row])
            times_ms.append((time.perf_counter() - began_s) * 1000)
            connection.commit()
            time.sleep(0.02)
    return times_ms


def _call(server: Worker, tokens: dict[str, str], ids: list[str], seconds: float, number: int) -> int:
    """Change rows once a second: every second caller proposes as an agent and approves as a person. Return the number
    of changes."""
    changes = 0
    ends_s = time.perf_counter() + seconds
    time.sleep(number / CALLERS / CALLS_A_SECOND)
    for visits in count(number * 1000):
        if time.perf_counter() >= ends_s:
            return changes
        began_s = time.perf_counter()
        body: dict[str, object] = {"id": random.choice(ids), "visits": visits}
        if number % 2:
            status, answer = _post(server, "customer/update", tokens["agent"], body)
            if status == 202:
                status, _ = _post(server, f"approve/{answer['plan_id']}", tokens["person"], {})
        else:
            status, _ = _post(server, "customer/update", tokens["person"], body)
        changes += status == 200
        time.sleep(max(0.0, 1 / CALLS_A_SECOND - (time.perf_counter() - began_s)))
    return changes


def _post(server: Worker, path: str, token: str, body: object) -> tuple[int, dict[str, object]]:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        connection.request("POST", f"/api/{path}", dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, loads(answer.read() or b"{}")
    finally:
        connection.close()


def _together(tasks: list[Callable[[], object]]) -> list[object]:
    with ThreadPoolExecutor(len(tasks)) as executor:
        return [each.result() for each in [executor.submit(task) for task in tasks]]


def _figures(times_ms: list[float]) -> dict[str, float]:
    percentiles = statistics.quantiles(times_ms, n=100)
    shown = {"p50_ms": percentiles[49], "p99_ms": percentiles[98], "max_ms": max(times_ms)}
    return {"statements": len(times_ms), **{name: round(value, 2) for name, value in shown.items()}}


def run(bench: Bench, seconds: float) -> None:
    """Measure the writers alone and beside the callers."""
    url = connected.create(bench, "postgres", "writers", connected.script("postgres", ROWS))
    module = bench.folder / "writers.py"
    module.write_text(MODULE)
    common = {"database_url": url, "data": str(bench.folder / "data"), "modules": str(module)}
    asyncio.run(connected.add_person(Wanted(contender="connected-writing", port=0, **common), connected.PASSWORD))
    with worker({"contender": "connected-writing", **common}, bench.folder, bench.cores) as server:
        login = {"username": "ada", "password": connected.PASSWORD}
        tokens = {"person": str(connected.ask(server, "auth/login", "", login)["token"])}
        issued = connected.ask(server, "auth/agent-token", tokens["person"], {"scopes": ["*"], "label": "scout"})
        tokens["agent"] = str(issued["token"])
        listed = connected.ask(server, "customer/list", tokens["person"], {"limit": SHARED_ROWS})
        ids = [each["id"] for each in listed["value"]]
        writers = [lambda: _write(url, seconds)] * WRITERS
        alone = [each for times in _together(writers) for each in times]
        callers = [lambda number=number: _call(server, tokens, ids, seconds, number) for number in range(CALLERS)]
        results = _together([*writers, *callers])
    beside = [each for times in results[:WRITERS] for each in times]
    figures = {"alone": _figures(alone), "beside": _figures(beside), "changes": sum(results[WRITERS:])}
    bench.other[f"{WRITERS} writers beside {CALLERS} callers, {SHARED_ROWS} rows"] = figures
    print(figures)
    bench.aim(f"{AIM_MS} ms over p99 of an UPDATE of others", AIM_MS / figures["beside"]["p99_ms"], 1)


if __name__ == "__main__":
    with harness.bench("connected_writers", "Writers beside Countersign", needs_load=False) as current:
        run(current, 5 if current.options.is_quick else 30)
