"""The operator's port reports a database or a blob store that accepts connections but does not respond, before the
probe times out."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import httpx

from countersign.kernel.http import management
from tests.cli.test_operator import CHECKS, serve_with_operator_port
from tests.cli.test_serve import wait_until
from tests.servers import relay
from tests.servers.countersign import MASTER_KEY
from tests.servers.process import free_port
from tests.servers.s3 import Bucket

ROOT = Path(__file__).parents[2]
PROBE_S = 10
"""The timeout of a /readyz probe in every file of deploy/ and in the guide."""


class StallingProxy:
    """A proxy process in front of real servers, which can stop responding."""

    def __init__(self, process: subprocess.Popen[str], ports: dict[int, int]) -> None:
        self._process = process
        self._ports = ports

    def address(self, url: str) -> str:
        """Return the address with the port of this proxy."""
        parts = urlsplit(url)
        assert parts.port is not None
        proxied_netloc = parts.netloc.replace(str(parts.port), str(self._ports[parts.port]))
        return urlunsplit(parts._replace(netloc=proxied_netloc))

    @contextmanager
    def silent(self) -> Generator[None]:
        """Stop the proxy process until the block ends. The kernel still accepts connections, but nothing responds."""
        os.kill(self._process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self._process.pid, signal.SIGCONT)


@contextmanager
def start_proxy(*urls: str) -> Generator[StallingProxy]:
    """Run a proxy process in front of these servers until the block ends."""
    ports = {urlsplit(url).port or 0: free_port() for url in urls}
    pairs = [f"127.0.0.1:{proxy_port}=127.0.0.1:{port}" for port, proxy_port in ports.items()]
    command = [sys.executable, str(relay.__file__), *pairs]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == relay.READY
            yield StallingProxy(process, ports)
        finally:
            process.terminate()


def test_a_probe_reports_which_peers_do_not_respond(tmp_path: Path, postgres_url: str, s3_url: Bucket) -> None:
    with start_proxy(postgres_url, s3_url.endpoint) as proxy:
        settings = {
            "AWS_ACCESS_KEY_ID": "any",
            "AWS_SECRET_ACCESS_KEY": "any",
            "COUNTERSIGN_MASTER_KEY": MASTER_KEY,
            "COUNTERSIGN_DATABASE_URL": proxy.address(postgres_url),
            "COUNTERSIGN_BLOBS_URL": f"s3://{s3_url.name}?region=us-east-1&allow_http=true"
            f"&endpoint={proxy.address(s3_url.endpoint)}",
        }
        with serve_with_operator_port(tmp_path / "data", **settings) as server:
            failing_before = server.failing()
            with proxy.silent():
                response = httpx.get(f"{server.url}/readyz", timeout=PROBE_S)
            wait_until(lambda: server.failing() == [])

    assert failing_before == []
    assert response.status_code == 503
    assert response.json()["failing"] == [check for check in CHECKS if check not in ("workers", "disk")]


def test_the_timeout_of_every_documented_probe_exceeds_the_duration_of_the_checks() -> None:
    compose = (ROOT / "deploy/compose/compose.yaml").read_text()
    chart = (ROOT / "deploy/helm/countersign/templates/_pod.tpl").read_text()
    guide = (ROOT / "docs/how-to/watch-a-server.md").read_text()

    timeouts = {
        *re.findall(r"/readyz', timeout=(\d+)\)\"]\n  interval: \d+s\n  timeout: (\d+)s", compose)[0],
        *re.findall(r"path: /readyz, port: operator}\n +periodSeconds: \d+\n +timeoutSeconds: (\d+)", chart),
        *re.findall(r"give the probe (\d+) s", guide),
    }
    assert timeouts == {str(PROBE_S)}
    assert max(management.CHECK_S, management.PATIENCE_S) < PROBE_S / 1.5
