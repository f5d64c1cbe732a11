"""Backups of a folder, by their moments."""

from pathlib import Path

import pytest

from countersign.backup import series
from countersign.kernel.clock import SECOND, Instant

FIRST = Instant(1_767_225_600 * SECOND + 42)
LATER = Instant(FIRST + 60 * SECOND)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two backups, and something else."""
    for moment in (LATER, FIRST):
        (tmp_path / series.name_of(moment)).touch()
    (tmp_path / "countersign-notes.txt").touch()
    return tmp_path


def test_a_name_tells_its_moment_to_the_microsecond(folder: Path) -> None:
    assert series.name_of(FIRST) == "countersign-20260101T000000.000042Z.backup"
    assert [each.moment for each in series.found(folder).kept] == [FIRST, LATER]


def test_the_newest_that_is_not_after_the_moment_is_chosen(folder: Path) -> None:
    found = series.found(folder)

    assert series.newest(found, None).moment == LATER
    assert series.newest(found, LATER).moment == LATER
    assert series.newest(found, Instant(LATER - 1)).moment == FIRST
    assert series.newest(found, series.moment_of("2026-01-01T01:00:30+01:00")).moment == FIRST
    with pytest.raises(series.NoBackup):
        series.newest(found, Instant(FIRST - 1))


def test_the_newest_are_kept_and_nothing_else_is_touched(folder: Path) -> None:
    series.expire(series.found(folder), 1, folder / series.name_of(LATER))

    assert [each.moment for each in series.found(folder).kept] == [LATER]
    assert (folder / "countersign-notes.txt").exists()


def test_the_one_just_made_is_kept_whatever_the_others_are_called(folder: Path) -> None:
    # As after a clock that was ahead has been set back.
    series.expire(series.found(folder), 1, folder / series.name_of(FIRST))

    assert [each.moment for each in series.found(folder).kept] == [FIRST]


@pytest.mark.parametrize("stamp", ["20990101T000000.000000Z", "99999999T999999.000000Z", "20260231T000000.000000Z"])
def test_a_name_of_no_moment_that_has_been_is_neither_believed_nor_removed(folder: Path, stamp: str) -> None:
    odd = folder / f"countersign-{stamp}.backup"
    odd.touch()

    found = series.found(folder)
    removed = series.expire(found, 1, folder / series.name_of(LATER))

    assert found.passed_over == [odd]
    assert series.newest(found, None).moment == LATER
    assert [path.name for path in removed] == [series.name_of(FIRST)]
    assert odd.exists()
