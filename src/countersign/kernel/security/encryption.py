"""Encrypted and signed values.

Encryption is AES-256-GCM (SP 800-38D) under HKDF keys (RFC 5869); signatures are short HMACs. Convergent encryption is
AES-256 in counter mode (SP 800-38A §6.5): equal contents have equal ciphertexts.
"""

import hashlib
import hmac
from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol, Self

import blake3
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from countersign.kernel import ids
from countersign.kernel.errors import Refused
from countersign.kernel.security.masterkey import KEY_BYTES, MasterKey, is_key_id

SIGNATURE_BYTES = 16

# An encrypted value consists of: format; in the master format only, the length of the key id and the key id; nonce;
# ciphertext and tag. The bytes before the nonce are authenticated as well.
_MASTER_FORMAT = 0x01
_SECRET_FORM = 0x81
_NONCE_BYTES = 12
_TAG_BYTES = 16
_HASH_BLOCK_BYTES = 64


class DecryptionFailed(Refused):
    """An encrypted value cannot be decrypted: its key is unknown, its purpose differs, or its bytes were changed."""

    status = 500
    code = "cannot_unseal"
    title = "A stored value cannot be decrypted"
    resolution = (
        "Provide the master key that encrypted the value, under the same id; if the key is right, the stored value is "
        "damaged: restore it from a backup."
    )


def encrypt(master: MasterKey, plaintext: bytes, purpose: str) -> bytes:
    """Encrypt the plaintext for one purpose with the current key, whose id precedes the ciphertext.

    This is safe for 2^32 values of one key and purpose, since nonces are random and have 96 bits (SP 800-38D §8.3).
    """
    head = _head(master.current.id)
    nonce = ids.random_bytes(_NONCE_BYTES)
    return head + nonce + _cipher(master.current.material, purpose).encrypt(nonce, plaintext, head)


def decrypt(master: MasterKey, ciphertext: bytes, purpose: str) -> bytes:
    """Return the plaintext that `encrypt` was given.

    Raises:
        DecryptionFailed: the value is not encrypted, its key is unknown, its purpose differs, or a byte was changed.
    """
    if len(ciphertext) < 2 or ciphertext[0] != _MASTER_FORMAT:
        raise DecryptionFailed("the value is not encrypted in a format that this version knows")
    start = 2 + ciphertext[1]
    head, nonce_and_text = ciphertext[:start], ciphertext[start:]
    key_id = encryption_key_id(ciphertext)
    if key_id is None:
        raise DecryptionFailed("the value does not name its key")
    key = master.named(key_id)
    if key is None:
        raise missing_keys([key_id], master)
    return _open(_cipher(key.material, purpose), nonce_and_text, head)


def encryption_key_id(ciphertext: bytes) -> str | None:
    """Return the id of the key that encrypted the value, or None if the value contains no key id."""
    if len(ciphertext) < 2 or ciphertext[0] != _MASTER_FORMAT or len(ciphertext) < 2 + ciphertext[1]:
        return None
    key_id = ciphertext[2 : 2 + ciphertext[1]].decode("ascii", "replace")
    return key_id if is_key_id(key_id) else None


def upper_bound_of_key(key_id: str) -> bytes:
    """Return the smallest bytes that sort after every value of the key with this id."""
    *start, last_byte = _head(key_id)
    return bytes((*start, last_byte + 1))


def missing_keys(key_ids: Sequence[str], master: MasterKey) -> DecryptionFailed:
    """Return the refusal that names the missing keys."""
    key_list = ", ".join(key_ids)
    present_keys = ", ".join(key.id for key in master.keys)
    return DecryptionFailed(
        f"encrypted with the master key {key_list}, which is not among the present ones: {present_keys}",
        resolution=f"Add {key_list} to the list of master keys again, after the first one: only it decrypts these "
        "values, "
        "which are not damaged.",
    )


def encrypt_with_secret(secret: bytes, salt: bytes, plaintext: bytes) -> bytes:
    """Encrypt the plaintext with a key derived from the secret and a public salt."""
    head = bytes((_SECRET_FORM,))
    nonce = ids.random_bytes(_NONCE_BYTES)
    return head + nonce + AESGCM(_derive(secret, salt, "secret")).encrypt(nonce, plaintext, head)


def decrypt_with_secret(secret: bytes, salt: bytes, ciphertext: bytes) -> bytes:
    """Return the plaintext that `encrypt_with_secret` was given with the same secret and salt.

    Raises:
        DecryptionFailed: the value is not from `encrypt_with_secret`, the secret or the salt differs, or a byte was
            changed.
    """
    if not ciphertext or ciphertext[0] != _SECRET_FORM:
        raise DecryptionFailed("the value is not encrypted in a format that this version knows")
    return _open(AESGCM(_derive(secret, salt, "secret")), ciphertext[1:], ciphertext[:1])


class _Hash(Protocol):
    def copy(self) -> Self: ...
    def update(self, data: bytes, /) -> None: ...
    def digest(self) -> bytes: ...


