"""Readers that only move forward: a range of a file with its own position, and exact reads from a stream."""

from collections.abc import Callable
from typing import BinaryIO, TypeAlias

from countersign.archives.refusals import ArchiveRefused

PIECE_BYTES = 256 << 10
"""The maximum number of bytes that one call reads, decompresses or returns."""

ReadPiece: TypeAlias = Callable[[], bytes]
"""Returns the next bytes of a stream, or no bytes at its end."""


class FileRange:
    """The bytes `start` to `stop` of a seekable file. Several ranges can share the file."""

    def __init__(self, source: BinaryIO, start: int, stop: int) -> None:
        self._source = source
        self._at = start
        self._stop = stop

    def more(self) -> bytes:
        """Return the next bytes, at most PIECE_BYTES, or no bytes at the end of the range."""
        self._source.seek(self._at)
        data = self._source.read(min(PIECE_BYTES, self._stop - self._at))
        self._at += len(data)
        return data

    def jump(self, size: int) -> int:
        """Skip the next `size` bytes without reading them. Return how many bytes were skipped."""
        skipped_bytes = min(size, self._stop - self._at)
        self._at += skipped_bytes
        return skipped_bytes


class ForwardReader:
    """Reads any number of bytes from a stream.

    `position` is the offset of the first byte. If the stream can skip bytes without reading them, `jump` does this.
    """

    def __init__(self, read_more: ReadPiece, position: int = 0, jump: Callable[[int], int] | None = None) -> None:
        self._more = read_more
        self._jump = jump
        self._held = b""
        self._used = 0
        self.position = position

    def up_to(self, size: int) -> bytes:
        """Return the next `size` bytes, or fewer at the end of the stream."""
        end = self._used + size
        if end <= len(self._held):
            data = self._held[self._used : end]
            self._used = end
        else:
            data = self._gathered(size)
        self.position += len(data)
        return data

    def exactly(self, size: int, entry: str | None = None) -> bytes:
        """Return exactly the next `size` bytes.

        Raises:
            ArchiveRefused: `truncated`: the stream has fewer than `size` bytes left.
        """
        data = self.up_to(size)
        if len(data) != size:
            raise ArchiveRefused("truncated", "the archive ends too early", entry=entry)
        return data

    def skip(self, size: int) -> None:
        """Skip `size` bytes, or all bytes up to the end of the stream if it has fewer."""
        buffered_bytes = len(self._held) - self._used
        if self._jump is not None and size > buffered_bytes:
            self._held, self._used = b"", 0
            self.position += buffered_bytes + self._jump(size - buffered_bytes)
            return
        while size > 0:
            skipped_bytes = len(self.up_to(min(size, PIECE_BYTES)))
            size = size - skipped_bytes if skipped_bytes else 0

    @property
    def can_jump(self) -> bool:
        """Whether the reader can skip bytes without reading them."""
        return self._jump is not None

    def _gathered(self, size: int) -> bytes:
        chunks_read = [self._held[self._used :]]
        missing_bytes = size - len(chunks_read[0])
        while True:
            self._held, self._used = self._more(), 0
            if len(self._held) >= missing_bytes or not self._held:
                break
            chunks_read.append(self._held)
            missing_bytes -= len(self._held)
        self._used = min(missing_bytes, len(self._held))
        chunks_read.append(self._held[: self._used])
        return b"".join(chunks_read)
