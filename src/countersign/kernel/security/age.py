"""Files encrypted with a passphrase, in the format age (https://age-encryption.org/v1).

A random file key is encrypted with a key that scrypt (RFC 7914) derives from the passphrase. The content is split into
chunks of 64 KiB. Each chunk is encrypted with ChaCha20-Poly1305 (RFC 8439); its nonce contains its number and a flag
that marks the last chunk, which is the STREAM construction (Hoang, Reyhanitabar, Rogaway, Vizár 2015). Changed, moved,
missing and additional chunks and truncated files are detected. Any age tool can decrypt the files.
"""

import base64
import binascii
import hmac
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from countersign.kernel import ids
from countersign.kernel.errors import Refused, Unavailable

CHUNK_BYTES = 64 * 1024
TAG_BYTES = 16
SCRYPT_WORK_FACTOR = 18
"""scrypt's cost as a power of two: 256 MiB and about a second for each guess."""
MAX_SCRYPT_WORK_FACTOR = 20
"""The highest accepted cost: 1 GiB and some seconds. An untrusted file can cause this cost, because the file is
authenticated only after the key is derived."""

_VERSION = b"age-encryption.org/v1\n"
_LABEL = b"age-encryption.org/v1/scrypt"
_SALT_BYTES = _KEY_BYTES = _NONCE_BYTES = 16
_HEADER = re.compile(
    rb"(age-encryption\.org/v1\n-> scrypt ([A-Za-z0-9+/]{22}) ([1-9][0-9]?)\n([A-Za-z0-9+/]{43})\n---) "
    rb"([A-Za-z0-9+/]{43})\n"
)
_MAX_HEADER_LENGTH = 150


class WrongPassphrase(Refused):
    """The passphrase is wrong, or the bytes of the header that depend on it were changed."""

    status = 403
    code = "wrong_passphrase"
    title = "Wrong passphrase"
    resolution = "Use the passphrase that the file was made with. If it is right, use another copy of the file."


class Damaged(Refused):
    """Bytes of the file between the offsets `start` and `stop` were changed, are missing, or were added."""

    status = 422
    code = "archive_damaged"
    title = "Damaged archive"
    resolution = "Use another copy of the file; damaged bytes cannot be distinguished from forged ones."

    def __init__(self, detail: str, start: int, stop: int) -> None:
        super().__init__(f"{detail} (bytes {start} to {stop})")
        self.start = start
        self.stop = stop


