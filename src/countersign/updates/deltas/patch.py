"""The patch format.

A cover is a range of the old bytes that is nearly equal to a range of the new bytes. The old bytes are also called the
reference. A patch consists of five streams, each with its own compression: the covers, the positions of the runs of
bytes that differ within covers, the differences of these bytes, the new bytes that no cover contains, and the recipes,
which describe how archives in the new bytes are compressed again.
"""

import bz2
import lzma
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from backports import zstd

from countersign.updates.deltas.byte_matches import Cover
from countersign.updates.varint import Malformed, VarintReader, encode_numbers, zigzag

_BLOCK_BYTES = 64 << 10
"""The number of bytes that are added or subtracted at once, as one integer. An integer of this length fits into the
processor's cache."""

_LOW = int.from_bytes(b"\x7f" * _BLOCK_BYTES, "little")
_HIGH = int.from_bytes(b"\x80" * _BLOCK_BYTES, "little")


def subtract_bytes(new_bytes: memoryview, old_bytes: memoryview) -> bytes:
    """Subtract the bytes of `old_bytes` from those of `new_bytes`. Both have the same length."""
    if new_bytes == old_bytes:
        return bytes(len(new_bytes))
    return b"".join(
        _subtract(new_bytes[start : start + _BLOCK_BYTES], old_bytes[start : start + _BLOCK_BYTES])
        for start in range(0, len(new_bytes), _BLOCK_BYTES)
    )


def add_bytes(old_bytes: bytes, delta: bytes) -> bytes:
    """Add the bytes of `delta` to those of `old_bytes`. Both have the same length."""
    return b"".join(
        _add(old_bytes[start : start + _BLOCK_BYTES], delta[start : start + _BLOCK_BYTES])
        for start in range(0, len(old_bytes), _BLOCK_BYTES)
    )


def _subtract(new_bytes: memoryview, old_bytes: memoryview) -> bytes:
    if new_bytes == old_bytes:
        return bytes(len(new_bytes))
    new_number, old_number = int.from_bytes(new_bytes, "little"), int.from_bytes(old_bytes, "little")
    low_mask, high_mask = _masks(len(new_bytes))
    return (
        ((new_number | high_mask) - (old_number & low_mask)) ^ ((new_number ^ old_number ^ high_mask) & high_mask)
    ).to_bytes(len(new_bytes), "little")


def _add(old_bytes: bytes, delta: bytes) -> bytes:
    old_number, delta_number = int.from_bytes(old_bytes, "little"), int.from_bytes(delta, "little")
    low_mask, high_mask = _masks(len(old_bytes))
    return (((old_number & low_mask) + (delta_number & low_mask)) ^ ((old_number ^ delta_number) & high_mask)).to_bytes(
        len(old_bytes), "little"
    )


def _masks(length: int) -> tuple[int, int]:
    """Return the masks of the low seven bits and of the high bit of each byte."""
    if length == _BLOCK_BYTES:
        return _LOW, _HIGH
    mask = (1 << 8 * length) - 1
    return _LOW & mask, _HIGH & mask


MIN_PREFIX_BYTES = 8
"""The shortest prefix that zstd accepts."""
MAX_PREFIX_BYTES = 96 << 20
"""The longest prefix. It must fit into memory as one piece."""
DICTIONARY_BYTES = 64 << 20
_SAMPLE_BYTES = 1 << 20
_READ_BYTES = 1 << 20
_LONG_BYTES = 64 << 20
_MEDIUM_BYTES = 8 << 20
_WINDOW_LOG = 27

RAW, BZIP2, ZSTD, ZSTD_PREFIX = 0, 1, 2, 3
_LZMA_BITS_BY_METHOD = {4: (3, 0, 0), 5: (0, 0, 0), 6: (3, 0, 2), 7: (0, 3, 3)}
"""Maps a method to its literal context bits, literal position bits and position bits. Method 4 is for text, 5 for
numbers, 6 for code, and 7 for tables."""


class CompressedStream(NamedTuple):
    """A compressed stream: its method, its uncompressed length, and its bytes."""

    method: int
    size: int
    body: bytes


class Decompressor(Protocol):
    """The common interface of the decompressors of lzma, bz2 and zstd."""

    @property
    def eof(self) -> bool:
        """Whether the end of the stream was reached."""
        ...

    @property
    def needs_input(self) -> bool:
        """Whether the decompressor needs more input to return more output."""
        ...

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """Return at most `max_length` more bytes."""
        ...


