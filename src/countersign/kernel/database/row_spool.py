"""Keeps the rows of a long read aside, so that the read ends soon whatever the reader of the rows does."""

import os
from collections.abc import Iterator, Sequence
from tempfile import SpooledTemporaryFile

import msgspec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from countersign.kernel.database.port import Row
from countersign.kernel.errors import Refused

MEMORY_BYTES = 4 << 20
MAX_BYTES = 2 << 30
_SIZE_BYTES = 4
_NONCE_BYTES = 12


class TooManyRows(Refused):
    """The rows of one read take more space than a process may use for them."""

    resolution = "Give a limit, or narrow the search."


class RowSpool:
    """Batches of rows in the order in which they were added: in memory, and beyond MEMORY_BYTES in a file without a
    name. The file is encrypted with a key that exists in memory alone."""

    def __init__(self) -> None:
        self.file = SpooledTemporaryFile(MEMORY_BYTES)  # noqa: SIM115  `close` closes it
        self._cipher = AESGCM(AESGCM.generate_key(256))
        self._count = 0

    def add(self, rows: Sequence[Row]) -> None:
        """Add a batch.

        Raises:
            TooManyRows: the rows are larger than MAX_BYTES together.
        """
        packed = msgspec.msgpack.encode([tuple(row) for row in rows])
        nonce = self._count.to_bytes(_NONCE_BYTES)
        sealed = self._cipher.encrypt(nonce, packed, None)
        if self.file.tell() + len(sealed) > MAX_BYTES:
            raise TooManyRows(f"The rows are larger than {MAX_BYTES >> 30} GiB together.")
        self.file.write(len(sealed).to_bytes(_SIZE_BYTES) + sealed)
        self._count += 1

    def batches(self) -> Iterator[list[Row]]:
        """Yield all batches. Nothing can be added any more."""
        self.file.seek(0, os.SEEK_SET)
        for number in range(self._count):
            size = int.from_bytes(self.file.read(_SIZE_BYTES))
            packed = self._cipher.decrypt(number.to_bytes(_NONCE_BYTES), self.file.read(size), None)
            yield [tuple(row) for row in msgspec.msgpack.decode(packed, type=list[list[object]])]

    def close(self) -> None:
        """Remove the rows."""
        self.file.close()
