"""Downloads: files that resume after an interruption, and chunks in few range requests."""

import hashlib
import os
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias

from countersign.kernel.errors import Refused
from countersign.updates import chunks
from countersign.updates.api_types import ChunkPlaces, DeltaOffer
from countersign.updates.chunks import ChunkDamaged

REQUEST_BYTES = 2 << 20
"""The maximum size of a request for chunks, and therefore the maximum number of bytes that an interruption loses."""
GAP_BYTES = 32 << 10
"""The maximum gap between two wanted chunks in one request. A larger gap is worth another request."""
CACHE_BYTES = 64 << 20

_DIGEST = re.compile("[0-9a-f]{64}")

ProgressCallback: TypeAlias = Callable[[int], None]
"""Called with the number of bytes received since the last call."""


class Remote(Protocol):
    """The store's endpoints that an installation uses. Errors of the transport pass through to the caller of `pull`."""

    def places(self, *, is_start: bool) -> ChunkPlaces:
        """Return the locations of the build's chunks.

        `is_start` marks the first request of an installation or update.
        """
        ...

    def offer(self, version: str) -> DeltaOffer | None:
        """Return the deltas from this version to the build, or None if the store has none."""
        ...

    def read(self, url: str, offset: int, length: int) -> Iterator[bytes]:
        """Yield the bytes of the range in pieces. If the connection fails, bytes are missing at the end."""
        ...


class ContentMismatch(Refused):
    """Downloaded bytes do not match the announced digest or size."""

    status = 422
    code = "checksum_mismatch"
    title = "Checksum mismatch"
    resolution = "Try again; verified parts are kept. If it fails again, tell the publisher."


def download(remote: Remote, folder: Path, target: "Download", progress: ProgressCallback) -> Path:
    """Download to a file in the folder, and resume a partial download.

    Raises:
        ContentMismatch: the digest is missing or does not match; the file is deleted.
        OSError: the file cannot be written.
    """
    # The digest is not signed, and becomes a file name: check it before use.
    if _DIGEST.fullmatch(target.sha256) is None:
        raise ContentMismatch(f"{target.name} is announced without a digest")
    path = folder / target.sha256
    with open(path, "a+b", opener=_without_links) as file:
        if file.seek(0, os.SEEK_END) > target.size:
            file.truncate(0)
        file.seek(0)
        digest = hashlib.file_digest(file, "sha256")
        bytes_present = file.seek(0, os.SEEK_END)
        progress(bytes_present)
        if bytes_present < target.size:
            for piece in _require_length(
                remote.read(target.url, bytes_present, target.size - bytes_present), target.size - bytes_present
            ):
                file.write(piece)
                digest.update(piece)
                progress(len(piece))
        file.flush()
        os.fsync(file.fileno())
    if digest.hexdigest() != target.sha256:
        path.unlink()
        raise ContentMismatch(f"{target.name} has SHA-256 {digest.hexdigest()}, expected {target.sha256}")
    return path


class Download(NamedTuple):
    """A file to download: its name for messages, its address, its size and its SHA-256."""

    name: str
    url: str
    size: int
    sha256: str


def _without_links(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)


def _require_length(pieces: Iterator[bytes], length: int) -> Iterator[bytes]:
    """Pass the pieces on; refuse more or fewer bytes than requested."""
    for piece in pieces:
        length -= len(piece)
        if length < 0:
            raise ContentMismatch("the store sent more bytes than requested")
        yield piece
    if length:
        raise ContentMismatch("the store sent fewer bytes than requested")


class _Range(NamedTuple):
    url: str
    start: int
    end: int
    frames: list[tuple[str, int, int]]


class ChunkFetcher:
    """Fetches chunks by range requests. A request covers several adjacent chunks, and the others are cached."""

    def __init__(
        self,
        remote: Remote,
        places: ChunkPlaces,
        sizes: Mapping[str, int],
        wanted_names: set[str],
        progress: ProgressCallback,
    ) -> None:
        """`sizes` has the size of every chunk of the build; `wanted_names` are the chunks that will be requested."""
        self._remote = remote
        self._places = places
        self._sizes = sizes
        self._progress = progress
        self._ranges = {frame[0]: span for span in _ranges(places, wanted_names) for frame in span.frames}
        self._held: OrderedDict[str, bytes] = OrderedDict()
        self._held_bytes = 0

    def chunk(self, name: str) -> bytes:
        """Return the bytes of the chunk with this name.

        Raises:
            ContentMismatch: the store has no location for it, or returned wrong bytes twice.
        """
        for _ in range(2):
            frame = self._frame(name)
            try:
                return chunks.decompress(frame, self._sizes[name], name)
            except ChunkDamaged:
                continue
        raise ContentMismatch(f"the store returned wrong bytes for chunk {name}")

    def _frame(self, name: str) -> bytes:
        if name not in self._held:
            self._fetch(name)
        frame = self._held.pop(name)
        self._held_bytes -= len(frame)
        return frame

    def _fetch(self, name: str) -> None:
        frame_range = self._ranges.get(name) or next(_ranges(self._places, {name}), None)
        if frame_range is None:
            raise ContentMismatch(f"the store has no location for chunk {name}")
        length = frame_range.end - frame_range.start
        data = b"".join(_require_length(self._remote.read(frame_range.url, frame_range.start, length), length))
        self._progress(length)
        for frame_name, start, size in frame_range.frames:
            if frame_name not in self._held:
                self._held[frame_name] = data[start - frame_range.start : start - frame_range.start + size]
                self._held_bytes += size
        self._held.move_to_end(name)
        while self._held_bytes > CACHE_BYTES and len(self._held) > 1:
            _, dropped_frame = self._held.popitem(last=False)
            self._held_bytes -= len(dropped_frame)


def _ranges(places: ChunkPlaces, wanted_names: set[str]) -> Iterator[_Range]:
    """Yield range requests that fetch each wanted chunk once."""
    seen_names: set[str] = set()
    for pack in places.packs:
        frames = [frame for frame in pack.chunks if frame[0] in wanted_names and frame[0] not in seen_names]
        seen_names.update(frame[0] for frame in frames)
        yield from _runs(pack.url, sorted(frames, key=lambda frame: frame[1]))


def _runs(url: str, frames: Iterable[tuple[str, int, int]]) -> Iterator[_Range]:
    run: list[tuple[str, int, int]] = []
    for frame in frames:
        _, start, length = frame
        end = run[-1][1] + run[-1][2] if run else 0
        # Refuse overlapping chunks, which would multiply the cached bytes of one request.
        if start < end or length <= 0 or length > 2 * chunks.MAX_BYTES:
            raise ContentMismatch(
                "the store gave an invalid chunk location"
            )
        if run and (start - end > GAP_BYTES or start + length - run[0][1] > REQUEST_BYTES):
            yield _Range(url, run[0][1], end, run)
            run = []
        run.append(frame)
    if run:
        yield _Range(url, run[0][1], run[-1][1] + run[-1][2], run)