def compress(data: bytes, prefix: bytes = b"") -> CompressedStream:
    """Compress a stream with the method that makes it smallest. Decompression needs the same `prefix`."""
    methods = (BZIP2, ZSTD, *_LZMA_BITS_BY_METHOD)
    if len(data) > _SAMPLE_BYTES:
        middle = (len(data) - _SAMPLE_BYTES) // 2
        sample = data[middle : middle + _SAMPLE_BYTES]
        ranked_methods = sorted(methods, key=lambda method: len(_compress_with(method, sample, b"")))
        if (
            len(_compress_with(ZSTD, sample, b"")) > len(sample) * 0.995
            and len(zstd.compress(data, 3)) > len(data) * 0.995
        ):
            return CompressedStream(RAW, len(data), data)
        methods = tuple(ranked_methods[: 1 if len(data) > _MEDIUM_BYTES else 2])
    if MIN_PREFIX_BYTES <= len(prefix) <= MAX_PREFIX_BYTES:
        methods = (*methods, ZSTD_PREFIX)
    streams = [CompressedStream(method, len(data), _compress_with(method, data, prefix)) for method in methods]
    return min((CompressedStream(RAW, len(data), data), *streams), key=lambda stream: len(stream.body))


def _compress_with(method: int, data: bytes, prefix: bytes) -> bytes:
    if method == BZIP2:
        return bz2.compress(data)
    if method in _LZMA_BITS_BY_METHOD:
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
    literal_context_bits, literal_position_bits, position_bits = _LZMA_BITS_BY_METHOD[method]
    # The extreme preset is several times slower. On long streams it would take minutes to save one percent.
    preset = 9 if size > _LONG_BYTES else 9 | lzma.PRESET_EXTREME
    dictionary_size = min(DICTIONARY_BYTES, max(4096, 1 << size.bit_length()))
    return {
        "id": lzma.FILTER_LZMA1,
        "preset": preset,
        "lc": literal_context_bits,
        "lp": literal_position_bits,
        "pb": position_bits,
        "dict_size": dictionary_size,
    }


class StreamReader:
    """Reads a compressed stream sequentially, and decompresses no more than requested."""

    def __init__(self, stream: CompressedStream, prefix: Callable[[], bytes]) -> None:
        """`prefix` returns the old bytes as one piece. It is called only for the method ZSTD_PREFIX.

        Raises:
            Malformed: the method is unknown.
        """
        self._left = stream.size
        self._body = stream.body
        self._held = bytearray()
        self._position = 0
        self._decompressor: Decompressor | None = None
        if stream.method == RAW:
            if len(stream.body) != stream.size:
                raise Malformed("a stream is not as long as announced")
        else:
            self._decompressor = _decompressor(stream.method, stream.size, prefix)

    @property
    def left(self) -> int:
        """The number of bytes that were not read yet."""
        return self._left

    def take(self, count: int) -> bytes:
        """Return the next `count` bytes.

        Raises:
            Malformed: fewer than `count` bytes are left, or the stream is damaged.
        """
        if count > self._left:
            raise Malformed("a stream ends before its patch does")
        self._left -= count
        if self._decompressor is None:
            data = self._body[self._position : self._position + count]
            self._position += count
            return data
        if len(self._held) < count:
            self._unpack(self._decompressor, count)
        data = bytes(self._held[:count])
        del self._held[:count]
        return data

    def pieces(self, count: int) -> Iterator[bytes]:
        """Yield the next `count` bytes in pieces of one mebibyte.

        Raises:
            Malformed: see `take`.
        """
        for start in range(0, count, _READ_BYTES):
            yield self.take(min(_READ_BYTES, count - start))

    def _unpack(self, decompressor: Decompressor, count: int) -> None:
        try:
            while len(self._held) < count and not decompressor.eof:
                fed = b""
                if decompressor.needs_input:
                    fed = self._body[self._position : self._position + _READ_BYTES]
                    self._position += len(fed)
                new_data = decompressor.decompress(fed, max(4096, count - len(self._held)))
                if not new_data and not fed and decompressor.needs_input:
                    break
                self._held += new_data
        except (lzma.LZMAError, zstd.ZstdError, OSError, EOFError, ValueError) as error:
            raise Malformed(f"a stream is damaged: {error}") from error
        if len(self._held) < count:
            raise Malformed("a stream is cut off")


def _decompressor(method: int, size: int, prefix: Callable[[], bytes]) -> Decompressor:
    if method == BZIP2:
        return bz2.BZ2Decompressor()
    if method in _LZMA_BITS_BY_METHOD:
        return lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=[_filter(method, size)])
    if method not in (ZSTD, ZSTD_PREFIX):
        raise Malformed(f"the compression method {method} is unknown")
    options: dict[int, int] = {zstd.DecompressionParameter.window_log_max: _WINDOW_LOG}
    if method == ZSTD:
        return zstd.ZstdDecompressor(options=options)
    return zstd.ZstdDecompressor(options=options, zstd_dict=_dictionary(prefix()))


