"""Blobs in a local directory: durable by fsync, atomic by rename, never modified."""

import hashlib
import os
import shutil
import stat
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from pathlib import Path

from countersign.file_sync import sync_folder
from countersign.kernel import ids
from countersign.kernel.blobs import disk, layout
from countersign.kernel.blobs.disk import DiskQuota
from countersign.kernel.blobs.layout import PIECE_BYTES, PartRange, rechunk
from countersign.kernel.blobs.port import Part, SealedBlob, StagedUpload
from countersign.kernel.clock import SECOND, Instant
from countersign.kernel.errors import NotFound, Unavailable

_THREADS = 8


class LocalBlobs:
    """A BlobStore in the directory `root`, which any number of processes on one machine may use.

    `installation.json` is the marker, `staging/<upload>/` contains a file for each part, named by its digest, and
    `sealed/ab/cd/<sha256>` are the blobs. A file is renamed once its bytes are on the disk, and never modified again; a
    crash leaves at most an unnamed file in `staging`, which `discard` removes.

    Writing is refused if less than `reserve_bytes` would remain free, or if all files would use more than `max_bytes`
    (0: no limit). Blobs in the directory `beneath` can be read as well; that directory is never changed.
    """

    def __init__(
        self,
        root: Path,
        *,
        reserve_bytes: int = 64 * 1024 * 1024,
        max_bytes: int = 0,
        beneath: Path | None = None,
    ) -> None:
        self._root = root
        self._beneath = beneath
        self._quota = DiskQuota(root, reserve_bytes, max_bytes)
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="blobs")

    async def stage(self, upload: str, offset: int, chunks: AsyncIterator[bytes]) -> Part:
        """See BlobStore. A call needs about 3 MiB of memory.

        Raises:
            NotFound: the upload's id is malformed.
            ValueError: the offset is negative.
        """
        if offset < 0:
            raise ValueError(f"a part cannot begin at {offset}")
        folder = self._upload_folder(upload)
        path = folder / _temporary_name()
        incoming_file = await disk.in_thread(self._pool, disk.IncomingFile, self._pool, path, self._quota)
        try:
            async with aclosing(rechunk(chunks)) as pieces:
                async for piece in pieces:
                    await incoming_file.add(piece)
            part = Part(offset, incoming_file.length, await incoming_file.finish())
            await disk.in_thread(self._pool, _rename_durably, incoming_file.path, folder / layout.part_name(part))
        finally:
            await incoming_file.drop()
        return part

    async def seal(self, upload: str, parts: Sequence[Part], size: int, sha256: str | None) -> str:
        """See BlobStore.

        A single complete part is not read again; several parts are copied.

        Raises:
            ValueError: the parts do not cover 0…size exactly.
            ChecksumMismatch: the digest differs from the announced one, or a received part is missing.
        """
        ranges = layout.part_ranges(parts, size)
        return await disk.in_thread(self._pool, self._seal, self._upload_folder(upload), ranges, sha256)

    async def put(self, data: bytes) -> str:
        """See BlobStore. The bytes are staged under a new id; after a crash, garbage collection removes them."""
        stage = ids.new_uuid()
        try:
            part = await self.stage(stage, 0, _single_chunk(data))
            return await self.seal(stage, [part], part.length, part.sha256)
        finally:
            await self.discard(stage)

    async def discard(self, upload: str) -> None:
        """See BlobStore."""
        await disk.in_thread(self._pool, _remove_folder, self._upload_folder(upload))

    async def size(self, sha256: str) -> int | None:
        """See BlobStore."""
        if not layout.is_digest(sha256):
            return None
        return await disk.in_thread(self._pool, _size, self._readable_path(sha256))

    async def read(self, sha256: str, start: int, stop: int) -> AsyncIterator[bytes]:
        """See BlobStore. If `stop` is beyond the end of the blob, reading stops at the end."""
        file = await disk.in_thread(self._pool, _open_blob, self._readable_path(sha256))
        while start < stop:
            count = min(PIECE_BYTES, stop - start)
            piece = await disk.in_thread(self._pool, file.read, start, count)
            if not piece:
                return
            start += len(piece)
            yield piece

    async def file(self, sha256: str, folder: Path) -> Path:
        """See BlobStore. Returns the path of the blob's own file."""
        path = self._readable_path(sha256)
        if await disk.in_thread(self._pool, _size, path) is None:
            raise NotFound("There is no such blob.")
        return path

    async def delete(self, sha256: str) -> None:
        """See BlobStore."""
        if layout.is_digest(sha256):
            await disk.in_thread(self._pool, _delete, self._blob_path(sha256))

    async def staged_uploads(self) -> AsyncIterator[StagedUpload]:
        """See BlobStore."""
        for folder in await disk.in_thread(self._pool, _subfolders, self._root / "staging"):
            changed_at = await disk.in_thread(self._pool, _last_change, folder)
            if changed_at is not None:
                yield StagedUpload(folder.name, changed_at)

    async def sealed_blobs(self) -> AsyncIterator[SealedBlob]:
        """See BlobStore."""
        for first_folder in await disk.in_thread(self._pool, _subfolders, self._root / "sealed"):
            for blob in await disk.in_thread(self._pool, _blobs_under, first_folder):
                yield blob

    async def marker(self) -> bytes | None:
        """See BlobStore."""
        return await disk.in_thread(self._pool, _read_marker, self._root / layout.MARKER)

    async def mark(self, content: bytes, *, is_new: bool) -> bool:
        """See BlobStore."""
        return await disk.in_thread(self._pool, _write_marker, self._root / layout.MARKER, content, is_new=is_new)

    async def clear(self) -> None:
        """See BlobStore."""
        for name in layout.FOLDERS:
            await disk.in_thread(self._pool, _remove_tree, self._root / name)
        await disk.in_thread(self._pool, (self._root / layout.MARKER).unlink, missing_ok=True)

    async def signed_url(self, sha256: str, filename: str, ttl_s: int) -> str | None:
        """Return None, since a directory has no URL."""
        return None

    async def check(self) -> None:
        """See BlobStore."""
        await disk.in_thread(self._pool, self._check)

    def _upload_folder(self, upload: str) -> Path:
        return self._root / "staging" / layout.upload_name(upload)

    def _blob_path(self, sha256: str) -> Path:
        return self._root / layout.sealed_name(sha256)

    def _readable_path(self, sha256: str) -> Path:
        """Return the path for reading the blob: in this directory, or in `beneath` if only that directory has the
        blob."""
        own_path = self._blob_path(sha256)
        return own_path if self._beneath is None or own_path.exists() else self._beneath / layout.sealed_name(sha256)

    def _seal(self, folder: Path, ranges: Sequence[PartRange], announced: str | None) -> str:
        disk.make_folder(folder)
        whole_path = folder / _temporary_name()
        try:
            if len(ranges) == 1 and ranges[0].is_whole_part:
                digest = _link_part(folder, ranges[0].part, whole_path)
            else:
                self._quota.require_free(folder)
                with self._quota.reserve(sum(span.stop - span.start for span in ranges)):
                    digest = _assemble(folder, ranges, whole_path)
            layout.check_digest(digest, announced)
            whole_path.chmod(stat.S_IRUSR | stat.S_IRGRP)
            os.utime(whole_path)
            target = self._blob_path(digest)
            disk.make_folder(target.parent)
            _rename_durably(whole_path, target)
        finally:
            whole_path.unlink(missing_ok=True)
        return digest

    def _check(self) -> None:
        disk.make_folder(self._root)
        self._quota.require_free(self._root)
        path = self._root / f".check-{ids.new_uuid()}"
        try:
            file = disk.Descriptor(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
            disk.write_all(file, memoryview(b"check"))
            os.fsync(file.fd)
            if file.read(0, 16) != b"check":
                raise Unavailable("The folder of the blobs returns other bytes than were written.")
        finally:
            path.unlink(missing_ok=True)


async def _single_chunk(data: bytes) -> AsyncIterator[bytes]:
    yield data


def _temporary_name() -> str:
    return f"incoming-{ids.new_uuid()}"


def _rename_durably(path: Path, name: Path) -> None:
    """Rename a file whose bytes are on the disk, atomically and durably."""
    path.replace(name)
    sync_folder(name.parent)


def _delete(path: Path) -> None:
    """Remove a file, if it exists, and make that durable: after a power failure, an unsynced removal may be undone."""
    path.unlink(missing_ok=True)
    with suppress(FileNotFoundError):
        sync_folder(path.parent)


def _link_part(folder: Path, part: Part, whole_path: Path) -> str:
    try:
        os.link(folder / layout.part_name(part), whole_path)
    except FileNotFoundError as error:
        raise layout.missing_part_refusal() from error
    if whole_path.stat().st_size != part.length:
        raise layout.missing_part_refusal()
    return part.sha256


def _assemble(folder: Path, ranges: Sequence[PartRange], whole_path: Path) -> str:
    """Write the ranges to the file; returns the SHA-256."""
    digest = hashlib.sha256()
    file = disk.Descriptor(whole_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    for span in ranges:
        for piece in _read_range(folder, span):
            digest.update(piece)
            disk.write_all(file, memoryview(piece))
    os.fdatasync(file.fd)
    return digest.hexdigest()


def _read_range(folder: Path, span: PartRange) -> Iterator[bytes]:
    try:
        file = disk.Descriptor(folder / layout.part_name(span.part), os.O_RDONLY)
    except FileNotFoundError as error:
        raise layout.missing_part_refusal() from error
    position, stop = span.start - span.part.offset, span.stop - span.part.offset
    while position < stop:
        piece = file.read(position, min(PIECE_BYTES, stop - position))
        if not piece:
            raise layout.missing_part_refusal()
        position += len(piece)
        yield piece


def _open_blob(path: Path) -> disk.Descriptor:
    try:
        return disk.Descriptor(path, os.O_RDONLY)
    except FileNotFoundError as error:
        raise NotFound("There is no such blob.") from error


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


def _subfolders(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_dir())
    except FileNotFoundError:
        return []


def _files(folder: Path) -> list[SealedBlob]:
    """List each file with its last change and size, sorted by name, without files that are removed during the scan."""
    sealed_files: list[SealedBlob] = []
    with suppress(FileNotFoundError):
        for path in folder.iterdir():
            with suppress(FileNotFoundError):
                status = path.stat()
                sealed_files.append(SealedBlob(path.name, Instant(int(status.st_mtime * SECOND)), status.st_size))
    return sorted(sealed_files)


def _last_change(upload: Path) -> Instant | None:
    return max((file.changed_at for file in _files(upload)), default=None)


def _blobs_under(first_folder: Path) -> list[SealedBlob]:
    return [
        file
        for second_folder in _subfolders(first_folder)
        for file in _files(second_folder)
        if layout.is_digest(file.sha256)
    ]


def _read_marker(path: Path) -> bytes | None:
    try:
        return disk.Descriptor(path, os.O_RDONLY).read(0, layout.MAX_MARKER_BYTES)
    except FileNotFoundError:
        return None


def _write_marker(path: Path, content: bytes, *, is_new: bool) -> bool:
    """Write the marker to a temporary file and rename it. If several callers write a new marker at once, one
    succeeds."""
    disk.make_folder(path.parent)
    return disk.write_atomically(path, content, is_new=is_new)


def _remove_tree(folder: Path) -> None:
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)


def _remove_folder(folder: Path) -> None:
    with suppress(FileNotFoundError):
        for path in folder.iterdir():
            path.unlink(missing_ok=True)
        folder.rmdir()
