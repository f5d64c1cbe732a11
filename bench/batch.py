"""Compares POST /batch with 50 operations to the same 50 calls one after another, over one keep-alive connection.

Reads are products by slug. Writes redeem codes, each a new code. The benchmark measures the time until the last
response has arrived. With a ratio of 4, the batch takes a quarter of the time.
"""

import http.client
import json
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import harness
import seed
from harness import Bench
from processes import Worker, worker

OPERATIONS, TIMES, QUICK_TIMES = 50, 100, 15
SIZE = seed.Size(products=1_000, persons=2_000, codes=100_000)
TARGET_RATIO = 4.0

Operation = dict[str, Any]


class Kind(NamedTuple):
    """One comparison: its name, the mode of the batch, and a function that returns the next operations."""

    name: str
    mode: str
    operations: Callable[[], list[Operation]]


class Client:
    """A client with one keep-alive connection."""

    def __init__(self, server_worker: Worker, token: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", server_worker.port, timeout=60)
        self._connection.connect()
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def call(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        """Send a request and return the status and the body of the response."""
        self._connection.request(method, f"/api/v1{path}", body, self._headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read()

    def single_calls_s(self, operations: list[Operation]) -> float:
        """Run the operations one after another and return the seconds.

        Raises:
            RuntimeError: an operation failed.
        """
        requests = [(each["method"], each["path"], json.dumps(each["body"]).encode() if "body" in each else None)
                for each in operations]  # fmt: skip
        began_s = time.perf_counter()
        statuses = {self.call(*request)[0] for request in requests}
        elapsed_s = time.perf_counter() - began_s
        if statuses != {200}:
            raise RuntimeError(f"calls were answered {statuses}")
        return elapsed_s

    def batch_s(self, operations: list[Operation], mode: str) -> float:
        """Run the operations as one batch and return the seconds.

        Raises:
            RuntimeError: an operation failed.
        """
        body = json.dumps({"operations": operations, "mode": mode}).encode()
        began_s = time.perf_counter()
        status, answer = self.call("POST", "/batch", body)
        elapsed_s = time.perf_counter() - began_s
        if status != 200 or {result["status"] for result in json.loads(answer)["results"]} != {200}:
            raise RuntimeError(f"the batch was answered {status}: {answer[:500]!r}")
        return elapsed_s


def kinds(seed_data: seed.Seeded) -> list[Kind]:
    """Return the comparisons: reads, and writes in both modes."""
    codes, slugs = iter(seed_data.codes), iter(seed_data.slugs * 1_000)

    def reads() -> list[Operation]:
        return [{"method": "GET", "path": f"/products/{next(slugs)}"} for _ in range(OPERATIONS)]

    def writes() -> list[Operation]:
        return [{"method": "POST", "path": "/redeem", "body": {"code": next(codes)}} for _ in range(OPERATIONS)]

    return [
        Kind("reads", "parallel", reads),
        Kind("writes, parallel", "parallel", writes),
        Kind("writes, atomic", "atomic", writes),
    ]


def measure(bench: Bench, database: str) -> None:
    """Measure each comparison with single calls and batches in turn."""
    results: dict[str, object] = {}
    with seed.new(database, SIZE, bench.folder, bench.cluster) as seed_data:
        worker_config = {"database_url": seed_data.database_url, "data": str(seed_data.data), "writes": True}
        with worker({"contender": "ours", **worker_config}, bench.folder, bench.cores) as server_worker:
            client = Client(server_worker, seed_data.tokens[0])
            for kind in kinds(seed_data):
                single_times: list[float] = []
                batched: list[float] = []
                for number in range((QUICK_TIMES if bench.options.is_quick else TIMES) + 3):
                    times = client.single_calls_s(kind.operations()), client.batch_s(kind.operations(), kind.mode)
                    # The first three rounds only warm up.
                    if number >= 3:
                        single_times.append(times[0])
                        batched.append(times[1])
                single_ms, batch_ms = (statistics.median(times) * 1000 for times in (single_times, batched))
                ratio = statistics.median(
                    single_time / batch_time for single_time, batch_time in zip(single_times, batched, strict=True)
                )
                print(f"\n{kind.name} on {database}: {single_ms:.1f} ms alone, {batch_ms:.1f} ms as a batch")
                results[kind.name] = {
                    "alone_ms": round(single_ms, 2), "batch_ms": round(batch_ms, 2), "ratio": round(ratio, 2),
                }  # fmt: skip
                bench.aim(f"{database}, {kind.name}, 50 calls to one batch", ratio, TARGET_RATIO)
    bench.other[database] = results


if __name__ == "__main__":
    with harness.bench("batch", "POST /batch of 50 beside 50 calls", needs_load=False) as running:
        for database in running.options.databases:
            measure(running, database)
