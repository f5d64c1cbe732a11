"""Compares an installation with its manifest: intact files, corrupt ranges, local copies of chunks."""

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Literal, TypeAlias

import blake3

from countersign.updates import chunks
from countersign.updates.install.state import Installation
from countersign.updates.install.user_files import Tree
from countersign.updates.manifest import Chunk, File, Manifest
from countersign.updates.planner import ChunkLocation, LocalFiles

READERS = 2
BUFFER_BYTES = 1 << 20
BATCH_BYTES = 8 << 20
OPENING_BYTES = 64 << 10
"""The cost of opening a file: it takes about as long as reading this number of bytes."""

_thread_local = threading.local()

Kind: TypeAlias = Literal["missing", "changed", "mode", "link", "extra-bytes"]


@dataclass(frozen=True, slots=True)
class Corruption:
    """A range of a file that differs from the manifest.

    `offset` and `size` are in bytes. For a missing file they are 0 and the size of the file.
    """

    path: str
    kind: Kind
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Integrity:
    """The result of a check: the intact files and chunks on disk, and the corruptions."""

    local: LocalFiles
    corruptions: list[Corruption]


def check(
    root: Path, tree: Tree, installation: Installation | None, wanted_manifest: Manifest, *, verify: bool
) -> Integrity:
    """Compare the folder with the manifest of the installed build. If no build is installed, compare with
    `wanted_manifest`.

    A file is read if `verify` is set, or if its size or mtime differs from its stamp. Several files are read
    concurrently.

    Raises:
        OSError: a file cannot be read.
    """
    manifest = wanted_manifest if installation is None else installation.manifest
    comparison = _IntegrityCheck(
        root, tree, manifest, {} if installation is None or verify else installation.state.stamps
    )
    with ThreadPoolExecutor(READERS) as readers:
        # A task for each of many small files would take longer than reading them.
        batches_read = readers.map(comparison.read_all, batches := _batches(manifest.files))
        for file, corruptions in zip(chain(*batches), chain.from_iterable(batches_read), strict=True):
            comparison.record(file, corruptions, is_expected=installation is not None)
    if installation is not None:
        comparison.check_links()
    known_manifest = None if installation is None else installation.manifest
    digest = "" if installation is None else installation.manifest_sha256
    return Integrity(LocalFiles(comparison.files, comparison.chunks, known_manifest, digest), comparison.corruptions)


