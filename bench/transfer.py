"""Measures the upload and the download of a 1 GiB file over HTTP.

Compares the upload with `cp` and `sha256sum` of the same file on the same volume. The store makes an upload durable
(fsync) before it responds, so the upload is also compared with `cp`, `sync` of the copy, and `sha256sum`.
"""

import hashlib
import json
import os
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import harness
from harness import Bench
from processes import ROOT, rss_mib, running, serving_pid

BYTES, QUICK_BYTES = 1 << 30, 1 << 28
CLIENT, SECRET, ORG = "demo-publisher", "demo-publisher-secret", "northwind-games"


@contextmanager
def serve_store(folder: Path) -> Iterator[tuple[int, int]]:
    """Run the store with demonstration data on all processors until the block ends. Return its port and process id."""
    from tests.servers.process import answers, free_port

    port = free_port()
    command = [sys.executable, "-m", "countersign.cli.main", "serve", "distribution", "--demo"]
    command += ["--data", str(folder / "data"), "--port", str(port)]
    log = folder / "serve.log"
    with running(command, log=log, environment={"PYTHONPATH": str(ROOT / "src")}) as process:
        while not answers(port):
            if process.poll() is not None:
                raise RuntimeError(log.read_text())
            time.sleep(0.05)
        yield port, serving_pid(process.pid)


class Publisher:
    """A client of the store that uploads to one release and downloads from it."""

    def __init__(self, port: int) -> None:
        self._port = port
        form = f"grant_type=client_credentials&client_id={CLIENT}&client_secret={SECRET}".encode()
        token = self.post("/api/v1/auth/token", form, "application/x-www-form-urlencoded")["access_token"]
        self._token = str(token)
        product = {"slug": "large-build", "title": "Large build", "kind": "game", "platforms": ["linux"]}
        self.post("/api/v1/products", json.dumps(product).encode())
        self.post("/api/v1/products/large-build/releases", b'{"version": "1.0", "channel": "stable"}')

    def post(self, path: str, body: bytes, kind: str = "application/json") -> dict[str, object]:
        """Send a POST request and return the decoded response."""
        headers = {"Content-Type": kind}
        if kind == "application/json":
            headers["Authorization"] = f"Bearer {self._token}"
        return self._send(urllib.request.Request(self._url(path), body, headers, method="POST"))

    def get(self, path: str) -> dict[str, object]:
        """Send a GET request and return the decoded response."""
        return self._send(urllib.request.Request(self._url(path), headers={"Authorization": f"Bearer {self._token}"}))

    def _url(self, path: str) -> str:
        return f"http://127.0.0.1:{self._port}{path}"

    def _send(self, request: urllib.request.Request) -> dict[str, object]:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
            decoded_answer: dict[str, object] = json.load(answer)
            return decoded_answer

    def upload(self, file: Path, name: str) -> tuple[str, float]:
        """Upload the file. Return the artifact's id, and the seconds from connecting to the end of the response."""
        body = json.dumps({"filename": name, "size": file.stat().st_size}).encode()
        announcement = self.post("/api/v1/products/large-build/releases/1.0/artifacts", body)
        path = "/" + str(announcement["upload_url"]).split("/", 3)[3]
        began_s = time.monotonic()
        with socket.create_connection(("127.0.0.1", self._port)) as connection, file.open("rb") as upload_file:
            size = file.stat().st_size
            head = f"PUT {path} HTTP/1.1\r\nHost: bench\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n"
            connection.sendall(head.encode())
            connection.sendfile(upload_file)
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        if not answer.startswith(b"HTTP/1.1 201"):
            raise RuntimeError(answer.decode(errors="replace"))
        return str(announcement["artifact_id"]), time.monotonic() - began_s

    def download(self, artifact: str, *, is_hashed: bool = False) -> tuple[str, float]:
        """Download the artifact. Return its SHA-256, which is correct only with `is_hashed`, and the elapsed
        seconds."""
        digest, buffer = hashlib.sha256(), bytearray(1 << 20)
        began_s = time.monotonic()
        with socket.create_connection(("127.0.0.1", self._port)) as connection:
            head = f"GET /api/v1/artifacts/{artifact} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n"
            connection.sendall(f"{head}Authorization: Bearer {self._token}\r\n\r\n".encode())
            leftover = b""
            while b"\r\n\r\n" not in leftover:
                leftover += connection.recv(65536)
            digest.update(leftover.partition(b"\r\n\r\n")[2])
            while count := connection.recv_into(buffer):
                if is_hashed:
                    digest.update(memoryview(buffer)[:count])
        return digest.hexdigest(), time.monotonic() - began_s


