"""Creates tokens by hand, like an attacker or another library would."""

import base64
import json
from collections.abc import Callable

import msgspec
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from countersign.kernel.security.jose import (
    ACCESS_TYP,
    AccessClaims,
    AccessTokens,
    InvalidToken,
    KeyRing,
)

ROOT = "https://store.example"
NOW_S = 1_795_000_000
RING = KeyRing.new()
CLAIMS = AccessClaims(
    iss=ROOT,
    aud=ROOT,
    sub="person_1",
    client_id="client_1",
    iat=NOW_S,
    exp=NOW_S + 3_600,
    jti="018f-1",
    scope="read:library",
)


def access_tokens(ring: KeyRing = RING, *, cache_size: int = 100) -> AccessTokens:
    return AccessTokens(ring, ROOT, ROOT, cache_size=cache_size)


def refusal(token: str, tokens: AccessTokens | None = None) -> str:
    with pytest.raises(InvalidToken) as refusal:
        (tokens or access_tokens()).verify(token)
    assert refusal.value.status == 401
    assert refusal.value.code == "invalid_token"
    for token_part in token.split("."):
        assert len(token_part) < 8 or token_part not in f"{refusal.value.reason} {refusal.value.detail}"
    return refusal.value.reason


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def private_key() -> ec.EllipticCurvePrivateKey:
    stored_scalar = json.loads(RING.to_json())["current"]["d"]
    return ec.derive_private_key(int.from_bytes(base64.urlsafe_b64decode(stored_scalar + "==")), ec.SECP256R1())


def es256(message: bytes) -> bytes:
    r, s = decode_dss_signature(private_key().sign(message, ec.ECDSA(hashes.SHA256())))
    return r.to_bytes(32) + s.to_bytes(32)


def forged(
    header: object,
    payload: object = None,
    sign: Callable[[bytes], bytes] = es256,
    encoded: bytes | None = None,
) -> str:
    body = encoded or msgspec.json.encode(CLAIMS if payload is None else payload)
    message = f"{b64(msgspec.json.encode(header))}.{b64(body)}"
    return f"{message}.{b64(sign(message.encode()))}"


def our_header(**changes: object) -> dict[str, object]:
    return {"alg": "ES256", "typ": ACCESS_TYP, "kid": RING.kid} | changes
