"""Messages between the store and its worker processes: frames on pipes, and the MessagePack records in them.

A frame is four bytes of length (big-endian), then the payload.
"""

import socket
from io import FileIO
from typing import BinaryIO, Literal

import msgspec

from countersign.archives.entry import Kind
from countersign.updates.api_types import PositionRanges
from countersign.updates.manifest import File, Launch

MAX_MESSAGE_BYTES = 1 << 31


def receive_file(handle: int) -> int | None:
    """Receive an open file through the socket with the descriptor `handle`, and close the socket.

    Return None if the other side has closed the connection.
    """
    with socket.socket(fileno=handle) as receiving_socket:
        _, files, _, _ = socket.recv_fds(receiving_socket, 1, 1)
    return files[0] if files else None


def encode_frame(payload: bytes) -> bytes:
    """Return the payload with its length in front, as it is sent."""
    return len(payload).to_bytes(4, "big") + payload


def write_frame(stream: BinaryIO, payload: bytes) -> None:
    """Send one message."""
    stream.write(len(payload).to_bytes(4, "big"))
    stream.write(payload)
    stream.flush()


def read_frame(stream: BinaryIO) -> bytes:
    """Return the payload of the next message.

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
    """Read the payload of the next message from an unbuffered file, without copying it.

    Raises:
        EOFError: the stream ended.
    """
    length = int.from_bytes(_read_into(stream, 4), "big")
    if length > MAX_MESSAGE_BYTES:
        raise EOFError("the message is longer than allowed")
    return _read_into(stream, length)


def _read_into(stream: FileIO, length: int) -> bytearray:
    payload = bytearray(length)
    unread = memoryview(payload)
    while unread:
        count = stream.readinto(unread)
        if not count:
            raise EOFError("the stream ended inside a message")
        unread = unread[count:]
    return payload


_encoder = msgspec.msgpack.Encoder()


class IngestOrder(msgspec.Struct, frozen=True):
    """The options for reading the artifact.

    With `chunks`, the process sends contents as well as digests. With `plain`, a file that is not an archive is
    read as a tree of one file.
    """

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
    """A question about chunks. The answer has one byte for each chunk: 1 if the store wants its content."""

    ids: list[bytes]


class ChunkFrames(msgspec.Struct, frozen=True, tag="frames"):
    """Wanted chunks: name, size and length of the zstd frame of each, and the frames one after another."""

    chunks: list[tuple[bytes, int, int]]
    frames: bytes


class MetadataFile(msgspec.Struct, frozen=True, tag="noted"):
    """The complete content of a small file that describes the components of the build."""

    path: str
    content: bytes


class ReadPosition(msgspec.Struct, frozen=True, tag="at"):
    """The number of bytes of the source that were read."""

    position: int


class EndOfArtifact(msgspec.Struct, frozen=True, tag="ended"):
    """The artifact was read completely, and breaks no rule.

    `sha256` is the digest of the artifact, and `blocks` are the BLAKE3 digests of its blocks of `block_size` bytes.
    """

    sha256: bytes
    block_size: int
    blocks: list[bytes]


class IngestFailed(msgspec.Struct, frozen=True, tag="failed"):
    """The artifact was refused. `kind` names the refusal."""

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
    """The files to make deltas between, and how many bytes may be compared at once."""

    old: list[File]
    new: list[File]
    group_bytes: int
    memory_bytes: int
    cpu_s: int


class FileRequest(msgspec.Struct, frozen=True, tag="wanted"):
    """A request for the content of a file, by its position in the old or new list. The answer is its bytes."""

    is_new: bool
    place: int


class DeltaBlob(msgspec.Struct, frozen=True, tag="delta"):
    """A tested delta: the files that it reads and makes, the memory that applying it takes, and its bytes."""

    old: PositionRanges
    files: PositionRanges
    memory: int
    blob: bytes


class EndOfDeltas(msgspec.Struct, frozen=True, tag="done"):
    """All deltas were sent."""


DeltaRecord = FileRequest | DeltaBlob | EndOfDeltas

_delta_decoder: msgspec.msgpack.Decoder[DeltaRecord] = msgspec.msgpack.Decoder(DeltaRecord)


def encode_delta_record(record: DeltaRecord) -> bytes:
    """Return the record as bytes."""
    return _encoder.encode(record)


def decode_delta_record(payload: bytes | bytearray) -> DeltaRecord:
    """Decode a message of the delta process.

    Raises:
        msgspec.DecodeError: the payload is not a valid message.
    """
    return _delta_decoder.decode(payload)
