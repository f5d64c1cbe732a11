"""The cheapest way from what is on disk to a build, decided file by file before anything is fetched or written.

A file is kept, copied from another local one, made by a delta, put together from chunks (those that some local file
holds cost nothing), or comes with the whole artifact, where that is smaller than everything else together. No input or
output happens here.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from countersign.updates.manifest import File, Manifest
from countersign.updates.wire import ChunkPlaces, Delta, DeltaOffer

MEMORY_BYTES = 2 << 30
"""What applying a delta may take, unless something else is said."""
UNKNOWN = 1 << 50
"""The cost of a chunk that lies nowhere."""


class Spot(NamedTuple):
    """Where a chunk lies in a local file."""

    path: str
    offset: int


@dataclass(frozen=True, slots=True)
class Local:
    """What is intact on disk: digest and mode of each whole file by path, the spot of every chunk that was found, and
    the manifest (with the digest of its payload) that the files are of, if there is one."""

    files: Mapping[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    chunks: Mapping[str, Spot] = field(default_factory=dict[str, Spot])
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
    kept: list[int] = []
    copied: list[tuple[int, str]] = []
    lacking: list[int] = []
    by_digest = {digest: path for path, (digest, _) in sorted(local.files.items(), reverse=True)}
    for place, file in enumerate(manifest.files):
        if local.files.get(file.path) == (file.sha256, file.mode):
            kept.append(place)
        elif file.sha256 in by_digest:
            copied.append((place, by_digest[file.sha256]))
        else:
            lacking.append(place)
    costs = _Costs(manifest, local, places)
    deltas = _deltas(manifest, manifest_sha256, local, offer, memory_bytes, lacking, costs)
    outcome = {place for delta in deltas for place in positions(delta.files, len(manifest.files))}
    made = outcome.intersection(lacking)
    assembled = [place for place in lacking if place not in made]
    fetch = sum(delta.size for delta in deltas) + costs.together(manifest.files[place] for place in assembled)
    artifact = bool(lacking) and places.artifact_size < fetch
    if artifact:
        deltas, assembled, fetch, outcome = [], lacking, places.artifact_size, set[int]()
    written = {*(place for place, _ in copied), *assembled, *outcome}
    downloads = places.artifact_size + manifest.size if artifact else sum(delta.size for delta in deltas)
    return Plan(
        kept=kept,
        copied=copied,
        deltas=deltas,
        assembled=assembled,
        artifact=artifact,
        fetch_bytes=fetch,
        write_bytes=sum(manifest.files[place].size for place in written) + downloads,
    )


class _Costs:
    """What fetching chunks costs. A chunk that is local costs nothing, and one that is fetched costs once."""

    def __init__(self, manifest: Manifest, local: Local, places: ChunkPlaces) -> None:
        self._lengths = {name: length for pack in places.packs for name, _, length in pack.chunks}
        self._names = [chunk.id for chunk in manifest.chunks]
        self._local = local.chunks

    def wanted(self, file: File) -> set[str]:
        """The chunks of the file that have to be fetched."""
        return {name for name in (self._names[place] for place in file.chunks) if name not in self._local}

    def of(self, names: Iterable[str]) -> int:
        """The bytes of these chunks as they are stored."""
        return sum(self._lengths.get(name, UNKNOWN) for name in names)

    def together(self, files: Iterable[File]) -> int:
        """The bytes of everything that the files need."""
        return self.of(set[str]().union(*(self.wanted(file) for file in files)))


def _deltas(
    manifest: Manifest,
    manifest_sha256: str,
    local: Local,
    offer: DeltaOffer | None,
    memory_bytes: int,
    lacking: Sequence[int],
    costs: _Costs,
) -> list[Delta]:
    """The deltas that are smaller than the chunks which nobody else needs."""
    if offer is None or offer.status != "ready" or local.manifest is None:
        return []
    if (offer.from_manifest, offer.to_manifest) != (local.manifest_sha256, manifest_sha256):
        return []
    wanted = {place: costs.wanted(manifest.files[place]) for place in lacking}
    users = Counter(name for names in wanted.values() for name in names)
    chosen: list[Delta] = []
    for delta in sorted(offer.deltas, key=lambda each: each.size):
        made = [place for place in _made(delta, manifest, local) if place in wanted]
        mine = Counter(name for place in made for name in wanted[place])
        saved = costs.of(name for name, count in mine.items() if users[name] == count)
        if delta.memory <= memory_bytes and delta.size < saved:
            chosen.append(delta)
            users -= mine
            for place in made:
                del wanted[place]
    return chosen


def _made(delta: Delta, manifest: Manifest, local: Local) -> list[int]:
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