def time_copy(file: Path, *, is_synced: bool) -> float:
    """Run `cp`, then `sync` of the copy if `is_synced`, then `sha256sum`. Return the elapsed seconds."""
    copy = file.with_name("copy")
    commands: list[list[str | Path]] = [["cp", file, copy], ["sha256sum", copy]]
    if is_synced:
        commands.insert(1, ["sync", copy])
    began_s = time.monotonic()
    for command in commands:
        subprocess.run(command, check=True, capture_output=True)
    elapsed_s = time.monotonic() - began_s
    copy.unlink()
    return elapsed_s


def highest_rss_mib(pid: int) -> float:
    """Return the highest resident memory of the process since the last reset."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


def measure(bench: Bench) -> None:
    """In each round, time a copy, a copy with sync, an upload and a download. Report the medians."""
    size = QUICK_BYTES if bench.options.is_quick else BYTES
    file = bench.folder / "build.bin"
    with file.open("wb") as content_file:
        for _ in range(size >> 20):
            content_file.write(os.urandom(1 << 20))
    took_s: dict[str, list[float]] = {name: [] for name in ("cp", "cp, sync", "upload", "download")}
    with serve_store(bench.folder) as (port, pid):
        publisher = Publisher(port)
        with file.open("rb") as content_file:
            digest = hashlib.file_digest(content_file, "sha256").hexdigest()
        artifact, _ = publisher.upload(file, "warm.bin")
        assert publisher.download(artifact, is_hashed=True)[0] == digest, "the download differs from the upload"
        before_mib = rss_mib(pid)
        Path(f"/proc/{pid}/clear_refs").write_text("5")  # reset the highest resident memory
        for number in range(bench.options.rounds):
            os.sync()  # write pending data now, so that the next measurement does not include it
            took_s["cp"].append(time_copy(file, is_synced=False))
            took_s["cp, sync"].append(time_copy(file, is_synced=True))
            os.sync()
            artifact, upload_s = publisher.upload(file, f"build-{number}.bin")
            took_s["upload"].append(upload_s)
            took_s["download"].append(publisher.download(artifact)[1])
        growth_mib = highest_rss_mib(pid) - before_mib
    rates = {name: round(size / 2**20 / statistics.median(times), 1) for name, times in took_s.items()}
    ratio = {
        name: statistics.median(
            copy_s / upload_s for upload_s, copy_s in zip(took_s["upload"], took_s[name], strict=True)
        )
        for name in ("cp", "cp, sync")
    }
    print(f"\n{size >> 20} MiB, MiB/s: " + "; ".join(f"{name} {rate:,.0f}" for name, rate in rates.items()))
    print("  (cp: cp, then sha256sum; cp, sync: with sync of the copy between them)")
    print(f"  upload to cp with sync {ratio['cp, sync']:.2f}; memory grew by {growth_mib:.0f} MiB at most")
    bench.other = {"mib_s": rates, "seconds": took_s, "upload_to_synced_cp": ratio["cp, sync"], "grew_mib": growth_mib}
    bench.aim("upload to cp + sha256sum", ratio["cp"], 0.7)
    bench.aim("upload to cp + sync + sha256sum", ratio["cp, sync"], 0.7)


if __name__ == "__main__":
    with harness.bench("transfer", "Upload and download of a large file", needs_load=False) as current:
        measure(current)
