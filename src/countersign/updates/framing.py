"""Messages between a process that works on strangers' bytes and whoever started it: four bytes of length (big-endian),
then the payload."""

from typing import BinaryIO

LARGEST_MESSAGE = 1 << 31


def framed(payload: bytes) -> bytes:
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
    payload = stream.read(length) if len(head) == 4 and length <= LARGEST_MESSAGE else b""
    if len(head) != 4 or len(payload) != length:
        raise EOFError("the other side ended in the middle of a message")
    return payload
