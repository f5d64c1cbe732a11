"""Starts an S3 service for the test run, and creates an empty bucket for each test that uses it."""

import shutil
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.servers.process import answers, free_port, run_until_ready


class Bucket(NamedTuple):
    """A bucket: the address of the service and the name of the bucket. The service accepts any key and secret."""

    endpoint: str
    name: str


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """Run an S3 service on a loopback port, and return its address."""
    folder = Path(tempfile.mkdtemp(prefix="countersign-s3-"))
    port = free_port()
    try:
        with run_until_ready(
            [sys.executable, "-P", "-W", "ignore", Path(__file__).with_name("s3_service.py"), str(port)],
            is_ready=lambda: answers(port),
            log=folder / "log",
        ):
            yield f"http://127.0.0.1:{port}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


_numbers = count(1)


@pytest.fixture
def s3_url(s3_endpoint: str) -> Bucket:
    """Create an empty bucket for this test. Its region is us-east-1."""
    name = f"test-{next(_numbers)}"
    request = urllib.request.Request(f"{s3_endpoint}/{name}", method="PUT")
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.status == 200
    return Bucket(s3_endpoint, name)
