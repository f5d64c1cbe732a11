"""Zip archives that two parsers read differently: differing headers, descriptors, Zip64, other names, surrounding
bytes; and the 14 classes of ZipDiff (USENIX Security 2025), a1 to c5."""

import struct
from dataclasses import replace

from tests.archives import tars, zips
from tests.archives.cases import ArchiveCase
from tests.archives.zips import (
    DEFLATED,
    FF32,
    EndRecord,
    Zip64EndRecord,
    ZipArchive,
    ZipEntry,
    archive,
    unicode_path,
    zip64,
)

A, B, C = (ZipEntry(letter, letter.upper()) for letter in (b"a", b"b", b"c"))
PACKED = ZipEntry(b"a", b"hello " * 20, DEFLATED)


def zip_of_one(item: ZipEntry = A, **options: object) -> bytes:
    """Return an archive of one entry, with some fields replaced."""
    return archive(replace(item, **options))


def archive_of(*items: ZipEntry, **options: object) -> bytes:
    """Return an archive of these items, with something unusual in the whole."""
    return ZipArchive(items, **options).written()


MISMATCHES = [
    ArchiveCase(
        "local and central",
        "a version of VMS",
        "parsers-disagree",
        lambda: zip_of_one(central={"version": 2 << 8 | 20}),
    ),
    ArchiveCase(
        "local and central",
        "a version that nobody reads",
        "parsers-disagree",
        lambda: zip_of_one(central={"version": 255}),
    ),
    ArchiveCase("local and central", "names", "local-mismatch", lambda: zip_of_one(local_name=b"z")),
    ArchiveCase("local and central", "lengths of names", "local-mismatch", lambda: zip_of_one(local_name=b"zz")),
    ArchiveCase(
        "local and central",
        "methods, stored in front",
        "local-mismatch",
        lambda: zip_of_one(PACKED, local={"method": 0}),
    ),
    ArchiveCase(
        "local and central",
        "methods, stored in the directory",
        "local-mismatch size",
        lambda: zip_of_one(PACKED, central={"method": 0}),
    ),
    ArchiveCase("local and central", "check sums", "local-mismatch", lambda: zip_of_one(local={"crc": 1})),
    ArchiveCase("local and central", "packed sizes", "local-mismatch", lambda: zip_of_one(PACKED, local={"packed": 3})),
    ArchiveCase("local and central", "sizes", "local-mismatch", lambda: zip_of_one(PACKED, local={"size": 3})),
    ArchiveCase(
        "local and central",
        "sizes of 0 in front",
        "local-mismatch",
        lambda: zip_of_one(local={"size": 0, "packed": 0, "crc": 0}),
    ),
    ArchiveCase(
        "local and central",
        "sizes of 0 in the directory",
        "local-mismatch",
        lambda: zip_of_one(central={"size": 0, "packed": 0, "crc": 0}),
    ),
    ArchiveCase(
        "local and central", "UTF-8 in front alone", "local-mismatch", lambda: zip_of_one(local={"flags": 1 << 11})
    ),
    ArchiveCase(
        "local and central", "a descriptor in front alone", "data-descriptor", lambda: zip_of_one(local={"flags": 8})
    ),
    ArchiveCase(
        "local and central",
        "a descriptor in the directory alone",
        "local-mismatch",
        lambda: zip_of_one(central={"flags": 8}),
    ),
    ArchiveCase(
        "local and central", "no local header", "zip-record truncated overlap", lambda: b"PK\x03\x05" + archive(A)[4:]
    ),
    ArchiveCase(
        "local and central",
        "another extra length",
        "extra-field local-mismatch overlap gap truncated",
        lambda: zip_of_one(local={"extra_length": 1}),
    ),
]

DEFLATED_A = replace(PACKED, descriptor=True)
TRUTH = DEFLATED_A.fields()


def zip_with_descriptor(
    crc: int = TRUTH.crc, packed: int = TRUTH.packed, size: int = TRUTH.size, **options: bool
) -> bytes:
    """Return an entry whose descriptor has these numbers."""
    return zip_of_one(DEFLATED_A, descriptor_bytes=zips.descriptor(crc, packed, size, **options))


