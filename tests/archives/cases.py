"""What a hostile archive is to the tests: the threat, the trick, the rule that has to be named; and the proof that
nothing was written."""

import io
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from countersign.archives.extracting import extract
from countersign.archives.limits import Limits, Profile
from countersign.archives.reading import read
from countersign.archives.refusals import ArchiveRefused
from countersign.archives.rules import RULES

LIMITS = Limits(seconds=60)
PROFILES: tuple[Profile, ...] = ("strict", "compatible")


class Case(NamedTuple):
    """One trick. `threat` is a key of the list in test_every_threat.py, `rules` the words that may name it."""

    threat: str
    trick: str
    rules: str
    make: Callable[[], bytes]
    limits: Limits = LIMITS
    is_only_strict: bool = False
    """Whether the profile `compatible` may take it: it is legal and harmless."""

    @property
    def id(self) -> str:
        """The name of the test."""
        return f"{self.threat}-{self.trick}".replace(" ", "_")


def parameters(cases: list[Case]) -> Iterator[object]:
    """The cases as parameters with their names.

    Raises:
        ValueError: two cases have one name.
    """
    seen = set[str]()
    for case in cases:
        if case.id in seen:
            raise ValueError(f"two cases are called {case.id}")
        seen.add(case.id)
        yield pytest.param(case, id=case.id)


def below(folder: Path) -> list[str]:
    """Everything in a folder and its folders, links not followed."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def hold_refused(case: Case, data: bytes, tmp_path: Path, profile: Profile = "strict", *, name: str = "") -> None:
    """Reading and extracting refuse the archive by a rule of the case, and leave nothing, inside or outside."""
    limits = replace(case.limits, profile=profile)
    words = set(case.rules.split())
    assert words <= RULES.keys(), f"no rules: {words - RULES.keys()}"
    watched = tmp_path / "watched"
    target = watched / "deeper" / "target"
    target.parent.mkdir(parents=True)
    before = below(tmp_path)

    with pytest.raises(ArchiveRefused) as told:
        drain(data, limits)
    with pytest.raises(ArchiveRefused) as extracting:
        extract(io.BytesIO(data), target, limits, name=name)

    assert told.value.rule in words
    assert extracting.value.rule == told.value.rule
    assert below(tmp_path) == before


def drain(data: bytes, limits: Limits = LIMITS) -> dict[str, tuple[str, int, bytes]]:
    """The whole tree: for each path its kind, its mode, and its bytes or target."""
    found: dict[str, tuple[str, int, bytes]] = {}
    for entry, pieces in read(io.BytesIO(data), limits):
        assert entry.path not in found
        content = b"".join(pieces)
        assert entry.kind != "file" or entry.size == len(content)
        found[entry.path] = entry.kind, entry.mode, entry.target.encode() if entry.kind == "link" else content
    return found
