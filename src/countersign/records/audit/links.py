"""What holds the audit together: the hash of an entry over the one before it, and the keyed MAC of a lane's head."""

import hashlib
import struct
from collections.abc import Sequence
from typing import NamedTuple

from countersign.kernel.database.port import Dialect
from countersign.kernel.security import encryption

LANES: dict[Dialect, int] = {"sqlite": 1, "postgres": 32}
"""How many chains there are side by side, numbered from 0: one for each transaction that may write at a time."""

TEXTS = (
    "user_id",
    "agent_token",
    "agent",
    "command",
    "model",
    "record_id",
    "fields",
    "changes",
    "plan_id",
    "request_id",
)
COLUMNS = ("id", "revision", "changed", "at", "lane", "number", *TEXTS)
"""The columns under the hash, in this order, for ever: another order or column would be another chain."""

NO_HASH = bytes(32)
"""Stands before the first entry of a lane."""

_HEAD = struct.Struct(">qq32s")


class Head(NamedTuple):
    """Where a lane ends: number and hash of its last entry, 0 and `NO_HASH` without one. Only a sound one is signed."""

    lane: int
    number: int
    hash: bytes
    is_sound: bool = True


class HeadSigner:
    """Makes and checks the MACs of heads: without the key nobody can shorten a lane, or write it anew."""

    def __init__(self, secret: bytes) -> None:
        """Takes the database's secret, from which the key derives."""
        self._signer = encryption.signer_for(secret, "audit/head")

    def mac(self, head: Head) -> bytes:
        """The MAC over lane, number and hash; empty, which is never valid, when the head is not sound."""
        return self._signer.sign(_HEAD.pack(head.lane, head.number, head.hash)) if head.is_sound else b""

    def checked(self, lane: int, number: int, last: bytes, mac: bytes) -> Head:
        """The head as stored, sound only with its own MAC."""
        # A hash of another length would be padded or cut to one that fits.
        is_sound = len(last) == len(NO_HASH) and self._signer.verify(_HEAD.pack(lane, number, last), mac)
        return Head(lane, number, last, is_sound)


def entry_hash(previous: bytes, columns: Sequence[None | int | str | bytes]) -> bytes:
    """SHA-256 over the 32 bytes of the hash before, then each of `COLUMNS`: `-` for NULL, else its length, `:` and it.

    Numbers are decimal, text is UTF-8 (given as such or as its bytes), lengths are decimal and in bytes.
    """
    if any(isinstance(value, bytes) for value in columns):
        return _hash_of_bytes(previous, columns)
    texts = ["-" if value is None else f"{len(text := str(value))}:{text}" for value in columns]
    whole = "".join(texts)
    # Most text is ASCII, where a length in characters is the one in bytes.
    return hashlib.sha256(previous + whole.encode()).digest() if whole.isascii() else _hash_of_bytes(previous, columns)


def _hash_of_bytes(previous: bytes, columns: Sequence[None | int | str | bytes]) -> bytes:
    raws = [value if value is None or isinstance(value, bytes) else str(value).encode() for value in columns]
    pieces = [b"-" if raw is None else b"%d:%b" % (len(raw), raw) for raw in raws]
    return hashlib.sha256(previous + b"".join(pieces)).digest()
