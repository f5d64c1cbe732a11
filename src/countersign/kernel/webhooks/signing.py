"""Signatures of webhooks as Standard Webhooks has them: HMAC-SHA256 over id, timestamp and body."""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence

from countersign.kernel import ids
from countersign.kernel.clock import SECOND, Instant

PREFIX = "whsec_"
SECRET_BYTES = 32


def new_secret() -> str:
    """A fresh secret: `whsec_` and the base64 of 32 random bytes."""
    return PREFIX + base64.b64encode(ids.random_bytes(SECRET_BYTES)).decode()


def headers(secrets: Sequence[str], message_id: str, at: Instant, body: bytes) -> dict[str, str]:
    """The three headers of an attempt at a message, with one signature by each secret, the first one first.

    Raises:
        ValueError: a secret is none.
    """
    timestamp = str(at // SECOND)
    signed = b".".join((message_id.encode(), timestamp.encode(), body))
    signatures = " ".join(f"v1,{_signature(secret, signed)}" for secret in secrets)
    return {"webhook-id": message_id, "webhook-timestamp": timestamp, "webhook-signature": signatures}


def _signature(secret: str, signed: bytes) -> str:
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except binascii.Error as error:
        raise ValueError("a secret is whsec_ and base64") from error
    return base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
