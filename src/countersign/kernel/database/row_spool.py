"""Stores the rows of a long read temporarily, so that the statement ends early even if the consumer of the rows is
slow."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from tempfile import SpooledTemporaryFile
from typing import Any, Protocol

import msgspec

from countersign.kernel.database.port import Row
from countersign.kernel.errors import Refused

MEMORY_BYTES = 4 << 20
MAX_BYTES = 2 << 30
_SIZE_BYTES = 4


_decode = msgspec.msgpack.Decoder(list[tuple[Any, ...]]).decode


class TooManyRows(Refused):
    """The rows of one read take more space than a process may use for them."""

    resolution = "Give a limit, or narrow the search."


class Cipher(Protocol):
    """Encrypts numbered pieces of data that only this process decrypts."""

    def encrypt(self, plaintext: bytes, number: int) -> bytes:
        """Return the encrypted piece. Each number may be used once."""
        ...

    def decrypt(self, ciphertext: bytes, number: int) -> bytes:
        """Return the piece that was encrypted with this number."""
        ...


NewCipher = Callable[[], Cipher]
"""Returns a cipher with a new key."""


def new_file() -> SpooledTemporaryFile[bytes]:
    """Return an empty file, which is in memory until it is larger than MEMORY_BYTES."""
    return SpooledTemporaryFile(MEMORY_BYTES)


class RowSpool:
    """Batches of rows in the order in which they were added, encrypted: in memory, and beyond MEMORY_BYTES in a file
    without a name."""

    def __init__(self, cipher: Cipher) -> None:
        self._stack = ExitStack()
        self.file = self._stack.enter_context(new_file())
        self._cipher = cipher
        self._count = 0

    def add(self, rows: Sequence[Row]) -> None:
        """Add a batch.

        Raises:
            TooManyRows: the rows are larger than MAX_BYTES together.
        """
        encoded_rows = msgspec.msgpack.encode(list(map(tuple, rows)))
        encrypted_rows = self._cipher.encrypt(encoded_rows, self._count)
        if self.file.tell() + len(encrypted_rows) > MAX_BYTES:
            raise TooManyRows(f"The rows are larger than {MAX_BYTES >> 30} GiB together.")
        self.file.write(len(encrypted_rows).to_bytes(_SIZE_BYTES) + encrypted_rows)
        self._count += 1

    def batches(self) -> Iterator[list[Row]]:
        """Yield all batches. Afterwards, no batch can be added."""
        self.file.seek(0, os.SEEK_SET)
        for number in range(self._count):
            size = int.from_bytes(self.file.read(_SIZE_BYTES))
            encoded_rows = self._cipher.decrypt(self.file.read(size), number)
            yield _decode(encoded_rows)

    def close(self) -> None:
        """Remove the rows."""
        self._stack.close()