DESCRIPTORS = [
    ArchiveCase(
        "descriptor lies",
        "of stored bytes, no signature",
        "data-descriptor",
        lambda: zip_of_one(descriptor=True, descriptor_bytes=zips.descriptor(A.fields().crc, 1, 1, signed=False)),
        is_only_strict=True,
    ),
    ArchiveCase(
        "descriptor lies",
        "within stored bytes",
        "data-descriptor",
        lambda: zip_of_one(data=zips.descriptor(0, 0, 0), descriptor=True),
    ),
    ArchiveCase("descriptor lies", "the check sum", "data-descriptor", lambda: zip_with_descriptor(crc=1)),
    ArchiveCase("descriptor lies", "the packed size", "data-descriptor", lambda: zip_with_descriptor(packed=1)),
    ArchiveCase("descriptor lies", "the size", "data-descriptor", lambda: zip_with_descriptor(size=1)),
    ArchiveCase("descriptor lies", "zeros", "data-descriptor", lambda: zip_with_descriptor(0, 0, 0)),
    ArchiveCase(
        "descriptor lies",
        "declared but missing",
        "data-descriptor gap",
        lambda: zip_of_one(DEFLATED_A, descriptor_bytes=b""),
    ),
    ArchiveCase(
        "descriptor lies",
        "declared but cut",
        "data-descriptor gap",
        lambda: zip_of_one(DEFLATED_A, descriptor_bytes=b"PK\x07\x08\x00"),
    ),
    ArchiveCase(
        "descriptor lies",
        "there but not declared",
        "gap data-descriptor",
        lambda: zip_of_one(PACKED, descriptor_bytes=zips.descriptor(TRUTH.crc, TRUTH.packed, TRUTH.size)),
    ),
    ArchiveCase(
        "descriptor lies",
        "wide without Zip64",
        "data-descriptor gap",
        lambda: zip_with_descriptor(wide=True),
        is_only_strict=True,
    ),
    ArchiveCase(
        "descriptor lies",
        "other sizes in front",
        "local-mismatch data-descriptor",
        lambda: zip_of_one(DEFLATED_A, local={"size": 7, "packed": 7, "crc": 7}),
    ),
    ArchiveCase(
        "descriptor lies",
        "two of them",
        "data-descriptor gap",
        lambda: zip_of_one(DEFLATED_A, descriptor_bytes=2 * zips.descriptor(TRUTH.crc, TRUTH.packed, TRUTH.size)),
    ),
]


def wide(local: bytes = b"", central: bytes = b"", **options: object) -> bytes:
    """Return an entry with Zip64 extra fields in the local and the central header."""
    return archive(replace(A, local_extra=local, extra=central, **options))


FULL = {"size": FF32, "packed": FF32}
LOCATOR_FIRST = ZipArchive([A], end=zips.WIDE, end_64=Zip64EndRecord())
ZIP64 = [
    ArchiveCase(
        "zip64 confusion",
        "full numbers without a record",
        "zip64",
        lambda: archive_of(A, end=EndRecord(size=FF32, offset=FF32)),
    ),
    ArchiveCase(
        "zip64 confusion",
        "numbers that nobody asked for",
        "zip64 extra-field local-mismatch",
        lambda: wide(zip64(9, 9), zip64(9, 9)),
    ),
    ArchiveCase(
        "zip64 confusion",
        "asked for but missing",
        "zip64",
        lambda: (
            wide(local=b"", central=b"", **{"local_": 0}) if False else archive(replace(A, local=FULL, central=FULL))
        ),
    ),
    ArchiveCase(
        "zip64 confusion",
        "other numbers in front",
        "zip64 local-mismatch",
        lambda: archive(replace(A, local_extra=zip64(2, 2), extra=zip64(1, 1), local=FULL, central=FULL)),
    ),
    ArchiveCase(
        "zip64 confusion",
        "one number for two",
        "zip64 extra-field",
        lambda: archive(replace(A, extra=zip64(1), local=FULL, central=FULL)),
    ),
    ArchiveCase(
        "zip64 confusion",
        "twice",
        "zip64 extra-field",
        lambda: archive(replace(A, extra=zip64(1, 1) + zip64(0, 0), local=FULL, central=FULL)),
    ),
    ArchiveCase(
        "zip64 confusion",
        "too many numbers",
        "zip64 extra-field",
        lambda: archive(replace(A, extra=zip64(1, 1, 7, 7), local=FULL, central=FULL)),
    ),
    ArchiveCase(
        "zip64 confusion",
        "a size of 2**63",
        "zip64 too-large ratio",
        lambda: archive(replace(A, extra=zip64(1 << 63, 1 << 63), local=FULL, central=FULL)),
    ),
    ArchiveCase(
        "zip64 confusion",
        "a length that lies",
        "zip64 extra-field",
        lambda: archive(replace(A, extra=zips.extra_field(1, bytes(16), length=64), local=FULL, central=FULL)),
    ),
    ArchiveCase(
        "zip64 confusion", "an end of FF without a record", "zip64 split", lambda: archive_of(A, end=zips.ALL_FF)
    ),
    ArchiveCase(
        "zip64 confusion",
        "a locator to elsewhere",
        "zip64",
        lambda: archive_of(A, end=zips.WIDE, end_64=Zip64EndRecord(at=0)),
    ),
    ArchiveCase(
        "zip64 confusion",
        "a locator beyond the end",
        "zip64",
        lambda: archive_of(A, end=zips.WIDE, end_64=Zip64EndRecord(at=1 << 40)),
    ),
    ArchiveCase(
        "zip64 confusion",
        "a gap before the locator",
        "zip64 gap",
        lambda: archive_of(A, end=zips.WIDE, end_64=Zip64EndRecord(gap=b"\x00")),
    ),
    ArchiveCase(
        "zip64 confusion",
        "another count in the wide record",
        "zip64 directory-size zip-end entry-count",
        lambda: archive_of(A, B, end_64=Zip64EndRecord(count_on_disk=1, total=1)),
    ),
    ArchiveCase(
        "zip64 confusion",
        "another offset in the wide record",
        "zip64 directory-size zip-end entry-count",
        lambda: archive_of(A, B, end_64=Zip64EndRecord(offset=0)),
    ),
    ArchiveCase(
        "zip64 confusion",
        "two disks",
        "zip64 split",
        lambda: archive_of(A, end=zips.WIDE, end_64=Zip64EndRecord(disks=2)),
    ),
    ArchiveCase(
        "zip64 confusion",
        "a length of the record that lies",
        "zip64 gap",
        lambda: archive_of(A, end=zips.WIDE, end_64=Zip64EndRecord(length=4000)),
    ),
    ArchiveCase(
        "zip64 confusion",
        "a record in a record",
        "zip64",
        lambda: archive_of(A, end=zips.WIDE, end_64=Zip64EndRecord(sector=b"PK\x06\x06" + bytes(52))),
    ),
    ArchiveCase(
        "zip64 confusion",
        "a locator without a record",
        "zip64 gap",
        lambda: archive_of(A, after_directory=b"PK\x06\x07" + struct.pack("<IQI", 0, 0, 1)),
    ),
]

