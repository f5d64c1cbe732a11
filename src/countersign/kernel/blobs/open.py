"""Opens the blob store at a URL."""

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from obstore.store import S3Store

from countersign.kernel.blobs.local import LocalBlobs
from countersign.kernel.blobs.port import BlobStore
from countersign.kernel.blobs.s3 import S3Blobs

if TYPE_CHECKING:
    from obstore.store import ClientConfig, S3Config

_REMEDY = (
    "Write it as s3://BUCKET/PREFIX?endpoint=https://HOST&region=REGION (for an endpoint without TLS also "
    "allow_http=true), or leave it empty for a folder in the data directory."
)
_KNOWN = {"endpoint", "region", "allow_http"}


class BucketAddress(NamedTuple):
    """The address of a bucket, parsed from its URL, which contains no credentials."""

    bucket: str
    prefix: str
    endpoint: str | None
    region: str | None
    allow_http: bool


def open_blobs(
    url: str | None, directory: Path, *, reserve_bytes: int = 64 * 1024 * 1024, max_bytes: int = 0, beneath: str = ""
) -> BlobStore:
    """Open the store at `url`. Without a `url`, open the local `directory`, which keeps `reserve_bytes` free,
    takes at most `max_bytes` (0: no limit), and also reads the blobs of the directory `beneath` (empty: no such
    directory).

    The URL is `s3://bucket/prefix?endpoint=…&region=…&allow_http=true`. Credentials come from AWS_ACCESS_KEY_ID,
    AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, or from the machine's role. This function does not connect; `check` does.

    Raises:
        ValueError: the URL cannot be used; the text explains how to write it.
    """
    if not url:
        return LocalBlobs(
            directory,
            reserve_bytes=reserve_bytes,
            max_bytes=max_bytes,
            beneath=Path(beneath) if beneath else None,
        )
    address = read_address(url)
    config: S3Config = {}
    if address.endpoint is not None:
        config["endpoint"] = address.endpoint
    if address.region is not None:
        config["region"] = address.region
    # A response may take long, since its receiver may read slowly; only a server that sends nothing times out soon.
    client: ClientConfig = {
        "allow_http": address.allow_http,
        "connect_timeout": timedelta(seconds=5),
        "read_timeout": timedelta(seconds=60),
        "timeout": timedelta(hours=24),
    }
    store = S3Store(
        address.bucket,
        prefix=address.prefix or None,
        config=config,
        client_options=client,
        retry_config={"max_retries": 4, "retry_timeout": timedelta(seconds=30)},
    )
    return S3Blobs(store)


def read_address(url: str) -> BucketAddress:
    """Parse an s3:// URL.

    Raises:
        ValueError: the URL has a wrong scheme, no bucket, credentials, or a parameter that is unknown or malformed.
    """
    url_parts = urlsplit(url)
    if url_parts.scheme != "s3" or not url_parts.netloc:
        raise ValueError(f"The address of the blobs is not an s3:// URL with a bucket. {_REMEDY}")
    if "@" in url_parts.netloc or ":" in url_parts.netloc:
        raise ValueError(
            "The address of the blobs contains credentials or a port: set AWS_ACCESS_KEY_ID and "
            f"AWS_SECRET_ACCESS_KEY in the environment, and name a host as endpoint. {_REMEDY}"
        )
    parameters = dict(parse_qsl(url_parts.query, keep_blank_values=True))
    if unknown_names := sorted(parameters.keys() - _KNOWN):
        raise ValueError(f"The address of the blobs has the unknown parameter {unknown_names[0]!r}. {_REMEDY}")
    endpoint, allow = parameters.get("endpoint"), parameters.get("allow_http", "false")
    if allow not in ("true", "false"):
        raise ValueError(f"allow_http is true or false. {_REMEDY}")
    if endpoint is not None:
        _check_endpoint(endpoint, allow_http=allow == "true")
    return BucketAddress(
        url_parts.netloc, url_parts.path.strip("/"), endpoint, parameters.get("region"), allow == "true"
    )


def _check_endpoint(endpoint: str, *, allow_http: bool) -> None:
    url_parts = urlsplit(endpoint)
    if url_parts.scheme not in ("http", "https") or not url_parts.netloc:
        raise ValueError(f"The endpoint of the blobs is not an http(s) URL. {_REMEDY}")
    if url_parts.scheme == "http" and not allow_http:
        raise ValueError(f"The endpoint of the blobs has no TLS, and allow_http=true is not given. {_REMEDY}")
