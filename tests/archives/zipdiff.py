"""The 14 classes of archives that zip parsers read differently, rebuilt from the description of ZipDiff (My ZIP isn't
your ZIP, USENIX Security 2025): a1–a5 fields stated twice, b1–b4 names, c1–c5 positions of the records."""

import itertools
import string
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from tests.archives import zips
from tests.archives.zips import (
    ALL_FF,
    DEFLATED,
    FF16,
    FF32,
    UTF8,
    WIDE,
    EndRecord,
    Zip64EndRecord,
    ZipArchive,
    ZipEntry,
    archive,
    unicode_path,
    zip64,
)

Tree: TypeAlias = dict[str, bytes]
A, B, C, D = (ZipEntry(letter, letter) for letter in (b"a", b"b", b"c", b"d"))


class DoubtfulArchive(NamedTuple):
    """An archive that must be refused unless its contents are exactly `truth`. If `truth` is None, it must be refused
    in any case."""

    variant: str
    data: bytes
    truth: Tree | None = None


def a1() -> Iterator[DoubtfulArchive]:
    """Yield the method."""
    item = ZipEntry(b"test", b"test", DEFLATED)
    yield DoubtfulArchive("stored in front", archive(replace(item, local={"method": 0, "packed": 4})))
    yield DoubtfulArchive("stored in the directory", archive(replace(item, central={"method": 0, "packed": 4})))


def a2() -> Iterator[DoubtfulArchive]:
    """Archives with sizes that are 0 or true in the local header, the directory, the descriptor and Zip64, and with
    Zip64 twice."""
    flags = itertools.product((0, 1), repeat=5)
    for bits, descriptor_bits, front, directory in itertools.product(flags, (None, *range(8)), range(4), range(4)):
        yield _sizes(bits, descriptor_bits, front, directory)
    extra = zip64(4, 4) + zip64(0, 0)
    wide_fields = {"size": FF32, "packed": FF32}
    yield DoubtfulArchive(
        "Zip64 twice", archive(ZipEntry(b"test", b"test", extra=extra, local=wide_fields, central=wide_fields))
    )


def _sizes(bits: tuple[int, ...], descriptor_bits: int | None, front: int, directory: int) -> DoubtfulArchive:
    is_deflated, *zeroed = bits
    data = b"test" + _patch(b"test")
    unzeroed_entry = ZipEntry(
        b"test", data, DEFLATED if is_deflated else 0, flags=0 if descriptor_bits is None else zips.HAS_DESCRIPTOR
    )
    packed_size, size = len(unzeroed_entry.payload()), len(data)
    local = {"packed": 0 if zeroed[0] else packed_size, "size": 0 if zeroed[1] else size}
    central = {"packed": 0 if zeroed[2] else packed_size, "size": 0 if zeroed[3] else size}
    local, front_extra = _widen_sizes(local, front)
    central, extra = _widen_sizes(central, directory)
    trailer = None
    if descriptor_bits is not None:
        sizes = 0 if descriptor_bits & 1 else packed_size, 0 if descriptor_bits & 2 else size
        trailer = zips.descriptor(0, *sizes, wide=bool(descriptor_bits & 4))
    item = replace(
        unzeroed_entry, local=local, central=central, local_extra=front_extra, extra=extra, descriptor_bytes=trailer
    )
    return DoubtfulArchive(f"sizes {bits} {descriptor_bits} {front} {directory}", archive(item), {"test": data})


def _widen_sizes(sizes: dict[str, int], which: int) -> tuple[dict[str, int], bytes]:
    """Return the numbers that Zip64 has instead."""
    numbers = [sizes[name] for bit, name in ((2, "size"), (1, "packed")) if which & bit]
    moved_sizes = {name: FF32 for bit, name in ((2, "size"), (1, "packed")) if which & bit}
    return {**sizes, **moved_sizes}, zip64(*numbers) if numbers else b""


def _patch(data: bytes) -> bytes:
    """Four bytes that make the checksum of all the bytes 0."""
    table = {_row(number) >> 24: (number, _row(number)) for number in range(256)}
    # Go back from the inner state for 0: each step chooses the byte whose table entry has the state's high byte.
    state, indexes = 0xFFFFFFFF, list[int]()
    for _ in range(4):
        number, value = table[state >> 24]
        indexes.append(number)
        state = (state ^ value) << 8 & 0xFFFFFFFF
    now, patch = zlib.crc32(data) ^ 0xFFFFFFFF, bytearray()
    for number in reversed(indexes):
        patch.append((now ^ number) & 0xFF)
        now = now >> 8 ^ _row(number)
    assert zlib.crc32(data + patch) == 0
    return bytes(patch)


