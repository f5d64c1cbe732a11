"""Archives from the grammar of their format: valid ones are read correctly; tricks are refused, or read as every other
reader reads them."""

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
def test_generated_archives_are_refused_by_rule_or_read_as_others_read_them(
    make: Callable[[int], GeneratedArchive], is_full: bool, figures: Figures
) -> None:
    count: Counter[str] = Counter()
    for seed in range(FULL if is_full else SAMPLE):
        made = make(seed)
        limits = replace(LIMITS, profile="strict" if seed % 2 else "compatible")
        tree, rule = read_or_rule(made, limits)
        count["taken" if tree is not None else "refused"] += 1
        hold_right(made, tree, rule, seed)
        if tree is not None and (seed % PROGRAMS_ONE_IN == 0 or (made.trick and is_full)):
            count.update(hold_alike(made, tree, seed))

    figures |= count
    assert min(count["taken"], count["refused"]) > (FULL if is_full else SAMPLE) // 10


def read_or_rule(made: GeneratedArchive, limits: Limits) -> tuple[Tree | None, str]:
    """The tree that the reader returns, or None and the rule of the refusal."""
    try:
        return {path: (kind, content) for path, (kind, _, content) in drain(made.data, limits).items()}, ""
    except (ArchiveRefused, ArchiveUnknown) as refused:
        return None, rule_of(refused)


def hold_right(made: GeneratedArchive, tree: Tree | None, rule: str, seed: int) -> None:
    """A valid archive is read correctly; an accepted archive reads the same in the standard library; a refusal has a
    rule."""
    if made.tree is not None:
        assert tree == made.tree, f"{seed} is valid: {rule}"
    if tree is None:
        assert rule in RULES or rule == "unknown", f"{seed} {made.trick}"
    else:
        assert peers.by_library(made.data) == tree, f"{seed} {made.trick}"


def hold_alike(made: GeneratedArchive, tree: Tree, seed: int) -> list[str]:
    """Every installed program that reads the format unpacks the same; returns their names."""
    read: list[str] = []
    for name in peers.PROGRAMS:
        theirs = peers.by_program(name, made.data)
        if theirs is not None:
            assert peers.composed(theirs) == peers.composed(peers.with_implied(tree)), f"{seed} {made.trick} {name}"
            read.append(name)
    return read
