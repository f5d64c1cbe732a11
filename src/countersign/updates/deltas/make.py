"""Makes deltas. Similar files form a group: they are decompressed and compared together. Each delta is applied once
as a test."""

import hashlib
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO, NamedTuple, TypeAlias

import msgspec

from countersign.archives import confinement
from countersign.updates.api_types import position_ranges
from countersign.updates.deltas import patch
from countersign.updates.deltas.apply import MemoryPiece, Reference, contents
from countersign.updates.deltas.byte_matches import all_covers
from countersign.updates.manifest import File
from countersign.updates.recompress import archives
from countersign.updates.recompress.archives import DecompressedFile, InflateBudget, max_decompressed
from countersign.updates.varint import encode_numbers
from countersign.updates.worker_protocol import (
    DeltaBlob,
    DeltaOrder,
    EndOfDeltas,
    FileRequest,
    encode_delta_record,
    read_frame,
    write_frame,
)

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


GROUP_BYTES = 256 << 20
_BASE_MEMORY_BYTES = 24 << 20
"""The memory in bytes that applying a delta takes in addition to its data."""

ReadFile: TypeAlias = Callable[[File], bytes]


class BuildFiles(NamedTuple):
    """The files of a manifest, and a function that reads their contents."""

    files: Sequence[File]
    read: ReadFile


class DeltaVerificationFailed(Exception):
    """The finished delta does not restore the new files: a bug or changed input."""


def make(
    old_build_files: BuildFiles, new_build_files: BuildFiles, group_bytes: int = GROUP_BYTES
) -> Iterator[DeltaBlob]:
    """Make deltas for the files of the new build that are not in the old one and have a similar old file. Each delta is
    applied once and its output compared with the manifest.

    Files of more than twice `group_bytes` get no delta. Memory: about twelve times `group_bytes`.

    Raises:
        DeltaVerificationFailed: a delta does not restore the new files.
    """
    for group in groups(old_build_files.files, new_build_files.files, group_bytes):
        olds = [MemoryPiece(old_build_files.read(old_build_files.files[position])) for position in group.old]
        delta_blob = _make_group(
            olds, [new_build_files.read(new_build_files.files[position]) for position in group.new], group, group_bytes
        )
        target_files = [new_build_files.files[position] for position in group.new]
        if _digests(delta_blob.blob, olds, target_files) != [file.sha256 for file in target_files]:
            raise DeltaVerificationFailed("the delta does not restore the new files")
        yield delta_blob


def _make_group(olds: Sequence[MemoryPiece], news: Sequence[bytes], group: FileGroup, group_bytes: int) -> DeltaBlob:
    reference = Reference(olds, InflateBudget())
    old_content = reference.joined()
    budget = InflateBudget()
    decompressed_files = [archives.decompress(data, budget) for data in news]
    if sum(len(content) for content, _ in decompressed_files) > max_decompressed(sum(map(len, news))):
        decompressed_files = [DecompressedFile(data, b"") for data in news]
    new_content = (
        decompressed_files[0].content
        if len(decompressed_files) == 1
        else b"".join(content for content, _ in decompressed_files)
    )
    blob = patch.encode(
        old_content,
        new_content,
        all_covers(old_content, new_content, group_bytes + group_bytes // 2),
        _recipes(decompressed_files),
    )
    memory = _BASE_MEMORY_BYTES + len(blob) + reference.unfolded + _memory_bytes(patch.decode(blob), len(old_content))
    memory += max((2 * len(file.content) for file in decompressed_files if file.recipe), default=0)
    return DeltaBlob(position_ranges(group.old), position_ranges(group.new), memory, blob)


def _memory_bytes(delta_patch: patch.Patch, old_size: int) -> int:
    streams = (
        delta_patch.control,
        delta_patch.run_lengths,
        delta_patch.values,
        delta_patch.literals,
        delta_patch.recipes,
    )
    windows = sum(min(patch.DICTIONARY_BYTES, 2 * stream.size) for stream in streams if stream.method != patch.RAW)
    lists = 200 * (delta_patch.covers + delta_patch.runs)
    return windows + lists + (2 * old_size if delta_patch.literals.method == patch.ZSTD_PREFIX else 0)


def _recipes(decompressed_files: Sequence[archives.DecompressedFile]) -> bytes:
    """Encode the recipes of the files that are compressed again.

    For each of these files, the output has the number of files skipped since the last one, the decompressed length, the
    length of the recipe, and the recipe.
    """
    encoded_recipes: list[bytes] = []
    last_position = -1
    for position, (content, recipe) in enumerate(decompressed_files):
        if recipe:
            encoded_recipes.append(encode_numbers([position - last_position - 1, len(content), len(recipe)]) + recipe)
            last_position = position
    return b"".join(encoded_recipes)


def _digests(blob: bytes, olds: Sequence[MemoryPiece], target_files: Sequence[File]) -> list[str]:
    """Return the SHA-256 of each file that the delta makes."""
    digests: list[str] = []
    for pieces in contents(blob, olds, [file.size for file in target_files]):
        digest = hashlib.sha256()
        for piece in pieces:
            digest.update(piece)
        digests.append(digest.hexdigest())
    return digests


def main() -> int:
    """Make the deltas of the order."""
    requests, records = sys.stdin.buffer, sys.stdout.buffer
    order = msgspec.msgpack.decode(read_frame(requests), type=DeltaOrder)
    confinement.confine(folder=None, memory_bytes=order.memory_bytes, cpu_s=order.cpu_s)
    old_build = BuildFiles(order.old, _reader(requests, records, order.old, is_new=False))
    new_build = BuildFiles(order.new, _reader(requests, records, order.new, is_new=True))
    for delta_blob in make(old_build, new_build, order.group_bytes):
        write_frame(records, encode_delta_record(delta_blob))
    write_frame(records, encode_delta_record(EndOfDeltas()))
    return 0


def _reader(requests: BinaryIO, records: BinaryIO, files: list[File], *, is_new: bool) -> ReadFile:
    places = {file.path: position for position, file in enumerate(files)}

    def contents(file: File) -> bytes:
        write_frame(records, encode_delta_record(FileRequest(is_new, places[file.path])))
        return read_frame(requests)

    return contents


if __name__ == "__main__":
    sys.exit(main())
