"""Finds the zlib settings that produced a deflate stream, so that the stream can be restored from its content."""

import re
import zlib
from typing import NamedTuple

from countersign.updates.recompress import deflate_prediction
from countersign.updates.recompress.deflate_prediction import Recoding
from countersign.updates.varint import Malformed, VarintReader, encode_numbers

_PREFIX_BYTES = 256 << 10
"""The number of bytes of content that are compressed as a trial before settings that do not fit are given up."""
_LIKELY_SETTINGS = 3
_MAX_ATTEMPTS = 6
"""If no settings fit this number of streams of an archive, only likely settings are tried on its other streams."""
_MAX_CORRECTION_FRACTION = 16
"""The corrections of a stream may have at most 1/16 of its size."""
_RUNS = re.compile(rb"[^\0]+(?:\0{1,3}[^\0]+)*")


class DeflateSettings(NamedTuple):
    """The arguments of zlib's deflateInit2, except for the format, which is raw."""

    level: int
    memory: int
    strategy: int = zlib.Z_DEFAULT_STRATEGY
    window: int = 15


SETTINGS = (
    *(DeflateSettings(level, 8) for level in (6, 9, 1)),
    *(DeflateSettings(level, 9) for level in (6, 9, 1)),
    *(DeflateSettings(level, memory) for level in (5, 8, 7, 4, 3, 2) for memory in (8, 9)),
    *(DeflateSettings(6, 8, strategy) for strategy in (zlib.Z_FILTERED, zlib.Z_HUFFMAN_ONLY, zlib.Z_RLE, zlib.Z_FIXED)),
    *(DeflateSettings(level, 8, zlib.Z_DEFAULT_STRATEGY, window) for window in (14, 13, 12) for level in (6, 9)),
)
"""The settings to try, likely ones first. Recipes contain an index: append to this list, but never reorder it."""


RECODED = 1_000
"""The number in a recipe that announces a recoding."""


class StreamRecipe(NamedTuple):
    """The data that restores a stream: the index in SETTINGS, and corrections if their result differs.

    The corrections are the length of the stream, and the ranges of bytes that differ, each with its offset.
    """

    settings: int
    size: int = 0
    corrections: tuple[tuple[int, bytes], ...] = ()
    is_exact: bool = True


def restore(content: bytes, recipe: StreamRecipe | Recoding) -> bytes:
    """Restore the stream of the content.

    Raises:
        Malformed: a correction does not match the stream.
    """
    if isinstance(recipe, Recoding):
        return deflate_prediction.restore(content, recipe)
    compressed_data = _compress(SETTINGS[recipe.settings], content)
    if recipe.is_exact:
        return compressed_data
    restored_data = bytearray(compressed_data[: recipe.size])
    for position, stretch in recipe.corrections:
        if position > len(restored_data) or position + len(stretch) > recipe.size:
            raise Malformed("a correction is outside of its stream")
        restored_data[position : position + len(stretch)] = stretch
    if len(restored_data) != recipe.size:
        raise Malformed("a corrected stream is too short")
    return bytes(restored_data)


class SettingsSearch:
    """Finds recipes for the streams of one archive. It tries the settings of the last stream first."""

    def __init__(self) -> None:
        self._last = 0
        self._misses = 0
        self._recodings = deflate_prediction.RecodingSearch()
        self._recoding_misses = 0

    def find(self, stream: bytes, content: bytes) -> StreamRecipe | Recoding | None:
        """Return a recipe that restores the stream, or None if there is none."""
        limit = len(SETTINGS) if self._misses < _MAX_ATTEMPTS else _LIKELY_SETTINGS
        near_recipes: list[StreamRecipe] = []
        for index in dict.fromkeys((self._last, *range(limit))):
            compressed_data = _try(SETTINGS[index], stream, content)
            if compressed_data == stream:
                self._last, self._misses = index, 0
                return StreamRecipe(index)
            if (
                compressed_data is not None
                and (corrected_recipe := _correct(index, compressed_data, stream)) is not None
            ):
                near_recipes.append(corrected_recipe)
        self._misses += 1
        if (recoded_recipe := self._recoded(stream, content)) is not None:
            near_enough = [recipe for recipe in near_recipes if len(encode(recipe)) < len(encode(recoded_recipe))]
            return min(near_enough, key=lambda recipe: len(encode(recipe)), default=recoded_recipe)
        return min(near_recipes, key=lambda recipe: len(encode(recipe)), default=None)

    def _recoded(self, stream: bytes, content: bytes) -> Recoding | None:
        if self._recoding_misses >= _MAX_ATTEMPTS:
            return None
        found_recoding = self._recodings.find(stream, content)
        self._recoding_misses = self._recoding_misses + 1 if found_recoding is None else 0
        return found_recoding


