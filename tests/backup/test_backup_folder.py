"""Backups of a folder, in the order of their times."""

from pathlib import Path

import pytest

from countersign.backup import backup_folder
from countersign.kernel.clock import SECOND, Instant

FIRST = Instant(1_767_225_600 * SECOND + 42)
LATER = Instant(FIRST + 60 * SECOND)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two backups, and something else."""
    for moment in (LATER, FIRST):
        (tmp_path / backup_folder.backup_name(moment)).touch()
    (tmp_path / "countersign-notes.txt").touch()
    return tmp_path


def test_a_name_shows_its_moment_to_the_microsecond(folder: Path) -> None:
    assert backup_folder.backup_name(FIRST) == "countersign-20260101T000000.000042Z.backup"
    assert [backup.moment for backup in backup_folder.read_folder(folder).backups] == [FIRST, LATER]


def test_the_newest_that_is_not_after_the_moment_is_chosen(folder: Path) -> None:
    backups = backup_folder.read_folder(folder)

    assert backup_folder.newest(backups, None).moment == LATER
    assert backup_folder.newest(backups, LATER).moment == LATER
    assert backup_folder.newest(backups, Instant(LATER - 1)).moment == FIRST
    assert backup_folder.newest(backups, backup_folder.parse_moment("2026-01-01T01:00:30+01:00")).moment == FIRST
    with pytest.raises(backup_folder.NoBackup):
        backup_folder.newest(backups, Instant(FIRST - 1))


def test_the_newest_backups_are_kept_and_no_other_file_is_touched(folder: Path) -> None:
    backup_folder.remove_old(backup_folder.read_folder(folder), 1, folder / backup_folder.backup_name(LATER))

    assert [backup.moment for backup in backup_folder.read_folder(folder).backups] == [LATER]
    assert (folder / "countersign-notes.txt").exists()


def test_the_backup_just_made_is_kept_for_any_names_of_other_backups(folder: Path) -> None:
    # The clock was ahead and has been set back.
    backup_folder.remove_old(backup_folder.read_folder(folder), 1, folder / backup_folder.backup_name(FIRST))

    assert [backup.moment for backup in backup_folder.read_folder(folder).backups] == [FIRST]


@pytest.mark.parametrize("stamp", ["20990101T000000.000000Z", "99999999T999999.000000Z", "20260231T000000.000000Z"])
def test_a_backup_name_with_an_impossible_time_is_neither_used_nor_removed(folder: Path, stamp: str) -> None:
    odd_backup = folder / f"countersign-{stamp}.backup"
    odd_backup.touch()

    backups = backup_folder.read_folder(folder)
    removed_backups = backup_folder.remove_old(backups, 1, folder / backup_folder.backup_name(LATER))

    assert backups.skipped == [odd_backup]
    assert backup_folder.newest(backups, None).moment == LATER
    assert [path.name for path in removed_backups] == [backup_folder.backup_name(FIRST)]
    assert odd_backup.exists()