UNICODE = [
    ArchiveCase("unicode path", "another name", "unicode-path", lambda: zip_of_one(extra=unicode_path(b"a", b"z"))),
    ArchiveCase("unicode path", "an escape", "unicode-path", lambda: zip_of_one(extra=unicode_path(b"a", b"../z"))),
    ArchiveCase(
        "unicode path",
        "other names in both places",
        "unicode-path local-mismatch",
        lambda: zip_of_one(local_extra=unicode_path(b"a", b"x"), extra=unicode_path(b"a", b"y")),
    ),
    ArchiveCase(
        "unicode path",
        "in front alone",
        "unicode-path local-mismatch",
        lambda: zip_of_one(local_extra=unicode_path(b"a", b"z")),
    ),
    ArchiveCase(
        "unicode path",
        "in the directory alone",
        "unicode-path local-mismatch",
        lambda: zip_of_one(local_extra=b"", extra=unicode_path(b"a", b"z")),
    ),
    ArchiveCase(
        "unicode path", "version 0", "unicode-path", lambda: zip_of_one(extra=unicode_path(b"a", b"z", version=0))
    ),
    ArchiveCase(
        "unicode path", "version 2", "unicode-path", lambda: zip_of_one(extra=unicode_path(b"a", b"z", version=2))
    ),
    ArchiveCase(
        "unicode path", "a wrong check sum", "unicode-path", lambda: zip_of_one(extra=unicode_path(b"a", b"z", crc=0))
    ),
    ArchiveCase(
        "unicode path",
        "two names",
        "unicode-path extra-field",
        lambda: zip_of_one(extra=unicode_path(b"a", b"x") + unicode_path(b"a", b"y")),
    ),
    ArchiveCase(
        "unicode path",
        "a valid and an invalid one",
        "unicode-path extra-field",
        lambda: zip_of_one(extra=unicode_path(b"a", b"x") + unicode_path(b"a", b"y", version=2, crc=0)),
    ),
    ArchiveCase(
        "unicode path",
        "beside UTF-8",
        "unicode-path",
        lambda: zip_of_one(extra=unicode_path(b"a", b"z"), flags=zips.UTF8),
    ),
    ArchiveCase(
        "unicode path",
        "a chain of two",
        "unicode-path extra-field",
        lambda: zip_of_one(extra=unicode_path(b"a", b"x") + unicode_path(b"x", b"y")),
    ),
    ArchiveCase(
        "unicode path",
        "too short",
        "unicode-path extra-field",
        lambda: zip_of_one(extra=zips.extra_field(0x7075, b"\x01")),
    ),
    ArchiveCase(
        "unicode path",
        "another comment",
        "unicode-path extra-field",
        lambda: zip_of_one(extra=zips.extra_field(0x7075, b"")),
    ),
]

