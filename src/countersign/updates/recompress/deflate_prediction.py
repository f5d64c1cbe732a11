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
    predicted = _predict(PREDICTORS[recoding.predictor], content)
    return deflate.write(content, _apply_edits(predicted, recoding.edits), recoding.blocks)


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
        part = content if length >= len(content) else content[: length + _END_BYTES]
        best: tuple[int, int] | None = None
        for index in dict.fromkeys((self._last, *range(len(PREDICTORS)))):
            edits = len(_edits(_predict(PREDICTORS[index], part), head))
            if best is None or edits < best[0]:
                best = edits, index
            if edits * _GOOD_TOKENS_PER_EDIT <= len(head):
                break
        if best is None or (best[0] - 1) * _BAD_TOKENS_PER_EDIT > len(head):
            return None
        self._last = best[1]
        return best[1]


def _make_recoding(index: int, stream: bytes, content: bytes) -> Recoding | None:
    wanted, blocks = deflate.read(stream, MAX_TOKENS)
    predicted = _predict(PREDICTORS[index], content)
    found = Recoding(index, _edits(predicted, wanted), blocks)
    if len(encode(found)) * _MAX_RECODING_FRACTION > len(stream) or deflate.write(content, wanted, blocks) != stream:
        return None
    return found if _apply_edits(predicted, found.edits) == wanted else None


def _predict(predictor: Predictor, content: bytes) -> Tokens:
    compressor = zlib.compressobj(predictor.level, zlib.DEFLATED, -zlib.MAX_WBITS, 8)
    found, _ = deflate.read(compressor.compress(content) + compressor.flush(), 2 * MAX_TOKENS)
    return _without_short(found, content) if predictor.is_four_byte else found


def _without_short(tokens: Tokens, content: bytes) -> Tokens:
    """Return the tokens with each match of three bytes replaced by three literals."""
    out, at, is_after_short = array("I"), 0, False
    for token in tokens:
        length = token >> 16 or 1
        before = at - 1 - (token & 0xFFFF)
        if length == _MIN_LENGTH:
            out.extend((0, 0, 0))
        elif is_after_short and 1 < length < _MAX_LENGTH and before >= 0 and content[at - 1] == content[before]:
            out[-1] = token + (1 << 16)
        else:
            out.append(token)
        is_after_short = length == _MIN_LENGTH
        at += length
    return out


def _edits(predicted: Tokens, wanted: Tokens) -> list[Edit]:
    """Return the edits that turn the predicted tokens into the wanted ones.

    Each edit extends to the next token at which both are at the same byte. Predicted tokens after the last wanted token
    are not removed.
    """
    found: list[Edit] = []
    here = there = last = 0
    while there < len(wanted):
        if here < len(predicted) and predicted[here] == wanted[there]:
            here += 1
            there += 1
            continue
        start, since = here, there
        here, there = _next_common(predicted, wanted, here, there)
        found.append(Edit(start - last, here - start, wanted[since:there]))
        last = here
    return found


def _next_common(predicted: Tokens, wanted: Tokens, here: int, there: int) -> tuple[int, int]:
    """Return the next positions after `here` and `there` at which both token lists are at the same byte again."""
    ahead = wanted[there] >> 16 or 1
    there += 1
    while ahead:
        if ahead > 0 and here < len(predicted):
            ahead -= predicted[here] >> 16 or 1
            here += 1
        elif there < len(wanted):
            ahead += wanted[there] >> 16 or 1
            there += 1
        else:
            break
    return here, there


def _apply_edits(predicted: Tokens, edits: Sequence[Edit]) -> Tokens:
    out, at = array("I"), 0
    for edit in edits:
        out += predicted[at : at + edit.gap]
        out.extend(edit.tokens)
        at += edit.gap + edit.removed
    if at > len(predicted):
        raise Malformed("an edit is beyond the end of its stream")
    return out + predicted[at:]


def encode(recoding: Recoding) -> bytes:
    """Encode a recoding. Values of the same kind are stored together."""
    inserted = [token for edit in recoding.edits for token in edit.tokens]
    head = [recoding.predictor, len(recoding.edits), len(inserted), len(recoding.blocks)]
    edits = [(edit.gap, edit.removed, len(edit.tokens)) for edit in recoding.edits]
    numbers = [*head, *chain(*zip(*edits, strict=True)), *(token >> 16 for token in inserted)]
    numbers += [token & 0xFFFF for token in inserted if token]
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
    count, inserted, blocks = reader.numbers(3, limit)
    gaps, removed = reader.numbers(count, limit), reader.numbers(count, limit)
    counts = reader.numbers(count, inserted)
    if sum(counts) != inserted:
        raise Malformed("the edits do not have the declared number of tokens")
    tokens = [
        length << 16 | (reader.number(_MAX_DISTANCE) if length else 0)
        for length in reader.numbers(inserted, _MAX_LENGTH)
    ]
    if any(token and (token >> 16 < _MIN_LENGTH or not token & 0xFFFF) for token in tokens):
        raise Malformed("a match is too short or has an invalid distance")
    edits: list[Edit] = []
    at = 0
    for gap, gone, more in zip(gaps, removed, counts, strict=True):
        edits.append(Edit(gap, gone, tokens[at : at + more]))
        at += more
    return Recoding(predictor, edits, _blocks(reader, blocks, limit))


def _blocks(reader: VarintReader, count: int, limit: int) -> list[Block]:
    heads = [(reader.number(DYNAMIC), reader.number(limit), reader.number(_CODE_BITS)) for _ in range(count)]
    return [
        Block(kind, tokens, bits, int.from_bytes(reader.take((bits + 7) // 8), "little"))
        for kind, tokens, bits in heads
    ]
