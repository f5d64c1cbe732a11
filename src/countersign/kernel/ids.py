"""Identifiers and random bytes: the only module that reads randomness from the system."""

import random
import re
import secrets
import uuid
from collections.abc import Generator
from contextlib import contextmanager

from countersign.kernel import clock

_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")


_seeded_generators: list[random.Random] = []


def new_uuid() -> str:
    """Return a new UUIDv7 (RFC 9562 §5.7). These ids sort by the microsecond of their creation, so that indexes stay
    dense."""
    time_ms, remainder_us = divmod(clock.now(), 1_000)
    # RFC 9562 §6.2, method 3: the twelve bits after the version are the fraction of the millisecond.
    fraction = (remainder_us << 12) // 1_000
    random_bits = int.from_bytes(random_bytes(8), "big") & ((1 << 62) - 1)
    return str(uuid.UUID(int=(time_ms << 80) | (7 << 76) | (fraction << 64) | (2 << 62) | random_bits))


@contextmanager
def seeded(seed: str) -> Generator[None]:
    """Generate ids and random bytes from the seed, in the whole process, while the block lasts.

    This is for tests, and for demonstration data that is created before anything is served, and never for secrets.
    Blocks may overlap without nesting: leaving a block removes only its own seed.
    """
    source = random.Random(seed)
    _seeded_generators.append(source)
    try:
        yield
    finally:
        _seeded_generators.remove(source)


def derived_uuid(namespace: str, name: str) -> str:
    """Return the UUIDv5 of a name within a namespace, which is a UUID (RFC 9562 §5.5); equal arguments give the same
    UUID."""
    return str(uuid.uuid5(uuid.UUID(namespace), name))


def uuid_of(data: bytes) -> str:
    """Return 16 bytes in the shape of a UUID."""
    return str(uuid.UUID(bytes=data))


def is_uuid(text: str) -> bool:
    """Return whether the text has the 8-4-4-4-12 hexadecimal shape of a UUID."""
    return _UUID.fullmatch(text) is not None


def new_record_id() -> str:
    """Return a new random id: 96 bits as 24 hexadecimal digits."""
    return random_bytes(12).hex()


class RecordIdSeries:
    """Generates random record ids. The ids of one second begin with the same random 32 bits.

    Ids of the same second are therefore neighbours in indexes, and a commit of many records changes few pages. Two ids
    reveal only whether they were generated in the same second. They do not reveal the time or the number of other ids.
    """

    def __init__(self) -> None:
        self._prefix = ""
        self._second: int | None = None

    def new_id(self) -> str:
        """Return a new id: 96 bits as 24 hexadecimal digits. Inside a block of `seeded`, ids of one second differ in
        all digits, so that they do not depend on the clock."""
        if _seeded_generators:
            return new_record_id()
        second = int(clock.monotonic_s())
        if second != self._second:
            self._prefix, self._second = random_bytes(4).hex(), second
        return self._prefix + random_bytes(8).hex()


def new_request_id() -> str:
    """Return a new id of a request: 64 bits as 16 hexadecimal digits. The id is not secret: it comes from a
    pseudo-random generator, which each forked process seeds again. Inside a block of `seeded`, it comes from the
    seed."""
    generator = _seeded_generators[-1] if _seeded_generators else random
    return f"{generator.getrandbits(64):016x}"


def random_bytes(count: int) -> bytes:
    """Return `count` unpredictable bytes from the operating system; inside a block of `seeded`, bytes from the seed."""
    return _seeded_generators[-1].randbytes(count) if _seeded_generators else secrets.token_bytes(count)
