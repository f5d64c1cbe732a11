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
    assert [each.moment for each in series.kept(folder)] == [FIRST, LATER]


def test_the_newest_that_is_not_after_the_moment_is_chosen(folder: Path) -> None:
    assert series.newest(folder, None).moment == LATER
    assert series.newest(folder, LATER).moment == LATER
    assert series.newest(folder, Instant(LATER - 1)).moment == FIRST
    assert series.newest(folder, series.moment_of("2026-01-01T01:00:30+01:00")).moment == FIRST
    with pytest.raises(series.NoBackup):
        series.newest(folder, Instant(FIRST - 1))


def test_the_newest_are_kept_and_nothing_else_is_touched(folder: Path) -> None:
    series.expire(folder, 1)

    assert [each.moment for each in series.kept(folder)] == [LATER]
    assert (folder / "countersign-notes.txt").exists()
