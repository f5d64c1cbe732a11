"""What the deadlines cost: a bare application on stock uvicorn, on our server, and on granian, in one interleaved run.

    python bench/servers.py [--rounds N] [--seconds S]

Prints requests a second of each (median of the rounds) and the ratios to stock uvicorn. Needs `wrk` (Debian's
package) and stops everything it starts.
"""

import argparse
import contextlib
import json
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

APPLICATION = """
BODY = b"x" * 3000
HEADERS = [(b"content-type", b"application/json"), (b"content-length", b"3000")]

async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await send({"type": "http.response.body", "body": BODY})
"""
OURS = """
import sys
from contextlib import asynccontextmanager
from bare import app
from countersign.kernel.http.server import Listener, Program, Server, run

@asynccontextmanager
async def application(worker, listener):
    yield app

run(Server([Program(application, Listener("bare", "127.0.0.1", int(sys.argv[1])))]))
"""
CONNECTIONS = 32


def commands(folder: Path) -> dict[str, list[str]]:
    """How each server is started; the port is put in place of PORT."""
    (folder / "bare.py").write_text(APPLICATION)
    (folder / "ours.py").write_text(OURS)
    uvicorn = [sys.executable, "-m", "uvicorn", "bare:app", "--port", "PORT", "--no-access-log", "--log-level", "error"]
    granian = [sys.executable, "-m", "granian", "bare:app", "--interface", "asginl", "--port", "PORT", "--no-log"]
    return {
        "uvicorn": [*uvicorn, "--loop", "uvloop", "--http", "httptools", "--no-server-header"],
        "ours": [sys.executable, "ours.py", "PORT"],
        "granian": granian,
    }


@contextlib.contextmanager
def started(command: list[str], folder: Path) -> Iterator[int]:
    """The server on a free port, until the block ends."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = [str(port) if word == "PORT" else word for word in command]
    process = subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
                break
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait(20)


def rate(port: int, seconds: int) -> float:
    """Requests a second, by wrk."""
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}", f"http://127.0.0.1:{port}/"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r"Requests/sec:\s+([\d.]+)", printed)
    if found is None:
        raise SystemExit(f"wrk told no rate:\n{printed}")
    return float(found.group(1))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    options = parser.parse_args()
    if shutil.which("wrk") is None:
        raise SystemExit("this needs wrk: apt-get install wrk")
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        ports = {each: stack.enter_context(started(command, folder)) for each, command in commands(folder).items()}
        rates: dict[str, list[float]] = {each: [] for each in ports}
        for round_number in range(options.rounds + 1):
            for each, port in ports.items():
                measured = rate(port, options.seconds)
                if round_number:  # the first round warms up
                    rates[each].append(measured)
    medians = {each: statistics.median(measured) for each, measured in rates.items()}
    for each, median in medians.items():
        print(f"{each:8} {median:8.0f} req/s   {median / medians['uvicorn']:.2f} of stock uvicorn")
    results = Path(__file__).parents[1] / "docs" / "results"
    results.mkdir(exist_ok=True)
    (results / "servers.json").write_text(json.dumps({"req_s": medians, "rounds": rates}, indent=1) + "\n")


if __name__ == "__main__":
    main()
