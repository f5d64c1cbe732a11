"""Opaque secrets (keys, claim tokens): a recognisable prefix, 256 random bits, a checksum for scanners."""

import hashlib
import hmac
import re
import zlib

from countersign.kernel import ids

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_RANDOM_BYTES = 32
_RANDOM_DIGITS = 43
_CHECKSUM_DIGITS = 6

_PREFIX = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_SECRET = re.compile(rf"[a-z][a-z0-9_]{{0,63}}_[0-9A-Za-z]{{{_RANDOM_DIGITS + _CHECKSUM_DIGITS}}}")


def new_secret(prefix: str) -> str:
    """Return a new secret: `{prefix}_`, 43 base62 digits of 32 random bytes, 6 of their CRC-32.

    Raises:
        ValueError: the prefix is not lower-case words joined by single underscores, of at most 64 characters.
    """
    if len(prefix) > 64 or _PREFIX.fullmatch(prefix) is None:
        raise ValueError(f"prefix {prefix!r}: lower-case words joined by underscores are needed, like csk_agent")
    body = f"{prefix}_{_base62(int.from_bytes(ids.random_bytes(_RANDOM_BYTES)), _RANDOM_DIGITS)}"
    return body + _checksum(body)


def looks_like_secret(text: str) -> bool:
    """Return whether the text has the format and the checksum of a secret. This does not say whether the secret is
    valid."""
    if _SECRET.fullmatch(text) is None:
        return False
    return _checksum(text[:-_CHECKSUM_DIGITS]) == text[-_CHECKSUM_DIGITS:]


def digest(secret: str) -> bytes:
    """Return the SHA-256 of the secret, which is stored and looked up in its place.

    No salt and no stretching are needed, since the secret itself holds 256 random bits.
    """
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def matches(secret: str, stored_digest: bytes) -> bool:
    """Return whether `stored_digest` is the digest of the secret, in constant time."""
    return hmac.compare_digest(digest(secret), stored_digest)


def _checksum(body: str) -> str:
    return _base62(zlib.crc32(body.encode()), _CHECKSUM_DIGITS)


def _base62(number: int, width: int) -> str:
    digits = [""] * width
    for digit_place in range(width - 1, -1, -1):
        number, digit = divmod(number, 62)
        digits[digit_place] = _DIGITS[digit]
    return "".join(digits)
