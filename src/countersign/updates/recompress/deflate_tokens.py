"""Deflate streams (RFC 1951) as tokens and blocks, and back."""

from array import array
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple, TypeAlias

from countersign.updates.varint import Malformed

Tokens: TypeAlias = "array[int]"

STORED, FIXED, DYNAMIC = 0, 1, 2
_LENGTH_EXTRA = (0,) * 8 + tuple(bits for bits in range(1, 6) for _ in range(4)) + (0,)
_LENGTH_BASE = (*accumulate((1 << bits for bits in _LENGTH_EXTRA[:27]), initial=3), 258)
_DISTANCE_EXTRA = (0, 0, *(bits for bits in range(14) for _ in range(2)))
_DISTANCE_BASE = tuple(accumulate((1 << bits for bits in _DISTANCE_EXTRA[:29]), initial=1))
_ORDER = (16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15)
_REPEATS = {16: (2, 3), 17: (3, 3), 18: (7, 11)}
_FIXED_LITERALS = (8,) * 144 + (9,) * 112 + (7,) * 24 + (8,) * 8
_FIXED_DISTANCES = (5,) * 30
_NO_SYMBOL = 1_000
_MAX_CODE_LENGTH = 15
_REFILL_BITS = 64
_MIN_BLOCK_BYTES, _SPARE_BLOCKS = 512, 64
"""A stream is refused if its blocks are shorter than this on average, not counting the spare blocks, since tables must
be built for each block."""
_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


class Block(NamedTuple):
    """A block: its type (RFC 1951 3.2.3), its number of tokens, and for a dynamic block its encoded codes.

    The codes have `bits` bits; the first bit is the lowest.
    """

    kind: int
    tokens: int
    bits: int = 0
    codes: int = 0


class Codes(NamedTuple):
    """The lengths of a block's codes for literals and lengths, and for distances."""

    literals: Sequence[int]
    distances: Sequence[int]


