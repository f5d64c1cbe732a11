"""A directory always becomes the same archive, and no file from outside it is included."""

import io
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from countersign.cli.client.archive import Format, pack
from countersign.cli.output import Failure


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """A directory as a build writes it."""
    root = tmp_path / "build"
    (root / "bin").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "bin" / "tool").write_bytes(b"#!/bin/sh\n")
    (root / "bin" / "tool").chmod(0o700)
    (root / "notes.txt").write_text("ä")
    (root / "notes.txt").chmod(0o600)
    (root / "latest").symlink_to("bin/tool")
    return root


def pack_directory(root: Path, form: Format) -> bytes:
    """Return the bytes of the archive."""
    output = io.BytesIO()
    pack(root, output, form)
    return output.getvalue()


@pytest.mark.parametrize("form", ["tar.gz", "zip"])
def test_times_modes_and_place_do_not_change_the_archive(build: Path, form: Format) -> None:
    first_archive = pack_directory(build, form)

    os.utime(build / "notes.txt", (1, 1))
    (build / "notes.txt").chmod(0o664)
    moved_build = build.rename(build.with_name("elsewhere"))

    assert pack_directory(moved_build, form) == first_archive


@pytest.mark.parametrize("form", ["tar.gz", "zip"])
def test_another_byte_changes_the_archive(build: Path, form: Format) -> None:
    first_archive = pack_directory(build, form)

    (build / "notes.txt").write_text("ö")

    assert pack_directory(build, form) != first_archive


def test_a_tar_contains_all_files_with_plain_modes_and_no_owner(build: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(pack_directory(build, "tar.gz"))) as archive:
        members = archive.getmembers()

    assert [(member.name, oct(member.mode)) for member in members] == [
        ("bin", "0o755"),
        ("bin/tool", "0o755"),
        ("empty", "0o755"),
        ("latest", "0o777"),
        ("notes.txt", "0o644"),
    ]
    assert {(member.uid, member.gid, member.uname, member.gname) for member in members} == {(0, 0, "", "")}
    assert members[3].linkname == "bin/tool"


def test_a_zip_contains_all_files_and_keeps_links(build: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(pack_directory(build, "zip"))) as archive:
        names = archive.namelist()
        link = archive.getinfo("latest")
        tool = archive.getinfo("bin/tool")

        assert names == ["bin/", "bin/tool", "empty/", "latest", "notes.txt"]
        assert archive.read("latest") == b"bin/tool"
        assert link.external_attr >> 16 == 0o120777
        assert tool.external_attr >> 16 == 0o100755


@pytest.mark.parametrize("aim", ["/etc/passwd", "../outside", "bin/../../outside"])
def test_a_link_that_leaves_the_directory_is_refused(build: Path, aim: str) -> None:
    (build / "bad").symlink_to(aim)

    with pytest.raises(Failure, match="cannot be packed") as refusal:
        pack_directory(build, "tar.gz")

    assert "bad" in refusal.value.why


def test_a_pipe_is_refused(build: Path) -> None:
    os.mkfifo(build / "pipe")

    with pytest.raises(Failure) as refusal:
        pack_directory(build, "zip")

    assert "pipe" in refusal.value.why


def test_an_empty_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="nothing to push"):
        pack_directory(tmp_path, "tar.gz")
