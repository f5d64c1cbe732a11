"""The ids of records in tables of an existing database. An id is the encrypted key of the record, so no table maps ids
to keys.

Ids reveal neither numbers nor order: all ids of a table with number keys have the same length. An id that was not
computed by this service is not accepted, or leads to a key that no record has.
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias, cast

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from countersign.kernel.security.encryption import derive_key
from countersign.records.masking.placeholder_tokens import Permutation

KeyKind: TypeAlias = Literal["int2", "int4", "int8", "uuid", "other"]
KeyValue: TypeAlias = int | float | str | bytes
Key: TypeAlias = tuple[KeyValue, ...]

_BITS = {"int2": 16, "int4": 32, "int8": 64}
_NUMBER_BITS = 64
_ZERO_BITS = 32
_HALF = 48
_BLOCK_HALF = 64
_BLOCK_NUMBER_BITS = 96
_BLOCK = 16
_NUMBER_DIGITS = 24
_BLOCK_DIGITS = 32
_MIN_SIV_DIGITS = 64
_LENGTH_BYTES = 2
_MAX_PACKED_BYTES = 512


class RecordIds:
    """Computes the ids of the records of one table, and the keys of ids."""

    def __init__(self, secret: bytes, relation: str, kinds: Sequence[KeyKind]) -> None:
        """`secret` is the secret of our database. `kinds` are the kinds of the columns of the key."""
        self._kinds = tuple(kinds)
        self._relation = relation.encode()
        self._widths = [_BITS.get(kind, 0) for kind in kinds]
        bits = sum(self._widths) if all(self._widths) else _BLOCK_NUMBER_BITS + 1
        self._is_number = bits <= _BLOCK_NUMBER_BITS or self._kinds == ("uuid",)
        salt = self._relation
        half, self._digits = (_HALF, _NUMBER_DIGITS) if bits <= _NUMBER_BITS else (_BLOCK_HALF, _BLOCK_DIGITS)
        self._format = f"%0{self._digits}x".__mod__
        self._permutation = Permutation(derive_key(secret, salt, "adopted/number"), half)
        first, second = derive_key(secret, salt, "adopted/mac"), derive_key(secret, salt, "adopted/text")
        self._siv = AESSIV(first + second)

    def encode(self, keys: Sequence[Key]) -> list[str | None]:
        """Return the id of each key, in the same order. A key that no record of the table can have has no id."""
        if not self._is_number:
            return [self._encrypted(key) for key in keys]
        numbers = self._all_packed(keys)
        if None not in numbers:
            return list(map(self._format, self._permutation.encode(cast("list[int]", numbers))))
        encoded = iter(self._permutation.encode([number for number in numbers if number is not None]))
        return [None if number is None else self._format(next(encoded)) for number in numbers]

    def decode(self, record_id: str) -> Key | None:
        """Return the key of an id, or None if this is not an id of the table."""
        return self.decode_all([record_id])[0]

    def decode_all(self, record_ids: Sequence[str]) -> list[Key | None]:
        """Return the key of each id, in the same order, or None for a text that is not an id of the table."""
        encrypted_ids = [self._bytes_of(record_id) for record_id in record_ids]
        if not self._is_number:
            return [None if raw is None else self._siv_key(raw) for raw in encrypted_ids]
        numbers = [int.from_bytes(raw) for raw in encrypted_ids if raw is not None]
        decoded_numbers = iter(self._permutation.decode(numbers))
        return [None if raw is None else self._unpacked(next(decoded_numbers)) for raw in encrypted_ids]

    def _bytes_of(self, record_id: str) -> bytes | None:
        """Return the bytes of an id, or None if no id of the table has this form."""
        is_long_enough = len(record_id) == self._digits if self._is_number else len(record_id) >= _MIN_SIV_DIGITS
        try:
            raw = bytes.fromhex(record_id)
        except ValueError:
            return None
        return raw if is_long_enough and raw.hex() == record_id else None

    def _encrypted(self, key: Key) -> str | None:
        packed_key = msgspec.msgpack.encode(key)
        if len(packed_key) > _MAX_PACKED_BYTES:
            return None
        prefixed_key = len(packed_key).to_bytes(_LENGTH_BYTES) + packed_key
        return self._siv.encrypt(prefixed_key + bytes(-len(prefixed_key) % _BLOCK), [self._relation]).hex()

    def _siv_key(self, raw: bytes) -> Key | None:
        try:
            padded_key = self._siv.decrypt(raw, [self._relation])
        except InvalidTag:
            return None
        size = int.from_bytes(padded_key[:_LENGTH_BYTES])
        return tuple(msgspec.msgpack.decode(padded_key[_LENGTH_BYTES : _LENGTH_BYTES + size]))

    def _all_packed(self, keys: Sequence[Key]) -> list[int | None]:
        """Return the numbers of all keys as `_packed` does."""
        if len(self._widths) > 1 or self._kinds == ("uuid",):
            return [self._packed(key) for key in keys]
        half = 1 << self._widths[0] - 1
        return [
            value + half << _ZERO_BITS if isinstance(value, int) and -half <= value < half else None
            for (value,) in keys
        ]

    def _packed(self, key: Key) -> int | None:
        """Return the numbers of the key as one number, with zero bits at the end."""
        if self._kinds == ("uuid",):
            return int(str(key[0]).replace("-", ""), 16)
        packed_number = 0
        for value, width in zip(key, self._widths, strict=True):
            if not isinstance(value, int) or not -(1 << width - 1) <= value < 1 << width - 1:
                return None
            packed_number = packed_number << width | (value + (1 << width - 1))
        return packed_number << _ZERO_BITS

    def _unpacked(self, number: int) -> Key | None:
        if self._kinds == ("uuid",):
            return (f"{number:032x}",)
        if number & ((1 << _ZERO_BITS) - 1):
            return None
        number >>= _ZERO_BITS
        values: list[int] = []
        for width in reversed(self._widths):
            values.append((number & ((1 << width) - 1)) - (1 << width - 1))
            number >>= width
        return tuple(reversed(values)) if not number else None
