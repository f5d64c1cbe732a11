"""Bytes that only those can read who know a secret about them: AES-256 in counter mode (SP 800-38A §6.5)."""

import hashlib

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR

_NONCE_BYTES = 16
_PURPOSE = b"countersign/1/veil/"


def veil(content: bytes, secret: bytes) -> bytes:
    """The content, 16 bytes longer; the same every time. The nonce is the content's own, so that no two contents share
    one under the same secret. That it was changed has to be seen in another way."""
    key = hashlib.sha256(_PURPOSE + secret).digest()
    nonce = hashlib.sha256(key + content).digest()[:_NONCE_BYTES]
    return nonce + _turned(key, nonce, content)


def unveil(veiled: bytes, secret: bytes) -> bytes:
    """What `veil` was given with the same secret; any bytes with another one."""
    key = hashlib.sha256(_PURPOSE + secret).digest()
    nonce = veiled[:_NONCE_BYTES].ljust(_NONCE_BYTES, b"\0")
    return _turned(key, nonce, veiled[_NONCE_BYTES:])


def _turned(key: bytes, nonce: bytes, content: bytes) -> bytes:
    turning = Cipher(AES(key), CTR(nonce)).encryptor()
    return turning.update(content) + turning.finalize()
