"""Messages between the store and its worker processes: frames on pipes, and the MessagePack records in them.

A frame is four bytes of length (big-endian), then the payload.
"""

import socket
from io import FileIO
from typing import BinaryIO, Literal

import msgspec

from countersign.archives.entry import Kind
from countersign.updates.api_types import Stretches
from countersign.updates.manifest import File, Launch

MAX_MESSAGE_BYTES = 1 << 31


def receive_file(handle: int) -> int | None:
    """The open file that comes through the socket with this descriptor, which is closed then; None when the other side
    is gone."""
    with socket.socket(fileno=handle) as taking:
        _, files, _, _ = socket.recv_fds(taking, 1, 1)
    return files[0] if files else None


def encode_frame(payload: bytes) -> bytes:
    """The message as it is sent."""
    return len(payload).to_bytes(4, "big") + payload


def write_frame(stream: BinaryIO, payload: bytes) -> None:
    """Send one message."""
    stream.write(len(payload).to_bytes(4, "big"))
    stream.write(payload)
    stream.flush()


def read_frame(stream: BinaryIO) -> bytes:
    """The next message's payload.

    Raises:
        EOFError: the stream ended.
    """
    head = stream.read(4)
    length = int.from_bytes(head, "big")
    payload = stream.read(length) if len(head) == 4 and length <= MAX_MESSAGE_BYTES else b""
    if len(head) != 4 or len(payload) != length:
        raise EOFError("the stream ended inside a message")
    return payload


def read_frame_unbuffered(stream: FileIO) -> bytearray:
    """The next message's payload, from a file without a buffer, into memory that is written once.

    Raises:
        EOFError: the stream ended.
    """
    length = int.from_bytes(_read_into(stream, 4), "big")
    if length > MAX_MESSAGE_BYTES:
        raise EOFError("the message is longer than allowed")
    return _read_into(stream, length)


def _read_into(stream: FileIO, length: int) -> bytearray:
    payload = bytearray(length)
    rest = memoryview(payload)
    while rest:
        count = stream.readinto(rest)
        if not count:
            raise EOFError("the stream ended inside a message")
        rest = rest[count:]
    return payload


_encoder = msgspec.msgpack.Encoder()


class IngestOrder(msgspec.Struct, frozen=True):
    """Under which limits the file is read that was handed over. `chunks` asks for its contents, not for digests alone;
    `plain` takes a file that is no archive for a tree of one file."""

    name: str
    limits: dict[str, int | str]
    chunks: bool
    plain: bool
    memory_bytes: int
    cpu_s: int


class EntryRecord(msgspec.Struct, frozen=True, tag="found"):
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


class ReadPosition(msgspec.Struct, frozen=True, tag="at"):
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


IngestRecord = EntryRecord | ChunkQuery | ChunkFrames | MetadataFile | ReadPosition | EndOfArtifact | IngestFailed

_ingest_decoder: msgspec.msgpack.Decoder[IngestRecord] = msgspec.msgpack.Decoder(IngestRecord)


def write_ingest_record(stream: BinaryIO, record: IngestRecord) -> None:
    """Send a record."""
    write_frame(stream, _encoder.encode(record))


def decode_ingest_record(payload: bytes | bytearray) -> IngestRecord:
    """Decode a message of the ingest process.

    Raises:
        msgspec.DecodeError: the payload is not a valid message.
    """
    return _ingest_decoder.decode(payload)


class DeltaOrder(msgspec.Struct, frozen=True):
    """Between which files, and how much may be compared at once."""

    old: list[File]
    new: list[File]
    group_bytes: int
    memory_bytes: int
    cpu_s: int


class FileRequest(msgspec.Struct, frozen=True, tag="wanted"):
    """The contents of a file are wanted, by its place in the old or the new list; the answer is its bytes."""

    is_new: bool
    place: int


class DeltaBlob(msgspec.Struct, frozen=True, tag="delta"):
    """A delta that was tried: what it reads and makes, the memory it takes, and its bytes."""

    old: Stretches
    files: Stretches
    memory: int
    blob: bytes


class EndOfDeltas(msgspec.Struct, frozen=True, tag="done"):
    """There are no more."""


DeltaRecord = FileRequest | DeltaBlob | EndOfDeltas

_delta_decoder: msgspec.msgpack.Decoder[DeltaRecord] = msgspec.msgpack.Decoder(DeltaRecord)


def encode_delta_record(record: DeltaRecord) -> bytes:
    """The message as bytes."""
    return _encoder.encode(record)


def decode_delta_record(payload: bytes | bytearray) -> DeltaRecord:
    """Decode a message of the delta process.

    Raises:
        msgspec.DecodeError: the payload is not a valid message.
    """
    return _delta_decoder.decode(payload)
