"""Payloads and results of the jobs on artifacts (decisions 9)."""

from typing import Annotated, Literal

import msgspec

from countersign.updates.manifest import Launch

ArtifactId = Annotated[str, msgspec.Meta(min_length=36, max_length=36)]


class ProcessPayload(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Payload of build.process. `again` rebuilds an existing build of the artifact, including all its chunks."""

    artifact_id: ArtifactId
    again: bool = False


class ExtractPayload(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Payload of archive.extract. The job lists at most `limit` entries of the archive from `offset` on, and at most
    one mebibyte of them."""

    artifact_id: ArtifactId
    offset: Annotated[int, msgspec.Meta(ge=0, le=10_000_000)] = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1000


class VerifyPayload(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Payload of artifact.verify."""

    artifact_id: ArtifactId


class DeltaPayload(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Payload of delta.make: the artifacts of the two builds."""

    from_artifact: ArtifactId
    to_artifact: ArtifactId


class BuildResult(msgspec.Struct):
    """The build of an artifact. Sizes are in bytes. `new_chunks` and `stored` are the number and the size of the chunks
    that this build added."""

    artifact_id: str
    manifest_sha256: str
    platform: str | None
    platforms: list[str]
    files: int
    size: int
    chunks: int
    new_chunks: int
    stored: int
    launch: list[Launch]
    components: int


class DeltaResult(msgspec.Struct):
    """The number of prepared deltas between two builds, and their total size."""

    from_artifact: str
    to_artifact: str
    deltas: int
    size: int


class ListedEntry(msgspec.Struct, omit_defaults=True):
    """An entry of an archive. `size` is in bytes, and `mode` is in octal digits."""

    path: str
    kind: Literal["file", "folder", "link"]
    mode: str
    size: int = 0
    sha256: str | None = None
    target: str | None = None


class Listing(msgspec.Struct):
    """A page of the entries of an archive, in the order of the archive, and the counts of all entries. `next_offset` is
    the offset of the next page."""

    artifact_id: str
    files: int
    size: int
    total: int
    entries: list[ListedEntry]
    next_offset: int | None


class Corruption(msgspec.Struct, omit_defaults=True):
    """A difference from the recorded state: its kind, its location (the bytes from `offset` on) and its remedy."""

    kind: Literal["artifact", "manifest", "chunk", "archive", "file"]
    detail: str
    heal: str
    path: str | None = None
    offset: int | None = None
    length: int | None = None


class VerifyResult(msgspec.Struct):
    """The result of a verification. `checked` lists the checks that were made."""

    artifact_id: str
    ok: bool
    checked: list[str]
    findings: list[Corruption]
    wounds: int
