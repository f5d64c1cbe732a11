"""The reader accepts no archive that zip parsers are known to read differently."""

from functools import cache

import pytest

from countersign.archives.refusals import ArchiveRefused
from tests.archives.cases import drain
from tests.archives.zipdiff import CLASSES, DoubtfulArchive, Tree


def read_or_refuse(doubtful: DoubtfulArchive) -> Tree | None:
    """Return the files, or nothing when the archive was refused."""
    try:
        entries = drain(doubtful.data)
    except ArchiveRefused:
        return None
    return {path: content for path, (kind, _, content) in entries.items() if kind == "file"}


@cache
def all_taken(name: str) -> list[tuple[DoubtfulArchive, Tree | None]]:
    """Return the archives of a class, and the accepted contents of each."""
    return [(doubtful, read_or_refuse(doubtful)) for doubtful in CLASSES[name]()]


@pytest.mark.parametrize("name", CLASSES)
def test_an_archive_that_parsers_read_differently_is_refused(name: str) -> None:
    wrong_variants = [doubtful.variant for doubtful, tree in all_taken(name) if tree not in (None, doubtful.truth)]

    assert not wrong_variants


@pytest.mark.parametrize("name", ["a2", "a4", "c5"])
def test_consistent_archives_of_a_class_are_accepted(name: str) -> None:
    results = all_taken(name)

    assert any(tree is not None for _, tree in results), "all were refused, so that the class shows nothing"