MAGIC = b"CSD1"
HEAD_BYTES = 128
MAX_SIZE = 1 << 40
MAX_LIST_BYTES = 32 << 20
"""The maximum size of a list of numbers. If the list of many short runs would be longer, the patch contains few long
runs instead."""
_STREAMS = 5
_MAX_EQUAL_BYTES = (1, 255)
"""How many equal bytes in sequence a run of differences may contain at most. `encode` tries both limits: the small one
gives many short runs, and the large one gives few long runs."""
_COMPARE_BYTES = 4 << 20


class Patch(NamedTuple):
    """A decoded patch. Its streams are still compressed."""

    old_size: int
    new_size: int
    cover_count: int
    run_count: int
    control: CompressedStream
    run_positions: CompressedStream
    differences: CompressedStream
    literals: CompressedStream
    recipes: CompressedStream


def encode(old_content: bytes, new_content: bytes, covers: Sequence[Cover], recipes: bytes) -> bytes:
    """Encode the patch that turns the old bytes into the new bytes."""
    run_count, run_positions, differences = min(
        (_runs(old_content, new_content, covers, max_equal_bytes) for max_equal_bytes in _MAX_EQUAL_BYTES),
        key=lambda runs: (runs[1].size > MAX_LIST_BYTES, len(runs[1].body) + len(runs[2].body)),
    )
    literals = compress(_literals(new_content, covers), old_content)
    streams = (compress(_control(covers)), run_positions, differences, literals)
    all_streams = (*streams, compress(recipes))
    head = [len(old_content), len(new_content), len(covers), run_count]
    for stream in all_streams:
        head += [stream.method, stream.size, len(stream.body)]
    return MAGIC + encode_numbers(head) + b"".join(stream.body for stream in all_streams)


def decode(blob: bytes) -> Patch:
    """Decode the patch in a blob.

    Raises:
        Malformed: the blob is not a valid patch.
    """
    if not blob.startswith(MAGIC):
        raise Malformed("unknown delta format")
    reader = VarintReader(blob[len(MAGIC) :])
    old_size, new_size, cover_count, run_count = reader.numbers(4, MAX_SIZE)
    heads = [reader.numbers(3, MAX_SIZE) for _ in range(_STREAMS)]
    control, run_positions, differences, literals, recipes = (
        CompressedStream(m, size, reader.take(length)) for m, size, length in heads
    )
    if not reader.is_at_end:
        raise Malformed("the delta has trailing bytes")
    return Patch(old_size, new_size, cover_count, run_count, control, run_positions, differences, literals, recipes)


def _control(covers: Sequence[Cover]) -> bytes:
    old_ends = [0, *(cover.old + cover.length for cover in covers)]
    new_ends = [0, *(cover.new + cover.length for cover in covers)]
    steps = (zigzag(cover.old - end) for cover, end in zip(covers, old_ends, strict=False))
    gaps = (cover.new - end for cover, end in zip(covers, new_ends, strict=False))
    return encode_numbers(steps) + encode_numbers(gaps) + encode_numbers(cover.length for cover in covers)


def _literals(new_content: bytes, covers: Sequence[Cover]) -> bytes:
    gap_starts = [0, *(cover.new + cover.length for cover in covers)]
    gap_ends = [*(cover.new for cover in covers), len(new_content)]
    return b"".join(new_content[start:end] for start, end in zip(gap_starts, gap_ends, strict=True))


def _runs(
    old_content: bytes, new_content: bytes, covers: Sequence[Cover], max_equal_bytes: int
) -> tuple[int, CompressedStream, CompressedStream]:
    """Return the number of runs of differences, their encoded positions, and their bytes."""
    pattern = re.compile(rb"[^\0]+(?:\0{1,%d}[^\0]+)*" % max_equal_bytes)
    gaps: list[int] = []
    lengths: list[int] = []
    differences: list[bytes] = []
    last_end = 0
    for base, change in _changes(old_content, new_content, covers):
        for run in pattern.finditer(change):
            gaps.append(base + run.start() - last_end)
            lengths.append(run.end() - run.start())
            differences.append(run.group())
            last_end = base + run.end()
    return len(gaps), compress(encode_numbers(gaps) + encode_numbers(lengths)), compress(b"".join(differences))


def _changes(old_content: bytes, new_content: bytes, covers: Sequence[Cover]) -> Iterator[tuple[int, bytes]]:
    """Yield the differences along the covers with their positions, without the pieces that do not differ."""
    olds, news = memoryview(old_content), memoryview(new_content)
    base = 0
    for cover in covers:
        for start in range(0, cover.length, _COMPARE_BYTES):
            length = min(_COMPARE_BYTES, cover.length - start)
            new_slice = news[cover.new + start : cover.new + start + length]
            old_slice = olds[cover.old + start : cover.old + start + length]
            if new_slice != old_slice:
                yield base + start, subtract_bytes(new_slice, old_slice)
        base += cover.length
