"""Generates load: sends the requests of a file with wrk, or with a slower client of our own if wrk is not installed."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import httptools
import msgspec
import uvloop

HERE = Path(__file__).parent
CONNECTIONS = 32


class Figures(msgspec.Struct):
    """The results of one run. `failed` counts responses with status 400 or above and broken connections."""

    requests: int
    seconds: float
    bytes: int
    p50_ms: float
    p99_ms: float
    failed: int


def generator() -> str:
    """Return the name of the load generator: `wrk`, which root installs from Debian if needed, or `own`."""
    if shutil.which("wrk") is None and os.geteuid() == 0 and shutil.which("apt-get"):
        print("installing wrk", file=sys.stderr)
        subprocess.run(["apt-get", "install", "-y", "--no-install-recommends", "wrk"], capture_output=True, check=False)
    if shutil.which("wrk"):
        return "wrk"
    print("wrk is not on this machine (Debian: apt install wrk): a slower client of our own is used", file=sys.stderr)
    return "own"


def play(requests: Sequence[bytes], port: int, seconds: int, pin_command: Sequence[str], folder: Path) -> Figures:
    """Send the requests over 32 connections for this time, again from the first after the last.

    Raises:
        RuntimeError: the load generator failed.
    """
    file = folder / "requests"
    file.write_bytes(b"\0".join(requests))
    if shutil.which("wrk"):
        command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "--timeout=30s", "-s", HERE / "requests.lua"]
        command += [f"http://127.0.0.1:{port}", "--", file]
    else:
        command = [sys.executable, HERE / "load.py", str(port), str(seconds), file]
    result = subprocess.run([*pin_command, *command], capture_output=True, text=True, check=False, timeout=seconds + 60)
    lines = [line for line in result.stdout.splitlines() if line.startswith("RESULT ")]
    if result.returncode or not lines:
        raise RuntimeError(f"{result.stdout}\n{result.stderr}")
    return msgspec.json.decode(lines[0].removeprefix("RESULT "), type=Figures)


class _Client(asyncio.Protocol):
    """One connection, which sends the next request when the response is complete."""

    def __init__(self, shared_requests: "_Shared") -> None:
        self._shared = shared_requests
        self._parser = httptools.HttpResponseParser(self)
        self._began_s = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._next()

    def _next(self) -> None:
        self._began_s = time.monotonic()
        self._transport.write(self._shared.next())

    def data_received(self, data: bytes) -> None:
        self._shared.bytes += len(data)
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        """Record a complete response and send the next request."""
        self._shared.took_s.append(time.monotonic() - self._began_s)
        self._shared.failed += self._parser.get_status_code() >= 400
        self._parser = httptools.HttpResponseParser(self)
        self._next()


class _Shared:
    """The requests and the results of all connections."""

    def __init__(self, requests: list[bytes]) -> None:
        self._requests = requests
        self._place = -1
        self.took_s: list[float] = []
        self.bytes = 0
        self.failed = 0

    def next(self) -> bytes:
        self._place += 1
        return self._requests[self._place % len(self._requests)]


async def _own(port: int, seconds: float, file: Path) -> dict[str, float]:
    shared_requests = _Shared(file.read_bytes().split(b"\0"))
    loop = asyncio.get_running_loop()
    began_s = time.monotonic()
    for _ in range(CONNECTIONS):
        await loop.create_connection(lambda: _Client(shared_requests), "127.0.0.1", port)
    await asyncio.sleep(seconds)
    elapsed_s = time.monotonic() - began_s
    took_s = sorted(shared_requests.took_s) or [0.0]
    return {
        "requests": len(shared_requests.took_s),
        "seconds": elapsed_s,
        "bytes": shared_requests.bytes,
        "p50_ms": took_s[len(took_s) // 2] * 1000,
        "p99_ms": took_s[len(took_s) * 99 // 100] * 1000,
        "failed": shared_requests.failed,
    }


if __name__ == "__main__" and len(sys.argv) == 4:
    print("RESULT " + json.dumps(uvloop.run(_own(int(sys.argv[1]), float(sys.argv[2]), Path(sys.argv[3])))))
