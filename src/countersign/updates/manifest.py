"""The manifest of a build: every file with its mode, digest and chunks. A client compares an installation with it."""

import hashlib
from typing import Annotated, Literal

import msgspec

PAYLOAD_TYPE = "application/vnd.countersign.manifest+json"

Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
"""SHA-256 or BLAKE3 in lower-case hexadecimal."""


class File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file: relative path, mode (0o644 or 0o755), size in bytes, both digests, and its chunks as positions in the
    manifest's `chunks`, in order. Other tools identify files by SHA-256. BLAKE3 is faster to compute."""

    path: str
    mode: int
    size: int
    sha256: Digest
    blake3: Digest
    chunks: list[int]


class Symlink(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A symbolic link that stays inside the tree."""

    path: str
    target: str


class Chunk(msgspec.Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """A chunk of content: the BLAKE3 digest of its bytes, and their number."""

    id: Digest
    size: int


class Launch(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An executable file, with the platform and processors that its header names."""

    path: str
    format: Literal["elf", "pe", "macho", "apk", "script", "jar", "wasm", "html"]
    platform: str | None = None
    architectures: list[str] = []
    interpreter: str | None = None


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One build of one release. Files, links and (empty) folders are in the order of their paths' UTF-8 bytes."""

    format: Literal[1] = 1
    org: str
    product_id: str
    product: str
    version: str
    artifact: str
    artifact_sha256: Digest
    artifact_size: int
    platform: str | None
    created_at: str
    files: list[File]
    links: list[Symlink]
    folders: list[str]
    chunks: list[Chunk]
    launch: list[Launch]

    @property
    def size(self) -> int:
        """The total size of all files in bytes."""
        return sum(file.size for file in self.files)


_encoder = msgspec.json.Encoder(order="deterministic")
_decoder = msgspec.json.Decoder(Manifest)


def encode(manifest: Manifest) -> bytes:
    """Return the bytes of the manifest that are signed."""
    return _encoder.encode(manifest)


def digest(payload: bytes) -> str:
    """Return the name of a manifest: the SHA-256 of its signed bytes."""
    return hashlib.sha256(payload).hexdigest()


def decode(payload: bytes) -> Manifest:
    """Return the manifest in a signed payload.

    Raises:
        msgspec.ValidationError: the payload is not a manifest, or has a newer format.
    """
    return _decoder.decode(payload)
