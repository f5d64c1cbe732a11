"""No archive is taken that zip parsers are known to read in two ways."""

import pytest

from countersign.archives.refusals import ArchiveRefused
from tests.archives.cases import drain
from tests.archives.zipdiff import CLASSES, Doubt, Tree


def taken(doubt: Doubt) -> Tree | None:
    """The files, or nothing when the archive was refused."""
    try:
        found = drain(doubt.data)
    except ArchiveRefused:
        return None
    return {path: content for path, (kind, _, content) in found.items() if kind == "file"}


@pytest.mark.parametrize("name", CLASSES)
def test_what_parsers_are_known_to_disagree_about_is_refused(name: str) -> None:
    wrong = [doubt.variant for doubt in CLASSES[name]() if taken(doubt) not in (None, doubt.truth)]

    assert not wrong


@pytest.mark.parametrize("name", ["a2", "a4", "c5"])
def test_the_consistent_ones_of_a_class_are_taken(name: str) -> None:
    found = [taken(doubt) for doubt in CLASSES[name]()]

    assert any(tree is not None for tree in found), "all were refused, so that the class shows nothing"