class _IntegrityCheck:
    """One check in progress."""

    def __init__(self, root: Path, tree: Tree, manifest: Manifest, stamps: dict[str, tuple[int, int]]) -> None:
        self._root, self._tree, self._manifest, self._stamps = root, tree, manifest, stamps
        self.files: dict[str, tuple[str, int]] = {}
        self.chunks: dict[str, ChunkLocation] = {}
        self.corruptions: list[Corruption] = []

    def read_all(self, files: Sequence[File]) -> list[list[Corruption]]:
        """Call `read` for each file."""
        return [self.read(file) for file in files]

    def read(self, file: File) -> list[Corruption]:
        """Return the ranges in which the file differs from the manifest, or no ranges if it is intact or missing."""
        file_status = self._tree.files.get(file.path)
        if file_status is None:
            return []
        is_noted = (
            self._stamps.get(file.path) == (file_status.st_size, file_status.st_mtime_ns)
            and file_status.st_size == file.size
        )
        return [] if is_noted else self._compare(file)

    def record(self, file: File, corruptions: list[Corruption], *, is_expected: bool) -> None:
        """Record the file if it is intact, otherwise its intact chunks. Record corruptions if the file should exist."""
        file_status = self._tree.files.get(file.path)
        if file_status is None:
            if is_expected:
                self.corruptions.append(Corruption(file.path, "missing", 0, file.size))
            return
        if corruptions:
            self.corruptions += corruptions if is_expected else []
            self._record_chunks(file)
            return
        mode = file_status.st_mode & 0o777
        if mode != file.mode and is_expected:
            self.corruptions.append(Corruption(file.path, "mode", 0, 0))
        self.files[file.path] = (file.sha256, mode)
        offset = 0
        for index in file.chunks:
            self.chunks.setdefault(self._manifest.chunks[index].id, ChunkLocation(file.path, offset))
            offset += self._manifest.chunks[index].size

    def check_links(self) -> None:
        """Record links that are missing or have another target."""
        for link in self._manifest.links:
            if self._tree.links.get(link.path) != link.target:
                self.corruptions.append(Corruption(link.path, "link", 0, 0))

    def _compare(self, file: File) -> list[Corruption]:
        """Compare the file's digest first, because this is fastest. If the digest differs, compare the chunks."""
        with _open(self._root / file.path) as content:
            if _digest(content.fileno()) == file.blake3:
                return []
        return self._corrupt_chunks(file)

    def _corrupt_chunks(self, file: File) -> list[Corruption]:
        """Return the ranges of the chunks that are wrong, and of extra bytes. An intact file has none."""
        corruptions: list[Corruption] = []
        offset = 0
        with _open(self._root / file.path) as content:
            length = os.fstat(content.fileno()).st_size
            for chunk, sha256 in _chunks(content.fileno(), [self._manifest.chunks[index] for index in file.chunks]):
                if chunks.chunk_id(sha256) != chunk.id:
                    corruptions.append(Corruption(file.path, "changed", offset, chunk.size))
                offset += chunk.size
        if offset != file.size:
            corruptions.append(Corruption(file.path, "changed", 0, file.size))
        if length > file.size:
            corruptions.append(Corruption(file.path, "extra-bytes", file.size, length - file.size))
        return _join_adjacent(corruptions)

    def _record_chunks(self, file: File) -> None:
        """Record the chunks of a corrupt file, because most of them are usually intact."""
        offset = 0
        with _open(self._root / file.path) as content:
            for chunk in chunks.cut(iter(lambda: content.read(1 << 20), b"")):
                self.chunks.setdefault(chunks.chunk_id(chunk), ChunkLocation(file.path, offset))
                offset += len(chunk)


def _batches(files: Iterable[File]) -> list[list[File]]:
    """Split the files into batches of about BATCH_BYTES."""
    batches: list[list[File]] = []
    size = BATCH_BYTES
    for file in files:
        if size >= BATCH_BYTES:
            batches.append([])
            size = 0
        batches[-1].append(file)
        size += file.size + OPENING_BYTES
    return batches


def _chunks(fd: int, chunks: Sequence[Chunk]) -> Iterator[tuple[Chunk, memoryview]]:
    """Yield each chunk with the bytes at its offset. The bytes are valid until the next chunk."""
    buffer = _buffer()
    offset = start = stop = 0
    for chunk in chunks:
        if offset + chunk.size > stop:
            start, stop = offset, offset + os.preadv(fd, [buffer], offset)
        yield chunk, buffer[offset - start : min(offset + chunk.size, stop) - start]
        offset += chunk.size


def _digest(fd: int) -> str:
    """Return the BLAKE3 digest of a file, in hexadecimal."""
    buffer, digest = _buffer(), blake3.blake3()
    while length := os.readv(fd, [buffer]):
        digest.update(buffer[:length])
    return digest.hexdigest()


def _buffer() -> memoryview:
    """Return the read buffer of the calling thread."""
    buffer: memoryview | None = getattr(_thread_local, "buffer", None)
    if buffer is None:
        buffer = _thread_local.buffer = memoryview(bytearray(BUFFER_BYTES))
    return buffer


def _open(path: Path) -> BinaryIO:
    return open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)), "rb")


def _join_adjacent(corruptions: list[Corruption]) -> list[Corruption]:
    """Join adjacent corruptions of the same kind."""
    joined_ranges: list[Corruption] = []
    for corruption in corruptions:
        last_range = joined_ranges[-1] if joined_ranges else None
        if (
            last_range is not None
            and last_range.kind == corruption.kind
            and last_range.offset + last_range.size == corruption.offset
        ):
            joined_ranges[-1] = Corruption(
                last_range.path, last_range.kind, last_range.offset, last_range.size + corruption.size
            )
        else:
            joined_ranges.append(corruption)
    return joined_ranges