def _row(number: int) -> int:
    for _ in range(8):
        number = number >> 1 ^ (0xEDB88320 if number & 1 else 0)
    return number


def a3() -> Iterator[DoubtfulArchive]:
    """Yield the name: in the local header, in the directory, in Info-ZIP's field."""
    name = b"original"
    item = ZipEntry(name, b"test")
    yield DoubtfulArchive("two names", archive(replace(item, local_name=b"lfh", name=b"cdh")))
    yield DoubtfulArchive(
        "two fields", archive(replace(item, local_extra=unicode_path(name, b"x"), extra=unicode_path(name, b"y")))
    )
    for version in (0, 2):
        yield DoubtfulArchive(
            f"version {version}", archive(replace(item, extra=unicode_path(name, b"up", version=version)))
        )
    yield DoubtfulArchive("a wrong check sum", archive(replace(item, extra=unicode_path(name, b"up", crc=0))))
    yield DoubtfulArchive(
        "two of them", archive(replace(item, extra=unicode_path(name, b"x") + unicode_path(name, b"y")))
    )
    yield DoubtfulArchive("a chain", archive(replace(item, extra=unicode_path(name, b"x") + unicode_path(b"x", b"y"))))
    invalid = unicode_path(name, b"y", version=2, crc=0)
    yield DoubtfulArchive("one invalid", archive(replace(item, extra=unicode_path(name, b"x") + invalid)))
    yield DoubtfulArchive("beside UTF-8", archive(replace(item, extra=unicode_path(name, b"up"), flags=UTF8)))


def a4() -> Iterator[DoubtfulArchive]:
    """File or folder."""
    plain_fields = {"external": 0, "made_by": 20}
    yield DoubtfulArchive("slash", archive(ZipEntry(b"test/", b"test", central=plain_fields)))
    yield DoubtfulArchive("backslash", archive(ZipEntry(b"test\\", b"test", central=plain_fields)))
    yield DoubtfulArchive("slash, empty", archive(ZipEntry(b"test/", b"", central=plain_fields)), {})
    for external, host in itertools.product((0x10, 0x4000 << 16), (0, 3, 19)):
        central_fields = {"external": external, "made_by": host << 8 | 20}
        yield DoubtfulArchive(f"{external:x} of {host}", archive(ZipEntry(b"test", b"test", central=central_fields)))


def a5() -> Iterator[DoubtfulArchive]:
    """Encryption."""
    yield DoubtfulArchive("in front", archive(replace(A, local={"flags": 1})))
    yield DoubtfulArchive("in the directory", archive(replace(A, central={"flags": 1})))
    yield DoubtfulArchive("the first", archive(replace(A, flags=1), B))


def b1() -> Iterator[DoubtfulArchive]:
    """Archives with one name twice."""
    yield DoubtfulArchive("duplicate", archive(ZipEntry(b"test", b"a"), ZipEntry(b"test", b"b")))


SPECIAL = [byte for byte in range(256) if chr(byte) not in string.ascii_letters + string.digits]


def b2() -> Iterator[DoubtfulArchive]:
    """Special bytes in names."""
    for byte, host in itertools.product(SPECIAL, (0, 3)):
        central_fields = {"made_by": host << 8 | 20}
        yield DoubtfulArchive(f"{byte:02x} of {host}", archive(_special(byte, central_fields)), _if_ascii(byte))
        both_entries = _special(byte, {"made_by": 20}), _special(byte, {"made_by": 788})
        yield DoubtfulArchive(f"{byte:02x} twice", archive(*both_entries))
    firsts, seconds = ([byte for byte in SPECIAL if byte % 8 == remainder] for remainder in (0, 7))
    for first_byte, second_byte in itertools.product(firsts, seconds):
        yield DoubtfulArchive(
            f"{first_byte:02x} and {second_byte:02x}",
            archive(_special(first_byte), _special(second_byte)),
            _if_ascii(first_byte, second_byte),
        )