class Signer:
    """Signs short public texts (page cursors, URLs) with HMAC-SHA256 truncated to 128 bits (RFC 2104 §5)."""

    def __init__(self, keys: tuple[bytes, ...]) -> None:
        """Store the derived keys. The first key signs, and all keys verify."""
        # Hash both padded keys once, so that a signature costs only two copies and two short updates.
        self._halves: tuple[tuple[_Hash, _Hash], ...] = tuple(
            (hashlib.sha256(_padded(key, 0x36)), hashlib.sha256(_padded(key, 0x5C))) for key in keys
        )

    def sign(self, message: bytes) -> bytes:
        """Return the 16-byte signature of the message under the current key."""
        return _sign(self._halves[0], message)

    def verify(self, message: bytes, signature: bytes) -> bool:
        """Return whether one of the keys made the signature, in constant time."""
        return any(hmac.compare_digest(_sign(halves, message), signature) for halves in self._halves)


def signer_for(master_or_key: MasterKey | bytes, purpose: str) -> Signer:
    """Return the signer for one purpose, which rejects signatures for other purposes."""
    if isinstance(master_or_key, bytes):
        return Signer((_derive(master_or_key, b"", f"sign/{purpose}"),))
    return Signer(tuple(_derive(key.material, b"", f"sign/{purpose}") for key in master_or_key.keys))


def derive_key(secret: bytes, salt: bytes, purpose: str) -> bytes:
    """Return a separate 32-byte key for each salt and purpose (HKDF-SHA256, RFC 5869)."""
    return _derive(secret, salt, purpose)


def _head(key_id: str) -> bytes:
    return bytes((_MASTER_FORMAT, len(key_id))) + key_id.encode()


def _sign(halves: tuple[_Hash, _Hash], message: bytes) -> bytes:
    inner, outer = halves[0].copy(), halves[1].copy()
    inner.update(message)
    outer.update(inner.digest())
    return outer.digest()[:SIGNATURE_BYTES]


def _padded(key: bytes, pad: int) -> bytes:
    return bytes(byte ^ pad for byte in key.ljust(_HASH_BLOCK_BYTES, b"\0"))


def _open(cipher: AESGCM, nonce_and_text: bytes, head: bytes) -> bytes:
    if len(nonce_and_text) < _NONCE_BYTES + _TAG_BYTES:
        raise DecryptionFailed("the encrypted value is truncated")
    try:
        return cipher.decrypt(nonce_and_text[:_NONCE_BYTES], nonce_and_text[_NONCE_BYTES:], head)
    except InvalidTag:
        raise DecryptionFailed("the encrypted value was changed, or was encrypted for another purpose") from None


@lru_cache(maxsize=64)
def _cipher(material: bytes, purpose: str) -> AESGCM:
    return AESGCM(_derive(material, b"", f"seal/{purpose}"))


def _derive(secret: bytes, salt: bytes, info: str) -> bytes:
    return HKDF(SHA256(), KEY_BYTES, salt, f"countersign/1/{info}".encode()).derive(secret)


_CTR_NONCE_BYTES = 16
_CONVERGENT_PURPOSE = b"countersign/1/veil/"


def encrypt_convergent(content: bytes, secret: bytes) -> bytes:
    """Encrypt the content deterministically; the result is 16 bytes longer.

    The nonce is derived from the content and the secret, so that different contents have different nonces. The result
    is not authenticated: the caller must detect changes in another way.
    """
    key = hashlib.sha256(_CONVERGENT_PURPOSE + secret).digest()
    nonce = blake3.blake3(content, key=key).digest(_CTR_NONCE_BYTES)
    return nonce + _apply_ctr(key, nonce, content)


def decrypt_convergent(ciphertext: bytes, secret: bytes) -> bytes:
    """Return the content that `encrypt_convergent` was given; with a different secret, the result is meaningless
    bytes."""
    key = hashlib.sha256(_CONVERGENT_PURPOSE + secret).digest()
    nonce = ciphertext[:_CTR_NONCE_BYTES].ljust(_CTR_NONCE_BYTES, b"\0")
    return _apply_ctr(key, nonce, ciphertext[_CTR_NONCE_BYTES:])


def _apply_ctr(key: bytes, nonce: bytes, content: bytes) -> bytes:
    encryptor = Cipher(AES(key), CTR(nonce)).encryptor()
    return encryptor.update(content) + encryptor.finalize()


class MemoryCipher:
    """Encrypts numbered pieces of data that only this process decrypts. The key exists only in memory."""

    def __init__(self) -> None:
        self._cipher = AESGCM(AESGCM.generate_key(256))

    def encrypt(self, plaintext: bytes, number: int) -> bytes:
        """Return the encrypted piece. Each number may be used once."""
        return self._cipher.encrypt(number.to_bytes(_NUMBER_BYTES), plaintext, None)

    def decrypt(self, ciphertext: bytes, number: int) -> bytes:
        """Return the piece that was encrypted with this number."""
        return self._cipher.decrypt(number.to_bytes(_NUMBER_BYTES), ciphertext, None)


_NUMBER_BYTES = 12
