"""Prints the processes of `countersign serve` with demonstration data, and the memory of each after some requests to
both services. Memory is the proportional set size (PSS): memory that n processes share counts as 1/n in each. Linux
only."""

import json
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from processes import ROOT, pss_mib, running

REQUESTS = 200
JOBS = 2


def _get(url: str) -> bytes:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=30) as answer:
        body: bytes = answer.read()
    return body


def _children(pid: int) -> list[int]:
    return sorted(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def memory_by_process(folder: Path) -> list[tuple[str, float]]:
    """Return the purpose of each process and its PSS in MiB."""
    from tests.servers.process import answers, free_port

    store, records, operator = free_port(), free_port(), free_port()
    command = [sys.executable, "-m", "countersign.cli.main", "serve", "--demo", "--data", str(folder / "data")]
    command += ["--distribution-port", str(store), "--records-port", str(records)]
    environment = {
        "PYTHONPATH": str(ROOT / "src"),
        "COUNTERSIGN_OPERATOR_PORT": str(operator),
        "COUNTERSIGN_JOB_WORKERS": str(JOBS),
        "COUNTERSIGN_RATE_ANONYMOUS": "1000000",
    }
    log = folder / "log"
    with running(command, log=log, environment=environment):
        while "Stop with ctrl-C" not in log.read_text() or not answers(operator):
            time.sleep(0.1)
        for _ in range(REQUESTS):
            _get(f"http://127.0.0.1:{store}/api/v1/products?limit=20")
            _get(f"http://127.0.0.1:{records}/healthz")
        time.sleep(3)
        parent = json.loads((folder / "data/serve.lock").read_text())["process"]
        names = {parent: "supervisor"}
        for process in json.loads(_get(f"http://127.0.0.1:{operator}/livez"))["processes"]:
            names[process["process"]] = process["service"]
        for child in _children(parent):
            names.setdefault(child, "operator's port")
            names |= dict.fromkeys(_children(child), "jobs")
        return [(name, pss_mib(pid)) for pid, name in names.items()]


def main() -> None:
    """Print a line for each process, and the sum."""
    with tempfile.TemporaryDirectory() as folder:
        service_memories = memory_by_process(Path(folder))
    for name, memory in (*service_memories, ("in all", sum(memory for _, memory in service_memories))):
        print(f"{name:16} {memory:6.1f} MiB")


if __name__ == "__main__":
    main()
