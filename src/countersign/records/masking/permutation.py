"""A keyed permutation of 48-bit numbers: value ids become the numbers of placeholder tokens, and back.

A balanced Feistel network of 8 rounds over two halves of 24 bits (NIST SP 800-38G builds FF1 so; Luby and Rackoff 1988
show that 4 rounds suffice for a strong pseudorandom permutation), its round function AES-256 of half and round. All
numbers of a batch go through a round together: they lie in 128-bit lanes of one long integer, so that Python works
on whole batches, not on numbers.
"""

import struct
from collections.abc import Sequence
from functools import lru_cache

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB

SIZE = 1 << 48
"""Numbers run from 0 to this, exclusive."""

ROUNDS = 8
MAX_TOGETHER = 1_024

_HALF = 24
_LANE = 128
_MASK = (1 << _HALF) - 1


class Permutation:
    """The permutation of one key (32 bytes)."""

    def __init__(self, key: bytes) -> None:
        # One encryptor for all: ECB keeps nothing from block to block, and no block is ever left unfinished.
        self._encrypt = Cipher(AES(key), ECB()).encryptor().update

    def encode(self, ids: Sequence[int]) -> list[int]:
        """The numbers that stand for the ids, in their order. Each id is below 2^48."""
        return self._through(ids, range(ROUNDS), swapped=False)

    def decode(self, numbers: Sequence[int]) -> list[int]:
        """The ids that the numbers stand for, in their order. Each number is below 2^48."""
        return self._through(numbers, range(ROUNDS - 1, -1, -1), swapped=True)

    def _through(self, numbers: Sequence[int], rounds: range, *, swapped: bool) -> list[int]:
        found: list[int] = []
        for start in range(0, len(numbers), MAX_TOGETHER):
            found += self._batch(numbers[start : start + MAX_TOGETHER], rounds, swapped=swapped)
        return found

    def _batch(self, numbers: Sequence[int], rounds: range, *, swapped: bool) -> list[int]:
        count = len(numbers)
        size = count * _LANE // 8
        ones = _ones(count)
        lanes = int.from_bytes(struct.pack(f">{2 * count}Q", *_padded(numbers)))
        mask = ones * _MASK
        left, right = lanes >> _HALF & mask, lanes & mask
        if swapped:
            left, right = right, left
        for number in rounds:
            block = (right | (ones * (number + 1) << 64)).to_bytes(size)
            left, right = right, left ^ (int.from_bytes(self._encrypt(block)) & mask)
        if swapped:
            left, right = right, left
        return list(struct.unpack(f">{2 * count}Q", (left << _HALF | right).to_bytes(size))[1::2])


def _padded(numbers: Sequence[int]) -> list[int]:
    padded = [0] * (2 * len(numbers))
    padded[1::2] = numbers
    return padded


@lru_cache(maxsize=2 * MAX_TOGETHER)
def _ones(count: int) -> int:
    """The number that has a 1 in each of so many lanes."""
    return sum(1 << _LANE * lane for lane in range(count))