class AgeEncryptor:
    """Encrypts the bytes written to it with a passphrase, in constant memory. It passes the ciphertext to `write`."""

    def __init__(self, write: Callable[[bytes], object], passphrase: str, *, work: int = SCRYPT_WORK_FACTOR) -> None:
        file_key, salt, nonce = (ids.random_bytes(count) for count in (_KEY_BYTES, _SALT_BYTES, _NONCE_BYTES))
        body = ChaCha20Poly1305(_wrapping_key(passphrase, salt, work)).encrypt(bytes(12), file_key, None)
        head = _VERSION + b"-> scrypt %b %d\n%b\n---" % (_encode_base64(salt), work, _encode_base64(body))
        write(head + b" " + _encode_base64(_mac(file_key, head)) + b"\n" + nonce)
        self._write = write
        self._cipher = ChaCha20Poly1305(_derive_key(file_key, nonce, b"payload"))
        self._number = 0
        self._buffer = bytearray()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Encrypt the next bytes."""
        self._buffer += data
        start = 0
        # The last chunk must not be empty, so a full chunk is encrypted only when more data follows.
        while len(self._buffer) - start > CHUNK_BYTES:
            self._encrypt_chunk(bytes(self._buffer[start : start + CHUNK_BYTES]), is_last=False)
            start += CHUNK_BYTES
        del self._buffer[:start]

    def finish(self) -> None:
        """Encrypt the rest as the last chunk."""
        self._encrypt_chunk(bytes(self._buffer), is_last=True)
        self._buffer.clear()

    def _encrypt_chunk(self, chunk: bytes, *, is_last: bool) -> None:
        self._write(self._cipher.encrypt(_nonce(self._number, is_last=is_last), chunk, None))
        self._number += 1


ENDS_EARLY = "the archive ends too early"
CHANGED = "the archive was changed"
LAST_CHANGED = "the archive ends too early, or was changed at its end"
"""Truncation within a chunk looks the same as a change of the last chunk."""


class Chunk(NamedTuple):
    """A range of the file and its content. If the range cannot be decrypted, there is no content, and `fault` gives the
    reason."""

    start: int
    stop: int
    content: bytes | None
    fault: str = ""


class DamagedRange(NamedTuple):
    """A range of the file that cannot be decrypted, and the fault."""

    start: int
    stop: int
    fault: str


class AgeDecryptor:
    """Decrypts a file from its beginning to its end. The argument `read_bytes` must return the requested number of
    bytes, fewer only at the end of the file."""

    def __init__(self, read_bytes: Callable[[int], bytes], passphrase: str) -> None:
        """Read the header.

        Raises:
            Unavailable: scrypt needs more memory than is available.
            WrongPassphrase: the passphrase is wrong.
            Damaged: the file is not encrypted in this format with a passphrase, or its header was changed.
        """
        head = read_bytes(_MAX_HEADER_LENGTH)
        header_match = _HEADER.match(head)
        if header_match is None or int(header_match[3]) > MAX_SCRYPT_WORK_FACTOR:
            is_cut = len(head) < _MAX_HEADER_LENGTH and (head.startswith(_VERSION) or _VERSION.startswith(head))
            raise Damaged(ENDS_EARLY if is_cut else "the file is not encrypted with a passphrase", 0, len(head))
        signed_head, salt, work, body, mac = header_match.groups()
        file_key = _unwrap_file_key(passphrase, salt, int(work), body, header_match.end())
        if mac != _encode_base64(_mac(file_key, signed_head)):
            raise Damaged("the header was changed", 0, header_match.end())
        nonce = head[header_match.end() :]
        nonce += read_bytes(_NONCE_BYTES - len(nonce))
        self._read = read_bytes
        self._cipher = ChaCha20Poly1305(_derive_key(file_key, nonce, b"payload"))
        self._start = header_match.end() + _NONCE_BYTES
        self._chunks = self.chunks()
        self._content = memoryview(b"")

    def read(self, count: int) -> bytes:
        """Return up to `count` bytes of the content, or no bytes at its authenticated end.

        Raises:
            Damaged: the next chunk cannot be decrypted, or the file is truncated.
        """
        taken_chunks: list[memoryview] = []
        while count and self._load_next_chunk():
            taken_chunks.append(self._content[:count])
            self._content = self._content[count:]
            count -= len(taken_chunks[-1])
        return b"".join(taken_chunks)

    def _load_next_chunk(self) -> bool:
        while not self._content:
            chunk = next(self._chunks, None)
            if chunk is None:
                return False
            if chunk.content is None:
                raise Damaged(chunk.fault, chunk.start, chunk.stop)
            self._content = memoryview(chunk.content)
        return True

    def chunks(self) -> Iterator[Chunk]:
        """Yield every remaining chunk, including damaged chunks. Use this instead of `read`."""
        start, number = self._start, 0
        block = self._read(CHUNK_BYTES + TAG_BYTES)
        is_last = False
        while not is_last:
            next_chunk = self._read(CHUNK_BYTES + TAG_BYTES)
            is_last = not next_chunk
            content = self._decrypt_chunk(block, number, is_last=is_last)
            fault = "" if content is not None else self._fault(block, number, is_last=is_last)
            yield Chunk(start, start + len(block), content, fault)
            start += len(block)
            block = next_chunk
            number += 1

    def _fault(self, block: bytes, number: int, *, is_last: bool) -> str:
        """Return why the chunk cannot be decrypted."""
        if not is_last:
            return CHANGED
        # If the chunk decrypts when it is not treated as the last chunk, the chunks after it are missing.
        is_cut = not block or self._decrypt_chunk(block, number, is_last=False) is not None
        return ENDS_EARLY if is_cut else LAST_CHANGED

    def _decrypt_chunk(self, block: bytes, number: int, *, is_last: bool) -> bytes | None:
        try:
            content = self._cipher.decrypt(_nonce(number, is_last=is_last), block, None)
        except InvalidTag:
            return None
        # A chunk may be empty only in an empty file.
        return None if not content and number else content


def find_damage(read_bytes: Callable[[int], bytes], passphrase: str) -> Iterator[DamagedRange]:
    """Yield every damaged range of the file. Adjacent ranges with the same fault are merged.

    Raises:
        WrongPassphrase, Damaged: the header cannot be decrypted.
    """
    open_range: DamagedRange | None = None
    for chunk in AgeDecryptor(read_bytes, passphrase).chunks():
        if chunk.content is not None:
            continue
        if open_range is not None and (open_range.stop, open_range.fault) != (chunk.start, chunk.fault):
            yield open_range
            open_range = None
        open_range = DamagedRange(chunk.start if open_range is None else open_range.start, chunk.stop, chunk.fault)
    if open_range is not None:
        yield open_range


def _unwrap_file_key(passphrase: str, salt: bytes, work: int, body: bytes, header_length: int) -> bytes:
    """Return the file's key."""
    try:
        wrapped_key = _decode_base64(body)
        wrapping_key = _wrapping_key(passphrase, _decode_base64(salt), work)
        return ChaCha20Poly1305(wrapping_key).decrypt(bytes(12), wrapped_key, None)
    except binascii.Error as error:
        raise Damaged("the header was changed", 0, header_length) from error
    except InvalidTag as error:
        detail = f"the passphrase does not decrypt the archive, or its header was changed (bytes 0 to {header_length})"
        raise WrongPassphrase(detail) from error


def _wrapping_key(passphrase: str, salt: bytes, work: int) -> bytes:
    try:
        return Scrypt(_LABEL + salt, 32, n=1 << work, r=8, p=1).derive(passphrase.encode())
    except MemoryError as error:
        text = f"The passphrase needs {1 << work >> 10} MiB of memory, and less is available."
        raise Unavailable(text, resolution="End other programs, or raise the memory limit of this one.") from error


def _derive_key(file_key: bytes, salt: bytes, purpose: bytes) -> bytes:
    return HKDF(SHA256(), 32, salt, purpose).derive(file_key)


def _mac(file_key: bytes, head: bytes) -> bytes:
    return hmac.digest(_derive_key(file_key, b"", b"header"), head, "sha256")


def _nonce(number: int, *, is_last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes((is_last,))


def _encode_base64(raw: bytes) -> bytes:
    return base64.b64encode(raw).rstrip(b"=")


def _decode_base64(text: bytes) -> bytes:
    return base64.b64decode(text + b"=" * (-len(text) % 4), validate=True)
