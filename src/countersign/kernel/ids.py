"""Identifiers and random bytes: the one place that asks the machine for chance."""

import re
import secrets
import time
import uuid

_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")


def new_uuid() -> str:
    """A fresh UUIDv7 (RFC 9562 §5.7): sorts by creation, so that indexes stay dense."""
    stamp_ms = time.time_ns() // 1_000_000
    value = (stamp_ms << 80) | (7 << 76) | (secrets.randbits(12) << 64) | (2 << 62) | secrets.randbits(62)
    return str(uuid.UUID(int=value))


def is_uuid(text: str) -> bool:
    """Whether the text has the 8-4-4-4-12 hexadecimal shape of a UUID."""
    return _UUID.fullmatch(text) is not None


def random_bytes(count: int) -> bytes:
    """`count` unpredictable bytes from the operating system."""
    return secrets.token_bytes(count)


def derived_uuid(*parts: str) -> str:
    """The same UUIDv5-shaped id for the same parts; for data that must be made identically twice."""
    return str(uuid.uuid5(uuid.UUID("6f1b3f0e-2c55-5d7a-9c70-6b0d8c2f5a11"), "\x1f".join(parts)))
