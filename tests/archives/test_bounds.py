"""The cost of an archive is bounded by its size, counted in processed entries and in bytes read again."""

import gzip
import io
import tarfile
from collections import deque
from collections.abc import Sequence

import pytest

from countersign.archives import bounded_reader, tar_reader
from countersign.archives.entry import ArchiveMember
from countersign.archives.limits import Limits
from countersign.archives.reader import read
from countersign.archives.refusals import ArchiveRefused
from countersign.archives.tar_headers import RECORDS_PER_ENTRY
from countersign.archives.tar_reader import (
    COUNT_FIRST_FROM,
    MAX_EXTENSIONS,
    MAX_REREAD_FACTOR,
    FileLocation,
    LinkedFiles,
)


def _tar(entries: Sequence[tuple[str, bytes | str]]) -> bytes:
    """A tar file of files with these bytes, and of hard links to these names."""
    held_stream = io.BytesIO()
    with tarfile.open(fileobj=held_stream, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in entries:
            entry = tarfile.TarInfo(name)
            if isinstance(content, str):
                entry.type, entry.linkname = tarfile.LNKTYPE, content
                archive.addfile(entry)
            else:
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    return held_stream.getvalue()


def _read(data: bytes, limits: Limits | None = None) -> list[ArchiveMember]:
    taken: list[ArchiveMember] = []
    for member in read(io.BytesIO(data), limits or Limits()):
        deque(member.pieces, maxlen=0)
        taken.append(member)
    return taken


@pytest.mark.parametrize("is_packed", [False, True])
def test_an_archive_of_too_many_entries_is_refused_before_they_are_worked_on(is_packed: bool) -> None:
    data = _tar([(f"f{number}", b"x") for number in range(COUNT_FIRST_FROM + 1_001)])
    reading = read(io.BytesIO(gzip.compress(data, 1) if is_packed else data), Limits(entries=6_000))
    taken: list[ArchiveMember] = []

    with pytest.raises(ArchiveRefused, match="more than 6000") as refusal:
        taken.extend(reading)

    assert refusal.value.rule == "too-many-entries"
    assert len(taken) < COUNT_FIRST_FROM


def test_an_archive_of_as_many_entries_as_allowed_is_read() -> None:
    data = _tar([(f"f{number}", b"x") for number in range(COUNT_FIRST_FROM + 100)])

    assert len(_read(data, Limits(entries=COUNT_FIRST_FROM + 100))) == COUNT_FIRST_FROM + 100


def test_a_bomb_is_not_unpacked_by_counting_its_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("countersign.archives.tar_reader.COUNT_FIRST_FROM", 1)
    data = gzip.compress(_tar([("a", b"x"), ("b", bytes(80 << 20))]), 9)

    with pytest.raises(ArchiveRefused) as refusal:
        next(read(io.BytesIO(data), Limits()))

    assert refusal.value.rule == "ratio"


def test_small_files_that_hard_links_name_in_turn_are_read_again_once(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = 0
    begin = tar_reader.LinkedFiles._at  # pyright: ignore[reportPrivateUsage]

    def counted(files: LinkedFiles, start: int, position: int, entry: str) -> bounded_reader.ForwardReader:
        nonlocal begun
        begun += 1
        return begin(files, start, position, entry)

    monkeypatch.setattr(tar_reader.LinkedFiles, "_at", counted)
    links = [(f"l{number}", "ab"[number % 2]) for number in range(200)]
    data = gzip.compress(_tar([("filler", bytes(1 << 20)), ("a", b"a" * 100), ("b", b"b" * 100), *links]))

    assert len(_read(data)) == 203
    assert begun == 2


def test_hard_links_that_go_back_and_forth_are_refused_at_a_multiple_of_the_archive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tar_reader, "MIN_REREAD_BYTES", 1 << 20)
    monkeypatch.setattr(tar_reader, "_MAX_CACHED_BYTES", 0)
    links = [(f"l{number}", "ab"[number % 2]) for number in range(200)]
    data = _tar([("filler", bytes(1 << 20)), ("a", b"a"), ("b", b"b"), *links])

    with pytest.raises(ArchiveRefused, match="hard links go back so often") as refusal:
        _read(gzip.compress(data))
    plain = _read(data)

    assert refusal.value.rule == "hard-link"
    assert int(str(refusal.value.entry)[1:]) <= 4 * MAX_REREAD_FACTOR
    assert len(plain) == 203, "a file that is not packed is not read again on the way"


def test_bytes_behind_hard_links_are_those_of_the_file() -> None:
    data = b"".join(number.to_bytes(2, "big") for number in range(1000))
    whole = b"head" + data
    files = LinkedFiles(
        lambda: bounded_reader.ForwardReader(bounded_reader.FileRange(io.BytesIO(whole), 0, len(whole)).more)
    )

    for start in (504, 4, 104):
        assert b"".join(files.pieces(FileLocation(start, 100, 0o644), 2000, "l")) == whole[start : start + 100]


@pytest.mark.parametrize("count", [MAX_EXTENSIONS + 1, 400])
def test_a_chain_of_global_headers_is_refused(count: int) -> None:
    record = b"13 comment=a\n"
    header = tarfile.TarInfo("g")
    header.type, header.size = tarfile.XGLTYPE, len(record)
    block = header.tobuf(tarfile.USTAR_FORMAT) + record.ljust(512, b"\0")

    with pytest.raises(ArchiveRefused) as refusal:
        _read(block * count + _tar([("a", b"a")]))

    assert refusal.value.rule == "pax-order"
    assert _read(block * MAX_EXTENSIONS + _tar([("a", b"a")]))


def _with_records(counts: Sequence[int]) -> bytes:
    """A tar file of empty files with these counts of PAX records."""
    held_stream = io.BytesIO()
    with tarfile.open(fileobj=held_stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for place, count in enumerate(counts):
            entry = tarfile.TarInfo(f"f{place}")
            entry.pax_headers = {f"SCHILY.xattr.user.{number}": "v" for number in range(count)}
            archive.addfile(entry)
    return held_stream.getvalue()


@pytest.mark.parametrize("is_packed", [False, True])
def test_extended_headers_cost_no_more_than_a_bound_for_each_entry(is_packed: bool) -> None:
    """A few kB of a compressed archive contain millions of records, which took minutes."""
    data = _with_records([6_000] * 4)
    reading = read(io.BytesIO(gzip.compress(data, 1) if is_packed else data), Limits())
    taken: list[ArchiveMember] = []

    with pytest.raises(ArchiveRefused) as refusal:
        taken.extend(reading)

    assert refusal.value.rule == "pax-record"
    assert len(taken) == 1


def test_as_many_attributes_as_files_have_are_taken() -> None:
    assert len(_read(_with_records([9_000, *[RECORDS_PER_ENTRY] * 500]))) == 501
