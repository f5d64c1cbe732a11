"""Finds and decompresses deflate streams in zip, gzip and tar files, and makes recipes that restore the same bytes."""

import zlib
from collections.abc import Iterator
from typing import NamedTuple

from countersign.updates.recompress import zlib_settings
from countersign.updates.varint import Malformed, VarintReader, encode_numbers

MAX_LEVELS = 3
"""The maximum depth of nested archives that are decompressed."""
MAX_FILE_BYTES = 192 << 20
"""The maximum size of a file that is decompressed. A larger file is left unchanged."""
MAX_DECOMPRESSED_BYTES = 256 << 20
"""The maximum number of decompressed bytes for all old files of one delta, and again for all its new files."""
DEFLATE_RATIO = 1032
"""The maximum number of bytes that one byte of a deflate stream can expand to."""
HEAD_BYTES = 262
"""The number of bytes at the start of a file that identify an archive."""
MIN_STREAM_BYTES = 32
"""The minimum size of content that is decompressed. Decompressing less would not make a delta smaller."""

_LOCAL, _HEADER_MARKS = b"PK\x03\x04", (b"PK\x03\x04", b"PK\x01\x02")
_GZIP = b"\x1f\x8b\x08"
_DESCRIPTOR = 24
"""The size of the longest data descriptor in bytes (APPNOTE 4.3.9)."""


def max_decompressed(size: int) -> int:
    """Return the largest total that is accepted for decompressed files whose original bytes are `size` in total.
    Nested archives of repeated bytes can be larger, because the ratio applies again at each level; useful archives are
    not."""
    return size + min(MAX_DECOMPRESSED_BYTES, MAX_LEVELS * DEFLATE_RATIO * size)


class StreamSpan(NamedTuple):
    """A deflate stream from `start` to `end`, and its decompressed content."""

    start: int
    end: int
    content: bytes


class InflateBudget:
    """The limits on decompressed bytes and streams, shared by all files of one delta."""

    def __init__(self, size: int = MAX_DECOMPRESSED_BYTES, streams: int = 200_000) -> None:
        self.bytes_left = size
        self.streams_left = streams

    def inflate(self, data: memoryview) -> tuple[bytes, int] | None:
        """Return the content of the deflate stream at the start of the data, and the length of the stream.

        Return None if the data does not begin with a complete stream, or if the stream exceeds the budget.
        """
        if self.streams_left <= 0:
            return None
        self.streams_left -= 1
        inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            content = inflater.decompress(data, self.bytes_left + 1)
        except zlib.error:
            return None
        if not inflater.eof or len(content) > self.bytes_left:
            return None
        self.bytes_left -= len(content)
        return content, len(data) - len(inflater.unused_data)


def may_hold_streams(head: bytes, size: int) -> bool:
    """Return whether a file with this size and these first bytes is worth reading completely."""
    is_archive = head[:4] == _LOCAL or head[:3] == _GZIP or head[257:262] == b"ustar"
    return is_archive and MIN_STREAM_BYTES <= size <= MAX_FILE_BYTES


def spans(data: bytes, budget: InflateBudget) -> list[StreamSpan]:
    """Return the deflate streams of an archive in order, without overlaps, or no streams if it is not an archive."""
    if not may_hold_streams(data[:HEAD_BYTES], len(data)):
        return []
    return list(_streams(memoryview(data), 0, budget, MAX_LEVELS))


def _streams(data: memoryview, base: int, budget: InflateBudget, levels: int) -> Iterator[StreamSpan]:
    """Yield the streams of the archive at the start of the data. `base` is the offset of the data in the file."""
    if levels == 0:
        return
    if _has(data, 0, _LOCAL):
        yield from _zip(data, base, budget, levels)
    elif _has(data, 0, _GZIP):
        yield from _gzip(data, base, budget)
    elif _has(data, 257, b"ustar"):
        yield from _tar(data, base, budget, levels)


