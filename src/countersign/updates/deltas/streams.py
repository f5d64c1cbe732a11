"""One stream of a patch, compressed by whichever method makes it smallest, and read again piece by piece."""

import bz2
import lzma
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from backports import zstd

from countersign.updates.numbers import Malformed

SHORTEST_PREFIX_BYTES = 8
"""The shortest prefix that zstd accepts."""
PREFIX_BYTES = 96 << 20
"""The longest: it has to lie in memory as one piece."""
DICTIONARY_BYTES = 64 << 20
_SAMPLE = 1 << 20
_PIECE = 1 << 20
_LONG = 64 << 20
_LONGISH = 8 << 20
_WINDOW_LOG = 27

RAW, BZIP2, ZSTD, ZSTD_PREFIX = 0, 1, 2, 3
_LZMA = {4: (3, 0, 0), 5: (0, 0, 0), 6: (3, 0, 2), 7: (0, 3, 3)}
"""Literal context bits, literal position bits and position bits: for text, for numbers, for code, for tables."""


class Packed(NamedTuple):
    """A compressed stream: its method, its length before, its bytes."""

    method: int
    size: int
    body: bytes


class Decompressor(Protocol):
    """What lzma, bz2 and zstd have in common."""

    @property
    def eof(self) -> bool:
        """Whether the end of the stream was reached."""
        ...

    @property
    def needs_input(self) -> bool:
        """Whether more has to be fed before more comes."""
        ...

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """Up to so many bytes more."""
        ...


def pack(data: bytes, prefix: bytes = b"") -> Packed:
    """The stream in the smallest form found; `prefix` is known to whoever unpacks."""
    methods = (BZIP2, ZSTD, *_LZMA)
    if len(data) > _SAMPLE:
        middle = (len(data) - _SAMPLE) // 2
        sample = data[middle : middle + _SAMPLE]
        ranked = sorted(methods, key=lambda method: len(_packed(method, sample, b"")))
        if len(_packed(ZSTD, sample, b"")) > len(sample) * 0.995 and len(zstd.compress(data, 3)) > len(data) * 0.995:
            return Packed(RAW, len(data), data)
        methods = tuple(ranked[: 1 if len(data) > _LONGISH else 2])
    if SHORTEST_PREFIX_BYTES <= len(prefix) <= PREFIX_BYTES:
        methods = (*methods, ZSTD_PREFIX)
    tried = [Packed(method, len(data), _packed(method, data, prefix)) for method in methods]
    return min((Packed(RAW, len(data), data), *tried), key=lambda packed: len(packed.body))


def _packed(method: int, data: bytes, prefix: bytes) -> bytes:
    if method == BZIP2:
        return bz2.compress(data)
    if method in _LZMA:
        return lzma.compress(data, lzma.FORMAT_RAW, filters=[_filter(method, len(data))])
    options: dict[int, int] = {
        zstd.CompressionParameter.compression_level: 22,
        zstd.CompressionParameter.window_log: _window_log(len(data) + len(prefix)),
        zstd.CompressionParameter.enable_long_distance_matching: 1,
        zstd.CompressionParameter.content_size_flag: 0,
    }
    if method == ZSTD:
        return zstd.compress(data, options=options)
    return zstd.compress(data, options=options, zstd_dict=_dictionary(prefix))


def _dictionary(prefix: bytes) -> tuple[zstd.ZstdDict, int]:
    return zstd.ZstdDict(prefix, is_raw=True).as_prefix


def _window_log(size: int) -> int:
    return min(_WINDOW_LOG, max(10, size.bit_length()))


def _filter(method: int, size: int) -> dict[str, int]:
    literal, position, both = _LZMA[method]
    # The extreme preset is several times slower; on long streams it would take minutes for a percent.
    preset = 9 if size > _LONG else 9 | lzma.PRESET_EXTREME
    window = min(DICTIONARY_BYTES, max(4096, 1 << size.bit_length()))
    return {
        "id": lzma.FILTER_LZMA1,
        "preset": preset,
        "lc": literal,
        "lp": position,
        "pb": both,
        "dict_size": window,
    }


class Stream:
    """A compressed stream that is taken from the front; never more than asked for is unpacked."""

    def __init__(self, packed: Packed, prefix: Callable[[], bytes]) -> None:
        """`prefix` gives the reference as one piece, for the method that needs it.

        Raises:
            Malformed: there is no such method.
        """
        self._left = packed.size
        self._body = packed.body
        self._held = bytearray()
        self._read = 0
        self._decompressor: Decompressor | None = None
        if packed.method == RAW:
            if len(packed.body) != packed.size:
                raise Malformed("a stream is not as long as announced")
        else:
            self._decompressor = _decompressor(packed.method, packed.size, prefix)

    @property
    def left(self) -> int:
        """Bytes that were not taken yet."""
        return self._left

    def take(self, count: int) -> bytes:
        """The next `count` bytes.

        Raises:
            Malformed: there are fewer, or the stream is damaged.
        """
        if count > self._left:
            raise Malformed("a stream ends before its patch does")
        self._left -= count
        if self._decompressor is None:
            found = self._body[self._read : self._read + count]
            self._read += count
            return found
        if len(self._held) < count:
            self._unpack(self._decompressor, count)
        found = bytes(self._held[:count])
        del self._held[:count]
        return found

    def pieces(self, count: int) -> Iterator[bytes]:
        """The next `count` bytes, a mebibyte at a time.

        Raises:
            Malformed: as `take`.
        """
        for at in range(0, count, _PIECE):
            yield self.take(min(_PIECE, count - at))

    def _unpack(self, decompressor: Decompressor, count: int) -> None:
        try:
            while len(self._held) < count and not decompressor.eof:
                fed = b""
                if decompressor.needs_input:
                    fed = self._body[self._read : self._read + _PIECE]
                    self._read += len(fed)
                more = decompressor.decompress(fed, max(4096, count - len(self._held)))
                if not more and not fed and decompressor.needs_input:
                    break
                self._held += more
        except (lzma.LZMAError, zstd.ZstdError, OSError, EOFError, ValueError) as error:
            raise Malformed(f"a stream is damaged: {error}") from error
        if len(self._held) < count:
            raise Malformed("a stream is cut off")


def _decompressor(method: int, size: int, prefix: Callable[[], bytes]) -> Decompressor:
    if method == BZIP2:
        return bz2.BZ2Decompressor()
    if method in _LZMA:
        return lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=[_filter(method, size)])
    if method not in (ZSTD, ZSTD_PREFIX):
        raise Malformed(f"streams of method {method} are not known here")
    options: dict[int, int] = {zstd.DecompressionParameter.window_log_max: _WINDOW_LOG}
    if method == ZSTD:
        return zstd.ZstdDecompressor(options=options)
    return zstd.ZstdDecompressor(options=options, zstd_dict=_dictionary(prefix()))
