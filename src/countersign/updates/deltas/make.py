"""Makes deltas. Similar files form a group: they are decompressed and compared together. Each delta is applied once
as a test."""

import hashlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO, NamedTuple, TypeAlias

import msgspec

from countersign.archives import confinement
from countersign.updates.api_types import position_ranges
from countersign.updates.deltas import patch
from countersign.updates.deltas.apply import MemoryPiece, Reference, contents
from countersign.updates.deltas.byte_matches import all_covers
from countersign.updates.deltas.file_groups import FileGroup, groups
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
        delta_patch.run_positions,
        delta_patch.differences,
        delta_patch.literals,
        delta_patch.recipes,
    )
    windows = sum(min(patch.DICTIONARY_BYTES, 2 * stream.size) for stream in streams if stream.method != patch.RAW)
    lists = 200 * (delta_patch.cover_count + delta_patch.run_count)
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
    position_by_path = {file.path: position for position, file in enumerate(files)}

    def contents(file: File) -> bytes:
        write_frame(records, encode_delta_record(FileRequest(is_new, position_by_path[file.path])))
        return read_frame(requests)

    return contents


if __name__ == "__main__":
    sys.exit(main())
