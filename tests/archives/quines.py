"""Archives that contain themselves (after Russ Cox, Zip files all the way down, 2010). A deflate stream of two
operations (print the following bytes, repeat printed bytes) prints itself and the bytes around it."""

import struct
import zlib
from collections.abc import Callable

from tests.archives import zips
from tests.archives.zips import DEFLATED, FILE_MODE, HeaderFields

UNIT = 10
"""Bytes of each operation."""

# Length code, extra bits and first length of fixed Huffman matches (RFC 1951 3.2.5).
LENGTHS = [(257 + n, 0, 3 + n) for n in range(8)] + [
    (265 + n, 1 + n // 4, 3 + (4 + n % 4 << 1 + n // 4)) for n in range(20)
]
DISTANCES = [(n, 0, 1 + n) for n in range(4)] + [(4 + n, 1 + n // 2, 1 + (2 + n % 2 << 1 + n // 2)) for n in range(26)]
EMPTY_STORED = b"\x00\x00\x00\xff\xff"


def printing(count: int) -> bytes:
    """Return the operation that prints the next bytes: an empty stored block, then the header of a block with them."""
    return EMPTY_STORED + struct.pack("<BHH", 0, count, count ^ 0xFFFF)


def repeating(count: int) -> bytes:
    """Return the operation that prints the last bytes again: one match or two, then empty blocks up to the fixed length
    of an operation."""
    distance = _code(DISTANCES, count, is_length=False)
    for first_length in range(count, 2, -1):
        parts = [length for length in (first_length, count - first_length) if length]
        if min(parts) < LENGTHS[0][2]:
            continue
        bits = "010" + "".join(_code(LENGTHS, length, is_length=True) + distance for length in parts) + "0" * 7
        while len(bits) + 3 <= 8 * (UNIT - 5):
            bits += "010" + "0" * 7
        if len(bits) + 3 <= 8 * (UNIT - 4):
            break
    bits = (bits + "000").ljust(8 * (UNIT - 4), "0")
    assert len(bits) == 8 * (UNIT - 4), f"no operation of this length repeats {count} bytes"
    return (
        bytes(int(bits[bit_index : bit_index + 8][::-1], 2) for bit_index in range(0, len(bits), 8))
        + b"\x00\x00\xff\xff"
    )


def _code(table: list[tuple[int, int, int]], count: int, *, is_length: bool) -> str:
    code, extra, base_length = next(row for row in reversed(table) if row[2] <= count)
    huffman = (format(code - 256, "07b") if code < 280 else format(code - 280 + 192, "08b")) if is_length else ""
    extra_bits = format(count - base_length, f"0{extra}b")[::-1] if extra else ""
    return (huffman or format(code, "05b")) + extra_bits


def program(head: bytes, behind: bytes) -> bytes:
    """Return all bytes: the bytes before the stream, the stream, and the bytes after its last operation."""
    front, tail_size = len(head) + UNIT, len(behind) + UNIT
    four = repeating(4 * UNIT), printing(4 * UNIT)
    start = printing(front), head, printing(front), repeating(front), printing(UNIT), repeating(front)
    ones = printing(UNIT), printing(UNIT), four[1], repeating(front), printing(UNIT), printing(UNIT), four[1]
    end = (four[0], printing(0), printing(0), printing(tail_size))
    last_operation = repeating(tail_size), behind
    return b"".join((head, *start, *ones, *four * 4, *end, *end, *last_operation, *last_operation))


def with_own_checksum(make: Callable[[int], bytes]) -> bytes:
    """Return the bytes that contain their own checksum, found by solving for its bits, on which it depends linearly."""
    zero_checksum = zlib.crc32(make(0))
    rows = [(zlib.crc32(make(1 << bit)) ^ zero_checksum ^ 1 << bit, 1 << bit) for bit in range(32)]
    open_bits, checksum = zero_checksum, 0
    for bit in range(32):
        pivot = next((row for row in rows if row[0] >> bit & 1), None)
        if pivot is None:
            continue
        rows = [(row[0] ^ pivot[0], row[1] ^ pivot[1]) if row[0] >> bit & 1 else row for row in rows if row != pivot]
        if open_bits >> bit & 1:
            open_bits, checksum = open_bits ^ pivot[0], checksum ^ pivot[1]
    quine = make(checksum)
    assert zlib.crc32(quine) == checksum
    return quine


def zip_quine(name: bytes = b"again.zip") -> bytes:
    """Return a zip archive that contains only itself."""
    final = b"\x03\x00"
    size = len(program(bytes(30 + len(name)), final + bytes(46 + len(name) + 22)))
    packed_size = size - 30 - len(name) - 46 - len(name) - 22

    def make(crc: int) -> bytes:
        fields = HeaderFields(method=DEFLATED, crc=crc, packed=packed_size, size=size, external=FILE_MODE << 16)
        directory = zips.central_header(fields, name)
        end = zips.EndRecord().written(1, len(directory), size - len(directory) - 22)
        return program(zips.local_header(fields, name), final + directory + end)

    return with_own_checksum(make)


def gzip_quine() -> bytes:
    """Return a gzip file that unpacks to itself."""
    gzip_header = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03"
    size = len(program(gzip_header, bytes(10)))
    return with_own_checksum(lambda crc: program(gzip_header, b"\x03\x00" + struct.pack("<II", crc, size)))
