"""The address of the blobs: which store it opens, and the errors for invalid addresses."""

from pathlib import Path

import pytest

from countersign.kernel.blobs.local import LocalBlobs
from countersign.kernel.blobs.open import BucketAddress, open_blobs, read_address
from countersign.kernel.blobs.s3 import S3Blobs


@pytest.mark.parametrize("url", [None, ""])
def test_no_address_is_the_local_directory(url: str | None, tmp_path: Path) -> None:
    assert isinstance(open_blobs(url, tmp_path), LocalBlobs)


def test_an_s3_address_names_bucket_prefix_endpoint_and_region(tmp_path: Path) -> None:
    url = "s3://bucket/some/prefix/?endpoint=http://127.0.0.1:5000&region=eu-central-1&allow_http=true"

    assert read_address(url) == BucketAddress(
        "bucket", "some/prefix", "http://127.0.0.1:5000", "eu-central-1", True
    )
    assert isinstance(open_blobs(url, tmp_path), S3Blobs)


def test_a_bucket_is_enough(tmp_path: Path) -> None:
    assert read_address("s3://bucket") == BucketAddress("bucket", "", None, None, False)
    assert isinstance(open_blobs("s3://bucket", tmp_path), S3Blobs)


@pytest.mark.parametrize(
    "url",
    [
        "/var/blobs",
        "file:///var/blobs",
        "https://bucket.example",
        "s3://",
        "s3:///prefix",
        "s3://key:secret@bucket",
        "s3://bucket:5000/prefix",
        "s3://bucket?endpont=https://host",
        "s3://bucket?endpoint=host",
        "s3://bucket?endpoint=",
        "s3://bucket?endpoint=http://127.0.0.1:5000",
        "s3://bucket?endpoint=http://127.0.0.1:5000&allow_http=yes",
    ],
)
def test_an_address_that_cannot_be_used_is_refused_with_the_remedy(url: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Write it as s3://BUCKET/PREFIX") as error:
        open_blobs(url, tmp_path)

    assert "secret@" not in str(error.value)
