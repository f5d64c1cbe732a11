"""Builds the missing files of an update from deltas, from the artifact or from chunks, and checks their digests."""

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from countersign.archives import extraction
from countersign.archives.limits import Limits
from countersign.archives.refusals import ArchiveRefused
from countersign.file_sync import sync_file
from countersign.kernel.errors import Refused
from countersign.updates import chunks
from countersign.updates.api_types import ChunkPlaces, Delta
from countersign.updates.deltas import apply
from countersign.updates.deltas.apply import DeltaRefused, FilePiece, TargetFile
from countersign.updates.install.fetch import (
    ChunkFetcher,
    ContentMismatch,
    Download,
    ProgressCallback,
    Remote,
    download,
)
from countersign.updates.install.workspace import Workspace
from countersign.updates.manifest import File, Manifest
from countersign.updates.planner import LocalFiles, UpdatePlan, positions

MAX_FAILED_DELTAS = 3


@dataclass(slots=True)
class BuildStats:
    """The numbers of files built from deltas, from the artifact and from chunks, and the number of bytes fetched.
    `detours` are messages about sources that failed, so that another source was used."""

    by_delta: int = 0
    by_artifact: int = 0
    by_chunks: int = 0
    fetched_bytes: int = 0
    detours: list[str] = field(default_factory=list[str])


