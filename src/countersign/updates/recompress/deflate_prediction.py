"""Predicts the deflate streams of compressors that behave almost like zlib (GNU gzip, Node), and records
corrections."""

import zlib
from array import array
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from countersign.updates.recompress import deflate_tokens as deflate
from countersign.updates.recompress.deflate_tokens import DYNAMIC, Block, Tokens
from countersign.updates.varint import Malformed, VarintReader, encode_numbers

MIN_STREAM_BYTES = 512
MAX_CONTENT_BYTES = 64 << 20
MAX_TOKENS = 8 << 20
"""The maximum number of tokens of one stream. A token takes up to 12 bytes of memory."""
_HEAD_TOKENS = 8_192
_END_BYTES = 600
"""The number of bytes at the end of a part in which zlib decides differently than in the middle of the content."""
_MAX_RECODING_FRACTION = 4
"""An encoded recoding may have at most 1/4 of the size of its stream."""
_GOOD_TOKENS_PER_EDIT, _BAD_TOKENS_PER_EDIT = 100, 8
"""If a predictor needs at most one edit in 100 tokens, the search ends with it. If it needs more than one edit in 8
tokens, the predictor is rejected."""
_CODE_BITS = 4_700
"""An upper bound for the number of bits of a dynamic block's codes."""
_MIN_LENGTH, _MAX_DISTANCE, _MAX_LENGTH = 3, 32_768, 258


class Predictor(NamedTuple):
    """A method to predict a stream: the level of zlib, and whether matches of three bytes are omitted."""

    level: int
    is_four_byte: bool


PREDICTORS = tuple(Predictor(level, is_four) for level in (6, 9, 8, 7, 5, 4, 3, 2, 1) for is_four in (False, True))
"""Recipes contain an index into this list: append to it, but never change or reorder it."""


class Edit(NamedTuple):
    """A correction: after `gap` predicted tokens, the next `removed` tokens are replaced by `tokens`."""

    gap: int
    removed: int
    tokens: Sequence[int]


class Recoding(NamedTuple):
    """The data that restores a stream: the index in PREDICTORS, the edits of its prediction, and the blocks."""

    predictor: int
    edits: Sequence[Edit]
    blocks: Sequence[Block]


def restore(content: bytes, recoding: Recoding) -> bytes:
    """Restore the stream of the content.

    Raises:
        Malformed: the edits or the blocks do not match the content.
    """
    predicted_tokens = _predict(PREDICTORS[recoding.predictor], content)
    return deflate.write(content, _apply_edits(predicted_tokens, recoding.edits), recoding.blocks)


class RecodingSearch:
    """Finds recodings for the streams of one archive. It tries the predictor of the last stream first."""

    def __init__(self) -> None:
        self._last = 0
        self._left = MAX_CONTENT_BYTES

    def find(self, stream: bytes, content: bytes) -> Recoding | None:
        """Return the recoding of the stream, or None if it would be too large in relation to the stream."""
        if len(stream) < MIN_STREAM_BYTES or len(content) > self._left:
            return None
        self._left -= len(content)
        try:
            index = self._best(stream, content)
            return None if index is None else _make_recoding(index, stream, content)
        except Malformed:
            return None

    def _best(self, stream: bytes, content: bytes) -> int | None:
        """Return the predictor with the fewest edits at the start of the stream, or None if all have too many."""
        head = deflate.read(stream, _HEAD_TOKENS)[0][:_HEAD_TOKENS]
        length = sum(token >> 16 or 1 for token in head)
        sample = content if length >= len(content) else content[: length + _END_BYTES]
        best_predictor: tuple[int, int] | None = None
        for index in dict.fromkeys((self._last, *range(len(PREDICTORS)))):
            edits = len(_edits(_predict(PREDICTORS[index], sample), head))
            if best_predictor is None or edits < best_predictor[0]:
                best_predictor = edits, index
            if edits * _GOOD_TOKENS_PER_EDIT <= len(head):
                break
        if best_predictor is None or (best_predictor[0] - 1) * _BAD_TOKENS_PER_EDIT > len(head):
            return None
        self._last = best_predictor[1]
        return best_predictor[1]


def _make_recoding(index: int, stream: bytes, content: bytes) -> Recoding | None:
    stream_tokens, blocks = deflate.read(stream, MAX_TOKENS)
    predicted_tokens = _predict(PREDICTORS[index], content)
    found_recoding = Recoding(index, _edits(predicted_tokens, stream_tokens), blocks)
    if (
        len(encode(found_recoding)) * _MAX_RECODING_FRACTION > len(stream)
        or deflate.write(content, stream_tokens, blocks) != stream
    ):
        return None
    return found_recoding if _apply_edits(predicted_tokens, found_recoding.edits) == stream_tokens else None


def _predict(predictor: Predictor, content: bytes) -> Tokens:
    compressor = zlib.compressobj(predictor.level, zlib.DEFLATED, -zlib.MAX_WBITS, 8)
    predicted_tokens, _ = deflate.read(compressor.compress(content) + compressor.flush(), 2 * MAX_TOKENS)
    return _without_short(predicted_tokens, content) if predictor.is_four_byte else predicted_tokens


