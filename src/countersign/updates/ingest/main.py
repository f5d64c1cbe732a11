"""The process that reads an artifact: it is handed an open file, then an Order on standard input, and writes records to
standard output, nothing else. It may be started before there is a file, and waits for it."""

import hashlib
import os
import signal
import sys
import threading
from typing import BinaryIO

import blake3
import msgspec

from countersign.archives import confinement, reader
from countersign.archives.entry import Entry, Member
from countersign.archives.limits import Limits
from countersign.archives.refusals import ArchiveRefused, ArchiveUnknown
from countersign.updates import framing, launch
from countersign.updates.ingest import records
from countersign.updates.ingest.contents import FAILURES, Contents
from countersign.updates.ingest.records import At, Ended, Failed, Order

SMALLEST_BLOCK = 1 << 20
_FAULTS = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What a fault of the reader raises, or a thread that has no room to start; it has nothing to do with who listens."""
MAX_BLOCKS = 4096
_TAKEN_WHOLE = (".apk", ".aab", ".ipa", ".jar", ".war", ".msix", ".appx")
"""Archives that are started or installed as they are."""
_NAMED_AS_ARCHIVES = (".zip", ".tar", ".tgz", ".tar.gz", ".txz", ".tar.xz", ".tzst", ".tar.zst", ".whl")


def main() -> int:
    """Read what the order says; the exit code is 0 also when the artifact is refused, which a record tells."""
    # Ctrl-C in a terminal reaches this process too, and ends it without a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    asked, told = sys.stdin.buffer, sys.stdout.buffer
    fd = framing.handed_over(int(sys.argv[1]))
    if fd is None:
        return 0
    order = msgspec.msgpack.decode(framing.read(asked), type=Order)
    source = os.fdopen(fd, "rb", closefd=False)
    confinement.confine(folder=None, memory_bytes=order.memory_bytes, cpu_s=order.cpu_s)
    try:
        blocks = Blocks(fd)
        contents = Contents(asked, told, wants_chunks=order.chunks)
        _read(order, source, contents)
        contents.finish()
        records.write(told, blocks.ended())
    except ArchiveUnknown as refused:
        records.write(told, Failed("unknown", "", refused.detail, None))
    except ArchiveRefused as refused:
        records.write(told, Failed("refused", refused.rule, refused.reason, refused.entry))
    except MemoryError:
        records.write(told, Failed("refused", "memory", "reading it needs more memory than is allowed", None))
    except _FAULTS as fault:
        # The same bytes fail again: one refusal, and neither a second attempt nor a stack as long as the archive.
        records.write(told, Failed("refused", "unreadable", f"the reader failed: {type(fault).__name__}", None))
    return 0


def _read(order: Order, source: BinaryIO, contents: Contents) -> None:
    limits = msgspec.convert(order.limits, Limits)
    if order.plain and order.name.lower().endswith(_TAKEN_WHOLE):
        contents.take(_whole(order, source))
        return
    try:
        for member in reader.read(source, limits, name=order.name):
            contents.take(member)
            contents.tell(At(source.tell()))
    except ArchiveUnknown:
        # An archive by its name that is none by its bytes is damaged; anything else is a build of one file.
        if not order.plain or order.name.lower().endswith(_NAMED_AS_ARCHIVES):
            raise
        contents.take(_whole(order, source))


def _whole(order: Order, source: BinaryIO) -> Member:
    source.seek(0)
    head = source.read(launch.HEAD_BYTES)
    mode = 0o755 if launch.of(order.name, 0o755, head) is not None else 0o644
    source.seek(0)
    size = os.fstat(source.fileno()).st_size
    return Member(Entry(order.name, "file", size, mode), iter(lambda: source.read(SMALLEST_BLOCK), b""))


class Blocks:
    """Digests of the artifact's own bytes, made beside the reading of what they hold."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        length = os.fstat(fd).st_size
        self._size = block_size(length)
        self._digests: list[bytes] = []
        self._whole = hashlib.sha256()
        self._failure: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, args=(length,), daemon=True)
        self._thread.start()

    def ended(self) -> Ended:
        """What was found, once everything was read.

        Raises:
            MemoryError, OSError: the artifact's own bytes could not be read; or what else the thread failed with.
        """
        self._thread.join()
        if self._failure:
            raise self._failure[0]
        return Ended(self._whole.digest(), self._size, self._digests)

    def _run(self, length: int) -> None:
        try:
            self._read(length)
        except FAILURES as error:
            self._failure.append(error)

    def _read(self, length: int) -> None:
        for start in range(0, length, self._size):
            block = blake3.blake3()
            for place in range(start, min(start + self._size, length), SMALLEST_BLOCK):
                piece = os.pread(self._fd, min(SMALLEST_BLOCK, start + self._size - place), place)
                block.update(piece)
                self._whole.update(piece)
            self._digests.append(block.digest())


def block_size(length: int) -> int:
    """How many bytes of an artifact of that length one digest stands for: a power of two, so that there are few."""
    size = SMALLEST_BLOCK
    while size * MAX_BLOCKS < length:
        size *= 2
    return size


if __name__ == "__main__":
    sys.exit(main())
