"""The order of versions. `sort_key` converts a version to a text; databases sort releases by this text.

A version that follows SemVer is ordered by SemVer 2.0.0 §11, any other one by PEP 440 (`packaging.version`). The texts
must sort by code point exactly as the versions do.
"""

import re

from packaging.version import InvalidVersion, Version

_SEMVER = re.compile(
    r"v?(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?"
    r"(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?",
)
_ZEROS = re.compile(r"(?<!\.0)(?:\.0)+\Z")
_NEITHER, _PACKAGING, _SEMVER_KIND = "0", "1", "1"
# The character after the release numbers in the key. Development releases and pre-releases sort before the release
# itself, and post-releases sort after it.
_DEV, _PRE, _FINAL, _POST = "0", "1", "2", "3"


def sort_key(version: str) -> str:
    """Return a text that sorts by code point as the version does. Invalid versions sort below valid ones."""
    semver_match = _SEMVER.fullmatch(version)
    if semver_match:
        numbers = [int(part) for part in semver_match.group(1, 2, 3)]
        return f"{_SEMVER_KIND}{_number_key(0)}{_release_key(numbers)}{_semver_phase(semver_match.group(4))}"
    try:
        return _PACKAGING + _packaging_key(Version(version))
    except InvalidVersion:
        return _NEITHER + version


def is_lower(version: str, other_version: str) -> bool:
    """Return whether the version is lower than the other one. Return False if one of them is invalid, or if they differ
    only by trailing `.0`."""
    key, other_key = sort_key(version), sort_key(other_version)
    if key[0] == _NEITHER or other_key[0] == _NEITHER or without_zeros(version) == without_zeros(other_version):
        return False
    return key < other_key


def without_zeros(version: str) -> str:
    """Return the version without trailing `.0`."""
    return _ZEROS.sub("", version)


def _number_key(value: int) -> str:
    """Return the number of digits followed by the digits, so that the texts sort as the numbers do."""
    digits = str(value)
    return f"{len(digits):03d}{digits}"


def _release_key(values: list[int]) -> str:
    """Return the key of release numbers, without trailing zeros. A list sorts before a longer list that starts with the
    same numbers."""
    while values and values[-1] == 0:
        values = values[:-1]
    return "".join(f"1{_number_key(value)}" for value in values) + "0"


def _semver_phase(prerelease: str | None) -> str:
    if prerelease is None:
        return _FINAL
    keys = [f"1{_number_key(int(part))}" if part.isdigit() else f"2{part}\x01" for part in prerelease.split(".")]
    return _PRE + "".join(keys) + "0"


def _packaging_key(version: Version) -> str:
    key = _number_key(version.epoch) + _release_key(list(version.release))
    if version.pre is not None:
        letter, number = version.pre
        key += f"{_PRE}2{letter}\x01{_number_key(number)}"
    elif version.post is None and version.dev is not None:
        return key + _DEV + _number_key(version.dev)
    else:
        key += _FINAL
    key += f"{_POST}{_number_key(version.post)}" if version.post is not None else "1"
    return key + (f"0{_number_key(version.dev)}" if version.dev is not None else "1")
