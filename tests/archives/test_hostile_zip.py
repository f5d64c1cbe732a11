"""Every trick of a zip archive is refused by its rule, and nothing is written."""

from pathlib import Path

import pytest

from tests.archives import doubtful_zips, hostile_zips, zip_bombs
from tests.archives.cases import ArchiveCase, hold_refused, parameters

CASES = [*zip_bombs.CASES, *hostile_zips.CASES, *doubtful_zips.CASES]


@pytest.mark.parametrize("case", parameters(CASES))
def test_a_hostile_zip_is_refused(case: ArchiveCase, tmp_path: Path) -> None:
    hold_refused(case, case.make(), tmp_path)


@pytest.mark.parametrize("case", parameters([case for case in CASES if not case.is_only_strict]))
def test_a_hostile_zip_is_refused_by_the_compatible_profile_too(case: ArchiveCase, tmp_path: Path) -> None:
    hold_refused(case, case.make(), tmp_path, "compatible")


def test_a_hostile_wheel_is_refused_like_a_hostile_zip(tmp_path: Path) -> None:
    case = next(case for case in CASES if case.id == "dot_dot-at_the_start")

    hold_refused(case._replace(name="demo-1.0-py3-none-any.whl"), case.make(), tmp_path)
