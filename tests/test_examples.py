"""The examples work with a real store. The script for build machines can be run again, as after a failure."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from countersign.kernel import clock
from countersign.kernel.webhooks import signatures
from tests import docs
from tests.servers.countersign import Running, environment, served
from tests.servers.process import answers, free_port

PUSH = docs.ROOT / "examples/ci/push.sh"
TARGET = ("northwind-games/harbour-of-small-lights", "9.1.0", "stable", "linux")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Running]:
    """Serve the store with demonstration data."""
    with served(tmp_path / "data", "--demo", settings={"COUNTERSIGN_JOB_WORKERS": "1"}) as running:
        yield running


def push(store: Running, folder: Path, secret: str = "demo-publisher-secret") -> "subprocess.CompletedProcess[str]":
    """Run the script for build machines with this client secret."""
    variables = environment(
        COUNTERSIGN_SERVER=store.url,
        COUNTERSIGN_CLIENT_ID="demo-publisher",
        COUNTERSIGN_CLIENT_SECRET=secret,
        HOME=str(folder.parent),
    )
    variables["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{variables['PATH']}"
    return subprocess.run([PUSH, folder, *TARGET], env=variables, capture_output=True, text=True, check=False)


def test_the_script_for_build_machines_publishes_and_may_be_run_again(store: Running, tmp_path: Path) -> None:
    build = tmp_path / "build"
    build.mkdir()
    (build / "run.sh").write_text("echo sailing\n")

    first_push, second_push = push(store, build), push(store, build)

    assert (first_push.returncode, second_push.returncode) == (0, 0), first_push.stderr + second_push.stderr
    digests = [json.loads(push_result.stdout.splitlines()[0])["sha256"] for push_result in (first_push, second_push)]
    assert digests[0] == digests[1]
    (build / "run.sh").write_text("echo another\n")
    assert push(store, build).returncode == 5


def test_the_script_for_build_machines_exits_with_the_code_of_the_failed_command(
    store: Running, tmp_path: Path
) -> None:
    build = tmp_path / "build"
    build.mkdir()
    (build / "run.sh").write_text("echo sailing\n")

    assert push(store, build, secret="wrong").returncode == 4
    assert push(store, build, secret="").returncode == 2


def test_the_receiver_of_webhooks_accepts_only_signed_and_fresh_messages() -> None:
    secret, port = signatures.new_signing_secret(), free_port()
    body = b'{"id": "e1", "type": "plan.waiting", "subject": "plan/1"}'
    valid_headers = signatures.signature_headers([signatures.new_signing_secret(), secret], "e1", clock.now(), body)
    old = signatures.signature_headers([secret], "e1", clock.later(clock.now(), seconds=-600), body)
    forged_headers = signatures.signature_headers([signatures.new_signing_secret()], "e1", clock.now(), body)
    command = [sys.executable, docs.ROOT / "examples/webhooks/receiver.py", str(port)]
    variables = environment(WEBHOOK_SECRET=secret)
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=quiet, text=True) as process:
        try:
            while not answers(port):
                assert process.poll() is None
            url = f"http://127.0.0.1:{port}/"
            responses = [
                httpx.post(url, content=body, headers=headers)
                for headers in (old, forged_headers, {}, valid_headers, valid_headers)
            ]
        finally:
            process.kill()
        printed_output = process.stdout.read() if process.stdout else ""

    assert [response.status_code for response in responses] == [400, 400, 400, 204, 204]
    assert printed_output == "plan.waiting plan/1\n"


@pytest.mark.parametrize("secret", [{}, {"WEBHOOK_SECRET": ""}, {"WEBHOOK_SECRET": "the-id-instead"}])
def test_the_webhook_receiver_reports_its_missing_secret(secret: dict[str, str]) -> None:
    command = [sys.executable, docs.ROOT / "examples/webhooks/receiver.py", str(free_port())]

    result = subprocess.run(
        command, env=environment(**secret), capture_output=True, text=True, timeout=120, check=False
    )

    assert result.returncode == 1
    assert "WEBHOOK_SECRET holds no secret" in result.stderr
    assert "the-id-instead" not in result.stderr


def test_the_page_about_webhooks_shows_the_receivers_own_check() -> None:
    page = (docs.ROOT / "docs/how-to/receive-webhooks.md").read_text()
    code = page.partition("```python\n")[2].partition("```")[0]

    assert code.strip()
    assert code in (docs.ROOT / "examples/webhooks/receiver.py").read_text()
