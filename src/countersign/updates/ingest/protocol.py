"""Records between the ingest process and the process that started it: framed MessagePack."""

from typing import BinaryIO, Literal

import msgspec

from countersign.archives.entry import Kind
from countersign.updates import framing
from countersign.updates.manifest import Launch


class IngestOrder(msgspec.Struct, frozen=True):
    """Under which limits the file is read that was handed over. `chunks` asks for its contents, not for digests alone;
    `plain` takes a file that is no archive for a tree of one file."""

    name: str
    limits: dict[str, int | str]
    chunks: bool
    plain: bool
    memory_bytes: int
    cpu_s: int


class FoundEntry(msgspec.Struct, frozen=True, tag="found"):
    """An entry that was read to its end. `chunks` are the names (BLAKE3) and sizes of its chunks, in order."""

    path: str
    kind: Kind
    size: int
    mode: int
    target: str
    sha256: bytes
    blake3: bytes
    chunks: list[tuple[bytes, int]]
    launch: Launch | None


class ChunkQuery(msgspec.Struct, frozen=True, tag="asked"):
    """Chunks that were met; the answer is a byte for each: 1 for those whose contents are wanted."""

    ids: list[bytes]


class ChunkFrames(msgspec.Struct, frozen=True, tag="frames"):
    """Wanted chunks: name, size and length of the zstd frame of each, and the frames one after another."""

    chunks: list[tuple[bytes, int, int]]
    frames: bytes


class MetadataFile(msgspec.Struct, frozen=True, tag="noted"):
    """A small file that says what the build consists of, whole."""

    path: str
    content: bytes


class Progress(msgspec.Struct, frozen=True, tag="at"):
    """How far the source was read, in bytes."""

    position: int


class EndOfArtifact(msgspec.Struct, frozen=True, tag="ended"):
    """All was read, and no rule was broken. `sha256` is of the artifact's own bytes, `blocks` are BLAKE3 digests of
    `block_size` of them each."""

    sha256: bytes
    block_size: int
    blocks: list[bytes]


class IngestFailed(msgspec.Struct, frozen=True, tag="failed"):
    """The artifact was refused: `kind` says by which refusal."""

    kind: Literal["refused", "unknown"]
    rule: str
    detail: str
    entry: str | None


Record = FoundEntry | ChunkQuery | ChunkFrames | MetadataFile | Progress | EndOfArtifact | IngestFailed

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Record] = msgspec.msgpack.Decoder(Record)


def write(stream: BinaryIO, record: Record) -> None:
    """Send a record."""
    framing.write(stream, _encoder.encode(record))


def decode(payload: bytes | bytearray) -> Record:
    """A message that was sent.

    Raises:
        msgspec.DecodeError: it is none.
    """
    return _decoder.decode(payload)
