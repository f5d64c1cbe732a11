"""Harmless archives with random changes of bits, fields, records and parts; each number always makes the same
change."""

import gzip
import lzma
import random
import re
import struct
from collections.abc import Callable

from backports import zstd

from tests.archives import good
from tests.archives.peers import MAGICS, is_zip
from tests.archives.tars import BLOCK, FIELDS

SIGNATURES = re.compile(rb"PK(?:\x01\x02|\x03\x04|\x05\x06|\x06\x06|\x06\x07|\x07\x08)")
LENGTHS = {
    b"PK\x01\x02": 46,
    b"PK\x03\x04": 30,
    b"PK\x05\x06": 22,
    b"PK\x06\x06": 56,
    b"PK\x06\x07": 20,
    b"PK\x07\x08": 16,
}
NUMBERS = (0, 1, 2, 7, 8, 0x14, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0xFFFF, 0x10000, 0x7FFFFFFF, 0xFFFFFFFE, 0xFFFFFFFF)
WORDS = (b"../", b"/", b"\\", b"\x00", b"a", b"A", b".", b" ", b"CON", b":", b"\xff", b"PK\x05\x06", b"\n", b"0", b"7")
PACKINGS: tuple[Callable[[bytes], bytes], ...] = (
    lambda data: gzip.compress(data, 1, mtime=0),
    lambda data: lzma.compress(data, preset=0),
    zstd.compress,
)


def seeds() -> list[bytes]:
    """Return the harmless archives to change, except those that take long to change."""
    archives = [make() for table in (good.ZIPS, good.TARS, good.COMPATIBLE) for make, _ in table.values()]
    return [data for data in archives if len(data) < 1 << 15]


SEEDS = seeds()


def mutant(number: int) -> bytes:
    """Return the changed archive of this number, always the same."""
    rng = random.Random(number)
    data = rng.choice(SEEDS)
    for magic, unpacked in MAGICS.items():
        if data.startswith(magic) and rng.random() < 0.7:
            return rng.choice(PACKINGS)(_mutate(unpacked(data), rng))
    return _mutate(data, rng)


def _mutate(data: bytes, rng: random.Random) -> bytes:
    own_mutations = _ZIP if is_zip(data) else _TAR
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 5))):
        change = rng.choice(own_mutations if rng.random() < 0.7 else _ANY)
        data = change(data, rng)
    return data


def _place(data: bytes, rng: random.Random) -> int:
    return rng.randrange(len(data)) if data else 0


def _flip(data: bytes, rng: random.Random) -> bytes:
    position = _place(data, rng)
    return data[:position] + bytes([data[position] ^ 1 << rng.randrange(8)]) + data[position + 1 :] if data else data


def _overwrite(data: bytes, rng: random.Random) -> bytes:
    position, inserted = _place(data, rng), rng.choice(WORDS)
    return data[:position] + inserted + data[position + len(inserted) :]


def _insert(data: bytes, rng: random.Random) -> bytes:
    position = _place(data, rng)
    return data[:position] + rng.choice(WORDS) + data[position:]


def _cut(data: bytes, rng: random.Random) -> bytes:
    return data[: _place(data, rng)]


def _remove(data: bytes, rng: random.Random) -> bytes:
    position = _place(data, rng)
    return data[:position] + data[position + rng.randrange(1, 64) :]


def _repeat(data: bytes, rng: random.Random) -> bytes:
    start, length, position = _place(data, rng), rng.choice((4, 22, 46, BLOCK, 2 * BLOCK)), _place(data, rng)
    return data[:position] + data[start : start + length] + data[position:]


def _splice(data: bytes, rng: random.Random) -> bytes:
    other_seed = rng.choice(SEEDS)
    return data[: _place(data, rng)] + other_seed[_place(other_seed, rng) :]


def _append(data: bytes, rng: random.Random) -> bytes:
    return data + rng.choice(SEEDS)


def _records(data: bytes) -> list[int]:
    return [matched.start() for matched in SIGNATURES.finditer(data)]


