"""Splits names without separators, such as `managerpin`, into words."""

from collections.abc import Collection


def words(name: str, vocabulary: Collection[str]) -> set[str]:
    """Return the words of every possible split of the name into words of the vocabulary. The result is empty if the
    name cannot be split, or is itself a word."""
    if name in vocabulary:
        return set()
    longest = max(map(len, vocabulary), default=0)
    starts = {0}
    found: list[tuple[int, int]] = []
    for start in range(len(name)):
        if start not in starts:
            continue
        for end in range(start + 1, min(start + longest, len(name)) + 1):
            if name[start:end] in vocabulary:
                starts.add(end)
                found.append((start, end))
    ends = {len(name)}
    used: set[str] = set()
    for start, end in reversed(found):
        if end in ends:
            ends.add(start)
            used.add(name[start:end])
    return used