def _compress(settings: DeflateSettings, content: bytes) -> bytes:
    level, memory, strategy, window = settings
    compressor = zlib.compressobj(level, zlib.DEFLATED, -window, memory, strategy)
    return compressor.compress(content) + compressor.flush()


def _try(settings: DeflateSettings, stream: bytes, content: bytes) -> bytes | None:
    """Compress the content with the settings. Return None if the result begins differently from the stream."""
    if len(content) <= _PREFIX_BYTES:
        return _compress(settings, content)
    level, memory, strategy, window = settings
    compressor = zlib.compressobj(level, zlib.DEFLATED, -window, memory, strategy)
    compressed_start = compressor.compress(content[:_PREFIX_BYTES])
    if not stream.startswith(compressed_start):
        return None
    return compressed_start + compressor.compress(content[_PREFIX_BYTES:]) + compressor.flush()


def _correct(index: int, compressed: bytes, stream: bytes) -> StreamRecipe | None:
    """Return a recipe with corrections, or None if they would be too long."""
    common_length = min(len(compressed), len(stream))
    unlike = (
        int.from_bytes(compressed[:common_length], "little") ^ int.from_bytes(stream[:common_length], "little")
    ).to_bytes(common_length, "little")
    if common_length - unlike.count(0) + len(stream) - common_length > len(stream) // _MAX_CORRECTION_FRACTION:
        return None
    corrections = [(run.start(), stream[run.start() : run.end()]) for run in _RUNS.finditer(unlike)]
    if len(stream) > common_length:
        corrections.append((common_length, stream[common_length:]))
    if sum(4 + len(stretch) for _, stretch in corrections) * _MAX_CORRECTION_FRACTION > len(stream):
        return None
    return StreamRecipe(index, len(stream), tuple(corrections), is_exact=False)


def common_prefix(data: bytes, other_data: bytes) -> int:
    """Return the length of the common prefix in bytes."""
    lower_bound, limit = 0, min(len(data), len(other_data))
    while lower_bound < limit:
        middle = (lower_bound + limit + 1) // 2
        if data[lower_bound:middle] == other_data[lower_bound:middle]:
            lower_bound = middle
        else:
            limit = middle - 1
    return lower_bound


def encode(recipe: StreamRecipe | Recoding) -> bytes:
    """Encode a recipe."""
    if isinstance(recipe, Recoding):
        return encode_numbers([RECODED]) + deflate_prediction.encode(recipe)
    if recipe.is_exact:
        return encode_numbers([recipe.settings * 2])
    head = encode_numbers([recipe.settings * 2 + 1, recipe.size, len(recipe.corrections)])
    return head + b"".join(
        encode_numbers([position, len(stretch)]) + stretch for position, stretch in recipe.corrections
    )


def decode(reader: VarintReader, limit: int) -> StreamRecipe | Recoding:
    """Decode a recipe. Lengths are at most `limit`.

    Raises:
        Malformed: the bytes are not a recipe.
    """
    kind = reader.number(RECODED)
    if kind == RECODED:
        return deflate_prediction.decode(reader, limit)
    if kind >= len(SETTINGS) * 2:
        raise Malformed("a recipe refers to unknown settings")
    if kind % 2 == 0:
        return StreamRecipe(kind // 2)
    size, count = reader.numbers(2, limit)
    corrections: list[tuple[int, bytes]] = []
    for _ in range(count):
        position, length = reader.numbers(2, limit)
        corrections.append((position, reader.take(length)))
    return StreamRecipe(kind // 2, size, tuple(corrections), is_exact=False)
