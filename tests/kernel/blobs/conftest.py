"""Empty blob stores of both kinds, for tests that apply to each."""

from pathlib import Path

import pytest

from countersign.kernel.blobs.open import open_blobs
from countersign.kernel.blobs.port import BlobStore
from tests.servers.s3 import Bucket


@pytest.fixture
def s3_blobs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> BlobStore:
    """An empty store in a bucket for this test."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    bucket: Bucket = request.getfixturevalue("s3_url")
    query = f"endpoint={bucket.endpoint}&region=us-east-1&allow_http=true"
    return open_blobs(f"s3://{bucket.name}/some/prefix?{query}", tmp_path)


@pytest.fixture(params=["local", "s3"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> BlobStore:
    """An empty store, once in a directory and once in a bucket."""
    if request.param == "s3":
        return request.getfixturevalue("s3_blobs")
    return open_blobs(None, tmp_path / "blobs", reserve_bytes=0)
