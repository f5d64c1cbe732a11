"""Messages between a process that works on strangers' bytes and whoever started it: four bytes of length (big-endian),
then the payload."""

import socket
from io import FileIO
from typing import BinaryIO

MAX_MESSAGE_BYTES = 1 << 31


def receive_file(handle: int) -> int | None:
    """The open file that comes through the socket with this descriptor, which is closed then; None when the other side
    is gone."""
    with socket.socket(fileno=handle) as taking:
        _, files, _, _ = socket.recv_fds(taking, 1, 1)
    return files[0] if files else None


def encode(payload: bytes) -> bytes:
    """The message as it is sent."""
    return len(payload).to_bytes(4, "big") + payload


def write(stream: BinaryIO, payload: bytes) -> None:
    """Send one message."""
    stream.write(len(payload).to_bytes(4, "big"))
    stream.write(payload)
    stream.flush()


def read(stream: BinaryIO) -> bytes:
    """The next message's payload.

    Raises:
        EOFError: the other side is gone.
    """
    head = stream.read(4)
    length = int.from_bytes(head, "big")
    payload = stream.read(length) if len(head) == 4 and length <= MAX_MESSAGE_BYTES else b""
    if len(head) != 4 or len(payload) != length:
        raise EOFError("the other side ended in the middle of a message")
    return payload


def read_raw(stream: FileIO) -> bytearray:
    """The next message's payload, from a file without a buffer, into memory that is written once.

    Raises:
        EOFError: the other side is gone.
    """
    length = int.from_bytes(_read_into(stream, 4), "big")
    if length > MAX_MESSAGE_BYTES:
        raise EOFError("the other side sends no messages")
    return _read_into(stream, length)


def _read_into(stream: FileIO, length: int) -> bytearray:
    payload = bytearray(length)
    rest = memoryview(payload)
    while rest:
        count = stream.readinto(rest)
        if not count:
            raise EOFError("the other side ended in the middle of a message")
        rest = rest[count:]
    return payload