def _zip(data: memoryview, base: int, budget: InflateBudget, levels: int) -> Iterator[StreamSpan]:
    """Yield the streams of a zip file. They are found through its local headers (APPNOTE 4.3.7), without its central
    directory."""
    position = 0
    while position >= 0 and _has(data, position, _LOCAL) and position + 30 <= len(data):
        # If bit 3 is set, the size follows the content. Then only a deflate stream has an end that can be found.
        method, is_size_known = _number(data, position + 8, 2), not _number(data, position + 6, 2) & 8
        begin = position + 30 + _number(data, position + 26, 2) + _number(data, position + 28, 2)
        end = begin + _number(data, position + 18, 4) if is_size_known else -1
        inflated_data = budget.inflate(data[begin:]) if method == 8 else None
        if inflated_data is not None:
            content, length = inflated_data
            end = begin + length if is_size_known else _after_descriptor(data, begin + length)
            yield from _spans_if_large(base + begin, content, length)
        elif method == 0 and is_size_known:
            yield from _streams(data[begin:end], base + begin, budget, levels - 1)
        position = end


def _spans_if_large(start: int, content: bytes, length: int) -> Iterator[StreamSpan]:
    if len(content) >= MIN_STREAM_BYTES:
        yield StreamSpan(start, start + length, content)


def _after_descriptor(data: memoryview, position: int) -> int:
    following_bytes = bytes(data[position : position + _DESCRIPTOR + 4])
    mark_positions = [
        position_found
        for position_found in (following_bytes.find(mark) for mark in _HEADER_MARKS)
        if position_found >= 0
    ]
    return position + min(mark_positions) if mark_positions else len(data)


def _gzip(data: memoryview, base: int, budget: InflateBudget) -> Iterator[StreamSpan]:
    """Yield the streams of the members of a gzip file (RFC 1952 §2.2)."""
    position = 0
    while _has(data, position, _GZIP):
        begin = _after_gzip_header(data, position)
        inflated_data = budget.inflate(data[begin:])
        if inflated_data is None:
            return
        content, length = inflated_data
        yield from _spans_if_large(base + begin, content, length)
        position = begin + length + 8


def _after_gzip_header(data: memoryview, position: int) -> int:
    flags = data[position + 3] if position + 3 < len(data) else 0
    begin = position + 10
    if flags & 4:
        begin += 2 + _number(data, begin, 2)
    for flag in (8, 16):
        if flags & flag:
            end = bytes(data[begin : begin + 65536]).find(0)
            begin = len(data) if end < 0 else begin + end + 1
    return begin + 2 if flags & 2 else begin


def _tar(data: memoryview, base: int, budget: InflateBudget, levels: int) -> Iterator[StreamSpan]:
    """Yield the streams of the archives in a tar file (POSIX.1-1988 ustar)."""
    position = 0
    while position + 512 <= len(data) and _has(data, position + 257, b"ustar"):
        digits = bytes(data[position + 124 : position + 136]).strip(b"\0 ")
        if not digits.isdigit() or b"8" in digits or b"9" in digits:
            return
        size = int(digits, 8)
        begin = position + 512
        yield from _streams(data[begin : begin + size], base + begin, budget, levels - 1)
        position = begin + (size + 511) // 512 * 512


def _has(data: memoryview, position: int, mark: bytes) -> bool:
    return bytes(data[position : position + len(mark)]) == mark


def _number(data: memoryview, position: int, length: int) -> int:
    return int.from_bytes(data[position : position + length], "little")


MAX_RECIPE_NUMBER = 1 << 40
"""The maximum of each length and count in a recipe."""


class DecompressedFile(NamedTuple):
    """The decompressed content, and the recipe to compress it again. The recipe is empty if the file was left
    unchanged."""

    content: bytes
    recipe: bytes


