"""Signs and verifies documents in DSSE 1.0.2 envelopes. The signature covers the payload and its type."""

import base64
import binascii
from collections.abc import Mapping
from typing import NamedTuple

from countersign.kernel.errors import Refused
from countersign.kernel.security import ed25519
from countersign.updates.api_types import Envelope, PublicKey, Signature


class SignatureRefused(Refused):
    """A document has no valid signature by a trusted key, or is not the requested document."""

    status = 422
    code = "signature_refused"
    title = "Signature refused"
    resolution = "Fetch the document again. If it is refused again, ask the publisher whether the key was changed."


class SigningKey(NamedTuple):
    """A private key with its public half; both are 32 raw bytes."""

    private: bytes
    public: PublicKey


def new_signing_key() -> SigningKey:
    """Generate a signing key."""
    return signing_key(ed25519.new_key())


def signing_key(private_key: bytes) -> SigningKey:
    """Return the signing key for 32 private bytes."""
    return SigningKey(private_key, public_key(ed25519.public_key_of(private_key)))


def public_key(public_bytes: bytes) -> PublicKey:
    """Return a public key in the format that documents use."""
    return PublicKey(ed25519.key_id(public_bytes), base64.b64encode(public_bytes).decode())


def sign(payload_type: str, payload: bytes, key: SigningKey) -> Envelope:
    """Sign a payload."""
    signature = ed25519.sign(key.private, _signed_bytes(payload_type, payload))
    encoded_payload = base64.b64encode(payload).decode()
    return Envelope(payload_type, encoded_payload, [Signature(key.public.keyid, base64.b64encode(signature).decode())])


def verify(envelope: Envelope, payload_type: str, keys: Mapping[str, PublicKey]) -> bytes:
    """Return the payload of an envelope of this type that one of the keys signed. `keys` maps key ids to keys.

    Raises:
        SignatureRefused: the type differs, or no signature by one of the keys is valid.
    """
    if envelope.payload_type != payload_type:
        raise SignatureRefused(f"the document has type {envelope.payload_type}, expected {payload_type}")
    payload = _decode_base64(envelope.payload)
    message = _signed_bytes(payload_type, payload)
    for signature in envelope.signatures:
        key = keys.get(signature.keyid)
        if key is not None and ed25519.is_valid_signature(raw_key(key), message, _decode_base64(signature.sig)):
            return payload
    raise SignatureRefused("the document has no valid signature by a trusted key")


def raw_key(key: PublicKey) -> bytes:
    """Return the 32 bytes of a public key.

    Raises:
        SignatureRefused: the id does not match the key.
    """
    public_bytes = _decode_base64(key.public)
    if ed25519.key_id(public_bytes) != key.keyid:
        raise SignatureRefused("the key id does not match the key")
    return public_bytes


def _signed_bytes(payload_type: str, payload: bytes) -> bytes:
    """Return the pre-authentication encoding (DSSE protocol), which binds the payload to its type."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def _decode_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, ValueError) as error:
        raise SignatureRefused("the document contains invalid base64") from error