def _zip_field(data: bytes, rng: random.Random) -> bytes:
    """Replace the number in a field of a record."""
    record_starts = _records(data)
    if not record_starts:
        return data
    record_start = rng.choice(record_starts)
    field = record_start + 4 + 2 * rng.randrange((LENGTHS[data[record_start : record_start + 4]] - 4) // 2)
    return _put(data, field, rng)


def _put(data: bytes, field: int, rng: random.Random) -> bytes:
    width = rng.choice((2, 2, 4))
    if field + width > len(data):
        return data
    now = int.from_bytes(data[field : field + width], "little")
    number = rng.choice((*NUMBERS, now + 1, now - 1, now * 2, now ^ 8, now ^ 0x800)) & (1 << 8 * width) - 1
    return data[:field] + number.to_bytes(width, "little") + data[field + width :]


def _zip_both(data: bytes, rng: random.Random) -> bytes:
    """Replace the number in a field of both headers of an entry by the same other number."""
    directory = data.find(b"PK\x01\x02")
    if directory < 0 or len(data) < directory + 46:
        return data
    front = struct.unpack_from("<I", data, directory + 42)[0]
    if front + 30 > len(data):
        return data
    field, width = rng.choice(((0, 2), (2, 2), (4, 2), (6, 2), (8, 2), (10, 4), (14, 4), (18, 4)))
    number = (rng.choice((*NUMBERS, rng.getrandbits(32))) & (1 << 8 * width) - 1).to_bytes(width, "little")
    patched = bytearray(data)
    patched[front + 4 + field : front + 4 + field + width] = number
    patched[directory + 6 + field : directory + 6 + field + width] = number
    return bytes(patched)


def _zip_name(data: bytes, rng: random.Random) -> bytes:
    """Replace a byte of a name in every place that has the name."""
    name_changed, other_word = rng.choice((b"a.txt", b"d/x", b"inner.zip")), rng.choice(WORDS)
    position = rng.randrange(len(name_changed))
    changed_word = name_changed[:position] + other_word[:1] + name_changed[position + 1 :]
    return data.replace(name_changed, changed_word)


def _zip_record(data: bytes, rng: random.Random) -> bytes:
    """Repeat or remove a record."""
    record_starts = _records(data)
    if len(record_starts) < 2:
        return data
    at = rng.randrange(len(record_starts) - 1)
    record = data[record_starts[at] : record_starts[at + 1]]
    if rng.random() < 0.5:
        return data[: record_starts[at]] + data[record_starts[at + 1] :]
    position = rng.choice(record_starts)
    return data[:position] + record + data[position:]


def _headers(data: bytes) -> list[int]:
    return [
        block_start
        for block_start in range(0, len(data) - BLOCK + 1, BLOCK)
        if data[block_start + 257 : block_start + 262] == b"ustar"
    ]


def _tar_field(data: bytes, rng: random.Random) -> bytes:
    """Replace a field of a header, mostly with a corrected checksum."""
    header_starts = _headers(data)
    if not header_starts:
        return data
    header_start = rng.choice(header_starts)
    start, length = FIELDS[rng.choice(list(FIELDS))]
    block = bytearray(data[header_start : header_start + BLOCK])
    change = rng.randrange(4)
    if change == 0:
        block[start + rng.randrange(length)] = rng.randrange(256)
    elif change == 1:
        block[start : start + length] = (b"%0*o" % (length, rng.choice(NUMBERS)))[-length:]
    elif change == 2:
        block[start] = rng.choice((0x80, 0xFF, 0x20, 0x2D, 0x00, 0x2F))
    else:
        replacement = rng.choice((*WORDS, b"x", b"g", b"L", b"K", b"S", b"5", b"2", b"1"))[:length]
        block[start : start + len(replacement)] = replacement
    if rng.random() < 0.9:
        block[148:156] = b" " * 8
        block[148:156] = b"%06o\x00 " % sum(block)
    return data[:header_start] + bytes(block) + data[header_start + BLOCK :]


def _tar_blocks(data: bytes, rng: random.Random) -> bytes:
    """Repeat, move or remove blocks."""
    blocks = [data[block_start : block_start + BLOCK] for block_start in range(0, len(data), BLOCK)]
    if not blocks:
        return data
    at, target = rng.randrange(len(blocks)), rng.randrange(len(blocks))
    change = rng.randrange(4)
    if change == 0:
        blocks.insert(target, blocks[at])
    elif change == 1:
        del blocks[at]
    elif change == 2:
        blocks[at], blocks[target] = blocks[target], blocks[at]
    else:
        blocks[target:target] = blocks[at : at + 3]
    return b"".join(blocks)


def _tar_record(data: bytes, rng: random.Random) -> bytes:
    """Replace the value of a PAX record by another of the same length."""
    records = list(re.finditer(rb"[0-9]+ [a-zA-Z.]+=[^\n]*\n", data))
    if not records:
        return _tar_blocks(data, rng)
    record = rng.choice(records)
    position = rng.randrange(record.start(), record.end())
    replacement = rng.choice((b"=", b"\n", b" ", b"0", b"9", b"/", b"s", b"-", b"."))
    return data[:position] + replacement + data[position + 1 :]


def _tar_join(data: bytes, rng: random.Random) -> bytes:
    """Put entries of another archive before these."""
    other_seed = rng.choice(SEEDS)
    if is_zip(other_seed) or any(other_seed.startswith(magic) for magic in MAGICS):
        return data
    return other_seed.rstrip(b"\x00").ljust(-(-len(other_seed.rstrip(b"\x00")) // BLOCK) * BLOCK, b"\x00") + data


_ANY = (_flip, _flip, _overwrite, _insert, _cut, _remove, _repeat, _splice, _append)
_ZIP = (_zip_field, _zip_field, _zip_both, _zip_both, _zip_name, _zip_record)
_TAR = (_tar_field, _tar_field, _tar_field, _tar_blocks, _tar_record, _tar_join)
