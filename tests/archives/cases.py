"""Describes a hostile archive for the tests: the threat, the trick, the rule that must be named; and checks that
nothing was written."""

import io
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from _pytest.mark import ParameterSet

from countersign.archives.extraction import extract
from countersign.archives.limits import Limits, Profile
from countersign.archives.reader import read
from countersign.archives.refusals import RULES, ArchiveRefused, ArchiveUnknown

LIMITS = Limits(seconds=60)
PROFILES: tuple[Profile, ...] = ("strict", "compatible")


class ArchiveCase(NamedTuple):
    """One trick. `threat` is a key of the list in test_every_threat.py; `rules` are the rules that may refuse it."""

    threat: str
    trick: str
    rules: str
    make: Callable[[], bytes]
    limits: Limits = LIMITS
    is_only_strict: bool = False
    """True if the profile `compatible` may accept the archive, because it is legal and harmless."""
    name: str = ""
    """The file name; empty when the file name does not matter."""

    @property
    def id(self) -> str:
        """The name of the test."""
        return f"{self.threat}-{self.trick}".replace(" ", "_")


def parameters(cases: list[ArchiveCase]) -> list[ParameterSet]:
    """Return the cases as parameters with their names.

    Raises:
        ValueError: two cases have one name.
    """
    repeated_ids = [name for name, count in Counter(case.id for case in cases).items() if count > 1]
    if repeated_ids:
        raise ValueError(f"two cases are called {repeated_ids}")
    return [pytest.param(case, id=case.id) for case in cases]


def paths_below(folder: Path) -> list[str]:
    """Everything below a folder, without following links."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def hold_refused(case: ArchiveCase, data: bytes, tmp_path: Path, profile: Profile = "strict") -> None:
    """Reading and extracting refuse the archive by a rule of the case, and leave nothing, inside or outside."""
    limits = replace(case.limits, profile=profile)
    rule_names = set(case.rules.split())
    assert rule_names <= RULES.keys() | {"unknown"}, f"no rules: {rule_names - RULES.keys()}"
    target = tmp_path / "watched" / "deeper" / "target"
    target.parent.mkdir(parents=True)
    paths_before = paths_below(tmp_path)

    with pytest.raises((ArchiveRefused, ArchiveUnknown)) as reading_error:
        drain(data, limits, case.name)
    with pytest.raises((ArchiveRefused, ArchiveUnknown)) as extracting_error:
        extract(io.BytesIO(data), target, limits, name=case.name)

    assert rule_of(reading_error.value) in rule_names
    assert rule_of(extracting_error.value) == rule_of(reading_error.value)
    assert paths_below(tmp_path) == paths_before


def rule_of(error: ArchiveRefused | ArchiveUnknown) -> str:
    """Return the rule of the refusal, or `unknown` when the bytes are not recognised as an archive."""
    return error.rule if isinstance(error, ArchiveRefused) else "unknown"


def drain(data: bytes, limits: Limits = LIMITS, name: str = "") -> dict[str, tuple[str, int, bytes]]:
    """Return the whole tree: for each path its kind, its mode, and its bytes or target."""
    entries_by_path: dict[str, tuple[str, int, bytes]] = {}
    for entry, pieces in read(io.BytesIO(data), limits, name=name):
        assert entry.path not in entries_by_path
        content = b"".join(pieces)
        assert entry.kind != "file" or entry.size == len(content)
        entries_by_path[entry.path] = entry.kind, entry.mode, entry.target.encode() if entry.kind == "link" else content
    return entries_by_path
