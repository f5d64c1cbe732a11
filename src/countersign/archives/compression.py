"""Decompresses untrusted gzip, xz and zstd streams with bounded memory, and refuses data after their end."""

import lzma
import sys
import zlib
from collections.abc import Callable
from typing import Protocol, TypeAlias

from countersign.archives.bounded_reader import PIECE_BYTES, ReadPiece
from countersign.archives.limits import MAX_XZ_BYTES, MAX_ZSTD_WINDOW_LOG, Budget, Limits
from countersign.archives.refusals import ArchiveRefused

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_MEMORY_WORDS = ("emory", "indow")


class _Engine(Protocol):
    """The interface of a decompressor of one stream, as in lzma and zstd."""

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class _GzipEngine:
    """A decompressor of one gzip member (RFC 1952). zlib checks its header, checksum and length."""

    def __init__(self) -> None:
        self._engine = zlib.decompressobj(zlib.MAX_WBITS | 16)

    @property
    def eof(self) -> bool:
        return self._engine.eof

    @property
    def needs_input(self) -> bool:
        return not self._engine.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._engine.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        return self._engine.decompress(self._engine.unconsumed_tail + data, max_length)


def _xz() -> _Engine:
    return lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=MAX_XZ_BYTES)


def _zstd() -> _Engine:
    return zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: MAX_ZSTD_WINDOW_LOG})


Start: TypeAlias = Callable[[], _Engine]

BY_MAGIC: dict[bytes, Start] = {b"\x1f\x8b\x08": _GzipEngine, b"\xfd7zXZ\x00": _xz, b"\x28\xb5\x2f\xfd": _zstd}
"""Maps the first bytes of a compressed stream to its decompressor."""


class DecompressedStream:
    """The unpacked bytes of a compressed stream."""

    def __init__(self, read_compressed: ReadPiece, magic: bytes, limits: Limits, budget: Budget | None) -> None:
        self._packed = read_compressed
        self._magic = magic
        self._engine = BY_MAGIC[magic]()
        self._limits = limits
        self._gauge = budget
        self._rest = b""

    def more(self) -> bytes:
        """Return the next decompressed bytes, at most PIECE_BYTES, or no bytes at the end.

        Raises:
            ArchiveRefused: the stream is broken (`compression`), needs too much memory (`window`), is followed by a
                second stream (`concatenated`) or by other data (`trailing-data`), or exceeds a limit of the budget.
        """
        while not self._engine.eof or self._begin_next():
            data = b""
            if self._engine.needs_input:
                data, self._rest = self._rest or self._packed(), b""
                if not data:
                    raise ArchiveRefused("compression", "the compressed stream ends too early")
            if output := self._decompress(data):
                if self._gauge is not None:
                    self._gauge.flow(len(output))
                return output
        return b""

    def _decompress(self, data: bytes) -> bytes:
        try:
            return self._engine.decompress(data, PIECE_BYTES)
        except (zlib.error, lzma.LZMAError, zstd.ZstdError, EOFError, MemoryError) as error:
            if isinstance(error, MemoryError) or any(word in str(error) for word in _MEMORY_WORDS):
                raise ArchiveRefused("window", "decompression needs more memory than is allowed") from error
            raise ArchiveRefused("compression", f"the compressed stream is broken: {error!a}") from error

    def _begin_next(self) -> bool:
        """Begin the stream that follows the one that ended. Return False if no stream follows."""
        if self._gauge is not None:
            self._gauge.tick()
        next_input = self._engine.unused_data or self._packed()
        if not next_input:
            return False
        if len(next_input) < len(self._magic):
            next_input += self._packed()
        if not next_input.startswith(self._magic):
            raise ArchiveRefused("trailing-data", "the file has data after the compressed stream")
        if self._limits.profile == "strict":
            raise ArchiveRefused("concatenated", "the file contains several compressed streams")
        self._engine, self._rest = BY_MAGIC[self._magic](), next_input
        return True
