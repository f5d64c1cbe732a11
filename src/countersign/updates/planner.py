"""The cheapest way from what is on disk to a build, decided file by file before anything is fetched or written.

A file is kept, copied from another local one, made by a delta, put together from chunks (those that some local file
holds cost nothing), or comes with the whole artifact, where that is smaller than everything else together. No input or
output happens here.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from countersign.updates.api_types import ChunkPlaces, Delta, DeltaOffer
from countersign.updates.manifest import Manifest

MEMORY_BYTES = 2 << 30
"""What applying a delta may take, unless something else is said."""
UNKNOWN = 1 << 50
"""The cost of a chunk that lies nowhere."""


class ChunkLocation(NamedTuple):
    """Where a chunk lies in a local file."""

    path: str
    offset: int


@dataclass(frozen=True, slots=True)
class Local:
    """What is intact on disk: digest and mode of each whole file by path, the spot of every chunk that was found, and
    the manifest (with the digest of its payload) that the files are of, if there is one."""

    files: Mapping[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    chunks: Mapping[str, ChunkLocation] = field(default_factory=dict[str, ChunkLocation])
    manifest: Manifest | None = None
    manifest_sha256: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is done with each file, as positions in the manifest's files; every position is in one place alone.

    `copied` has the local path to copy from. `deltas` are applied as a whole. With `artifact` the whole artifact is
    fetched, and what is in `assembled` is taken from there. `fetch_bytes` is what comes over the network, `write_bytes`
    what is written to disk, downloads included.
    """

    kept: Sequence[int]
    copied: Sequence[tuple[int, str]]
    deltas: Sequence[Delta]
    assembled: Sequence[int]
    artifact: bool
    fetch_bytes: int
    write_bytes: int


def positions(stretches: Iterable[tuple[int, int]], most: int) -> list[int]:
    """The positions of the stretches.

    Raises:
        ValueError: they are not in order, or reach beyond `most`.
    """
    found: list[int] = []
    for start, end in stretches:
        if not (found[-1] if found else -1) < start < end <= most:
            raise ValueError("a stretch is out of place")
        found += range(start, end)
    return found


def plan(
    manifest: Manifest,
    manifest_sha256: str,
    local: Local,
    places: ChunkPlaces,
    offer: DeltaOffer | None = None,
    *,
    memory_bytes: int = MEMORY_BYTES,
) -> Plan:
    """The cheapest plan for the build of the manifest.

    A delta is taken only where every old file of it is intact and applying it takes no more than `memory_bytes`.
    """
    sorted_out = _sort_files(manifest, local)
    lacking = sorted_out.lacking
    costs = _Costs(manifest, local, places)
    usable = _usable_deltas(offer, local, manifest_sha256)
    deltas = _choose_deltas([each for each in usable if each.memory <= memory_bytes], lacking, costs)
    outcome = _outcome(deltas, manifest)
    assembled = [place for place in lacking if place not in outcome]
    downloads = sum(delta.size for delta in deltas)
    fetch = downloads + costs.together(assembled)
    artifact = bool(lacking) and places.artifact_size < fetch
    if artifact:
        deltas, assembled, fetch = [], lacking, places.artifact_size
        downloads, outcome = _unpacked(manifest, places), set[int]()
    written = outcome.union(assembled, (place for place, _ in sorted_out.copied))
    return Plan(
        kept=sorted_out.kept,
        copied=sorted_out.copied,
        deltas=deltas,
        assembled=assembled,
        artifact=artifact,
        fetch_bytes=fetch,
        write_bytes=sum(manifest.files[place].size for place in written) + downloads,
    )


def _unpacked(manifest: Manifest, places: ChunkPlaces) -> int:
    """The bytes that are written for the artifact beside the files that are needed: unpacking writes every file of the
    build. A build of one file is its artifact."""
    if places.artifact_sha256 in {file.sha256 for file in manifest.files}:
        return 0
    return places.artifact_size + manifest.size


def _outcome(deltas: Iterable[Delta], manifest: Manifest) -> set[int]:
    return {place for delta in deltas for place in positions(delta.files, len(manifest.files))}


class _Sorted(NamedTuple):
    kept: list[int]
    copied: list[tuple[int, str]]
    lacking: list[int]


def _sort_files(manifest: Manifest, local: Local) -> _Sorted:
    """The files that are in their place, those that lie elsewhere, and those that are nowhere."""
    found = _Sorted([], [], [])
    by_digest = {digest: path for path, (digest, _) in sorted(local.files.items(), reverse=True)}
    for place, file in enumerate(manifest.files):
        if local.files.get(file.path) == (file.sha256, file.mode):
            found.kept.append(place)
        elif file.sha256 in by_digest:
            found.copied.append((place, by_digest[file.sha256]))
        else:
            found.lacking.append(place)
    return found


class _Costs:
    """What fetching chunks costs. A chunk that is local costs nothing, and one that is fetched costs once."""

    def __init__(self, manifest: Manifest, local: Local, places: ChunkPlaces) -> None:
        self._lengths = {name: length for pack in places.packs for name, _, length in pack.chunks}
        self._names = [chunk.id for chunk in manifest.chunks]
        self.manifest, self.local = manifest, local

    def wanted(self, place: int) -> set[str]:
        """The chunks of the file at this place that have to be fetched."""
        names = (self._names[chunk] for chunk in self.manifest.files[place].chunks)
        return {name for name in names if name not in self.local.chunks}

    def of(self, names: Iterable[str]) -> int:
        """The bytes of these chunks as they are stored."""
        return sum(self._lengths.get(name, UNKNOWN) for name in names)

    def together(self, places: Iterable[int]) -> int:
        """The bytes of everything that the files need."""
        return self.of(set[str]().union(*map(self.wanted, places)))


def _usable_deltas(offer: DeltaOffer | None, local: Local, manifest_sha256: str) -> list[Delta]:
    """The deltas between the build on disk and the wanted one, the smallest first."""
    if offer is None or offer.status != "ready" or local.manifest is None:
        return []
    if (offer.from_manifest, offer.to_manifest) != (local.manifest_sha256, manifest_sha256):
        return []
    return sorted(offer.deltas, key=lambda each: each.size)


def _choose_deltas(deltas: Sequence[Delta], lacking: Sequence[int], costs: _Costs) -> list[Delta]:
    """The deltas that are smaller than the chunks which nobody else needs."""
    wanted = {place: costs.wanted(place) for place in lacking}
    users = _uses(wanted, wanted)
    chosen: list[Delta] = []
    for delta in deltas:
        made = [place for place in _files_made(delta, costs.manifest, costs.local) if place in wanted]
        mine = _uses(wanted, made)
        # What is in `mine` and still in `users` afterwards, some other file needs as well.
        others = users - mine
        if delta.size < costs.of(mine.keys() - others.keys()):
            chosen.append(delta)
            users = others
            wanted = {place: names for place, names in wanted.items() if place not in made}
    return chosen


def _uses(wanted: Mapping[int, set[str]], places: Iterable[int]) -> Counter[str]:
    """How many of the files want each chunk."""
    return Counter(name for place in places for name in wanted[place])


def _files_made(delta: Delta, manifest: Manifest, local: Local) -> list[int]:
    """The files that the delta makes here; none where it fits neither manifest or an old file is not intact."""
    if local.manifest is None:
        return []
    try:
        olds = positions(delta.old, len(local.manifest.files))
        news = positions(delta.files, len(manifest.files))
    except ValueError:
        return []
    files = (local.manifest.files[place] for place in olds)
    return news if all(local.files.get(file.path, ("", 0))[0] == file.sha256 for file in files) else []
