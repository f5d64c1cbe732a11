"""Forward reading: a range of a file with its own position, and exact reads from a stream of pieces."""

from collections.abc import Callable
from typing import BinaryIO, TypeAlias

from countersign.archives.refusals import ArchiveRefused

PIECE_BYTES = 256 << 10
"""What is read, decompressed and given out at once, at most."""

ReadPiece: TypeAlias = Callable[[], bytes]
"""Gives the next bytes of a stream; none at its end."""


class FileRange:
    """The bytes `start` to `stop` of a seekable file, which several stretches can share."""

    def __init__(self, source: BinaryIO, start: int, stop: int) -> None:
        self._source = source
        self._at = start
        self._stop = stop

    def more(self) -> bytes:
        """The next bytes, at most PIECE_BYTES; none at the end."""
        self._source.seek(self._at)
        data = self._source.read(min(PIECE_BYTES, self._stop - self._at))
        self._at += len(data)
        return data

    def jump(self, size: int) -> int:
        """Pass over the next `size` bytes without reading them; how many there were."""
        passed = min(size, self._stop - self._at)
        self._at += passed
        return passed


class ForwardReader:
    """Reads of any length from a stream; `position` counts from where the stream began, `jump` passes over bytes of a
    stream that need not be read for it."""

    def __init__(self, more: ReadPiece, position: int = 0, jump: Callable[[int], int] | None = None) -> None:
        self._more = more
        self._jump = jump
        self._held = b""
        self._used = 0
        self.position = position

    def up_to(self, size: int) -> bytes:
        """The next `size` bytes; fewer only at the end of the stream."""
        end = self._used + size
        if end <= len(self._held):
            data = self._held[self._used : end]
            self._used = end
        else:
            data = self._gathered(size)
        self.position += len(data)
        return data

    def exactly(self, size: int, entry: str | None = None) -> bytes:
        """The next `size` bytes.

        Raises:
            ArchiveRefused: `truncated`: there are fewer.
        """
        data = self.up_to(size)
        if len(data) != size:
            raise ArchiveRefused("truncated", "the archive ends too early", entry=entry)
        return data

    def skip(self, size: int) -> None:
        """Pass over `size` bytes, or to the end."""
        held = len(self._held) - self._used
        if self._jump is not None and size > held:
            self._held, self._used = b"", 0
            self.position += held + self._jump(size - held)
            return
        while size > 0:
            passed = len(self.up_to(min(size, PIECE_BYTES)))
            size = size - passed if passed else 0

    @property
    def can_jump(self) -> bool:
        """Whether bytes that are passed over cost nothing."""
        return self._jump is not None

    def _gathered(self, size: int) -> bytes:
        parts = [self._held[self._used :]]
        missing = size - len(parts[0])
        while True:
            self._held, self._used = self._more(), 0
            if len(self._held) >= missing or not self._held:
                break
            parts.append(self._held)
            missing -= len(self._held)
        self._used = min(missing, len(self._held))
        parts.append(self._held[: self._used])
        return b"".join(parts)
