"""Unpacking writes all or nothing, stays in its folder, and changes no existing file."""

import io
import os
import resource
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from countersign.archives import extraction
from countersign.archives.entry import ArchiveEntry, ArchiveMember
from countersign.archives.extraction import ExtractionCounts, TargetTaken, TreeWriter
from countersign.archives.limits import Limits
from countersign.archives.refusals import ArchiveRefused, ArchiveUnknown
from countersign.archives.sandboxed_extraction import extract_in_sandbox
from countersign.kernel.errors import StorageFull

Extract = Callable[..., ExtractionCounts]

LIMITS = Limits()


@pytest.fixture(params=["here", "apart"])
def extract(request: pytest.FixtureRequest) -> Extract:
    """Return a function that unpacks an archive: once in this process, and once in a confined process."""
    return extraction.extract if request.param == "here" else extract_in_sandbox


def tar_of(*entries: tuple[str, bytes, int] | tuple[str, str]) -> io.BytesIO:
    """Return a tar file of files (name, bytes, mode), folders (name ending with a slash) and links (name, target)."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, content, *mode in entries:
            info = tarfile.TarInfo(name.rstrip("/"))
            if isinstance(content, str):
                info.type, info.linkname = tarfile.SYMTYPE, content
                archive.addfile(info)
                continue
            info.mode, info.size = mode[0], len(content)
            info.type = tarfile.DIRTYPE if name.endswith("/") else tarfile.REGTYPE
            archive.addfile(info, io.BytesIO(content))
    stream.seek(0)
    return stream


def archive_file(tmp_path: Path, content: io.BytesIO) -> Path:
    """Return the archive as a file."""
    path = tmp_path / "archive"
    path.write_bytes(content.getvalue())
    return path


GOOD = (
    ("bin/tool", b"#!/bin/sh\n", 0o700),
    ("notes.txt", b"n" * 700_000, 0o600),
    ("empty/", b"", 0o755),
    ("latest", "bin/tool"),
)


def test_files_folders_and_links_are_extracted_with_plain_modes(tmp_path: Path, extract: Extract) -> None:
    target = tmp_path / "out"

    with archive_file(tmp_path, tar_of(*GOOD)).open("rb") as source:
        counts = extract(source, target, LIMITS)

    assert counts == ExtractionCounts(files=2, folders=2, links=1, size=700_010)
    assert {path.relative_to(target).as_posix() for path in target.rglob("*")} == {
        "bin", "bin/tool", "notes.txt", "empty", "latest",
    }  # fmt: skip
    assert (target / "notes.txt").read_bytes() == b"n" * 700_000
    assert os.readlink(target / "latest") == "bin/tool"
    modes = {path.name: stat.S_IMODE(path.lstat().st_mode) for path in target.rglob("*") if not path.is_symlink()}
    assert modes == {"bin": 0o755, "tool": 0o755, "notes.txt": 0o644, "empty": 0o755}
    assert {path.lstat().st_uid for path in (target, *target.rglob("*"))} == {os.geteuid()}
    assert {path.name for path in tmp_path.iterdir()} == {"archive", "out"}


def test_a_refusal_at_the_last_entry_leaves_nothing(tmp_path: Path, extract: Extract) -> None:
    source = archive_file(tmp_path, tar_of(*GOOD, ("../evil", b"x", 0o644))).open("rb")

    with source, pytest.raises(ArchiveRefused) as refusal:
        extract(source, tmp_path / "out", LIMITS)

    assert (refusal.value.rule, refusal.value.entry) == ("dot-dot", "../evil")
    assert refusal.value.members == {"rule": "dot-dot", "entry": "../evil"}
    assert [path.name for path in tmp_path.iterdir()] == ["archive"]


def test_a_file_that_is_not_an_archive_is_distinguished_from_a_bad_archive(tmp_path: Path, extract: Extract) -> None:
    with archive_file(tmp_path, io.BytesIO(b"plain text")).open("rb") as source, pytest.raises(ArchiveUnknown):
        extract(source, tmp_path / "out", LIMITS)

    assert not (tmp_path / "out").exists()


def test_an_empty_folder_is_filled_and_a_nonempty_folder_is_refused(tmp_path: Path, extract: Extract) -> None:
    path = archive_file(tmp_path, tar_of(*GOOD))
    (tmp_path / "out").mkdir()

    with path.open("rb") as source:
        extract(source, tmp_path / "out", LIMITS)
        with pytest.raises(TargetTaken):
            extract(source, tmp_path / "out", LIMITS)

    assert (tmp_path / "out/bin/tool").is_file()


def test_a_link_in_the_place_of_the_target_is_not_followed(tmp_path: Path, extract: Extract) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").symlink_to("elsewhere")

    with archive_file(tmp_path, tar_of(*GOOD)).open("rb") as source, pytest.raises(TargetTaken):
        extract(source, tmp_path / "out", LIMITS)

    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_zip_file_is_unpacked_the_same_way(tmp_path: Path, extract: Extract) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/b.txt", b"b" * 2_000_000)

    with archive_file(tmp_path, stream).open("rb") as source:
        counts = extract(source, tmp_path / "out", LIMITS)

    assert counts == ExtractionCounts(files=1, folders=1, links=0, size=2_000_000)
    assert (tmp_path / "out/a/b.txt").read_bytes() == b"b" * 2_000_000


def test_modes_do_not_depend_on_the_umask(tmp_path: Path) -> None:
    old_umask = os.umask(0o077)
    try:
        extraction.extract(tar_of(*GOOD), tmp_path / "out", LIMITS)
    finally:
        os.umask(old_umask)

    assert stat.S_IMODE((tmp_path / "out/bin/tool").stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "out/bin").stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "out/notes.txt").stat().st_mode) == 0o644


def test_a_folder_that_became_a_link_meanwhile_is_not_entered(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "outside").mkdir()
    with TreeWriter(tmp_path / "tree") as tree:
        (tmp_path / "tree/a").symlink_to(tmp_path / "outside")

        with pytest.raises(ArchiveRefused):
            tree.put(ArchiveMember(ArchiveEntry("a/b", "file", 1, 0o644), iter((b"x",))))

    assert not list((tmp_path / "outside").iterdir())


def test_a_folder_that_is_no_longer_held_open_and_became_a_link_is_not_entered(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "outside").mkdir()
    with TreeWriter(tmp_path / "tree") as tree:
        for number in range(80):
            tree.put(ArchiveMember(ArchiveEntry(f"d{number}", "folder", 0, 0o755), iter(())))
        (tmp_path / "tree/d0").rmdir()
        (tmp_path / "tree/d0").symlink_to(tmp_path / "outside")

        with pytest.raises(OSError, match="d0"):
            tree.put(ArchiveMember(ArchiveEntry("d0/b", "file", 1, 0o644), iter((b"x",))))

    assert not list((tmp_path / "outside").iterdir())


def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("mine")

    with TreeWriter(tmp_path) as tree, pytest.raises(ArchiveRefused):
        tree.put(ArchiveMember(ArchiveEntry("a", "file", 1, 0o644), iter((b"x",))))

    assert (tmp_path / "a").read_text() == "mine"


def test_more_folders_than_the_open_folder_limit_are_extracted(tmp_path: Path) -> None:
    entries = [(f"d{n % 200}/e/f{n}", str(n).encode(), 0o644) for n in range(600)]

    counts = extraction.extract(tar_of(*entries), tmp_path / "out", LIMITS)

    assert counts.files == 600
    assert (tmp_path / "out/d7/e/f407").read_text() == "407"


def test_a_full_disk_is_reported_and_leaves_nothing(tmp_path: Path) -> None:
    old_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, old_limit[1]))
    try:
        with pytest.raises(StorageFull):
            extraction.extract(tar_of(*GOOD), tmp_path / "out", LIMITS)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old_limit)

    assert not list(tmp_path.iterdir())
