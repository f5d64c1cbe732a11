"""Builds missing files from deltas, from the artifact or from chunks, each checked against its digest."""

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from countersign.archives import extraction
from countersign.archives.limits import Limits
from countersign.archives.refusals import ArchiveRefused
from countersign.kernel.errors import Refused
from countersign.updates import chunks
from countersign.updates.api_types import ChunkPlaces, Delta
from countersign.updates.deltas import apply
from countersign.updates.deltas.apply import DeltaRefused, FilePiece, Target
from countersign.updates.install.fetch import ChunkFetcher, ContentMismatch, Part, Progress, Remote, fetch_part
from countersign.updates.install.workspace import Workspace
from countersign.updates.manifest import File, Manifest
from countersign.updates.planner import Local, Plan, positions

MAX_FAILED_DELTAS = 3


@dataclass(slots=True)
class BuildStats:
    """What was done: files by delta, from the artifact and from chunks; bytes that were fetched; what went another way
    than planned, in words."""

    by_delta: int = 0
    by_artifact: int = 0
    by_chunks: int = 0
    fetched_bytes: int = 0
    detours: list[str] = field(default_factory=list[str])


class FileBuilder:
    """The making of one build's files."""

    def __init__(self, place: Workspace, manifest: Manifest, local: Local, remote: Remote, progress: Progress) -> None:
        self._place, self._manifest, self._local, self._remote = place, manifest, local, remote
        self._progress = progress
        self.built = BuildStats()
        self._spots: dict[str, tuple[Path, int]] = {
            name: (place.target / spot.path, spot.offset) for name, spot in local.chunks.items()
        }

    def build(self, plan: Plan, places: ChunkPlaces) -> None:
        """Make every file that the plan lacks.

        Raises:
            FetchedWrong: the store's bytes are wrong in every way there is.
            OSError: a file cannot be written.
        """
        for folder in (self._place.made, self._place.parts):
            folder.mkdir(mode=0o700, exist_ok=True)
        lacking = self._lacking(plan)
        self._by_deltas(plan.deltas if lacking else ())
        if plan.artifact and lacking:
            self._otherwise("the artifact", lambda: self._by_artifact(places))
        self._by_chunks([file for file in lacking if not self.path(file).exists()], places)

    def _by_deltas(self, deltas: Sequence[Delta]) -> None:
        """Make what the deltas make. Applying one takes time, and they are not signed: after a few that could not be
        used the others are skipped."""
        failed = 0
        for delta in deltas:
            if failed == MAX_FAILED_DELTAS:
                self.built.detours.append("skipped the other deltas")
                return
            failed += not self._otherwise("a delta", lambda delta=delta: self._by_delta(delta))

    def _lacking(self, plan: Plan) -> list[File]:
        """The files that are neither in the installation nor left by an earlier try."""
        files = self._manifest.files
        by_delta = (place for delta in plan.deltas for place in positions(delta.files, len(files)))
        present = {*plan.kept, *(place for place, _ in plan.copied)}
        needed = sorted({*plan.assembled, *by_delta} - present)
        return [files[place] for place in needed if not self._is_made(files[place])]

    def path(self, file: File) -> Path:
        """Where the whole file lies once it is made."""
        return self._place.made / file.sha256

    def _otherwise(self, name: str, attempt: Callable[[], None]) -> bool:
        """Whether the attempt served; where it did not, it is noted why."""
        try:
            attempt()
            return True
        except (DeltaRefused, ContentMismatch, ArchiveRefused, extraction.TargetTaken) as error:
            self.built.detours.append(f"{name} could not be used: {error.detail}")
        except Refused as error:
            if error.code != "archive_unknown":
                raise
            self.built.detours.append(f"{name} could not be used: {error.detail}")
        return False

    def _is_made(self, file: File) -> bool:
        """Whether an earlier try left the file, whole."""
        path = self.path(file)
        if path.is_symlink() or not path.is_file():
            return False
        with path.open("rb") as content:
            if hashlib.file_digest(content, "sha256").hexdigest() == file.sha256:
                return True
        path.unlink()
        return False

    def _fetched(self, count: int) -> None:
        self.built.fetched_bytes += count
        self._progress(count)

    def _by_delta(self, delta: Delta) -> None:
        if self._local.manifest is None:
            raise DeltaRefused("there are no old files")
        olds = self._local.manifest.files
        wanted = [self._manifest.files[place] for place in positions(delta.files, len(self._manifest.files))]
        paths = [self._place.target / olds[place].path for place in positions(delta.old, len(olds))]
        blob = fetch_part(
            self._remote, self._place.parts, Part("a delta", delta.url, delta.size, delta.sha256), self._fetched
        )
        targets = [Target(self._unfinished(file), file.size, file.sha256) for file in wanted]
        failed = apply.apply(blob.read_bytes(), [FilePiece(path) for path in paths], targets)
        for place, file in enumerate(wanted):
            if place not in failed:
                targets[place].path.replace(self.path(file))
                self.built.by_delta += 1
        if failed:
            raise DeltaRefused(f"{len(failed)} of {len(wanted)} files came out otherwise")

    def _by_artifact(self, places: ChunkPlaces) -> None:
        name = Part(places.filename, places.artifact_url, places.artifact_size, places.artifact_sha256)
        if (places.artifact_size, places.artifact_sha256) != (
            self._manifest.artifact_size,
            self._manifest.artifact_sha256,
        ):
            raise ContentMismatch("the artifact is not the one that the manifest was made from")
        archive = fetch_part(self._remote, self._place.parts, name, self._fetched)
        for file in self._manifest.files:
            if file.sha256 == places.artifact_sha256:
                # A build of one file: the artifact is that file, not an archive of it.
                archive.replace(self.path(file))
                self.built.by_artifact += 1
                return
        self._place.clear(self._place.unpacked)
        with archive.open("rb") as source:
            extraction.extract(source, self._place.unpacked, Limits(), name=places.filename, durable=False)
        for file in self._manifest.files:
            found = self._place.unpacked / file.path
            if not self.path(file).exists() and has_digest(found, file.sha256):
                _sync(found)
                found.replace(self.path(file))
                self.built.by_artifact += 1
        self._place.clear(self._place.unpacked)

    def _unfinished(self, file: File) -> Path:
        return self._place.parts / f"{file.sha256}.file"

    def _by_chunks(self, files: Sequence[File], places: ChunkPlaces) -> None:
        for file in self._manifest.files:
            if self.path(file).exists():
                self._note_chunks(file, self.path(file))
        sizes = {chunk.id: chunk.size for chunk in self._manifest.chunks}
        fetcher = ChunkFetcher(self._remote, places, sizes, self._wanted(files), self._fetched)
        done: set[str] = set()
        for file in files:
            if file.sha256 not in done:
                self._assemble(file, fetcher)
                self.built.by_chunks += 1
                done.add(file.sha256)

    def _wanted(self, files: Iterable[File]) -> set[str]:
        """The chunks that no local file has and that no earlier try has left."""
        names = (self._manifest.chunks[place].id for file in files for place in file.chunks[self._begun(file) :])
        return {name for name in names if name not in self._spots}

    def _begun(self, file: File) -> int:
        """How many chunks of the file an earlier try left whole; what follows them is cut off."""
        path = self._unfinished(file)
        if path.is_symlink() or not path.is_file():
            return 0
        good = size = 0
        with path.open("r+b") as content:
            for place in file.chunks:
                chunk = self._manifest.chunks[place]
                if chunks.chunk_id(content.read(chunk.size)) != chunk.id:
                    break
                self._spots.setdefault(chunk.id, (path, size))
                good, size = good + 1, size + chunk.size
            content.truncate(size)
        return good

    def _assemble(self, file: File, fetcher: ChunkFetcher) -> None:
        """Put the file together, after what an earlier try left."""
        path = self._unfinished(file)
        begun = self._begun(file)
        with open(path, "a+b", opener=_private) as content:
            offset = content.seek(0, os.SEEK_END)
            for place in file.chunks[begun:]:
                chunk = self._manifest.chunks[place]
                content.write(self._chunk(chunk.id, chunk.size, content, path) or fetcher.chunk(chunk.id))
                self._spots[chunk.id] = (path, offset)
                offset += chunk.size
            content.flush()
            os.fsync(content.fileno())
            content.seek(0)
            is_right = hashlib.file_digest(content, "sha256").hexdigest() == file.sha256
        if not is_right:
            path.unlink()
            raise ContentMismatch(f"{file.path!a} is whole by its chunks and yet has another digest")
        path.replace(self.path(file))
        self._note_chunks(file, self.path(file))

    def _chunk(self, name: str, size: int, content: BinaryIO, path: Path) -> bytes | None:
        """The chunk from a local file; None where none has it any more."""
        spot = self._spots.get(name)
        if spot is None:
            return None
        if spot[0] == path:
            content.flush()
        found = _read(spot[0], spot[1], size)
        return found if found is not None and chunks.chunk_id(found) == name else None

    def _note_chunks(self, file: File, path: Path) -> None:
        offset = 0
        for place in file.chunks:
            chunk = self._manifest.chunks[place]
            self._spots[chunk.id] = (path, offset)
            offset += chunk.size


def _read(path: Path, offset: int, size: int) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return None
    try:
        return os.pread(descriptor, size, offset)
    finally:
        os.close(descriptor)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)


def has_digest(path: Path, sha256: str) -> bool:
    """Whether it is a file with that SHA-256.

    Raises:
        OSError: it cannot be read.
    """
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest() == sha256


def _sync(path: Path) -> None:
    with path.open("rb") as content:
        os.fsync(content.fileno())
