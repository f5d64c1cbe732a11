"""Which files are compared together: those that are alike in name, in groups that fit into memory."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from countersign.updates.manifest import File

WHOLE = 2
"""Times the size of a group that a build may have and still be one: what moves between its files is then found."""
LARGEST = 2
"""Times the size of a group that a file may have; beyond that its chunks have to do."""

_DIGITS = re.compile(r"[0-9]+(?:[._][0-9]+)*|(?<=[-_.])[0-9a-f]{6,}(?=[-_.])")

_SAME: tuple[Callable[[str], str], ...] = (
    lambda path: path,
    lambda path: _DIGITS.sub("#", path),
    lambda path: path.rpartition("/")[2],
    lambda path: _DIGITS.sub("#", path.rpartition("/")[2]),
)
"""What two paths may have in common, the strongest sign first."""


class Group(NamedTuple):
    """Positions in the old manifest's files and in the new one's, each in order."""

    old: list[int]
    new: list[int]


def groups(old: Sequence[File], new: Sequence[File], most: int) -> Iterator[Group]:
    """The files of the new build that the old one has nowhere, with the old files to make them from.

    Where everything together has no more than WHOLE times `most` bytes, all old files are in one group, whatever they
    are called. Otherwise old and new contents of a group are at most `most` bytes, unless it is of a single pair of
    files; and no file has more than LARGEST times that.
    """
    changed = _changed(old, new, LARGEST * most)
    if not changed:
        return
    usable = [place for place, file in enumerate(old) if 0 < file.size <= LARGEST * most]
    if not usable:
        return
    # Empty files cost nothing, and all places are one stretch.
    every = list(range(len(old)))
    if _size(old, every) + _size(new, changed) <= WHOLE * most:
        yield Group(every, changed)
        return
    indexes = [_index(old, usable, same) for same in _SAME]
    yield from _filled(old, new, {place: _partner(old, new[place], indexes) for place in changed}, most)


def _changed(old: Sequence[File], new: Sequence[File], largest: int) -> list[int]:
    known = {file.sha256 for file in old}
    return [place for place, file in enumerate(new) if file.sha256 not in known and 0 < file.size <= largest]


def _size(files: Sequence[File], places: Sequence[int]) -> int:
    return sum(files[place].size for place in places)


def _index(old: Sequence[File], places: Sequence[int], same: Callable[[str], str]) -> dict[str, list[int]]:
    index: dict[str, list[int]] = defaultdict(list)
    for place in places:
        index[same(old[place].path)].append(place)
    return index


def _partner(old: Sequence[File], file: File, indexes: Sequence[dict[str, list[int]]]) -> int | None:
    for same, index in zip(_SAME, indexes, strict=True):
        if found := index.get(same(file.path)):
            return min(found, key=lambda place: abs(old[place].size - file.size))
    return None


def _filled(old: Sequence[File], new: Sequence[File], partners: dict[int, int | None], most: int) -> Iterator[Group]:
    """Groups of pairs in the order of the new paths. A file without a partner is left to its chunks."""
    olds: set[int] = set()
    news: list[int] = []
    size = 0
    for place, partner in partners.items():
        if partner is None:
            continue
        more = new[place].size + (0 if partner in olds else old[partner].size)
        if news and size + more > most:
            yield Group(sorted(olds), news)
            olds, news, size = set[int](), [], 0
            more = new[place].size + old[partner].size
        olds.add(partner)
        news.append(place)
        size += more
    if news:
        yield Group(sorted(olds), news)
