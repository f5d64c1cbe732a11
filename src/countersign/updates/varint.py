"""Variable-length integers: LEB128, seven bits per byte, least significant first."""

from collections.abc import Iterable

MAX_NUMBER_BYTES = 9
"""The length of the longest number in bytes (63 bits)."""


class Malformed(Exception):
    """The bytes violate the format."""


def encode_numbers(numbers: Iterable[int]) -> bytes:
    """Encode non-negative numbers one after another."""
    output = bytearray()
    for number in numbers:
        remaining_bits = number
        while remaining_bits > 0x7F:
            output.append(remaining_bits & 0x7F | 0x80)
            remaining_bits >>= 7
        output.append(remaining_bits)
    return bytes(output)


def zigzag(number: int) -> int:
    """Map a signed number to an unsigned one; small magnitudes stay small."""
    return number * 2 if number >= 0 else -number * 2 - 1


def unzigzag(number: int) -> int:
    """Return the signed number that `zigzag` maps to this number."""
    return -(number + 1 >> 1) if number & 1 else number >> 1


class VarintReader:
    """Reads numbers and bytes sequentially from a byte string."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def is_at_end(self) -> bool:
        """Whether everything has been read."""
        return self._at == len(self._data)

    def number(self, limit: int) -> int:
        """Return the next number.

        Raises:
            Malformed: the number is truncated, or greater than `limit`.
        """
        value = 0
        for index, byte in enumerate(self._data[self._at : self._at + MAX_NUMBER_BYTES]):
            value |= (byte & 0x7F) << 7 * index
            if byte < 0x80:
                if value > limit:
                    break
                self._at += index + 1
                return value
        raise Malformed("a number is cut off or out of range")

    def numbers(self, count: int, limit: int) -> list[int]:
        """Return the next `count` numbers.

        Raises:
            Malformed: fewer than `count` numbers are left, or a number is greater than `limit`.
        """
        if count > len(self._data) - self._at:
            raise Malformed("more numbers are announced than there are bytes")
        return [self.number(limit) for _ in range(count)]

    def take(self, count: int) -> bytes:
        """Return the next `count` bytes.

        Raises:
            Malformed: fewer than `count` bytes are left.
        """
        data = self._data[self._at : self._at + count]
        if len(data) != count:
            raise Malformed("bytes are missing")
        self._at += count
        return data