class _Bits:
    """The bits of a stream, the lowest first. Bits after the end of the stream are zero."""

    def __init__(self, data: bytes) -> None:
        self.data = data + bytes(4 * _REFILL_BITS // 8)
        self.at = self.held = self.value = 0

    @property
    def position(self) -> int:
        """The number of bits that were read."""
        return self.at * 8 - self.held

    def between(self, start: int, stop: int) -> int:
        """Return the bits between two positions as a number."""
        bits_value = int.from_bytes(self.data[start // 8 : (stop + 7) // 8], "little")
        return bits_value >> start % 8 & (1 << stop - start) - 1

    def take(self, count: int) -> int:
        """Return the next `count` bits as a number.

        Raises:
            Malformed: the stream has no more bits.
        """
        while self.held < count:
            if self.at >= len(self.data):
                raise Malformed("a deflate stream has no end")
            self.value |= int.from_bytes(self.data[self.at : self.at + 8], "little") << self.held
            self.at += 8
            self.held += _REFILL_BITS
        bits_value = self.value & (1 << count) - 1
        self.value >>= count
        self.held -= count
        return bits_value

    def symbol(self, table: "_Table") -> int:
        """Read the next symbol of a code."""
        while self.held < 16:
            self.value |= int.from_bytes(self.data[self.at : self.at + 8], "little") << self.held
            self.at += 8
            self.held += _REFILL_BITS
        table_entry = table[self.value & len(table) - 1]
        self.take(table_entry & 15)
        return table_entry >> 4


_Table: TypeAlias = list[int]
"""Maps the next bits of a stream to `symbol << 4 | length of its code`. The length of the table is a power of two."""


def _canonical_codes(lengths: Sequence[int]) -> list[int]:
    """Return the canonical codes for the lengths, with the first bit lowest (RFC 1951 3.2.2)."""
    count = [0] * 17
    for length in lengths:
        count[length] += 1
    count[0] = code = 0
    next_codes = [0] * 17
    for length in range(1, 16):
        code = code + count[length - 1] << 1
        next_codes[length] = code
    codes: list[int] = []
    for length in lengths:
        code = next_codes[length]
        next_codes[length] += 1
        codes.append((_REVERSED[code & 255] << 8 | _REVERSED[code >> 8 & 255]) >> 16 - length if length else 0)
    return codes


@lru_cache(4)
def _table(lengths: tuple[int, ...]) -> _Table:
    size = 1 << max(1, *lengths)
    if sum(1 << _MAX_CODE_LENGTH - length for length in lengths if length) > 1 << _MAX_CODE_LENGTH:
        raise Malformed("the code lengths allow fewer code words than the code has")
    # Bits that do not form a code map to a symbol that is beyond the end of every list.
    table = [_NO_SYMBOL << 4 | 1] * size
    for symbol, (length, code) in enumerate(zip(lengths, _canonical_codes(lengths), strict=True)):
        if length:
            table[code :: 1 << length] = [symbol << 4 | length] * (size >> length)
    return table


def _codes(bits: _Bits) -> Codes:
    """Read the codes of a dynamic block (RFC 1951 3.2.7)."""
    literals, distances, count = bits.take(5) + 257, bits.take(5) + 1, bits.take(4) + 4
    lengths = [0] * 19
    for index in _ORDER[:count]:
        lengths[index] = bits.take(3)
    table = _table(tuple(lengths))
    lengths_found: list[int] = []
    while len(lengths_found) < literals + distances:
        symbol = bits.symbol(table)
        if symbol < 16:
            lengths_found.append(symbol)
            continue
        width, min_repeats = _REPEATS.get(symbol, (0, 0))
        if not min_repeats or (symbol == 16 and not lengths_found):
            raise Malformed("the codes of a block are damaged")
        lengths_found += [lengths_found[-1] if symbol == 16 else 0] * (min_repeats + bits.take(width))
    if len(lengths_found) != literals + distances:
        raise Malformed("the codes of a block are damaged")
    return Codes(lengths_found[:literals], lengths_found[literals:])


def read(stream: bytes, limit: int) -> tuple[Tokens, list[Block]]:
    """Return the tokens and blocks of a stream. A stream of more than `limit` tokens is read up to a token between
    `limit` and `limit` + 64 Ki.

    Raises:
        Malformed: the bytes are not a deflate stream, or the stream has too many blocks.
    """
    bits, tokens = _Bits(stream), array("I")
    blocks: list[Block] = []
    is_last = 0
    try:
        while not is_last and len(tokens) < limit:
            is_last = bits.take(1)
            blocks.append(_read_block(bits, tokens, limit))
            _require_few(len(blocks), len(stream))
    except IndexError as error:
        raise Malformed("a deflate stream is damaged") from error
    return tokens, blocks


def _require_few(blocks: int, size: int) -> None:
    if blocks > _SPARE_BLOCKS + size // _MIN_BLOCK_BYTES:
        raise Malformed("a stream has too many blocks")


def _read_block(bits: _Bits, tokens: Tokens, limit: int) -> Block:
    kind, tokens_before = bits.take(2), len(tokens)
    if kind == STORED:
        bits.take(bits.held % 8)
        length = bits.take(16)
        bits.take(16)
        bits.at, bits.held, bits.value = bits.position // 8 + length, 0, 0
        tokens.extend(array("I", bytes(4 * length)))
        return Block(kind, length)
    start = bits.position
    codes = Codes(_FIXED_LITERALS, _FIXED_DISTANCES) if kind == FIXED else _codes(bits)
    stop = bits.position
    _read_tokens(bits, _table(tuple(codes.literals)), _table(tuple(codes.distances)), tokens, limit)
    return Block(kind, len(tokens) - tokens_before, stop - start, bits.between(start, stop))


def _read_tokens(bits: _Bits, literals: _Table, distances: _Table, tokens: Tokens, limit: int) -> None:
    """Read tokens up to the end of the block or `limit`. This is the hot loop: it calls no function per token."""
    data, byte_position, held_bits, value = bits.data, bits.at, bits.held, bits.value
    literal_mask, distance_mask, add = len(literals) - 1, len(distances) - 1, tokens.append
    while True:
        if held_bits < 48:
            if byte_position >= len(data):
                raise Malformed("a deflate stream has no end")
            if len(tokens) >= limit:
                break
            value |= int.from_bytes(data[byte_position : byte_position + 8], "little") << held_bits
            byte_position += 8
            held_bits += _REFILL_BITS
        table_entry = literals[value & literal_mask]
        value >>= table_entry & 15
        held_bits -= table_entry & 15
        symbol = table_entry >> 4
        if symbol < 256:
            add(0)
            continue
        if symbol == 256:
            break
        extra = _LENGTH_EXTRA[symbol - 257]
        length = _LENGTH_BASE[symbol - 257] + (value & (1 << extra) - 1)
        value >>= extra
        held_bits -= extra
        table_entry = distances[value & distance_mask]
        value >>= table_entry & 15
        extra = _DISTANCE_EXTRA[table_entry >> 4]
        value_after = value >> extra
        add(length << 16 | _DISTANCE_BASE[table_entry >> 4] + (value & (1 << extra) - 1))
        held_bits -= (table_entry & 15) + extra
        value = value_after
    bits.at, bits.held, bits.value = byte_position, held_bits, value


_LENGTH_SYMBOLS = bytes(index for index, bits in enumerate(_LENGTH_EXTRA[:-1]) for _ in range(1 << bits))[:255] + bytes(
    [28]
)
"""Maps `length - 3` to `symbol - 257`."""
_NEAR = bytes(next(n for n in range(29, -1, -1) if _DISTANCE_BASE[n] <= distance) for distance in range(1, 257))
_FAR = bytes(next(n for n in range(29, -1, -1) if _DISTANCE_BASE[n] <= far * 128 + 1) for far in range(256))


class _Writer:
    """Collects bits and writes them as bytes."""

    def __init__(self) -> None:
        self.out = bytearray()
        self.value = self.held = 0

    def put(self, value: int, count: int) -> None:
        """Add bits."""
        self.value |= value << self.held
        self.held += count
        self.out += (self.value & (1 << self.held // 8 * 8) - 1).to_bytes(self.held // 8, "little")
        self.value >>= self.held // 8 * 8
        self.held %= 8


def write(content: bytes | memoryview, tokens: Tokens, blocks: Sequence[Block]) -> bytes:
    """Encode tokens and blocks as a deflate stream.

    Raises:
        Malformed: the tokens do not match the content, a symbol has no code, or there are too many blocks.
    """
    _require_few(len(blocks), len(content))
    writer, index, position = _Writer(), 0, 0
    try:
        for number, block in enumerate(blocks):
            writer.put(number == len(blocks) - 1, 1)
            writer.put(block.kind, 2)
            block_tokens = tokens[index : index + block.tokens]
            index += block.tokens
            if block.kind > DYNAMIC:
                raise Malformed("a block has an unknown type")
            if block.kind == STORED:
                position = _write_stored(writer, content, position, len(block_tokens))
                continue
            codes = Codes(_FIXED_LITERALS, _FIXED_DISTANCES)
            if block.kind == DYNAMIC:
                writer.put(block.codes, block.bits)
                codes = _codes(_Bits(block.codes.to_bytes((block.bits + 7) // 8, "little")))
            position = _write_tokens(writer, content, position, block_tokens, codes)
    except (LookupError, OverflowError) as error:
        raise Malformed("tokens do not fit their block or their content") from error
    if (index, position) != (len(tokens), len(content)):
        raise Malformed("blocks do not cover the content")
    writer.put(0, -writer.held % 8)
    return bytes(writer.out)


def _write_stored(writer: _Writer, content: bytes | memoryview, position: int, length: int) -> int:
    writer.put(0, -writer.held % 8)
    writer.out += length.to_bytes(2, "little") + (length ^ 0xFFFF).to_bytes(2, "little")
    writer.out += content[position : position + length]
    return position + length


def _by_symbol(lengths: Sequence[int]) -> dict[int, int]:
    """Map each symbol that has a code to its code."""
    return {symbol: code for symbol, code in enumerate(_canonical_codes(lengths)) if lengths[symbol]}


def _write_tokens(writer: _Writer, content: bytes | memoryview, position: int, tokens: Tokens, codes: Codes) -> int:
    """Write the tokens of the block at offset `position` of the content; return the offset of the next block."""
    literals, distances = _by_symbol(codes.literals), _by_symbol(codes.distances)
    widths, far_widths = codes.literals, codes.distances
    value, held_bits, output = writer.value, writer.held, writer.out
    for token in tokens:
        if not token:
            symbol = content[position]
            value |= literals[symbol] << held_bits
            held_bits += widths[symbol]
            position += 1
        else:
            length, distance = token >> 16, token & 0xFFFF
            position += length
            index = _LENGTH_SYMBOLS[length - 3]
            value |= (literals[index + 257] | length - _LENGTH_BASE[index] << widths[index + 257]) << held_bits
            held_bits += widths[index + 257] + _LENGTH_EXTRA[index]
            index = _NEAR[distance - 1] if distance <= 256 else _FAR[distance - 1 >> 7]
            value |= (distances[index] | distance - _DISTANCE_BASE[index] << far_widths[index]) << held_bits
            held_bits += far_widths[index] + _DISTANCE_EXTRA[index]
        if held_bits >= 256:
            output += (value & _FULL).to_bytes(32, "little")
            value >>= 256
            held_bits -= 256
    writer.value, writer.held = value, held_bits
    writer.put(literals[256], widths[256])
    return position


_FULL = (1 << 256) - 1
