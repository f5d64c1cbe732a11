"""The locks name every package that another needs: they are installed without a search for dependencies."""

import re
from collections.abc import Iterable
from importlib import metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.source import ROOT

Locked = dict[str, str]


def test_the_lock_is_complete() -> None:
    locked = locked_here()
    needed = [Requirement(line) for line in (ROOT / "requirements/dev.in").read_text().splitlines()[1:]]
    for name in locked:
        needed += wanted_by(name)
    for each in [each for each in needed if each.extras]:
        needed += wanted_by(each.name, each.extras)

    assert len(locked) > 50
    assert [str(each) for each in needed if not is_met(each, locked)] == []


def locked_here() -> Locked:
    """The locked packages that are installed, with their versions: a lock names those of other systems too."""
    lock = (ROOT / "requirements/dev.txt").read_text()
    pinned = re.findall(r"^([a-z0-9.-]+)==([^\s;]+)", lock, re.MULTILINE)
    here = {canonicalize_name(each.metadata["Name"]) for each in metadata.distributions()}
    return {name: version for name, version in pinned if canonicalize_name(name) in here}


def wanted_by(name: str, extras: Iterable[str] = ("",)) -> list[Requirement]:
    """What the package needs on this machine, for these extras."""
    wanted = map(Requirement, metadata.requires(name) or ())
    return [
        each for each in wanted for extra in extras if each.marker is None or each.marker.evaluate({"extra": extra})
    ]


def is_met(needed: Requirement, locked: Locked) -> bool:
    """Whether a locked version fulfils the requirement."""
    version = locked.get(canonicalize_name(needed.name))
    return version is not None and needed.specifier.contains(version, prereleases=True)
