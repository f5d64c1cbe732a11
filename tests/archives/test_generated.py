"""Archives generated from the grammar of their format. Valid archives are read correctly. Archives with tricks are
refused, or read as every other reader reads them."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from countersign.archives.limits import Limits
from countersign.archives.refusals import RULES, ArchiveRefused, ArchiveUnknown
from tests.archives import generated, peers
from tests.archives.cases import drain, rule_of
from tests.archives.generated import GeneratedArchive
from tests.archives.good import Tree
from tests.figures import Figures

SAMPLE, FULL = 600, 30_000
PROGRAMS_ONE_IN = 61
"""Not a multiple of three: every third archive has a trick."""
LIMITS = Limits(total_bytes=16 << 20, seconds=60)


@pytest.mark.parametrize("make", [generated.tar, generated.zip_], ids=["tar", "zip"])
def test_generated_archives_are_refused_by_rule_or_read_as_by_other_parsers(
    make: Callable[[int], GeneratedArchive], is_full: bool, figures: Figures
) -> None:
    count: Counter[str] = Counter()
    for seed in range(FULL if is_full else SAMPLE):
        archive = make(seed)
        limits = replace(LIMITS, profile="strict" if seed % 2 else "compatible")
        tree, rule = read_or_rule(archive, limits)
        count["taken" if tree is not None else "refused"] += 1
        require_correct(archive, tree, rule, seed)
        if tree is not None and (seed % PROGRAMS_ONE_IN == 0 or (archive.trick and is_full)):
            count.update(require_same_contents(archive, tree, seed))

    figures |= count
    assert min(count["taken"], count["refused"]) > (FULL if is_full else SAMPLE) // 10


def read_or_rule(archive: GeneratedArchive, limits: Limits) -> tuple[Tree | None, str]:
    """Return the tree that the reader returns, or None and the rule of the refusal."""
    try:
        return {path: (kind, content) for path, (kind, _, content) in drain(archive.data, limits).items()}, ""
    except (ArchiveRefused, ArchiveUnknown) as refusal:
        return None, rule_of(refusal)


def require_correct(archive: GeneratedArchive, tree: Tree | None, rule: str, seed: int) -> None:
    """Require that a valid archive is read correctly, and that an accepted archive has the same contents in the
    standard library."""
    if archive.tree is not None:
        assert tree == archive.tree, f"{seed} is valid: {rule}"
    if tree is None:
        assert rule in RULES or rule == "unknown", f"{seed} {archive.trick}"
    else:
        assert peers.by_library(archive.data) == tree, f"{seed} {archive.trick}"


def require_same_contents(archive: GeneratedArchive, tree: Tree, seed: int) -> list[str]:
    """Require that every installed program for the format unpacks the same contents. Return the names of these
    programs."""
    agreeing_programs: list[str] = []
    for name in peers.PROGRAMS:
        program_tree = peers.by_program(name, archive.data)
        if program_tree is not None:
            assert peers.compose_paths(program_tree) == peers.compose_paths(peers.with_implied(tree)), (
                f"{seed} {archive.trick} {name}"
            )
            agreeing_programs.append(name)
    return agreeing_programs