def _special(byte: int, central_fields: dict[str, int] | None = None) -> ZipEntry:
    """Return an entry with the byte in its name, without the UTF-8 flag."""
    return ZipEntry(bytes([97, byte, 98]), b"", central={"flags": 0, **(central_fields or {})}, local={"flags": 0})


def _if_ascii(*special: int) -> Tree | None:
    return {f"a{chr(byte)}b": b"" for byte in special} if max(special) < 128 else None


def b3() -> Iterator[DoubtfulArchive]:
    """Archives with paths that mean another path."""
    paths = ("/a/b", "a//b", "a\\b", "./a/b", "a/./b", "a/b/.", "../a/b", ".../a/b", "a/.../b", "c/../a/b")
    for path in paths:
        second_entry = ZipEntry(path.encode(), b"b")
        yield DoubtfulArchive(f"{path} second", archive(ZipEntry(b"a/b", b"a"), second_entry))
        yield DoubtfulArchive(f"{path} first", archive(second_entry, ZipEntry(b"a/b", b"a")))


def b4() -> Iterator[DoubtfulArchive]:
    """Case."""
    yield DoubtfulArchive("casing", archive(ZipEntry(b"test.txt", b"a"), ZipEntry(b"test.TXT", b"b")))


def c1() -> Iterator[DoubtfulArchive]:
    """Entries that only a parser that reads from the front sees."""
    yield DoubtfulArchive("not in the directory", ZipArchive([A, B], listed=[(A, 0)]).written())
    yield DoubtfulArchive("records between entries", _fake_records())
    yield DoubtfulArchive("entries in comments", _in_comments())
    for has_overlap in (False, True):
        yield DoubtfulArchive(f"desync, overlap {has_overlap}", _desync(has_overlap))
    for method in (0, DEFLATED):
        hidden_entry = ZipEntry(b"junk", zips.descriptor(0, 0, 0) + B.written(), method, descriptor=True)
        yield DoubtfulArchive(
            f"a descriptor in data, method {method}", archive(hidden_entry, A) if method == 0 else _deflated_twice()
        )


def _fake_records() -> bytes:
    fake = A.listed(0) + EndRecord(count_on_disk=1, total=1).written(1, len(A.listed(0)), len(A.written()))
    return archive(A, replace(B, before=fake), C)


def _in_comments() -> bytes:
    at_directory = len(A.written())
    second_at = at_directory + len(A.listed(0)) + len(B.listed(0))
    first_item = replace(B, comment=B.written())
    third_at = second_at + len(B.written()) + len(C.listed(0)) + 22
    listed_items = [(A, 0), (first_item, second_at), (C, third_at)]
    return ZipArchive([A], listed=listed_items, end=EndRecord(comment=C.written())).written()


def _desync(has_overlap: bool) -> bytes:
    junk = ZipEntry(b"junk", A.written())
    front = archive(junk, B)
    listed_items = [(A, len(junk.written()) - len(A.written()))]
    if has_overlap:
        listed_items += [(junk, 0), (B, len(junk.written()))]
    inner = ZipArchive(listed=listed_items, shift=len(front)).written()
    return front[:-2] + struct.pack("<H", len(inner)) + inner


def _deflated_twice() -> bytes:
    """Return an entry that is deflated according to the local header, and stored according to the directory."""
    inner = zips.deflate(b"") + zips.descriptor(0, 2, 0) + B.written()
    hidden_entry = ZipEntry(b"junk", inner, descriptor=True, local={"method": DEFLATED})
    return archive(hidden_entry, A)


def c2() -> Iterator[DoubtfulArchive]:
    """Which record at the end is valid."""
    size = len(archive(A)) + 1
    for variant in ("longer", "shorter", "versions"):
        parts = list[bytes]()
        for number, item in enumerate((A, B, C)):
            length = size * (2 - number) + 1
            if number != 1:
                length += {"longer": 1, "shorter": -1}.get(variant, 0)
            numbered_item = replace(item, central={"version": 10}) if variant == "versions" and number != 1 else item
            end = EndRecord(comment=b"\x00", comment_length=length)
            parts.append(ZipArchive([numbered_item], shift=size * number, end=end).written())
        yield DoubtfulArchive(variant, b"".join(parts))


