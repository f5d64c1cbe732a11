"""Messages between the delta worker process and the process that started it."""

import msgspec

from countersign.updates.api_types import Stretches
from countersign.updates.manifest import File


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


class Delta(msgspec.Struct, frozen=True, tag="delta"):
    """A delta that was tried: what it reads and makes, the memory it takes, and its bytes."""

    old: Stretches
    files: Stretches
    memory: int
    blob: bytes


class EndOfDeltas(msgspec.Struct, frozen=True, tag="done"):
    """There are no more."""


Record = FileRequest | Delta | EndOfDeltas

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Record] = msgspec.msgpack.Decoder(Record)


def encode(record: Record) -> bytes:
    """The message as bytes."""
    return _encoder.encode(record)


def decode(payload: bytes | bytearray) -> Record:
    """A message of the process.

    Raises:
        msgspec.DecodeError: it is none.
    """
    return _decoder.decode(payload)