class FileBuilder:
    """Builds the files of one manifest that are not installed yet."""

    def __init__(
        self,
        workspace: Workspace,
        manifest: Manifest,
        local_files: LocalFiles,
        remote: Remote,
        progress: ProgressCallback,
    ) -> None:
        self._workspace, self._manifest, self._local, self._remote = workspace, manifest, local_files, remote
        self._progress = progress
        self.stats = BuildStats()
        self._chunk_locations: dict[str, tuple[Path, int]] = {
            name: (workspace.target / location.path, location.offset) for name, location in local_files.chunks.items()
        }

    def build(self, plan: UpdatePlan, places: ChunkPlaces) -> None:
        """Build every missing file of the plan.

        Raises:
            ContentMismatch: no source has the right bytes.
            OSError: a file cannot be written.
        """
        for folder in (self._workspace.made, self._workspace.parts):
            folder.mkdir(mode=0o700, exist_ok=True)
        missing_files = self._missing_files(plan)
        self._by_deltas(plan.deltas if missing_files else ())
        if plan.artifact and missing_files:
            self._attempt("the artifact", lambda: self._by_artifact(places))
        self._by_chunks([file for file in missing_files if not self.path(file).exists()], places)

    def _by_deltas(self, deltas: Sequence[Delta]) -> None:
        """Apply the deltas. After MAX_FAILED_DELTAS failures, skip the other deltas, because deltas are not signed and
        take time."""
        failed_deltas = 0
        for delta in deltas:
            if failed_deltas == MAX_FAILED_DELTAS:
                self.stats.detours.append("skipped the other deltas")
                return
            failed_deltas += not self._attempt("a delta", lambda delta=delta: self._by_delta(delta))

    def _missing_files(self, plan: UpdatePlan) -> list[File]:
        """Return the files that neither the installation nor an earlier attempt has."""
        files = self._manifest.files
        by_delta = (index for delta in plan.deltas for index in positions(delta.files, len(files)))
        present_files = {*plan.kept, *(index for index, _ in plan.copied)}
        needed_files = sorted({*plan.assembled, *by_delta} - present_files)
        return [files[index] for index in needed_files if not self._is_made(files[index])]

    def path(self, file: File) -> Path:
        """Return the path of the file when it is complete."""
        return self._workspace.made / file.sha256

    def _attempt(self, name: str, attempt: Callable[[], None]) -> bool:
        """Call `attempt`, and return whether it succeeded. A failure is recorded as a detour."""
        try:
            attempt()
            return True
        except (DeltaRefused, ContentMismatch, ArchiveRefused, extraction.TargetTaken) as error:
            self.stats.detours.append(f"{name} could not be used: {error.detail}")
        except Refused as error:
            if error.code != "archive_unknown":
                raise
            self.stats.detours.append(f"{name} could not be used: {error.detail}")
        return False

    def _is_made(self, file: File) -> bool:
        """Return whether an earlier attempt left the complete file."""
        path = self.path(file)
        if path.is_symlink() or not path.is_file():
            return False
        with path.open("rb") as content:
            if hashlib.file_digest(content, "sha256").hexdigest() == file.sha256:
                return True
        path.unlink()
        return False

    def _fetched(self, count: int) -> None:
        self.stats.fetched_bytes += count
        self._progress(count)

    def _by_delta(self, delta: Delta) -> None:
        if self._local.manifest is None:
            raise DeltaRefused("no version is installed")
        old_files = self._local.manifest.files
        target_files = [self._manifest.files[index] for index in positions(delta.files, len(self._manifest.files))]
        paths = [self._workspace.target / old_files[index].path for index in positions(delta.old, len(old_files))]
        blob = download(
            self._remote, self._workspace.parts, Download("a delta", delta.url, delta.size, delta.sha256), self._fetched
        )
        targets = [TargetFile(self._unfinished(file), file.size, file.sha256) for file in target_files]
        failed_indexes = apply.apply(blob.read_bytes(), [FilePiece(path) for path in paths], targets)
        for index, file in enumerate(target_files):
            if index not in failed_indexes:
                targets[index].path.replace(self.path(file))
                self.stats.by_delta += 1
        if failed_indexes:
            raise DeltaRefused(f"{len(failed_indexes)} of {len(target_files)} files do not match their SHA-256")

    def _by_artifact(self, places: ChunkPlaces) -> None:
        name = Download(places.filename, places.artifact_url, places.artifact_size, places.artifact_sha256)
        if (places.artifact_size, places.artifact_sha256) != (
            self._manifest.artifact_size,
            self._manifest.artifact_sha256,
        ):
            raise ContentMismatch("the artifact does not match the manifest")
        archive = download(self._remote, self._workspace.parts, name, self._fetched)
        for file in self._manifest.files:
            if file.sha256 == places.artifact_sha256:
                # The build has one file, and the artifact is that file itself, not an archive of it.
                archive.replace(self.path(file))
                self.stats.by_artifact += 1
                return
        self._workspace.clear(self._workspace.unpacked)
        with archive.open("rb") as source:
            extraction.extract(source, self._workspace.unpacked, Limits(), name=places.filename, durable=False)
        for file in self._manifest.files:
            unpacked_path = self._workspace.unpacked / file.path
            if not self.path(file).exists() and has_digest(unpacked_path, file.sha256):
                sync_file(unpacked_path)
                unpacked_path.replace(self.path(file))
                self.stats.by_artifact += 1
        self._workspace.clear(self._workspace.unpacked)

    def _unfinished(self, file: File) -> Path:
        return self._workspace.parts / f"{file.sha256}.file"

    def _by_chunks(self, files: Sequence[File], places: ChunkPlaces) -> None:
        for file in self._manifest.files:
            if self.path(file).exists():
                self._note_chunks(file, self.path(file))
        sizes = {chunk.id: chunk.size for chunk in self._manifest.chunks}
        fetcher = ChunkFetcher(self._remote, places, sizes, self._missing_chunks(files), self._fetched)
        built_files: set[str] = set()
        for file in files:
            if file.sha256 not in built_files:
                self._assemble(file, fetcher)
                self.stats.by_chunks += 1
                built_files.add(file.sha256)

    def _missing_chunks(self, files: Iterable[File]) -> set[str]:
        """Return the chunks that neither a local file nor an earlier attempt has."""
        names = (
            self._manifest.chunks[index].id for file in files for index in file.chunks[self._partial_chunks(file) :]
        )
        return {name for name in names if name not in self._chunk_locations}

    def _partial_chunks(self, file: File) -> int:
        """Return how many intact chunks of the file an earlier attempt left, and truncate the file after them."""
        path = self._unfinished(file)
        if path.is_symlink() or not path.is_file():
            return 0
        valid_chunks = size = 0
        with path.open("r+b") as content:
            for index in file.chunks:
                chunk = self._manifest.chunks[index]
                if chunks.chunk_id(content.read(chunk.size)) != chunk.id:
                    break
                self._chunk_locations.setdefault(chunk.id, (path, size))
                valid_chunks, size = valid_chunks + 1, size + chunk.size
            content.truncate(size)
        return valid_chunks

    def _assemble(self, file: File, fetcher: ChunkFetcher) -> None:
        """Assemble the file from chunks, after those that an earlier attempt left."""
        path = self._unfinished(file)
        valid_start = self._partial_chunks(file)
        with open(path, "a+b", opener=_private) as content:
            offset = content.seek(0, os.SEEK_END)
            for index in file.chunks[valid_start:]:
                chunk = self._manifest.chunks[index]
                content.write(self._chunk(chunk.id, chunk.size, content, path) or fetcher.chunk(chunk.id))
                self._chunk_locations[chunk.id] = (path, offset)
                offset += chunk.size
            content.flush()
            os.fsync(content.fileno())
            content.seek(0)
            is_right = hashlib.file_digest(content, "sha256").hexdigest() == file.sha256
        if not is_right:
            path.unlink()
            raise ContentMismatch(f"{file.path!a} has the right chunks, but its SHA-256 does not match")
        path.replace(self.path(file))
        self._note_chunks(file, self.path(file))

    def _chunk(self, name: str, size: int, content: BinaryIO, path: Path) -> bytes | None:
        """Return the chunk from a local file, or None if no local file has it any more."""
        location = self._chunk_locations.get(name)
        if location is None:
            return None
        if location[0] == path:
            content.flush()
        chunk = _read(location[0], location[1], size)
        return chunk if chunk is not None and chunks.chunk_id(chunk) == name else None

    def _note_chunks(self, file: File, path: Path) -> None:
        offset = 0
        for index in file.chunks:
            chunk = self._manifest.chunks[index]
            self._chunk_locations[chunk.id] = (path, offset)
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
    """Return whether the path is a file with this SHA-256.

    Raises:
        OSError: the file cannot be read.
    """
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest() == sha256