def c3() -> Iterator[DoubtfulArchive]:
    """Archives with a wrong number of entries in the directory."""
    entry_size = len(A.listed(0))
    for entries_here, total, size in itertools.product((None, 1), (None, 1), (None, entry_size)):
        if (entries_here, total, size) != (None, None, None):
            yield DoubtfulArchive(
                f"{entries_here} {total} {size}",
                ZipArchive([A, B], end=EndRecord(count_on_disk=entries_here, total=total, size=size)).written(),
            )
    many_entries = [ZipEntry(b"%x/%x" % divmod(number, 256), b"") for number in range(1, 65538)]
    yield DoubtfulArchive("65,537 declared as 1", archive(*many_entries))


def c4() -> Iterator[DoubtfulArchive]:
    """Archives whose directory is found in two ways: at its stated offset, or directly before the end."""
    yield DoubtfulArchive("declared or adjacent", _two_directories(EndRecord()))


def _two_directories(end: EndRecord, end_64: Zip64EndRecord | None = None) -> bytes:
    item = ZipEntry(b"adjac", b"x")
    first_archive = ZipArchive([item])
    hidden_entry = ZipEntry(b"adjac", b"y" * (len(first_archive.directory()) - len(item.written()) + 1))
    front = item.written() + first_archive.directory()
    offset = len(item.written())
    body = front + hidden_entry.written() + hidden_entry.listed(offset)
    wide = b"" if end_64 is None else end_64.written(1, len(first_archive.directory()), offset, len(body))
    return body + wide + end.written(1, len(first_archive.directory()), offset)


def c5() -> Iterator[DoubtfulArchive]:
    """Zip64 or not, and which."""
    for bits in itertools.product((False, True), repeat=6):
        yield _either_end(*bits)
    yield DoubtfulArchive("the record before the locator", _hidden_record())
    entry_size = len(A.listed(0))
    for entries_here, total, size in itertools.product((None, 1), (None, 1), (None, entry_size)):
        if (entries_here, total, size) != (None, None, None):
            wide = Zip64EndRecord(count_on_disk=entries_here, total=total, size=size)
            yield DoubtfulArchive(
                f"wide {entries_here} {total} {size}", ZipArchive([A, B], end=WIDE, end_64=wide).written()
            )
    yield DoubtfulArchive("declared or adjacent", _two_directories(ALL_FF, Zip64EndRecord()))
    yield DoubtfulArchive("declared or adjacent, moved", _two_directories(ALL_FF, Zip64EndRecord(at=len(A.written()))))


def _either_end(disk: bool, counts: bool, size: bool, offset: bool, gap: bool, has_more: bool) -> DoubtfulArchive:
    items, other_items = ([A], [C, D]) if has_more else ([A, B], [C])
    entries = b"".join(item.written() for item in items)
    directory = ZipArchive(items).directory()
    hidden_archive = ZipArchive(other_items, shift=len(entries) + len(directory), end_64=Zip64EndRecord())
    last_item = replace(items[-1], comment=hidden_archive.written()[:-22] + bytes(gap))
    disks = {"disk": FF16, "start_disk": FF16} if disk else {}
    counted_fields = {"count_on_disk": FF16, "total": FF16} if counts else {}
    end_fields = {**disks, **counted_fields, **({"size": FF32} if size else {}), **({"offset": FF32} if offset else {})}
    data = ZipArchive([*items[:-1], last_item], end=EndRecord(**end_fields)).written()
    expected_tree = {item.name.decode(): item.data for item in items} if gap and not end_fields else None
    return DoubtfulArchive(f"{disk} {counts} {size} {offset} {gap} {has_more}", data, expected_tree)


def _hidden_record() -> bytes:
    entries, directory = A.written(), ZipArchive([A]).directory()
    hidden_archive = ZipArchive([B], shift=len(entries) + len(directory), end_64=Zip64EndRecord(sector=bytes(60)))
    comment = hidden_archive.written()[: -22 - 20]
    return ZipArchive([replace(A, comment=comment)], end=ALL_FF, end_64=Zip64EndRecord(at=len(entries) + 60)).written()


CLASSES: dict[str, Callable[[], Iterator[DoubtfulArchive]]] = {
    make_class.__name__: make_class for make_class in (a1, a2, a3, a4, a5, b1, b2, b3, b4, c1, c2, c3, c4, c5)
}
