"""Randomly changed archives: each is refused, or accepted with the contents that every other parser reads; nothing is
written outside the target."""

import io
import itertools
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from countersign.archives.extraction import extract
from countersign.archives.limits import Limits, Profile
from countersign.kernel.errors import Refused
from tests.archives import peers
from tests.archives.cases import drain, paths_below
from tests.archives.good import Tree
from tests.archives.mutations import mutant
from tests.figures import Figures

CASES, CASES_A_STINT, STINTS_FULL = 1_000, 5_000, 20
"""A full run has 100,000 cases in 20 stints of 5,000. An interrupted run continues with the next stint."""
EXTRACT_ONE_IN, COMPARE_ONE_IN = 20, 10
LIMITS = Limits(entries=1000, total_bytes=16 << 20, ratio_after_bytes=1 << 20, seconds=60)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run one stint, or all stints with --full."""
    if "stint" in metafunc.fixturenames:
        metafunc.parametrize("stint", range(STINTS_FULL if metafunc.config.getoption("--full") else 1))


def read_or_refuse(data: bytes, limits: Limits) -> Tree | None:
    """Return the tree that the reader returns, or None if the reader refuses the archive. Any other exception is a
    fault."""
    try:
        entries = drain(data, limits)
    except Refused:
        return None
    return {path: (kind, content) for path, (kind, _, content) in entries.items()}


def hold_extracted(data: bytes, tree: Tree | None, limits: Limits, folder: Path) -> None:
    """Extraction has the same result as reading, writes only below its target, and the target is then removed."""
    target = folder / "target"
    try:
        extract(io.BytesIO(data), target, limits, durable=False)
    except Refused:
        assert tree is None
    else:
        assert tree is not None
        assert peers.on_disk(target) == peers.with_implied(tree)
        for path in sorted(target.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        target.rmdir()
    assert paths_below(folder) == []


def require_same_contents(data: bytes, tree: Tree) -> Iterator[str]:
    """Require that every program for the format unpacks the same contents. Return the names of these programs."""
    for name in peers.PROGRAMS:
        program_tree = peers.by_program(name, data)
        if program_tree is not None:
            assert peers.compose_paths(program_tree) == peers.compose_paths(peers.with_implied(tree)), name
            yield name


def test_a_mutated_archive_is_refused_or_read_as_by_every_other_parser(
    stint: int, is_full: bool, figures: Figures, tmp_path: Path
) -> None:
    count: Counter[str] = Counter()
    profiles: itertools.cycle[Profile] = itertools.cycle(("strict", "strict", "compatible"))
    began_s = time.monotonic()

    for number in range(stint * CASES_A_STINT, stint * CASES_A_STINT + (CASES_A_STINT if is_full else CASES)):
        data, limits = mutant(number), replace(LIMITS, profile=next(profiles))
        tree = read_or_refuse(data, limits)
        count["taken" if tree is not None else "refused"] += 1
        if number % EXTRACT_ONE_IN == 0:
            hold_extracted(data, tree, limits, tmp_path)
            count["extracted"] += 1
        if tree is None:
            continue
        assert peers.by_library(data) == tree, f"case {number}"
        if count["taken"] % COMPARE_ONE_IN == 0:
            count.update(require_same_contents(data, tree))

    assert count["taken"] > 50, "nearly all were refused, so that the comparison shows nothing"
    figures.update(count)
    figures["cases_s"] = round(sum(count[key] for key in ("taken", "refused")) / (time.monotonic() - began_s))
