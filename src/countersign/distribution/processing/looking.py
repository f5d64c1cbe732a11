"""Stored bytes against their digests: fast, in constant memory, in a thread."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import blake3

from countersign.distribution.processing.queries import Artifact, Build, Located
from countersign.updates import chunks
from countersign.updates.chunks import ChunkDamaged

DIGEST_BYTES = 32
_PIECE = 8 << 20


def changed_stretches(path: Path, artifact: Artifact, build: Build | None) -> list[tuple[int, int]]:
    """Where the file's bytes are not those of the artifact: offset and length of each stretch.

    With a build its block digests tell the places; without one the whole file is right or wrong.
    """
    with path.open("rb") as stored:
        length = os.fstat(stored.fileno()).st_size
        if build is None:
            is_same = length == artifact.size and _sha256(stored.fileno(), length) == artifact.sha256
            return [] if is_same else [(0, artifact.size)]
        found = [
            (start, min(build.block_size, artifact.size - start))
            for number, start in enumerate(range(0, artifact.size, build.block_size))
            if _block(stored.fileno(), start, build.block_size) != _recorded(build, number)
        ]
    if length > artifact.size:
        found.append((artifact.size, length - artifact.size))
    return found


def damaged_chunks(path: Path, located: Sequence[Located]) -> list[Located]:
    """Those of a pack's chunks whose frames do not hold them."""
    damaged: list[Located] = []
    with path.open("rb") as pack:
        for each in located:
            try:
                chunks.decompress(os.pread(pack.fileno(), each.length, each.start), each.size, each.id)
            except ChunkDamaged:
                damaged.append(each)
    return damaged


def _recorded(build: Build, number: int) -> bytes:
    return bytes(build.blocks[number * DIGEST_BYTES : (number + 1) * DIGEST_BYTES])


def _block(fd: int, start: int, size: int) -> bytes:
    hasher = blake3.blake3(max_threads=blake3.blake3.AUTO)
    for place in range(start, start + size, _PIECE):
        hasher.update(os.pread(fd, min(_PIECE, start + size - place), place))
    return hasher.digest()


def _sha256(fd: int, length: int) -> str:
    digest = hashlib.sha256()
    for place in range(0, length, _PIECE):
        digest.update(os.pread(fd, _PIECE, place))
    return digest.hexdigest()
