"""The contents of entries on their way out: digested, cut, and compressed beside the reading where they are wanted."""

import hashlib
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import Queue
from typing import BinaryIO

import blake3
from backports import zstd

from countersign.archives.entry import Entry, Member
from countersign.updates import chunks, framing, launch
from countersign.updates.chunks import Chunk
from countersign.updates.ingest import records
from countersign.updates.ingest.records import Asked, Found, Frames, Noted, Record

BATCH_BYTES = 4 << 20
WAITING_BATCHES = 2
COMPRESSORS = 2
NOTED_BYTES = 1 << 20
MAX_NOTES = 200
MAX_NOTED_BYTES = 16 << 20
"""Of all the small files of a build that say what it consists of; those that come later are left."""
_NOTED_NAMES = ("package.json", "package-lock.json", "bom.json", "sbom.json")
_NOTED_ENDINGS = (".dist-info/METADATA", ".cdx.json", ".spdx.json")
FAILURES = (
    *(ArithmeticError, AssertionError, AttributeError, EOFError, LookupError, MemoryError, OSError, RuntimeError),
    *(TypeError, ValueError, zstd.ZstdError),
)
"""What a thread of the reader can fail with: a failure that is lost lets the reader wait for ever, or loses chunks."""

_Batch = list[tuple[bytes, Chunk]]


class Contents:
    """Takes members one after another and sends what was found; memory stays at a few batches.

    Three things go on at once: the reader cuts and digests, a sender asks which chunks are wanted, and a few
    compressors work on those.
    """

    def __init__(self, asked: BinaryIO, told: BinaryIO, *, wants_chunks: bool) -> None:
        self._answers = asked
        self._told = told
        self._lock = threading.Lock()
        self._wants_chunks = wants_chunks
        self._met: set[bytes] = set()
        self._batch: _Batch = []
        self._batch_bytes = 0
        self._notes = self._noted_bytes = 0
        self._waiting: Queue[_Batch | None] = Queue(WAITING_BATCHES)
        self._pool = ThreadPoolExecutor(COMPRESSORS)
        self._failure: list[BaseException] = []
        self._sender = threading.Thread(target=self._send_all, daemon=True)
        self._sender.start()

    def take(self, member: Member) -> None:
        """Read the member to its end and send what it is."""
        entry = member.entry
        if entry.kind != "file":
            self.tell(Found(entry.path, entry.kind, 0, entry.mode, entry.target, b"", b"", [], None))
            return
        looked = _Looked(entry)
        pieces = looked.through(member.pieces)
        found = [self._chunk(chunk) for chunk in chunks.cut(pieces)] if self._wants_chunks else _drained(pieces)
        start = launch.of(entry.path, entry.mode, bytes(looked.head))
        sha256, name = looked.sha256.digest(), looked.blake3.digest()
        self.tell(Found(entry.path, "file", looked.size, entry.mode, "", sha256, name, found, start))
        if looked.note is not None and self._wants_chunks and self._may_note(len(looked.note)):
            self.tell(Noted(entry.path, bytes(looked.note)))

    def _may_note(self, size: int) -> bool:
        """Whether a note of this size is sent, too; it is counted then."""
        if self._notes == MAX_NOTES or self._noted_bytes + size > MAX_NOTED_BYTES:
            return False
        self._notes += 1
        self._noted_bytes += size
        return True

    def tell(self, record: Record) -> None:
        """Send a record; several threads may."""
        with self._lock:
            records.write(self._told, record)

    def finish(self) -> None:
        """Send what still waits.

        Raises:
            BrokenPipeError: nobody reads any more.
            MemoryError: there was too little for sending; any other failure of it is raised as well.
        """
        self._hand_over()
        self._waiting.put(None)
        self._sender.join()
        if self._failure:
            raise self._failure[0]

    def _chunk(self, chunk: Chunk) -> tuple[bytes, int]:
        name = blake3.blake3(chunk).digest()
        if name not in self._met:
            self._met.add(name)
            self._batch.append((name, chunk))
            self._batch_bytes += len(chunk)
            if self._batch_bytes >= BATCH_BYTES:
                self._hand_over()
        return name, len(chunk)

    def _hand_over(self) -> None:
        if self._failure:
            raise self._failure[0]
        if self._batch:
            self._waiting.put(self._batch)
            self._batch, self._batch_bytes = [], 0

    def _send_all(self) -> None:
        try:
            while (batch := self._waiting.get()) is not None:
                self._send(batch)
        except FAILURES as error:
            self._failure.append(error)
            while self._waiting.get() is not None:
                continue

    def _send(self, batch: _Batch) -> None:
        self.tell(Asked([name for name, _ in batch]))
        answer = framing.read(self._answers)
        wanted = [each for each, is_wanted in zip(batch, answer, strict=True) if is_wanted]
        frames = list(self._pool.map(chunks.compress, [chunk for _, chunk in wanted]))
        told = [(name, len(chunk), len(frame)) for (name, chunk), frame in zip(wanted, frames, strict=True)]
        self.tell(Frames(told, b"".join(frames)))


class _Looked:
    """What is seen of a file while its pieces pass by."""

    def __init__(self, entry: Entry) -> None:
        self.size = 0
        self.sha256 = hashlib.sha256()
        self.blake3 = blake3.blake3()
        self.head = bytearray()
        self.note: bytearray | None = bytearray() if _says_what_it_holds(entry) else None

    def through(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """The same pieces, looked at."""
        for piece in pieces:
            self.size += len(piece)
            self.sha256.update(piece)
            self.blake3.update(piece)
            if len(self.head) < launch.HEAD_BYTES:
                self.head += piece[: launch.HEAD_BYTES - len(self.head)]
            if self.note is not None:
                self.note += piece
            yield piece


def _says_what_it_holds(entry: Entry) -> bool:
    name = entry.path.rpartition("/")[2].lower()
    is_known = name in _NOTED_NAMES or entry.path.endswith(_NOTED_ENDINGS) or ".dist-info/sboms/" in entry.path
    return is_known and entry.size <= NOTED_BYTES


def _drained(pieces: Iterator[bytes]) -> list[tuple[bytes, int]]:
    for _ in pieces:
        continue
    return []