def decompress(data: bytes, budget: InflateBudget, levels: int = MAX_LEVELS) -> DecompressedFile:
    """Decompress the streams of a file. With the zlib of this Python, `recompress` restores the same bytes."""
    stream_spans = spans(data, budget) if levels else []
    search = zlib_settings.SettingsSearch()
    recipes = [(span, search.find(data[span.start : span.end], span.content)) for span in stream_spans]
    kept_streams = [(span, stream_recipe) for span, stream_recipe in recipes if stream_recipe is not None]
    if not kept_streams:
        return DecompressedFile(data, b"")
    recipe = [encode_numbers([len(kept_streams), *_gap_lengths(data, [span for span, _ in kept_streams])])]
    pieces = [_bytes_between_streams(data, [span for span, _ in kept_streams])]
    for span, stream_recipe in kept_streams:
        inner = decompress(span.content, budget, levels - 1)
        recipe.append(
            encode_numbers([len(inner.content) * 2 + bool(inner.recipe)])
            + zlib_settings.encode(stream_recipe)
            + inner.recipe
        )
        pieces.append(inner.content)
    return DecompressedFile(b"".join(pieces), b"".join(recipe))


def recompress(content: bytes, recipe: bytes, limit: int) -> bytes:
    """Restore the original bytes of a file.

    Raises:
        Malformed: the recipe is invalid, does not match this content, or has streams that make the file longer than
            `limit`.
    """
    reader = VarintReader(recipe)
    data = _recompress(memoryview(content), reader, MAX_LEVELS, limit)
    if not reader.is_at_end:
        raise Malformed("the recipe has trailing bytes")
    return data


def reference(data: bytes, budget: InflateBudget, levels: int = MAX_LEVELS) -> Iterator[bytes]:
    """Yield the bytes with which new files are compared: the file, then the content of its compressed streams."""
    yield data
    stream_spans = spans(data, budget) if levels else []
    if stream_spans:
        yield _bytes_between_streams(data, stream_spans)
    for span in stream_spans:
        yield from reference(span.content, budget, levels - 1)


def _recompress(content: memoryview, reader: VarintReader, levels: int, limit: int) -> bytes:
    if levels == 0:
        raise Malformed("the recipe exceeds the maximum depth of nested archives")
    count = reader.number(MAX_RECIPE_NUMBER)
    gaps = reader.numbers(count + 1, MAX_RECIPE_NUMBER)
    position = sum(gaps)
    # The content begins with the skeleton: all bytes between the streams.
    skeleton = content[:position]
    pieces: list[bytes | memoryview] = []
    skeleton_position = 0
    size = position
    for gap in gaps[:-1]:
        pieces.append(skeleton[skeleton_position : skeleton_position + gap])
        skeleton_position += gap
        length, has_inner_recipe = divmod(reader.number(MAX_RECIPE_NUMBER), 2)
        stream_recipe = zlib_settings.decode(reader, MAX_RECIPE_NUMBER)
        stream_content = content[position : position + length]
        if len(stream_content) != length:
            raise Malformed("the recipe is for longer content")
        position += length
        inner = (
            _recompress(stream_content, reader, levels - 1, MAX_RECIPE_NUMBER)
            if has_inner_recipe
            else bytes(stream_content)
        )
        pieces.append(zlib_settings.restore(inner, stream_recipe))
        size += len(pieces[-1])
        if size > limit:
            raise Malformed("the recipe restores more bytes than the limit")
    if position != len(content):
        raise Malformed("the recipe does not use all of the content")
    return b"".join((*pieces, skeleton[skeleton_position:]))


def _gap_lengths(data: bytes, stream_spans: list[StreamSpan]) -> list[int]:
    gap_starts = [0, *(span.end for span in stream_spans)]
    gap_ends = [*(span.start for span in stream_spans), len(data)]
    return [gap_end - gap_start for gap_end, gap_start in zip(gap_ends, gap_starts, strict=True)]


def _bytes_between_streams(data: bytes, stream_spans: list[StreamSpan]) -> bytes:
    gap_starts = [0, *(span.end for span in stream_spans)]
    gap_ends = [*(span.start for span in stream_spans), len(data)]
    return b"".join(data[gap_start:gap_end] for gap_end, gap_start in zip(gap_ends, gap_starts, strict=True))
