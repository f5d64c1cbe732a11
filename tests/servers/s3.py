"""A private S3 service for the run, with an empty bucket for each test that asks."""

import shutil
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.servers.process import answers, free_port, serving


class Bucket(NamedTuple):
    """An empty bucket: the service's address and the bucket's name. Any key and secret are let in."""

    endpoint: str
    name: str


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """The address of an S3 service of this run alone, on a loopback port."""
    folder = Path(tempfile.mkdtemp(prefix="countersign-s3-"))
    port = free_port()
    try:
        with serving(
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
    """An empty bucket of the test's own, as (endpoint, name); its region is us-east-1."""
    name = f"test-{next(_numbers)}"
    request = urllib.request.Request(f"{s3_endpoint}/{name}", method="PUT")
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.status == 200
    return Bucket(s3_endpoint, name)
