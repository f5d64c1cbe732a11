"""Files of builds put together from their chunks again, for work that needs them whole."""

import asyncio
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

from countersign.distribution.context import Store
from countersign.distribution.processing import queries
from countersign.distribution.processing.queries import Located
from countersign.kernel.errors import Unavailable
from countersign.updates import chunks
from countersign.updates.manifest import File, Manifest

_Place = tuple[Path, int]


async def materialize(
    store: Store, org_id: str, described: Manifest, files: Sequence[File], folder: Path
) -> list[Path]:
    """Write the files into the folder, which is on this machine, under numbers; their paths, in order.

    Packs are read one after another, each chunk once, in constant memory; nothing is flushed to the disk.

    Raises:
        Unavailable: a chunk is not stored.
        NotFound: a pack is gone.
        ChunkDamaged: a pack was changed.
        OSError: the disk is full.
    """
    paths = [folder / f"{number:06d}" for number in range(len(files))]
    wanted: defaultdict[str, list[_Place]] = defaultdict(list)
    for path, file in zip(paths, files, strict=True):
        path.touch(0o644)
        offset = 0
        for position in file.chunks:
            chunk = described.chunks[position]
            wanted[chunk.id].append((path, offset))
            offset += chunk.size
    located = await queries.located(store.database, org_id, list(wanted))
    if len(located) != len(wanted):
        raise Unavailable("a chunk of the build is not stored: process its artifact again")
    for sha256, pack in groupby(located, key=lambda each: each.pack_sha256):
        path = await store.blobs.file(sha256, folder)
        await asyncio.to_thread(_unpack, path, list(pack), wanted)
        if path.parent == folder:
            path.unlink()
    return paths


def _unpack(path: Path, pack: Sequence[Located], wanted: Mapping[str, list[_Place]]) -> None:
    with path.open("rb") as stored:
        for each in pack:
            frame = os.pread(stored.fileno(), each.length, each.start)
            chunk = chunks.decompress(frame, each.size, each.id)
            for target, offset in wanted[each.id]:
                with target.open("r+b") as written:
                    written.seek(offset)
                    written.write(chunk)
