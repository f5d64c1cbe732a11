"""Measures the cost of our server's deadlines: compares a minimal application on uvicorn, on our server and on granian.

    python bench/servers.py [--rounds N] [--seconds S]

The servers run in interleaved rounds. The program prints the requests per second of each server (the median of the
rounds) and the ratios to uvicorn. It needs `wrk` (a Debian package) and stops everything that it starts.
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
    """Map each server to its command. PORT in a command is a placeholder for the port."""
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
def run_server(command: list[str], folder: Path) -> Iterator[int]:
    """Run the server on a free port until the block ends."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    arguments = [str(port) if argument == "PORT" else argument for argument in command]
    process = subprocess.Popen(arguments, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
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
    """Measure the requests per second with wrk."""
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}", f"http://127.0.0.1:{port}/"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    match = re.search(r"Requests/sec:\s+([\d.]+)", output)
    if match is None:
        raise SystemExit(f"the output of wrk contains no rate:\n{output}")
    return float(match.group(1))


def main() -> None:
    """Measure all servers and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    options = parser.parse_args()
    if shutil.which("wrk") is None:
        raise SystemExit("this needs wrk: apt-get install wrk")
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        ports = {
            server_name: stack.enter_context(run_server(command, folder))
            for server_name, command in commands(folder).items()
        }
        rates: dict[str, list[float]] = {server_name: [] for server_name in ports}
        for round_number in range(options.rounds + 1):
            for server_name, port in ports.items():
                requests_per_s = rate(port, options.seconds)
                if round_number:  # the first round warms up
                    rates[server_name].append(requests_per_s)
    medians = {server_name: statistics.median(requests_per_s) for server_name, requests_per_s in rates.items()}
    for server_name, median in medians.items():
        print(f"{server_name:8} {median:8.0f} req/s   {median / medians['uvicorn']:.2f} of stock uvicorn")
    results = Path(__file__).parents[1] / "docs" / "results"
    results.mkdir(exist_ok=True)
    (results / "servers.json").write_text(json.dumps({"req_s": medians, "rounds": rates}, indent=1) + "\n")


if __name__ == "__main__":
    main()
