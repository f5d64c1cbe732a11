"""A file gets its final name only when it is complete, and remains of killed processes are removed."""

import errno
import os
from pathlib import Path

import pytest

from countersign.backup import atomic_files
from countersign.kernel.errors import NotEmpty, StorageFull, Unavailable


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    with atomic_files.new_file(tmp_path) as file:
        file.write(b"content")
        assert not (tmp_path / "name").exists()
        file.finish(tmp_path / "name")

    assert [path.name for path in tmp_path.iterdir()] == ["name"]
    assert (tmp_path / "name").read_bytes() == b"content"
    assert (tmp_path / "name").stat().st_mode & 0o777 == 0o600


def test_an_abandoned_file_leaves_nothing(tmp_path: Path) -> None:
    with atomic_files.new_file(tmp_path) as file:
        file.write(b"content")

    assert not list(tmp_path.iterdir())


def test_an_existing_file_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "name").write_bytes(b"before")

    with pytest.raises(Unavailable), atomic_files.new_file(tmp_path) as file:
        file.finish(tmp_path / "name")

    assert (tmp_path / "name").read_bytes() == b"before"


def test_leftover_files_are_deleted_and_files_in_progress_are_kept(tmp_path: Path) -> None:
    dead = tmp_path / f"{atomic_files.PREFIX}dead{atomic_files.ENDING}"
    dead.mkdir()
    (dead / "half").touch()
    (tmp_path / f"{atomic_files.PREFIX}half{atomic_files.ENDING}").touch()

    with (
        atomic_files.new_file(tmp_path) as file,
        atomic_files.new_folder(tmp_path / "name") as folder,
        atomic_files.new_file(tmp_path) as other_file,
    ):
        assert {path for path in tmp_path.iterdir()} == {file.path, folder.path, other_file.path}


@pytest.mark.parametrize("kind", ["missing", "empty", "linked", "left"])
def test_a_missing_folder_is_created_and_an_empty_folder_filled_in_place(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "name"
    if kind != "missing":
        (tmp_path / "real").mkdir()
        target.symlink_to("real") if kind == "linked" else (tmp_path / "real").rename(target)
    if kind == "left":
        (target / f"{atomic_files.PREFIX}dead{atomic_files.ENDING}").mkdir()
    is_link, inode = target.is_symlink(), target.stat().st_ino if kind != "missing" else 0

    with atomic_files.new_folder(target) as folder:
        (folder.path / "part").mkdir()
        (folder.path / "key").write_bytes(b"key")
        folder.finish(last_name="key")
        assert (target / "key").read_bytes() == b"key"

    assert sorted(path.name for path in target.iterdir()) == ["key", "part"]
    assert target.is_symlink() is is_link
    assert inode in (0, target.stat().st_ino)
    assert not list(tmp_path.glob(".countersign-*"))


def test_a_folder_that_is_not_empty_or_is_being_filled_is_refused_and_an_abandoned_folder_stays_empty(
    tmp_path: Path,
) -> None:
    target = tmp_path / "name"
    target.mkdir()

    with atomic_files.new_folder(target) as folder:
        (folder.path / "half").touch()
        with pytest.raises(NotEmpty), atomic_files.new_folder(target):
            raise AssertionError("two fill it")
        (target / "other").touch()
        with pytest.raises(NotEmpty):
            folder.finish(last_name="")

    assert [path.name for path in target.iterdir()] == ["other"]
    with pytest.raises(NotEmpty), atomic_files.new_folder(target):
        raise AssertionError("it was filled")


def test_a_full_volume_and_an_unwritable_folder_are_reported(tmp_path: Path) -> None:
    with pytest.raises(StorageFull), atomic_files.disk_errors(tmp_path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with pytest.raises(Unavailable), atomic_files.new_file(tmp_path / "missing"):
        raise AssertionError("it was made")


def test_foreign_files_are_ignored(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".countersign-pipe.unfinished")
    (tmp_path / "kept").write_bytes(b"kept")
    (tmp_path / ".countersign-link.unfinished").symlink_to(tmp_path / "kept")

    with atomic_files.new_file(tmp_path) as file:
        file.finish(tmp_path / "name")

    assert (tmp_path / ".countersign-pipe.unfinished").is_fifo()
    assert (tmp_path / "kept").read_bytes() == b"kept"
