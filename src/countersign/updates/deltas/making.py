"""Makes deltas: groups of files unfolded, compared, and what came out tried before it is given away."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from countersign.updates.deltas import patch, streams
from countersign.updates.deltas.applying import contents
from countersign.updates.deltas.grouping import Group, groups
from countersign.updates.deltas.reference import Held, Reference
from countersign.updates.deltas.windows import all_covers
from countersign.updates.manifest import File
from countersign.updates.numbers import packed
from countersign.updates.unfold import folding
from countersign.updates.unfold.folding import Unfolded
from countersign.updates.unfold.spans import Budget, most_unfolded
from countersign.updates.wire import Stretches, stretches

GROUP_BYTES = 256 << 20
_ALWAYS = 24 << 20
"""Bytes of memory that applying takes beside what it is made of."""

Read: TypeAlias = Callable[[File], bytes]


class Side(NamedTuple):
    """The files of one build's manifest, and the way to their contents."""

    files: Sequence[File]
    read: Read


class Made(NamedTuple):
    """A delta from the `old` files to the `files`, by their places in the two manifests; the memory that applying it
    takes, in bytes."""

    old: Stretches
    files: Stretches
    blob: bytes
    memory: int


class DeltaWrong(Exception):
    """A fault of the making: the delta was tried and made other files."""


def make(old: Side, new: Side, group_bytes: int = GROUP_BYTES) -> Iterator[Made]:
    """The deltas that make every file of the new build that the old one has nowhere, as far as some old file is like
    it. Each was applied and gave the files of the manifest.

    Files of more than twice `group_bytes` are left to their chunks. Memory: about twelve times `group_bytes`.

    Raises:
        DeltaWrong: the contents are not those of the manifests.
    """
    for group in groups(old.files, new.files, group_bytes):
        olds = [Held(old.read(old.files[place])) for place in group.old]
        made = _made(olds, [new.read(new.files[place]) for place in group.new], group, group_bytes)
        wanted = [new.files[place] for place in group.new]
        if _digests(made.blob, olds, wanted) != [file.sha256 for file in wanted]:
            raise DeltaWrong("a delta does not make the files it was made for")
        yield made


def _made(olds: Sequence[Held], news: Sequence[bytes], group: Group, group_bytes: int) -> Made:
    reference = Reference(olds, Budget())
    old = reference.joined()
    budget = Budget()
    unfolded = [folding.unfold(data, budget) for data in news]
    if sum(len(content) for content, _ in unfolded) > most_unfolded(sum(map(len, news))):
        unfolded = [Unfolded(data, b"") for data in news]
    new = unfolded[0].content if len(unfolded) == 1 else b"".join(content for content, _ in unfolded)
    blob = patch.encode(old, new, all_covers(old, new, group_bytes + group_bytes // 2), _recipes(unfolded))
    memory = _ALWAYS + len(blob) + reference.unfolded + _memory_of(patch.decode(blob), len(old))
    memory += max((2 * len(each.content) for each in unfolded if each.recipe), default=0)
    return Made(stretches(group.old), stretches(group.new), blob, memory)


def _memory_of(made: patch.Patch, old_size: int) -> int:
    parts = (made.control, made.run_lengths, made.values, made.literals, made.recipes)
    windows = sum(min(streams.DICTIONARY_BYTES, 2 * part.size) for part in parts if part.method != streams.RAW)
    lists = 200 * (made.covers + made.runs)
    return windows + lists + (2 * old_size if made.literals.method == streams.ZSTD_PREFIX else 0)


def _recipes(unfolded: Sequence[folding.Unfolded]) -> bytes:
    """For each file that is folded again: how many files after the last one it comes, how long it is unfolded, how
    long its recipe is; and the recipe."""
    out: list[bytes] = []
    last = -1
    for place, (content, recipe) in enumerate(unfolded):
        if recipe:
            out.append(packed([place - last - 1, len(content), len(recipe)]) + recipe)
            last = place
    return b"".join(out)


def _digests(blob: bytes, olds: Sequence[Held], wanted: Sequence[File]) -> list[str]:
    """The digests of what the delta makes."""
    found: list[str] = []
    for pieces in contents(blob, olds, [file.size for file in wanted]):
        digest = hashlib.sha256()
        for piece in pieces:
            digest.update(piece)
        found.append(digest.hexdigest())
    return found
