"""The work for an archive is limited: the number of its entries, and the number of bytes that are read again."""

import gzip
import io
import tarfile
from collections import deque
from collections.abc import Sequence

import pytest

from countersign.archives import bounded_reader, tar_reader
from countersign.archives import limits as archive_limits
from countersign.archives.entry import ArchiveMember
from countersign.archives.limits import (
    COUNT_FIRST_FROM,
    MAX_EXTENDED_HEADERS,
    MAX_REREAD_FACTOR,
    RECORDS_PER_ENTRY,
    Limits,
)
from countersign.archives.reader import read
from countersign.archives.refusals import ArchiveRefused
from countersign.archives.tar_reader import FileLocation, LinkedFiles


def _tar_of(entries: Sequence[tuple[str, bytes | str]]) -> bytes:
    """Return a tar file. An entry with bytes is a file, and an entry with a text is a hard link to this name."""
    archive_bytes = io.BytesIO()
    with tarfile.open(fileobj=archive_bytes, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in entries:
            entry = tarfile.TarInfo(name)
            if isinstance(content, str):
                entry.type, entry.linkname = tarfile.LNKTYPE, content
                archive.addfile(entry)
            else:
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    return archive_bytes.getvalue()


def _read(data: bytes, limits: Limits | None = None) -> list[ArchiveMember]:
    members: list[ArchiveMember] = []
    for member in read(io.BytesIO(data), limits or Limits()):
        deque(member.pieces, maxlen=0)
        members.append(member)
    return members


@pytest.mark.parametrize("is_packed", [False, True])
def test_an_archive_with_too_many_entries_is_refused_before_any_large_part_is_read(is_packed: bool) -> None:
    data = _tar_of([(f"f{number}", b"x") for number in range(COUNT_FIRST_FROM + 1_001)])
    reading = read(io.BytesIO(gzip.compress(data, 1) if is_packed else data), Limits(entries=6_000))
    members: list[ArchiveMember] = []

    with pytest.raises(ArchiveRefused, match="more than 6000") as refusal:
        members.extend(reading)

    assert refusal.value.rule == "too-many-entries"
    assert len(members) < COUNT_FIRST_FROM


def test_an_archive_of_as_many_entries_as_allowed_is_read() -> None:
    data = _tar_of([(f"f{number}", b"x") for number in range(COUNT_FIRST_FROM + 100)])

    assert len(_read(data, Limits(entries=COUNT_FIRST_FROM + 100))) == COUNT_FIRST_FROM + 100


def test_a_bomb_is_not_unpacked_by_counting_its_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("countersign.archives.tar_reader.COUNT_FIRST_FROM", 1)
    data = gzip.compress(_tar_of([("a", b"x"), ("b", bytes(80 << 20))]), 9)

    with pytest.raises(ArchiveRefused) as refusal:
        next(read(io.BytesIO(data), Limits()))

    assert refusal.value.rule == "ratio"


def test_small_files_with_alternating_hard_links_are_read_again_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    starts = 0
    original_start = tar_reader.LinkedFiles._at  # pyright: ignore[reportPrivateUsage]

    def counted_start(files: LinkedFiles, start: int, position: int, entry: str) -> bounded_reader.ForwardReader:
        nonlocal starts
        starts += 1
        return original_start(files, start, position, entry)

    monkeypatch.setattr(tar_reader.LinkedFiles, "_at", counted_start)
    links = [(f"l{number}", "ab"[number % 2]) for number in range(200)]
    data = gzip.compress(_tar_of([("filler", bytes(1 << 20)), ("a", b"a" * 100), ("b", b"b" * 100), *links]))

    assert len(_read(data)) == 203
    assert starts == 2


def test_alternating_hard_links_are_refused_after_too_many_bytes_were_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(archive_limits, "MIN_REREAD_BYTES", 1 << 20)
    monkeypatch.setattr(tar_reader, "_MAX_CACHED_BYTES", 0)
    links = [(f"l{number}", "ab"[number % 2]) for number in range(200)]
    data = _tar_of([("filler", bytes(1 << 20)), ("a", b"a"), ("b", b"b"), *links])

    with pytest.raises(ArchiveRefused, match="hard links go back so often") as refusal:
        _read(gzip.compress(data))
    members = _read(data)

    assert refusal.value.rule == "hard-link"
    assert int(str(refusal.value.entry)[1:]) <= 4 * MAX_REREAD_FACTOR
    assert len(members) == 203, "an uncompressed archive is seekable, so nothing is read again"


def test_a_hard_link_has_the_bytes_of_its_file() -> None:
    data = b"".join(number.to_bytes(2, "big") for number in range(1000))
    file_bytes = b"head" + data
    files = LinkedFiles(
        lambda: bounded_reader.ForwardReader(bounded_reader.FileRange(io.BytesIO(file_bytes), 0, len(file_bytes)).more)
    )

    for start in (504, 4, 104):
        assert b"".join(files.pieces(FileLocation(start, 100, 0o644), 2000, "l")) == file_bytes[start : start + 100]


@pytest.mark.parametrize("count", [MAX_EXTENDED_HEADERS + 1, 400])
def test_a_chain_of_global_headers_is_refused(count: int) -> None:
    record = b"13 comment=a\n"
    header = tarfile.TarInfo("g")
    header.type, header.size = tarfile.XGLTYPE, len(record)
    block = header.tobuf(tarfile.USTAR_FORMAT) + record.ljust(512, b"\0")

    with pytest.raises(ArchiveRefused) as refusal:
        _read(block * count + _tar_of([("a", b"a")]))

    assert refusal.value.rule == "pax-order"
    assert _read(block * MAX_EXTENDED_HEADERS + _tar_of([("a", b"a")]))


def _tar_with_pax_records(counts: Sequence[int]) -> bytes:
    """Return a tar file of empty files, each with this number of PAX records."""
    archive_bytes = io.BytesIO()
    with tarfile.open(fileobj=archive_bytes, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for index, count in enumerate(counts):
            entry = tarfile.TarInfo(f"f{index}")
            entry.pax_headers = {f"SCHILY.xattr.user.{number}": "v" for number in range(count)}
            archive.addfile(entry)
    return archive_bytes.getvalue()


@pytest.mark.parametrize("is_packed", [False, True])
def test_an_entry_with_too_many_pax_records_is_refused(is_packed: bool) -> None:
    """Without the limit, a compressed archive of a few kB with millions of records takes minutes to read."""
    data = _tar_with_pax_records([6_000] * 4)
    reading = read(io.BytesIO(gzip.compress(data, 1) if is_packed else data), Limits())
    members: list[ArchiveMember] = []

    with pytest.raises(ArchiveRefused) as refusal:
        members.extend(reading)

    assert refusal.value.rule == "pax-record"
    assert len(members) == 1


def test_usual_numbers_of_pax_records_are_accepted() -> None:
    assert len(_read(_tar_with_pax_records([9_000, *[RECORDS_PER_ENTRY] * 500]))) == 501
