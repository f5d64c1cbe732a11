"""The S3 client: uploads objects in parts, lists objects, and converts the errors of the `obstore` library.

Callers of the API see only that the bucket cannot be used. The cause and the remedy are a note of the exception, for
the operator. Neither of them contains a host, a bucket or a key.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple, Protocol, cast

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from countersign.kernel.blobs.layout import PIECE_BYTES
from countersign.kernel.errors import Refused, Unavailable, disk_full

BLOBS_SETTING = "COUNTERSIGN_BLOBS_URL"
NO_BUCKET = "NoSuchBucket"

_ERROR_CODE_PATTERN = re.compile(r"<Code>\s*(\w{1,100})\s*</Code>")
_STATUS_PATTERN = re.compile(r"non-2xx status code: (\d{3})")


class Cause(NamedTuple):
    """Why the bucket cannot be used, and the remedy. `why` is a predicate whose subject is “The bucket”."""

    why: str
    remedy: str


_REGION = Cause("is in another region than the URL says", f"Correct `region` in {BLOBS_SETTING}.")
_FORBIDDEN = Cause(
    "does not permit this operation to this access key",
    "Allow the key s3:ListBucket, s3:GetObject, s3:PutObject, s3:DeleteObject and s3:AbortMultipartUpload.",
)
_EXPIRED = Cause("was accessed with an expired session token", "Renew AWS_SESSION_TOKEN and the key with it.")
_NO_CREDENTIALS = Cause(
    "was accessed without a key, and this machine has no role", "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
)
_MISSING = Cause("does not exist", f"Create the bucket, or correct bucket and `endpoint` in {BLOBS_SETTING}.")
_NOT_S3 = Cause("is behind an endpoint that does not answer like S3", f"Correct `endpoint` in {BLOBS_SETTING}.")
_BUSY = Cause("is behind a server that is busy or failing", "Try again; check the server.")
_CONNECTION_LOST = Cause(
    "could not be reached, or aborted its response", "Try again; check the server and the network."
)

# The error codes of S3 (API reference, Error Responses). Other services that implement the S3 API use them as well.
_S3_ERRORS = {
    "InvalidAccessKeyId": Cause(
        "was accessed with an access key that its server does not know", "Correct AWS_ACCESS_KEY_ID."
    ),
    "SignatureDoesNotMatch": Cause(
        "was accessed with a secret that does not match the access key", "Correct AWS_SECRET_ACCESS_KEY."
    ),
    "RequestTimeTooSkewed": Cause(
        "is behind a server whose clock differs from this machine's", "Synchronize the clock of this machine by NTP."
    ),
    "ExpiredToken": _EXPIRED,
    "InvalidToken": _EXPIRED,
    NO_BUCKET: _MISSING,
    "PermanentRedirect": _REGION,
    "AuthorizationHeaderMalformed": _REGION,
    "IllegalLocationConstraintException": _REGION,
    "SlowDown": _BUSY,
    "ServiceUnavailable": _BUSY,
    "InternalError": _BUSY,
}

# Maps a text in the message of an `obstore` error to its cause. The texts are checked in this order, and only if the
# response had no known error code.
_CLIENT_ERRORS = {
    "://169.254.": _NO_CREDENTIALS,
    "redirect without LOCATION": _REGION,
    "dns error": Cause(
        "is behind an endpoint whose host name does not resolve", f"Correct the host of `endpoint` in {BLOBS_SETTING}."
    ),
    "ConnectionRefused": Cause(
        "is behind an endpoint that refuses connections", f"Start its server, or correct `endpoint` in {BLOBS_SETTING}."
    ),
    "InvalidCertificate": Cause(
        "is behind an endpoint whose certificate is not trusted",
        "Add its certificate authority to the trusted ones of this machine (SSL_CERT_FILE).",
    ),
    "InvalidContentType": Cause(
        "is behind an endpoint that does not speak TLS", f"Correct `endpoint` in {BLOBS_SETTING}, or its TLS."
    ),
    "TimedOut": Cause(
        "is behind an endpoint that does not answer in time",
        f"Correct `endpoint` in {BLOBS_SETTING}, or check the network.",
    ),
    "error sending request": Cause(
        "cannot be reached",
        f"Correct `endpoint` in {BLOBS_SETTING}, or check the network.",
    ),
}


def refusal(error: Exception) -> Refused:
    """Return the refusal for an error of the client, with cause and remedy as a note for the operator."""
    message = str(error)
    status = next(iter(_STATUS_PATTERN.findall(message)), "")
    # `obstore` has no exception class for a full disk. Servers that store objects on their own disks respond with 507.
    if status == "507":
        return disk_full("the bucket of the blobs")
    cause = _cause(message, status)
    unavailable = Unavailable("The bucket of the blobs cannot be used now.")
    unavailable.add_note(f"It {cause.why}. {cause.remedy}")
    return unavailable


def is_bucket_missing(error: Exception) -> bool:
    """Return whether the error says that the bucket is missing, and not an object in the bucket."""
    return _error_code(str(error)) == NO_BUCKET


def _cause(message: str, status: str) -> Cause:
    if cause := _S3_ERRORS.get(_error_code(message)):
        return cause
    causes = (known_cause for error_text, known_cause in _CLIENT_ERRORS.items() if error_text in message)
    if client_cause := next(causes, None):
        return client_cause
    if status in ("401", "403"):
        return _FORBIDDEN
    if status == "404":
        return _MISSING
    # Without a status, the server did not respond, or its response was cut off. A retry may succeed.
    if not status:
        return _CONNECTION_LOST
    return _BUSY if status >= "500" else _NOT_S3


def _error_code(message: str) -> str:
    return next(iter(_ERROR_CODE_PATTERN.findall(message)), "")


_PAGE_SIZE = 1_000
_MAX_QUEUED_PIECES = 2
_MAX_CONCURRENT_PARTS = 2

ATTRIBUTES: Final = {"Content-Type": "application/octet-stream", "Content-Disposition": "attachment"}
"""Headers of a blob. With them, a browser does not run HTML or SVG in the blob with the rights of the store's
origin."""


class _ListClient(Protocol):
    """The type of `obstore.list` as it is used here. The types of `obstore` itself need a package that is not
    installed."""

    def list(
        self, store: S3Store, prefix: str, *, chunk_size: int
    ) -> AsyncIterator[Sequence["obstore.ObjectMeta"]]: ...


class _UploadAborted(Exception):
    """Raised in the stream of pieces, so that `obstore` aborts the upload. A cancelled upload would remain open on the
    server."""


@contextmanager
def refusals(missing_refusal: Callable[[], Refused] | None = None) -> Generator[None, None, None]:
    """Convert the client's errors to StorageFull and Unavailable, and a missing object to the result of
    `missing_refusal`."""
    try:
        yield
    except FileNotFoundError as error:
        if missing_refusal is None or is_bucket_missing(error):
            raise refusal(error) from error
        raise missing_refusal() from error
    except BaseError as error:
        raise refusal(error) from error


async def list_objects(store: S3Store, prefix: str) -> AsyncGenerator[Sequence["obstore.ObjectMeta"], None]:
    """Yield every object under the prefix, in the order of the names, a page at a time."""
    with refusals():
        async for page in cast(_ListClient, obstore).list(store, prefix, chunk_size=_PAGE_SIZE):
            yield page


async def read_pieces(response: "obstore.GetResult") -> AsyncGenerator[bytes, None]:
    """Yield the bytes of a response in pieces of at most PIECE_BYTES."""
    async for chunk in response.stream(min_chunk_size=PIECE_BYTES):
        for start in range(0, len(chunk), PIECE_BYTES):
            yield chunk[start : start + PIECE_BYTES]


class MultipartUpload:
    """A multipart upload of one object, in parts of `multipart_bytes`.

    The object exists after `finish` returns, and does not exist if the upload fails or is dropped. The upload keeps at
    most a few parts in memory.
    """

    def __init__(self, store: S3Store, path: str, multipart_bytes: int) -> None:
        self._queue: asyncio.Queue[bytes | bytearray | _UploadAborted | None] = asyncio.Queue()
        self._room = asyncio.Semaphore(_MAX_QUEUED_PIECES)
        self._put = asyncio.ensure_future(
            obstore.put_async(
                store,
                path,
                self._queued_pieces(),
                attributes=dict(ATTRIBUTES),
                chunk_size=multipart_bytes,
                max_concurrency=_MAX_CONCURRENT_PARTS,
            )
        )
        self._put.add_done_callback(self._ended)

    async def add(self, piece: bytes | bytearray) -> None:
        """Add the next bytes; waits while too many are queued.

        Raises:
            StorageFull, Unavailable: the store ended the upload.
        """
        await self._room.acquire()
        if self._put.done():
            with refusals():
                await self._put
        self._queue.put_nowait(piece)

    async def finish(self) -> None:
        """Complete the upload, so that the object exists.

        Raises:
            StorageFull, Unavailable: the store refused the upload, and the object does not exist.
        """
        self._queue.put_nowait(None)
        with refusals():
            await asyncio.shield(self._put)

    async def drop(self) -> None:
        """Abort the upload. A finished or aborted upload is not changed."""
        self._queue.put_nowait(_UploadAborted())
        with suppress(_UploadAborted, FileNotFoundError, BaseError):
            await asyncio.shield(self._put)

    async def _queued_pieces(self) -> AsyncIterator[bytes | bytearray]:
        while (piece := await self._queue.get()) is not None:
            if isinstance(piece, _UploadAborted):
                raise piece
            yield piece
            self._room.release()

    def _ended(self, put_task: "asyncio.Future[obstore.PutResult]") -> None:
        if not put_task.cancelled():
            put_task.exception()
        self._room.release()
