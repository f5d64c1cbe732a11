"""Ed25519 signatures (RFC 8032): keys as raw bytes, identified by their digest."""

import hashlib

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


def new_key() -> bytes:
    """Return a new private key: 32 bytes."""
    return Ed25519PrivateKey.generate().private_bytes_raw()


def public_key_of(private_key: bytes) -> bytes:
    """Return the public key that belongs to a private key: 32 bytes."""
    return Ed25519PrivateKey.from_private_bytes(private_key).public_key().public_bytes_raw()


def key_id(public_key: bytes) -> str:
    """Return the id of a key: the SHA-256 of its 32 bytes, in hexadecimal."""
    return hashlib.sha256(public_key).hexdigest()


def sign(private_key: bytes, message: bytes) -> bytes:
    """Return the signature: 64 bytes."""
    return Ed25519PrivateKey.from_private_bytes(private_key).sign(message)


def is_valid_signature(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Return whether the key made the signature of this message; False for an invalid key."""
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True
