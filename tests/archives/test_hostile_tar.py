"""Every trick of a tar archive, plain and compressed, is refused by its rule, and nothing is written."""

import gzip
import lzma
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from backports import zstd

from tests.archives import doubtful_tars, hostile_compression, hostile_tar_links, hostile_tars
from tests.archives.cases import ArchiveCase, hold_refused, parameters

CASES = [*hostile_tars.CASES, *hostile_tar_links.CASES, *doubtful_tars.CASES]
PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "gz": lambda data: gzip.compress(data, mtime=0),
    "xz": partial(lzma.compress, preset=0),
    "zst": zstd.compress,
}


@pytest.mark.parametrize("case", parameters(CASES))
def test_a_hostile_tar_is_refused(case: ArchiveCase, tmp_path: Path) -> None:
    hold_refused(case, case.make(), tmp_path)


@pytest.mark.parametrize("case", parameters([case for case in CASES if not case.is_only_strict]))
def test_a_hostile_tar_is_refused_by_the_compatible_profile_too(case: ArchiveCase, tmp_path: Path) -> None:
    hold_refused(case, case.make(), tmp_path, "compatible")


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("case", parameters(CASES))
def test_a_hostile_tar_is_refused_when_it_is_compressed(case: ArchiveCase, packing: str, tmp_path: Path) -> None:
    hold_refused(case, PACKINGS[packing](case.make()), tmp_path)


@pytest.mark.parametrize("case", parameters(hostile_compression.CASES))
def test_a_tar_in_hostile_compression_is_refused(case: ArchiveCase, tmp_path: Path) -> None:
    hold_refused(case, case.make(), tmp_path)


@pytest.mark.parametrize("case", parameters([case for case in hostile_compression.CASES if not case.is_only_strict]))
def test_a_tar_in_hostile_compression_is_refused_by_the_compatible_profile_too(
    case: ArchiveCase, tmp_path: Path
) -> None:
    hold_refused(case, case.make(), tmp_path, "compatible")
