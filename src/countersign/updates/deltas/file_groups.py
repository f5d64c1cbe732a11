"""Chooses for each changed file of a new build the old file from which its delta is made, and groups these files."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from countersign.updates.manifest import File

WHOLE_BUILD_FACTOR = 2
"""If the files have at most this many times the group size together, they form one group. This finds content that
moved between files."""
MAX_FILE_FACTOR = 2
"""A file larger than this many times the group size gets no delta; clients fetch its chunks."""

_DIGITS = re.compile(r"[0-9]+(?:[._][0-9]+)*|(?<=[-_.])[0-9a-f]{6,}(?=[-_.])")

_NAME_KEYS: tuple[Callable[[str], str], ...] = (
    lambda path: path,
    lambda path: _DIGITS.sub("#", path),
    lambda path: path.rpartition("/")[2],
    lambda path: _DIGITS.sub("#", path.rpartition("/")[2]),
)
"""The keys by which paths are compared to find similar files, the strictest first."""


class FileGroup(NamedTuple):
    """A group of files: positions in the files of the old manifest and of the new manifest, each in order."""

    old: list[int]
    new: list[int]


def groups(old_files: Sequence[File], new_files: Sequence[File], limit: int) -> Iterator[FileGroup]:
    """Yield groups of new files whose content is not in the old build, with the old files to make them from.

    If all files together have at most WHOLE_BUILD_FACTOR times `limit` bytes, one group has all old files, regardless
    of their names. Otherwise the old and new files of a group have at most `limit` bytes together, unless the group is
    a single pair of files. No file has more than MAX_FILE_FACTOR times `limit` bytes.
    """
    changed_files = _changed(old_files, new_files, MAX_FILE_FACTOR * limit)
    if not changed_files:
        return
    usable = [position for position, file in enumerate(old_files) if 0 < file.size <= MAX_FILE_FACTOR * limit]
    if not usable:
        return
    # Include empty files: they cost nothing, and all positions then form one range.
    all_indexes = list(range(len(old_files)))
    if _size(old_files, all_indexes) + _size(new_files, changed_files) <= WHOLE_BUILD_FACTOR * limit:
        yield FileGroup(all_indexes, changed_files)
        return
    indexes = [_index(old_files, usable, name_key) for name_key in _NAME_KEYS]
    yield from _fill_groups(
        old_files,
        new_files,
        {position: _similar_file(old_files, new_files[position], indexes) for position in changed_files},
        limit,
    )


def _changed(old_files: Sequence[File], new_files: Sequence[File], largest: int) -> list[int]:
    known_digests = {file.sha256 for file in old_files}
    return [
        position
        for position, file in enumerate(new_files)
        if file.sha256 not in known_digests and 0 < file.size <= largest
    ]


def _size(files: Sequence[File], places: Sequence[int]) -> int:
    return sum(files[position].size for position in places)


def _index(old_files: Sequence[File], places: Sequence[int], name_key: Callable[[str], str]) -> dict[str, list[int]]:
    index: dict[str, list[int]] = defaultdict(list)
    for position in places:
        index[name_key(old_files[position].path)].append(position)
    return index


def _similar_file(old_files: Sequence[File], file: File, indexes: Sequence[dict[str, list[int]]]) -> int | None:
    for name_key, index in zip(_NAME_KEYS, indexes, strict=True):
        if candidates := index.get(name_key(file.path)):
            return min(candidates, key=lambda position: abs(old_files[position].size - file.size))
    return None


def _fill_groups(
    old_files: Sequence[File], new_files: Sequence[File], partners: dict[int, int | None], limit: int
) -> Iterator[FileGroup]:
    """Yield groups of pairs in the order of the new paths. A file without a similar old file gets no delta."""
    olds: set[int] = set()
    news: list[int] = []
    size = 0
    for position, partner in partners.items():
        if partner is None:
            continue
        added_bytes = new_files[position].size + (0 if partner in olds else old_files[partner].size)
        if news and size + added_bytes > limit:
            yield FileGroup(sorted(olds), news)
            olds, news, size = set[int](), [], 0
            added_bytes = new_files[position].size + old_files[partner].size
        olds.add(partner)
        news.append(position)
        size += added_bytes
    if news:
        yield FileGroup(sorted(olds), news)
