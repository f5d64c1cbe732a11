"""The lock files list every package that another package requires. Installation therefore needs no dependency
resolution."""

import re
from collections.abc import Iterable
from importlib import metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.source import ROOT

Locked = dict[str, str]


def test_the_lock_is_complete() -> None:
    locked = installed_locked_packages()
    needed = [Requirement(line) for line in (ROOT / "requirements/dev.in").read_text().splitlines()[1:]]
    for name in locked:
        needed += requirements_of(name)
    for item in [package for package in needed if package.extras]:
        needed += requirements_of(item.name, item.extras)

    assert len(locked) > 50
    assert [str(requirement) for requirement in needed if not is_met(requirement, locked)] == []


def installed_locked_packages() -> Locked:
    """Return the locked packages that are installed here, with their versions. A lock file also lists packages of other
    systems."""
    lock = (ROOT / "requirements/dev.txt").read_text()
    pinned = re.findall(r"^([a-z0-9.-]+)==([^\s;]+)", lock, re.MULTILINE)
    installed_names = {canonicalize_name(distribution.metadata["Name"]) for distribution in metadata.distributions()}
    return {name: version for name, version in pinned if canonicalize_name(name) in installed_names}


def requirements_of(name: str, extras: Iterable[str] = ("",)) -> list[Requirement]:
    """Return what the package with these extras requires on this system."""
    requirements = map(Requirement, metadata.requires(name) or ())
    return [
        requirement
        for requirement in requirements
        for extra in extras
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra})
    ]


def is_met(needed: Requirement, locked: Locked) -> bool:
    """Return whether the locked version of the package meets the requirement."""
    version = locked.get(canonicalize_name(needed.name))
    return version is not None and needed.specifier.contains(version, prereleases=True)
