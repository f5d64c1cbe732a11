"""Differences and sums of bytes, each modulo 256, many at a time: Python's big integers do the lanes."""

_PIECE = 64 << 10
"""Bytes at a time: an integer of this length stays in the processor's cache."""

_LOW = int.from_bytes(b"\x7f" * _PIECE, "little")
_HIGH = int.from_bytes(b"\x80" * _PIECE, "little")


def difference(new: memoryview, old: memoryview) -> bytes:
    """`new` minus `old`; both are equally long."""
    if new == old:
        return bytes(len(new))
    return b"".join(_subtracted(new[at : at + _PIECE], old[at : at + _PIECE]) for at in range(0, len(new), _PIECE))


def total(old: bytes, delta: bytes) -> bytes:
    """`old` plus `delta`; both are equally long."""
    return b"".join(_added(old[at : at + _PIECE], delta[at : at + _PIECE]) for at in range(0, len(old), _PIECE))


def _subtracted(new: memoryview, old: memoryview) -> bytes:
    if new == old:
        return bytes(len(new))
    one, other = int.from_bytes(new, "little"), int.from_bytes(old, "little")
    low, high = _lanes(len(new))
    return (((one | high) - (other & low)) ^ ((one ^ other ^ high) & high)).to_bytes(len(new), "little")


def _added(old: bytes, delta: bytes) -> bytes:
    one, other = int.from_bytes(old, "little"), int.from_bytes(delta, "little")
    low, high = _lanes(len(old))
    return (((one & low) + (other & low)) ^ ((one ^ other) & high)).to_bytes(len(old), "little")


def _lanes(length: int) -> tuple[int, int]:
    """Masks of the low seven bits and of the high bit of each lane."""
    if length == _PIECE:
        return _LOW, _HIGH
    mask = (1 << 8 * length) - 1
    return _LOW & mask, _HIGH & mask
