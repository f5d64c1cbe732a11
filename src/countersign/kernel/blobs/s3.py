"""Blobs in a bucket behind an S3 API, streamed both ways in constant memory."""

import asyncio
import hashlib
import re
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from datetime import timedelta
from pathlib import Path

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotSupportedError
from obstore.store import S3Store

from countersign.kernel import clock, ids
from countersign.kernel.blobs import layout, s3_client
from countersign.kernel.blobs.layout import PartRange, rechunk
from countersign.kernel.blobs.port import Part, SealedBlob, StagedUpload
from countersign.kernel.blobs.s3_client import ATTRIBUTES, MultipartUpload, list_objects, read_pieces, refusals
from countersign.kernel.clock import Instant
from countersign.kernel.errors import NotFound, Refused, Unavailable

_MIN_MULTIPART_BYTES = 8 * 1024 * 1024
_MAX_MULTIPARTS = 9_000
_MAX_COPY_BYTES = 5 * 1024**3
_DATA = re.compile(r"[0-9a-f]{16}-data-[0-9a-f-]{36}")


class S3Blobs:
    """A BlobStore in a bucket, which any number of machines may use.

    A part's bytes are `staging/<upload>/<offset>-data-<random>`; a small object named by offset, length and SHA-256
    refers to them, so that sending the same range again cannot change a received part. The blobs are
    `sealed/ab/cd/<sha256>`, the marker is `installation.json`. An object appears completely or not at all; the database
    decides which objects are in use. A process that dies leaves its open multipart upload in the bucket: configure a
    lifecycle rule that aborts such uploads after some days.
    """

    def __init__(self, store: S3Store) -> None:
        self._store = store

    async def stage(self, upload: str, offset: int, chunks: AsyncIterator[bytes]) -> Part:
        """See BlobStore. One call stores at most 78 GiB (10,000 pieces of 8 MiB).

        Raises:
            NotFound: the upload's id is malformed.
            ValueError: the offset is negative.
        """
        if offset < 0:
            raise ValueError(f"a part cannot begin at {offset}")
        folder = _folder(upload)
        data = f"{offset:016x}-data-{ids.new_uuid()}"
        digest = hashlib.sha256()
        length = 0
        multipart_upload = MultipartUpload(self._store, folder + data, _MIN_MULTIPART_BYTES)
        try:
            async with aclosing(rechunk(chunks)) as pieces:
                async for piece in pieces:
                    await asyncio.to_thread(digest.update, piece)
                    await multipart_upload.add(piece)
                    length += len(piece)
            await multipart_upload.finish()
        finally:
            await multipart_upload.drop()
        part = Part(offset, length, digest.hexdigest())
        with refusals():
            await obstore.put_async(self._store, folder + layout.part_name(part), data.encode())
        return part

    async def seal(self, upload: str, parts: Sequence[Part], size: int, sha256: str | None) -> str:
        """See BlobStore.

        A single complete part is copied in the store; several parts are read and written again. If no digest was
        announced, the parts are first read once more to compute it.

        Raises:
            ValueError: the parts do not cover 0…size exactly.
            ChecksumMismatch: the digest differs from the announced one, or a received part is missing.
        """
        folder = _folder(upload)
        ranges = layout.part_ranges(parts, size)
        expected_sha256 = sha256
        if len(ranges) == 1 and ranges[0].is_whole_part:
            expected_sha256 = ranges[0].part.sha256
            layout.check_digest(expected_sha256, sha256)
            if size <= _MAX_COPY_BYTES:
                await self._copy(folder, ranges[0].part)
                return expected_sha256
        if expected_sha256 is None or not layout.is_digest(expected_sha256):
            expected_sha256 = await self._digest(folder, ranges)
            layout.check_digest(expected_sha256, sha256)
        await self._assemble(folder, ranges, size, expected_sha256)
        return expected_sha256

    async def put(self, data: bytes) -> str:
        """See BlobStore. Up to 5 MiB are sent in one request."""
        digest = hashlib.sha256(data).hexdigest()
        with refusals():
            await obstore.put_async(self._store, layout.sealed_name(digest), data, attributes=dict(ATTRIBUTES))
        return digest

    async def discard(self, upload: str) -> None:
        """See BlobStore."""
        with refusals():
            async for stored_object in list_objects(self._store, _folder(upload)):
                await obstore.delete_async(self._store, [entry["path"] for entry in stored_object])

    async def size(self, sha256: str) -> int | None:
        """See BlobStore."""
        if not layout.is_digest(sha256):
            return None
        with refusals():
            try:
                return (await obstore.head_async(self._store, layout.sealed_name(sha256)))["size"]
            except FileNotFoundError:
                return None

    async def read(self, sha256: str, start: int, stop: int) -> AsyncGenerator[bytes, None]:
        """See BlobStore. If `stop` is beyond the end of the blob, reading stops at the end."""
        path = layout.sealed_name(sha256)
        with refusals(_no_blob):
            try:
                answer = await obstore.get_async(self._store, path, options={"range": (start, stop)})
            except BaseError:
                # The store rejects an empty range.
                if start < min(stop, (await obstore.head_async(self._store, path))["size"]):
                    raise
                return
            async with aclosing(read_pieces(answer)) as pieces:
                async for piece in pieces:
                    yield piece

    async def file(self, sha256: str, folder: Path) -> Path:
        """See BlobStore. The download uses constant memory."""
        size = await self.size(sha256)
        if size is None:
            raise _no_blob()
        path = folder / sha256
        with path.open("xb") as local_file:
            async with aclosing(self.read(sha256, 0, size)) as pieces:
                async for piece in pieces:
                    await asyncio.to_thread(local_file.write, piece)
        return path

    async def delete(self, sha256: str) -> None:
        """See BlobStore."""
        if layout.is_digest(sha256):
            with refusals():
                await obstore.delete_async(self._store, [layout.sealed_name(sha256)])

    async def staged_uploads(self) -> AsyncIterator[StagedUpload]:
        """See BlobStore. A bucket lists objects in the order of their names, so the objects of one upload are
        adjacent."""
        upload, changed_at = "", Instant(0)
        async for path, instant, _ in self._objects("staging/"):
            upload_id = path.split("/")[1]
            if upload_id != upload and upload:
                yield StagedUpload(upload, changed_at)
                changed_at = instant
            upload, changed_at = upload_id, max(changed_at, instant)
        if upload:
            yield StagedUpload(upload, changed_at)

    async def sealed_blobs(self) -> AsyncIterator[SealedBlob]:
        """See BlobStore."""
        async for path, instant, size in self._objects("sealed/"):
            yield SealedBlob(path.rsplit("/", 1)[1], instant, size)

    async def marker(self) -> bytes | None:
        """See BlobStore."""
        with refusals():
            try:
                answer = await obstore.get_async(self._store, layout.MARKER)
                return bytes(await answer.bytes_async())[: layout.MAX_MARKER_BYTES]
            except FileNotFoundError as error:
                if s3_client.is_bucket_missing(error):
                    raise
                return None

    async def mark(self, content: bytes, *, is_new: bool) -> bool:
        """See BlobStore. A new marker is a conditional write (`If-None-Match: *`). If the service does not support
        conditional writes, the marker is read first, so that only concurrent writers could replace each other's
        marker."""
        with refusals():
            try:
                await obstore.put_async(self._store, layout.MARKER, content, mode="create" if is_new else "overwrite")
            except AlreadyExistsError:
                return False
            except NotSupportedError:
                if await self.marker() is not None:
                    return False
                await obstore.put_async(self._store, layout.MARKER, content)
        return True

    async def clear(self) -> None:
        """See BlobStore."""
        for prefix in ("staging/", "sealed/"):
            async for stored_object in list_objects(self._store, prefix):
                with refusals():
                    await obstore.delete_async(self._store, [entry["path"] for entry in stored_object])
        with refusals():
            await obstore.delete_async(self._store, [layout.MARKER])

    async def signed_url(self, sha256: str, filename: str, ttl_s: int) -> str | None:
        """See BlobStore; `ttl_s` is at most 604,800 (seven days).

        A browser saves the blob under its digest: the client library cannot sign response-content-disposition, so that
        `filename` has no effect.
        """
        with refusals():
            return await obstore.sign_async(self._store, "GET", layout.sealed_name(sha256), timedelta(seconds=ttl_s))

    async def check(self) -> None:
        """See BlobStore."""
        path = f"check-{ids.new_uuid()}"
        with refusals():
            await obstore.put_async(self._store, path, b"check")
            try:
                answer = await obstore.get_async(self._store, path)
                if bytes(await answer.bytes_async()) != b"check":
                    raise Unavailable("The bucket of the blobs returns other bytes than were written.")
            finally:
                await obstore.delete_async(self._store, [path])

    async def _copy(self, folder: str, part: Part) -> None:
        with refusals(layout.missing_part_refusal):
            data = await self._data_path(folder, part)
            if (await obstore.head_async(self._store, data))["size"] != part.length:
                raise layout.missing_part_refusal()
            await obstore.copy_async(self._store, data, layout.sealed_name(part.sha256))

    async def _digest(self, folder: str, ranges: Sequence[PartRange]) -> str:
        digest = hashlib.sha256()
        async with aclosing(self._staged_bytes(folder, ranges)) as pieces:
            async for piece in pieces:
                await asyncio.to_thread(digest.update, piece)
        return digest.hexdigest()

    async def _assemble(self, folder: str, ranges: Sequence[PartRange], size: int, expected_sha256: str) -> None:
        """Write the ranges; the blob is created only if their digest is the expected one."""
        digest = hashlib.sha256()
        multipart_bytes = max(_MIN_MULTIPART_BYTES, size // _MAX_MULTIPARTS + 1)
        multipart_upload = MultipartUpload(self._store, layout.sealed_name(expected_sha256), multipart_bytes)
        try:
            async with aclosing(self._staged_bytes(folder, ranges)) as pieces:
                async for piece in pieces:
                    await asyncio.to_thread(digest.update, piece)
                    await multipart_upload.add(piece)
            layout.check_digest(digest.hexdigest(), expected_sha256)
            await multipart_upload.finish()
        finally:
            await multipart_upload.drop()

    async def _staged_bytes(self, folder: str, ranges: Sequence[PartRange]) -> AsyncGenerator[bytes, None]:
        for span in ranges:
            begin, length, _ = span.part
            with refusals(layout.missing_part_refusal):
                data = await self._data_path(folder, span.part)
                byte_range = (span.start - begin, span.stop - begin)
                answer = await obstore.get_async(self._store, data, options={"range": byte_range})
                if answer.meta["size"] != length:
                    raise layout.missing_part_refusal()
                async with aclosing(read_pieces(answer)) as pieces:
                    async for piece in pieces:
                        yield piece

    async def _data_path(self, folder: str, part: Part) -> str:
        """Return the path of the object that holds the part's bytes."""
        answer = await obstore.get_async(self._store, folder + layout.part_name(part))
        name = bytes(await answer.bytes_async()).decode("ascii", "replace")
        if _DATA.fullmatch(name) is None:
            raise layout.missing_part_refusal()
        return folder + name

    async def _objects(self, prefix: str) -> AsyncIterator[tuple[str, Instant, int]]:
        async for objects in list_objects(self._store, prefix):
            for stored_object in objects:
                yield stored_object["path"], clock.from_datetime(stored_object["last_modified"]), stored_object["size"]


def _folder(upload: str) -> str:
    return f"staging/{layout.upload_name(upload)}/"


def _no_blob() -> Refused:
    return NotFound("There is no such blob.")
