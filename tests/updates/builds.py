"""Builds of made-up files with all data that a store has about them, and a store that serves them from memory."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from countersign.updates import chunks, dsse
from countersign.updates import manifest as manifests
from countersign.updates.api_types import ChunkPlaces, Delta, DeltaOffer, Pack
from countersign.updates.deltas import make
from countersign.updates.install.installer import VerifiedRelease
from countersign.updates.manifest import Chunk, File, Manifest, Symlink

KEY = dsse.signing_key(bytes(range(32)))
Contents = Mapping[str, bytes]


@dataclass
class SampleBuild:
    """A version: contents by path, its manifest, and its chunks as they are stored."""

    version: str
    contents: Contents
    manifest: Manifest
    frames: dict[str, bytes]
    artifact: bytes = b""

    @property
    def payload(self) -> bytes:
        """The signed bytes."""
        return manifests.encode(self.manifest)

    @property
    def sha256(self) -> str:
        """Their digest."""
        return hashlib.sha256(self.payload).hexdigest()

    def release(self, counter: int = 1) -> VerifiedRelease:
        """Return the release as a client has it after it accepted the signature."""
        signed_envelope = dsse.sign(manifests.PAYLOAD_TYPE, self.payload, KEY)
        return VerifiedRelease(self.manifest, signed_envelope, self.sha256, "https://store.example", "stable", counter)


def build(
    version: str,
    contents: Contents,
    *,
    executables: tuple[str, ...] = (),
    links: Mapping[str, str] | None = None,
    folders: tuple[str, ...] = (),
    artifact: bytes = b"",
) -> SampleBuild:
    """Return the build of these files."""
    listed_chunks: list[Chunk] = []
    chunk_positions: dict[str, int] = {}
    frames: dict[str, bytes] = {}
    files: list[File] = []
    for path in sorted(contents, key=str.encode):
        data = contents[path]
        file_chunks: list[int] = []
        for chunk in chunks.cut(iter([data])):
            name = chunks.chunk_id(chunk)
            if name not in chunk_positions:
                chunk_positions[name] = len(listed_chunks)
                listed_chunks.append(Chunk(name, len(chunk)))
                frames[name] = chunks.compress(chunk)
            file_chunks.append(chunk_positions[name])
        mode = 0o755 if path in executables else 0o644
        files.append(File(path, mode, len(data), hashlib.sha256(data).hexdigest(), chunks.chunk_id(data), file_chunks))
    manifest = Manifest(
        org="toolsmith",
        product_id="0199",
        product="bench",
        version=version,
        artifact="a1",
        artifact_sha256=hashlib.sha256(artifact).hexdigest(),
        artifact_size=len(artifact) or 1 << 40,
        platform=None,
        created_at="2026-11-20T00:00:00Z",
        files=files,
        links=[Symlink(path, target) for path, target in sorted((links or {}).items())],
        folders=sorted(folders),
        chunks=listed_chunks,
        launch=[],
    )
    return SampleBuild(version, contents, manifest, frames, artifact)


@dataclass
class BuildServer:
    """A store that serves one wanted build, with deltas from an older build if there is one. `damage` changes the bytes
    at an address. `served` counts bytes by the kind of address. `begun` counts the announced installations and
    updates."""

    wanted: SampleBuild
    older: SampleBuild | None = None
    damage: dict[str, bytes] = field(default_factory=dict)
    served: dict[str, int] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    deltas: list[Delta] = field(default_factory=list)
    cut_after: int | None = None
    begun: int = 0

    def __post_init__(self) -> None:
        """Put everything at its address."""
        self.blobs["pack:0"] = b"".join(self.wanted.frames.values())
        self.blobs["artifact:0"] = self.wanted.artifact
        if self.older is None:
            return
        for number, new_delta in enumerate(make.make(_side(self.older), _side(self.wanted))):
            address = f"delta:{number}"
            self.blobs[address] = new_delta.blob
            digest = hashlib.sha256(new_delta.blob).hexdigest()
            self.deltas.append(
                Delta(address, len(new_delta.blob), digest, new_delta.old, new_delta.files, new_delta.memory)
            )

    def places(self, *, is_start: bool = False) -> ChunkPlaces:
        """Return the addresses of everything."""
        self.begun += is_start
        listed_frames: list[tuple[str, int, int]] = []
        at = 0
        for name, frame in self.wanted.frames.items():
            listed_frames.append((name, at, len(frame)))
            at += len(frame)
        manifest = self.wanted.manifest
        packs = [Pack("pack:0", at, listed_frames)]
        return ChunkPlaces(packs, "artifact:0", manifest.artifact_size, manifest.artifact_sha256, "build.tar")

    def offer(self, version: str) -> DeltaOffer | None:
        """Return the deltas."""
        if self.older is None or version != self.older.version:
            return None
        return DeltaOffer("ready", version, self.wanted.version, self.older.sha256, self.wanted.sha256, self.deltas)

    def read(self, url: str, offset: int, length: int) -> Iterator[bytes]:
        """Yield the range, in pieces."""
        data = self.damage.get(url, self.blobs[url])[offset : offset + length]
        for at in range(0, len(data), 4096):
            piece = data[at : at + 4096]
            kind = url.partition(":")[0]
            self.served[kind] = self.served.get(kind, 0) + len(piece)
            if self.cut_after is not None and sum(self.served.values()) > self.cut_after:
                raise ConnectionResetError("cut")
            yield piece


def _side(build: SampleBuild) -> make.BuildFiles:
    return make.BuildFiles(build.manifest.files, lambda file: build.contents[file.path])


def contents_of(root: Path) -> dict[str, bytes]:
    """Return the regular files below a folder, without the installer's own state and without what links or mounts lead
    to."""
    files = (path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    content_by_path = {str(path.relative_to(root)): path.read_bytes() for path in files}
    return {path: data for path, data in content_by_path.items() if not path.startswith(".countersign/")}