TAR = tars.archive(tars.file(b"t", b"tar"))
PDF = b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\n"
AROUND = [
    ArchiveCase(
        "bytes before",
        "with true offsets",
        "leading-data",
        lambda: archive_of(A, prefix=b"MZ" + bytes(30)),
        is_only_strict=True,
        name="build.zip",
    ),
    ArchiveCase(
        "bytes before",
        "with offsets that forget it",
        "leading-data",
        lambda: b"MZ" + bytes(30) + archive(A),
        name="build.zip",
    ),
    ArchiveCase(
        "bytes before", "a marker of spanning", "leading-data gap split", lambda: archive_of(A, prefix=b"PK00")
    ),
    ArchiveCase(
        "bytes before",
        "the other marker of spanning",
        "leading-data gap split",
        lambda: archive_of(A, prefix=zips.DESCRIPTOR),
    ),
    ArchiveCase("bytes before", "between two entries", "gap", lambda: archive(A, replace(B, before=b"hidden"))),
    ArchiveCase("bytes before", "before the directory", "gap", lambda: archive_of(A, between=b"hidden")),
    ArchiveCase(
        "bytes before", "an entry that is not listed", "gap", lambda: ZipArchive([A, B], listed=[(A, 0)]).written()
    ),
    ArchiveCase(
        "bytes before",
        "the first entry not listed",
        "gap leading-data",
        lambda: ZipArchive([A, B], listed=[(B, len(A.written()))]).written(),
    ),
    ArchiveCase("bytes after", "junk", "trailing-data", lambda: archive(A) + b"junk"),
    ArchiveCase("bytes after", "one NUL", "trailing-data zip-end", lambda: archive(A) + b"\x00"),
    ArchiveCase(
        "bytes after", "behind the directory", "gap leading-data", lambda: archive_of(A, after_directory=b"hidden")
    ),
    ArchiveCase(
        "bytes after",
        "a comment longer than declared",
        "trailing-data zip-end",
        lambda: archive_of(A, end=EndRecord(comment=b"four", comment_length=2)),
    ),
    ArchiveCase(
        "bytes after",
        "a comment shorter than declared",
        "zip-end truncated trailing-data",
        lambda: archive_of(A, end=EndRecord(comment=b"four", comment_length=9)),
    ),
    ArchiveCase(
        "bytes after",
        "an end within the comment",
        "zip-end zip-comment trailing-data",
        lambda: archive_of(A, end=EndRecord(comment=archive_of(B)[-22:])),
    ),
    ArchiveCase(
        "polyglots",
        "an archive within the comment",
        "zip-end zip-comment trailing-data gap",
        lambda: archive_of(A, end=EndRecord(comment=archive_of(B, shift=len(archive(A))))),
    ),
    ArchiveCase(
        "polyglots",
        "two archives",
        "leading-data gap zip-end trailing-data directory-size entry-count",
        lambda: archive(A) + archive(B),
    ),
    ArchiveCase(
        "polyglots",
        "two archives with true offsets",
        "leading-data gap zip-end trailing-data directory-size entry-count",
        lambda: archive(A) + archive_of(B, shift=len(archive(A))),
    ),
    ArchiveCase(
        "polyglots",
        "a PDF before",
        "leading-data gap directory-size zip-end entry-count",
        lambda: PDF + archive_of(A, shift=len(PDF)),
    ),
    ArchiveCase("polyglots", "a tar before", "two-formats", lambda: TAR + archive_of(A, shift=len(TAR))),
    ArchiveCase("polyglots", "an entry that looks like tar", "two-formats", lambda: _tar_and_zip()),
    ArchiveCase(
        "polyglots",
        "a program before",
        "leading-data",
        lambda: b"\x7fELF" + bytes(60) + archive_of(A, shift=64),
        is_only_strict=True,
        name="build.zip",
    ),
    ArchiveCase(
        "bytes before",
        "a directory of another archive",
        "gap leading-data directory-size zip-end entry-count",
        lambda: archive_of(A, prefix=B.listed(0)),
    ),
    ArchiveCase("local and central", "a disk", "split", lambda: zip_of_one(central={"disk": 1})),
    ArchiveCase(
        "local and central", "the last disk", "split", lambda: archive_of(A, end=EndRecord(disk=1, start_disk=1))
    ),
    ArchiveCase(
        "local and central",
        "a comment longer than there",
        "directory-size zip-end entry-count truncated",
        lambda: zip_of_one(central={"comment_length": 50}),
    ),
    ArchiveCase("local and central", "a broken extra field", "extra-field", lambda: zip_of_one(extra=b"\x01\x00\xff")),
]


def _tar_and_zip() -> bytes:
    """Return a tar whose first file's bytes are a zip, which counts its offsets from the start of the tar."""
    head = tars.header(b"PK\x03\x04", 4096)
    return head + archive_of(A, shift=len(head)) + tars.END


CASES = [*MISMATCHES, *DESCRIPTORS, *ZIP64, *UNICODE, *AROUND]
