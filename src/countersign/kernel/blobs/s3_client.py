"""Streams of bytes on their way to a store: evened out, and fed to an upload that can be abandoned."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Final, Protocol, cast

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from countersign.kernel.blobs import bucket
from countersign.kernel.blobs.layout import PIECE_BYTES
from countersign.kernel.errors import Refused

_PAGE = 1_000
_PIECES_WAITING = 2
_UPLOADS_AT_ONCE = 2

ATTRIBUTES: Final = {"Content-Type": "application/octet-stream", "Content-Disposition": "attachment"}
"""Headers that a browser gets with a blob: HTML or SVG in it must not run in the store's origin."""


class _Lists(Protocol):
    """What of the client's `list` is used here; its own types need a package that is not installed."""

    def list(
        self, store: S3Store, prefix: str, *, chunk_size: int
    ) -> AsyncIterator[Sequence["obstore.ObjectMeta"]]: ...


class _Abandoned(Exception):
    """Makes the client end its multipart upload, which a cancelled call would leave open."""


@contextmanager
def refusals(missing: Callable[[], Refused] | None = None) -> Generator[None, None, None]:
    """Turn the client's errors into StorageFull and Unavailable, a missing object into what `missing` makes."""
    try:
        yield
    except FileNotFoundError as error:
        if missing is None or bucket.is_missing(error):
            raise bucket.refusal(error) from error
        raise missing() from error
    except BaseError as error:
        raise bucket.refusal(error) from error


async def listed(store: S3Store, prefix: str) -> AsyncGenerator[Sequence["obstore.ObjectMeta"], None]:
    """Every object under the prefix, in the order of the names, a page at a time."""
    with refusals():
        async for page in cast(_Lists, obstore).list(store, prefix, chunk_size=_PAGE):
            yield page


async def received(answer: "obstore.GetResult") -> AsyncGenerator[bytes, None]:
    """The bytes of an answer in pieces of at most PIECE_BYTES."""
    async for chunk in answer.stream(min_chunk_size=PIECE_BYTES):
        for at in range(0, len(chunk), PIECE_BYTES):
            yield chunk[at : at + PIECE_BYTES]


class Sending:
    """One object on its way into the bucket, as a multipart upload of pieces of `multipart_bytes`.

    The object appears with `finish`, or never. Memory: a few pieces of `multipart_bytes`.
    """

    def __init__(self, store: S3Store, path: str, multipart_bytes: int) -> None:
        self._queue: asyncio.Queue[bytes | bytearray | _Abandoned | None] = asyncio.Queue()
        self._room = asyncio.Semaphore(_PIECES_WAITING)
        self._put = asyncio.ensure_future(
            obstore.put_async(
                store,
                path,
                self._taken(),
                attributes=dict(ATTRIBUTES),
                chunk_size=multipart_bytes,
                max_concurrency=_UPLOADS_AT_ONCE,
            )
        )
        self._put.add_done_callback(self._ended)

    async def add(self, piece: bytes | bytearray) -> None:
        """Take the next bytes; waits while too many wait to be sent.

        Raises:
            StorageFull, Unavailable: the store ended the upload.
        """
        await self._room.acquire()
        if self._put.done():
            with refusals():
                await self._put
        self._queue.put_nowait(piece)

    async def finish(self) -> None:
        """No more bytes come: make the object appear.

        Raises:
            StorageFull, Unavailable: the store refused, and the object does not appear.
        """
        self._queue.put_nowait(None)
        with refusals():
            await asyncio.shield(self._put)

    async def drop(self) -> None:
        """End the upload and leave nothing in the bucket, unless it was finished; again is fine."""
        self._queue.put_nowait(_Abandoned())
        with suppress(_Abandoned, FileNotFoundError, BaseError):
            await asyncio.shield(self._put)

    async def _taken(self) -> AsyncIterator[bytes | bytearray]:
        while (piece := await self._queue.get()) is not None:
            if isinstance(piece, _Abandoned):
                raise piece
            yield piece
            self._room.release()

    def _ended(self, put: "asyncio.Future[obstore.PutResult]") -> None:
        if not put.cancelled():
            put.exception()
        self._room.release()
