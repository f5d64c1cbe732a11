"""The program of the ingest process. It reads an artifact, and writes its entries, digests and chunks to a pipe."""

import hashlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import Queue
from typing import BinaryIO

import blake3
import msgspec
from backports import zstd

from countersign.archives import confinement, reader
from countersign.archives.entry import ArchiveEntry, ArchiveMember
from countersign.archives.limits import Limits
from countersign.archives.refusals import ArchiveRefused, ArchiveUnknown
from countersign.updates import chunks, executables
from countersign.updates.chunks import Chunk
from countersign.updates.worker_protocol import (
    ChunkFrames,
    ChunkQuery,
    EndOfArtifact,
    EntryRecord,
    IngestFailed,
    IngestOrder,
    IngestRecord,
    MetadataFile,
    ReadPosition,
    read_frame,
    receive_file,
    write_ingest_record,
)

BATCH_BYTES = 4 << 20
MAX_QUEUED_BATCHES = 2
COMPRESSORS = 2
MAX_METADATA_FILE_BYTES = 1 << 20
MAX_METADATA_FILES = 200
MAX_METADATA_BYTES = 16 << 20
"""The maximum total size of metadata files, which describe the components of a build. Later files are skipped."""
_METADATA_NAMES = ("package.json", "package-lock.json", "bom.json", "sbom.json")
_METADATA_ENDINGS = (".dist-info/METADATA", ".cdx.json", ".spdx.json")
THREAD_ERRORS = (
    *(ArithmeticError, AssertionError, AttributeError, EOFError, LookupError, MemoryError, OSError, RuntimeError),
    *(TypeError, ValueError, zstd.ZstdError),
)
"""The errors that a thread of the reader can raise. They must be passed on: if an error was lost, the reader would wait
forever, or chunks would be missing."""

_Batch = list[tuple[bytes, Chunk]]


class EntryProcessor:
    """Reads the members of an archive one after another and sends their records. At most a few batches of chunks are in
    memory.

    Several threads work at the same time. The reader cuts and hashes the content. The sender asks the store which
    chunks it needs. A few threads compress these chunks.
    """

    def __init__(self, answers: BinaryIO, records: BinaryIO, *, wants_chunks: bool) -> None:
        self._answers = answers
        self._records = records
        self._lock = threading.Lock()
        self._wants_chunks = wants_chunks
        self._seen: set[bytes] = set()
        self._batch: _Batch = []
        self._batch_bytes = 0
        self._metadata_files = self._metadata_bytes = 0
        self._queue: Queue[_Batch | None] = Queue(MAX_QUEUED_BATCHES)
        self._pool = ThreadPoolExecutor(COMPRESSORS)
        self._failure: list[BaseException] = []
        self._sender = threading.Thread(target=self._send_all, daemon=True)
        self._sender.start()

    def process(self, member: ArchiveMember) -> None:
        """Read the member to its end and send its record."""
        entry = member.entry
        if entry.kind != "file":
            self.send(EntryRecord(entry.path, entry.kind, 0, entry.mode, entry.target, b"", b"", [], None))
            return
        digests = _Scan(entry)
        pieces = digests.pass_through(member.pieces)
        chunk_list = [self._chunk(chunk) for chunk in chunks.cut(pieces)] if self._wants_chunks else _drain(pieces)
        start = executables.detect(entry.path, entry.mode, bytes(digests.head))
        sha256, name = digests.sha256.digest(), digests.blake3.digest()
        self.send(EntryRecord(entry.path, "file", digests.size, entry.mode, "", sha256, name, chunk_list, start))
        if digests.metadata is not None and self._wants_chunks and self._count_metadata_file(len(digests.metadata)):
            self.send(MetadataFile(entry.path, bytes(digests.metadata)))

    def _count_metadata_file(self, size: int) -> bool:
        """Count a metadata file of this size. Return False, and do not count the file, if it exceeds the limits."""
        if self._metadata_files == MAX_METADATA_FILES or self._metadata_bytes + size > MAX_METADATA_BYTES:
            return False
        self._metadata_files += 1
        self._metadata_bytes += size
        return True

    def send(self, record: IngestRecord) -> None:
        """Send a record. This method is thread-safe."""
        with self._lock:
            write_ingest_record(self._records, record)

    def finish(self) -> None:
        """Send the last batch and wait until the sender has ended.

        Raises:
            BrokenPipeError: the reader closed the pipe. MemoryError: the sender ran out of memory. Any other error of
            the sender is raised too.
        """
        self._queue_batch()
        self._queue.put(None)
        self._sender.join()
        if self._failure:
            raise self._failure[0]

    def _chunk(self, chunk: Chunk) -> tuple[bytes, int]:
        name = blake3.blake3(chunk).digest()
        if name not in self._seen:
            self._seen.add(name)
            self._batch.append((name, chunk))
            self._batch_bytes += len(chunk)
            if self._batch_bytes >= BATCH_BYTES:
                self._queue_batch()
        return name, len(chunk)

    def _queue_batch(self) -> None:
        if self._failure:
            raise self._failure[0]
        if self._batch:
            self._queue.put(self._batch)
            self._batch, self._batch_bytes = [], 0

    def _send_all(self) -> None:
        try:
            while (batch := self._queue.get()) is not None:
                self._send(batch)
        except THREAD_ERRORS as error:
            self._failure.append(error)
            while self._queue.get() is not None:
                continue

    def _send(self, batch: _Batch) -> None:
        self.send(ChunkQuery([name for name, _ in batch]))
        answer = read_frame(self._answers)
        wanted_chunks = [item for item, is_wanted in zip(batch, answer, strict=True) if is_wanted]
        frames = list(self._pool.map(chunks.compress, [chunk for _, chunk in wanted_chunks]))
        chunk_descriptions = [
            (name, len(chunk), len(frame)) for (name, chunk), frame in zip(wanted_chunks, frames, strict=True)
        ]
        self.send(ChunkFrames(chunk_descriptions, b"".join(frames)))