def _without_short(tokens: Tokens, content: bytes) -> Tokens:
    """Return the tokens with each match of three bytes replaced by three literals."""
    kept_tokens, position, is_after_short = array("I"), 0, False
    for token in tokens:
        length = token >> 16 or 1
        match_position = position - 1 - (token & 0xFFFF)
        if length == _MIN_LENGTH:
            kept_tokens.extend((0, 0, 0))
        elif (
            is_after_short
            and 1 < length < _MAX_LENGTH
            and match_position >= 0
            and content[position - 1] == content[match_position]
        ):
            kept_tokens[-1] = token + (1 << 16)
        else:
            kept_tokens.append(token)
        is_after_short = length == _MIN_LENGTH
        position += length
    return kept_tokens


def _edits(predicted_tokens: Tokens, stream_tokens: Tokens) -> list[Edit]:
    """Return the edits that turn the predicted tokens into the wanted ones.

    Each edit extends to the next token at which both are at the same byte. Predicted tokens after the last wanted token
    are not removed.
    """
    edits: list[Edit] = []
    predicted_index = stream_index = last_index = 0
    while stream_index < len(stream_tokens):
        if predicted_index < len(predicted_tokens) and predicted_tokens[predicted_index] == stream_tokens[stream_index]:
            predicted_index += 1
            stream_index += 1
            continue
        start, first_stream_index = predicted_index, stream_index
        predicted_index, stream_index = _next_common(predicted_tokens, stream_tokens, predicted_index, stream_index)
        edits.append(Edit(start - last_index, predicted_index - start, stream_tokens[first_stream_index:stream_index]))
        last_index = predicted_index
    return edits


def _next_common(
    predicted_tokens: Tokens, stream_tokens: Tokens, predicted_index: int, stream_index: int
) -> tuple[int, int]:
    """Return the next positions after `predicted_index` and `stream_index` at which both token lists are at the same
    byte again."""
    bytes_ahead = stream_tokens[stream_index] >> 16 or 1
    stream_index += 1
    while bytes_ahead:
        if bytes_ahead > 0 and predicted_index < len(predicted_tokens):
            bytes_ahead -= predicted_tokens[predicted_index] >> 16 or 1
            predicted_index += 1
        elif stream_index < len(stream_tokens):
            bytes_ahead += stream_tokens[stream_index] >> 16 or 1
            stream_index += 1
        else:
            break
    return predicted_index, stream_index


def _apply_edits(predicted_tokens: Tokens, edits: Sequence[Edit]) -> Tokens:
    tokens_out, position = array("I"), 0
    for edit in edits:
        tokens_out += predicted_tokens[position : position + edit.gap]
        tokens_out.extend(edit.tokens)
        position += edit.gap + edit.removed
    if position > len(predicted_tokens):
        raise Malformed("an edit is beyond the end of its stream")
    return tokens_out + predicted_tokens[position:]


def encode(recoding: Recoding) -> bytes:
    """Encode a recoding. Values of the same kind are stored together."""
    inserted_tokens = [token for edit in recoding.edits for token in edit.tokens]
    head = [recoding.predictor, len(recoding.edits), len(inserted_tokens), len(recoding.blocks)]
    edits = [(edit.gap, edit.removed, len(edit.tokens)) for edit in recoding.edits]
    numbers = [*head, *chain(*zip(*edits, strict=True)), *(token >> 16 for token in inserted_tokens)]
    numbers += [token & 0xFFFF for token in inserted_tokens if token]
    numbers += chain(*((block.kind, block.tokens, block.bits) for block in recoding.blocks))
    return encode_numbers(numbers) + b"".join(
        block.codes.to_bytes((block.bits + 7) // 8, "little") for block in recoding.blocks
    )


def decode(reader: VarintReader, limit: int) -> Recoding:
    """Decode a recoding. Lengths are at most `limit`.

    Raises:
        Malformed: the bytes are not a recoding.
    """
    predictor = reader.number(len(PREDICTORS) - 1)
    count, inserted_count, blocks = reader.numbers(3, limit)
    gaps, removed_counts = reader.numbers(count, limit), reader.numbers(count, limit)
    counts = reader.numbers(count, inserted_count)
    if sum(counts) != inserted_count:
        raise Malformed("the edits do not have the declared number of tokens")
    tokens = [
        length << 16 | (reader.number(_MAX_DISTANCE) if length else 0)
        for length in reader.numbers(inserted_count, _MAX_LENGTH)
    ]
    if any(token and (token >> 16 < _MIN_LENGTH or not token & 0xFFFF) for token in tokens):
        raise Malformed("a match is too short or has an invalid distance")
    edits: list[Edit] = []
    position = 0
    for gap, removed_count, token_count in zip(gaps, removed_counts, counts, strict=True):
        edits.append(Edit(gap, removed_count, tokens[position : position + token_count]))
        position += token_count
    return Recoding(predictor, edits, _blocks(reader, blocks, limit))


def _blocks(reader: VarintReader, count: int, limit: int) -> list[Block]:
    heads = [(reader.number(DYNAMIC), reader.number(limit), reader.number(_CODE_BITS)) for _ in range(count)]
    return [
        Block(kind, tokens, bits, int.from_bytes(reader.take((bits + 7) // 8), "little"))
        for kind, tokens, bits in heads
    ]
