"""Plans the cheapest update from the local files to a build, before anything is fetched or written.

Each file is kept, copied from another local file, built by a delta, or assembled from chunks. Local chunks cost
nothing. If the complete artifact is smaller than all downloads together, the plan fetches the artifact instead. This
module does no input or output.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from countersign.updates.api_types import ChunkPlaces, Delta, DeltaOffer
from countersign.updates.manifest import Manifest

MEMORY_BYTES = 2 << 30
"""The default limit on the memory for applying a delta, in bytes."""
UNKNOWN_COST = 1 << 50
"""The cost of a chunk that neither the local files nor the store have."""


class ChunkLocation(NamedTuple):
    """The position of a chunk in a local file."""

    path: str
    offset: int


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """The intact files and chunks on disk.

    `files` maps the path of each intact file to its SHA-256 and mode. `chunks` maps the name of each chunk that was
    found to its location. `manifest` is the manifest of the installed build, if there is one, and `manifest_sha256` the
    digest of its payload.
    """

    files: Mapping[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    chunks: Mapping[str, ChunkLocation] = field(default_factory=dict[str, ChunkLocation])
    manifest: Manifest | None = None
    manifest_sha256: str = ""


@dataclass(frozen=True, slots=True)
class UpdatePlan:
    """The source of each file of the build.

    The numbers in `kept`, `copied` and `assembled` are positions in the manifest's files. A file has only one source.
    `copied` also contains the local path to copy from. Each of the `deltas` builds all of its files. With `artifact`,
    the complete artifact is fetched, and the files in `assembled` are extracted from it. `fetch_bytes` is the number of
    bytes to download. `write_bytes` is the number of bytes to write to disk, including downloads.
    """

    kept: Sequence[int]
    copied: Sequence[tuple[int, str]]
    deltas: Sequence[Delta]
    assembled: Sequence[int]
    artifact: bool
    fetch_bytes: int
    write_bytes: int


def positions(ranges: Iterable[tuple[int, int]], limit: int) -> list[int]:
    """Return the positions in the ranges.

    Raises:
        ValueError: the ranges are not in order, or extend beyond `limit`.
    """
    positions_found: list[int] = []
    for start, end in ranges:
        if not (positions_found[-1] if positions_found else -1) < start < end <= limit:
            raise ValueError("the ranges are not in order, or are out of bounds")
        positions_found += range(start, end)
    return positions_found


def plan(
    manifest: Manifest,
    manifest_sha256: str,
    local_files: LocalFiles,
    places: ChunkPlaces,
    offer: DeltaOffer | None = None,
    *,
    memory_bytes: int = MEMORY_BYTES,
) -> UpdatePlan:
    """Return the cheapest plan for the build of the manifest.

    A delta is used only if all of its old files are intact and applying it takes at most `memory_bytes`.
    """
    sources = _sort_files(manifest, local_files)
    missing = sources.missing
    costs = _Costs(manifest, local_files, places)
    usable = _usable_deltas(offer, local_files, manifest_sha256)
    deltas = _choose_deltas([delta for delta in usable if delta.memory <= memory_bytes], missing, costs)
    delta_files = _delta_outputs(deltas, manifest)
    assembled_files = [index for index in missing if index not in delta_files]
    downloads = sum(delta.size for delta in deltas)
    fetch = downloads + costs.total_bytes(assembled_files)
    artifact = bool(missing) and places.artifact_size < fetch
    if artifact:
        deltas, assembled_files, fetch = [], missing, places.artifact_size
        downloads, delta_files = _unpacking_bytes(manifest, places), set[int]()
    written_files = delta_files.union(assembled_files, (index for index, _ in sources.copied))
    return UpdatePlan(
        kept=sources.kept,
        copied=sources.copied,
        deltas=deltas,
        assembled=assembled_files,
        artifact=artifact,
        fetch_bytes=fetch,
        write_bytes=sum(manifest.files[index].size for index in written_files) + downloads,
    )


def _unpacking_bytes(manifest: Manifest, places: ChunkPlaces) -> int:
    """Return the additional bytes that are written if the artifact is fetched.

    These are the artifact and all files of the build, because extraction writes all of them. There are none if the
    artifact is itself a file of the build.
    """
    if places.artifact_sha256 in {file.sha256 for file in manifest.files}:
        return 0
    return places.artifact_size + manifest.size


def _delta_outputs(deltas: Iterable[Delta], manifest: Manifest) -> set[int]:
    return {index for delta in deltas for index in positions(delta.files, len(manifest.files))}


class _FileSources(NamedTuple):
    kept: list[int]
    copied: list[tuple[int, str]]
    missing: list[int]


def _sort_files(manifest: Manifest, local_files: LocalFiles) -> _FileSources:
    """Sort the files into installed files, files whose content exists at another path, and missing files."""
    sources = _FileSources([], [], [])
    by_digest = {digest: path for path, (digest, _) in sorted(local_files.files.items(), reverse=True)}
    for index, file in enumerate(manifest.files):
        if local_files.files.get(file.path) == (file.sha256, file.mode):
            sources.kept.append(index)
        elif file.sha256 in by_digest:
            sources.copied.append((index, by_digest[file.sha256]))
        else:
            sources.missing.append(index)
    return sources


class _Costs:
    """The costs of fetching chunks. A local chunk costs nothing, and any other chunk costs its size once."""

    def __init__(self, manifest: Manifest, local_files: LocalFiles, places: ChunkPlaces) -> None:
        self._lengths = {name: length for pack in places.packs for name, _, length in pack.chunks}
        self._names = [chunk.id for chunk in manifest.chunks]
        self.manifest, self.local = manifest, local_files

    def missing_chunks(self, index: int) -> set[str]:
        """Return the chunks of the file at `index` that must be fetched."""
        names = (self._names[chunk] for chunk in self.manifest.files[index].chunks)
        return {name for name in names if name not in self.local.chunks}

    def stored_bytes(self, names: Iterable[str]) -> int:
        """Return the stored size of the chunks in bytes."""
        return sum(self._lengths.get(name, UNKNOWN_COST) for name in names)

    def total_bytes(self, indexes: Iterable[int]) -> int:
        """Return the stored size of all chunks that must be fetched for the files at these positions."""
        return self.stored_bytes(set[str]().union(*map(self.missing_chunks, indexes)))


def _usable_deltas(offer: DeltaOffer | None, local_files: LocalFiles, manifest_sha256: str) -> list[Delta]:
    """Return the deltas from the build on disk to the requested build, the smallest first."""
    if offer is None or offer.status != "ready" or local_files.manifest is None:
        return []
    if (offer.from_manifest, offer.to_manifest) != (local_files.manifest_sha256, manifest_sha256):
        return []
    return sorted(offer.deltas, key=lambda delta: delta.size)


def _choose_deltas(deltas: Sequence[Delta], missing: Sequence[int], costs: _Costs) -> list[Delta]:
    """Choose each delta that is smaller than the chunks that only its files need."""
    chunks_by_file = {index: costs.missing_chunks(index) for index in missing}
    uses = _count_uses(chunks_by_file, chunks_by_file)
    chosen_deltas: list[Delta] = []
    for delta in deltas:
        built_files = [index for index in _files_built(delta, costs.manifest, costs.local) if index in chunks_by_file]
        own_uses = _count_uses(chunks_by_file, built_files)
        # Other files also need the chunks that are in both counts.
        other_uses = uses - own_uses
        if delta.size < costs.stored_bytes(own_uses.keys() - other_uses.keys()):
            chosen_deltas.append(delta)
            uses = other_uses
            chunks_by_file = {index: names for index, names in chunks_by_file.items() if index not in built_files}
    return chosen_deltas


def _count_uses(chunks_by_file: Mapping[int, set[str]], indexes: Iterable[int]) -> Counter[str]:
    """Return the number of these files that need each chunk."""
    return Counter(name for index in indexes for name in chunks_by_file[index])


def _files_built(delta: Delta, manifest: Manifest, local_files: LocalFiles) -> list[int]:
    """Return the positions of the files that the delta can build from the local files. There are none if the delta does
    not match the manifests or an old file is damaged."""
    if local_files.manifest is None:
        return []
    try:
        olds = positions(delta.old, len(local_files.manifest.files))
        news = positions(delta.files, len(manifest.files))
    except ValueError:
        return []
    files = (local_files.manifest.files[index] for index in olds)
    return news if all(local_files.files.get(file.path, ("", 0))[0] == file.sha256 for file in files) else []