class _Scan:
    """Records the size, the digests and the first bytes of a file while its pieces are read. If it is a metadata file,
    its content is recorded too."""

    def __init__(self, entry: ArchiveEntry) -> None:
        self.size = 0
        self.sha256 = hashlib.sha256()
        self.blake3 = blake3.blake3()
        self.head = bytearray()
        self.metadata: bytearray | None = bytearray() if _is_metadata(entry) else None

    def pass_through(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the pieces unchanged, and record them."""
        for piece in pieces:
            self.size += len(piece)
            self.sha256.update(piece)
            self.blake3.update(piece)
            if len(self.head) < executables.HEAD_BYTES:
                self.head += piece[: executables.HEAD_BYTES - len(self.head)]
            if self.metadata is not None:
                self.metadata += piece
            yield piece


def _is_metadata(entry: ArchiveEntry) -> bool:
    name = entry.path.rpartition("/")[2].lower()
    is_known = name in _METADATA_NAMES or entry.path.endswith(_METADATA_ENDINGS) or ".dist-info/sboms/" in entry.path
    return is_known and entry.size <= MAX_METADATA_FILE_BYTES


def _drain(pieces: Iterator[bytes]) -> list[tuple[bytes, int]]:
    for _ in pieces:
        continue
    return []


MIN_BLOCK_BYTES = 1 << 20
_READER_ERRORS = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""The errors that a bug in the reader or a thread that cannot start raises. They do not depend on the receiver."""
MAX_BLOCKS = 4096
_PACKAGE_ENDINGS = (".apk", ".aab", ".ipa", ".jar", ".war", ".msix", ".appx")
"""The suffixes of archives that are run or installed without extraction."""
_ARCHIVE_ENDINGS = (".zip", ".tar", ".tgz", ".tar.gz", ".txz", ".tar.xz", ".tzst", ".tar.zst", ".whl")


def main() -> int:
    """Read the artifact of the order. Return the exit code 0 even if the artifact is refused, which a record
    reports."""
    # Ctrl-C in a terminal also interrupts this process. Let it end without a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    requests, records = sys.stdin.buffer, sys.stdout.buffer
    fd = receive_file(int(sys.argv[1]))
    if fd is None:
        return 0
    order = msgspec.msgpack.decode(read_frame(requests), type=IngestOrder)
    source = os.fdopen(fd, "rb", closefd=False)
    confinement.confine(folder=None, memory_bytes=order.memory_bytes, cpu_s=order.cpu_s)
    try:
        blocks = BlockDigests(fd)
        processor = EntryProcessor(requests, records, wants_chunks=order.chunks)
        _read(order, source, processor)
        processor.finish()
        write_ingest_record(records, blocks.digests())
    except ArchiveUnknown as refused:
        write_ingest_record(records, IngestFailed("unknown", "", refused.detail, None))
    except ArchiveRefused as refused:
        write_ingest_record(records, IngestFailed("refused", refused.rule, refused.reason, refused.entry))
    except MemoryError:
        write_ingest_record(
            records, IngestFailed("refused", "memory", "reading it needs more memory than is allowed", None)
        )
    except _READER_ERRORS as error:
        # A second attempt with the same bytes would fail again, so refuse the artifact.
        write_ingest_record(
            records, IngestFailed("refused", "unreadable", f"the reader failed: {type(error).__name__}", None)
        )
    return 0


def _read(order: IngestOrder, source: BinaryIO, processor: EntryProcessor) -> None:
    limits = msgspec.convert(order.limits, Limits)
    if order.plain and order.name.lower().endswith(_PACKAGE_ENDINGS):
        processor.process(_whole_file(order, source))
        return
    try:
        for member in reader.read(source, limits, name=order.name):
            processor.process(member)
            processor.send(ReadPosition(source.tell()))
    except ArchiveUnknown:
        # A file with the name of an archive but other content is damaged. Any other file is a build of one file.
        if not order.plain or order.name.lower().endswith(_ARCHIVE_ENDINGS):
            raise
        processor.process(_whole_file(order, source))


def _whole_file(order: IngestOrder, source: BinaryIO) -> ArchiveMember:
    source.seek(0)
    head = source.read(executables.HEAD_BYTES)
    mode = 0o755 if executables.detect(order.name, 0o755, head) is not None else 0o644
    source.seek(0)
    size = os.fstat(source.fileno()).st_size
    return ArchiveMember(ArchiveEntry(order.name, "file", size, mode), iter(lambda: source.read(MIN_BLOCK_BYTES), b""))


class BlockDigests:
    """Computes the digests of the artifact's bytes in a thread, while its entries are read."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        length = os.fstat(fd).st_size
        self._size = block_size(length)
        self._digests: list[bytes] = []
        self._whole = hashlib.sha256()
        self._failure: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, args=(length,), daemon=True)
        self._thread.start()

    def digests(self) -> EndOfArtifact:
        """Wait until the artifact is read completely, and return its digests.

        Raises:
            MemoryError, OSError: the artifact could not be read. Any other error of the thread is also raised.
        """
        self._thread.join()
        if self._failure:
            raise self._failure[0]
        return EndOfArtifact(self._whole.digest(), self._size, self._digests)

    def _run(self, length: int) -> None:
        try:
            self._read(length)
        except THREAD_ERRORS as error:
            self._failure.append(error)

    def _read(self, length: int) -> None:
        for start in range(0, length, self._size):
            block = blake3.blake3()
            for offset in range(start, min(start + self._size, length), MIN_BLOCK_BYTES):
                piece = os.pread(self._fd, min(MIN_BLOCK_BYTES, start + self._size - offset), offset)
                block.update(piece)
                self._whole.update(piece)
            self._digests.append(block.digest())


def block_size(length: int) -> int:
    """Return the number of bytes for each digest of an artifact of this length. It is a power of two."""
    size = MIN_BLOCK_BYTES
    while size * MAX_BLOCKS < length:
        size *= 2
    return size


if __name__ == "__main__":
    sys.exit(main())
