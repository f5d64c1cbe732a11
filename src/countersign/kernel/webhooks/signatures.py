"""Signatures of webhook requests, by Standard Webhooks: HMAC-SHA256 over id, timestamp and body."""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence

from countersign.kernel import ids
from countersign.kernel.clock import SECOND, Instant

SIGNING_PREFIX = "whsec_"
SECRET_BYTES = 32


def new_signing_secret() -> str:
    """Return a new secret: `whsec_` followed by the base64 of 32 random bytes."""
    return SIGNING_PREFIX + base64.b64encode(ids.random_bytes(SECRET_BYTES)).decode()


def signature_headers(secrets: Sequence[str], message_id: str, sent_at: Instant, body: bytes) -> dict[str, str]:
    """Return the three headers of an attempt, with one signature for each secret, in the order of the secrets.

    Raises:
        ValueError: a secret is malformed.
    """
    timestamp = str(sent_at // SECOND)
    signed_bytes = b".".join((message_id.encode(), timestamp.encode(), body))
    signatures = " ".join(f"v1,{_signature(secret, signed_bytes)}" for secret in secrets)
    return {"webhook-id": message_id, "webhook-timestamp": timestamp, "webhook-signature": signatures}


def _signature(secret: str, signed_bytes: bytes) -> str:
    try:
        key = base64.b64decode(secret.removeprefix(SIGNING_PREFIX), validate=True)
    except binascii.Error as error:
        raise ValueError("a secret is whsec_ and base64") from error
    return base64.b64encode(hmac.digest(key, signed_bytes, hashlib.sha256)).decode()
