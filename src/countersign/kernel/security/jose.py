"""Signed tokens: a ring of ES256 keys (RFC 7517, 7638) and JWT access tokens (RFC 9068)."""

import base64
import hashlib
import re
from collections import OrderedDict
from typing import NamedTuple

import msgspec
from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import ECKey

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.errors import Refused

ALGORITHM = "ES256"
ACCESS_TYP = "at+jwt"
MAX_TOKEN_LENGTH = 8_192
SKEW_S = 60
MAX_LIFE_S = 86_400
"""The maximum lifetime (`exp - iat`) of any token that a ring signs."""
RETIREMENT_S = MAX_LIFE_S + SKEW_S + 600
"""How long a retired key stays published: the maximum lifetime, the tolerance of `exp`, and ten minutes for requests in
progress during the rotation and for clock differences between nodes."""

# An ES256 signature has exactly 86 digits, which encode the 64 bytes of r and s (RFC 7518 §3.4).
_COMPACT = re.compile(r"[A-Za-z0-9_-]{1,512}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{86}")


class InvalidToken(Refused):
    """The token is malformed, forged, expired or for another audience (RFC 6750 §3.1).

    `reason` is for our log and never contains a part of the token; `detail` reveals only that the token is refused,
    unless one of our keys signed the token.
    """

    status = 401
    code = "invalid_token"
    title = "Invalid token"
    resolution = "Get a new access token from the token endpoint and send the request again."

    def __init__(self, reason: str, detail: str = "the token is malformed or was not issued here") -> None:
        super().__init__(detail)
        self.reason: str = reason


class AccessClaims(msgspec.Struct, frozen=True, omit_defaults=True):
    """The claims of an access token (RFC 9068 §2.2); times are whole seconds since 1970.

    `scope` is space-separated. `reg` and `gen` are the registration and its generation, `sid` the sign-in
    session of a person's own browser.
    """

    iss: str
    aud: str
    sub: str
    client_id: str
    iat: int
    exp: int
    jti: str
    scope: str
    auth_time: int | None = None
    sid: str | None = None
    reg: str | None = None
    gen: int | None = None


class PublicKey(msgspec.Struct, frozen=True):
    """One public key of the key set (RFC 7517 §4, RFC 7518 §6.2.1)."""

    kid: str
    x: str
    y: str
    kty: str = "EC"
    crv: str = "P-256"
    alg: str = ALGORITHM
    use: str = "sig"


class PublicKeys(msgspec.Struct, frozen=True):
    """The key set, current key first (RFC 7517 §5)."""

    keys: tuple[PublicKey, ...]


class _Header(msgspec.Struct, forbid_unknown_fields=True):
    # Our tokens have only these members, so that `crit`, `jwk`, `jku`, `x5u` and `b64` never reach the verifier.
    alg: str
    typ: str
    kid: str


class _PrivateJwk(msgspec.Struct, forbid_unknown_fields=True):
    crv: str
    x: str
    y: str
    d: str
    kty: str


class _PublicJwk(msgspec.Struct, forbid_unknown_fields=True):
    crv: str
    x: str
    y: str
    kty: str


class _RetiredJwk(_PublicJwk, forbid_unknown_fields=True, omit_defaults=True):
    # Rings of version 1.0 have no `ends_at`.
    ends_at: int | None = None


class _StoredRing(msgspec.Struct, forbid_unknown_fields=True):
    current: _PrivateJwk
    previous: list[_RetiredJwk]


class RetiredKey(NamedTuple):
    """A retired public key. Its tokens are accepted until `ends_at` (µs), when the last of them has expired. A key
    without `ends_at` gets it at the next rotation."""

    key: ECKey
    ends_at: Instant | None

    @property
    def is_live(self) -> bool:
        """Whether a token that this key signed may still be valid."""
        return self.ends_at is None or clock.now() <= self.ends_at


class KeyRing:
    """The signing key, and the public keys of retired keys whose tokens are still accepted."""

    def __init__(self, current_key: ECKey, previous_keys: tuple[RetiredKey, ...] = ()) -> None:
        """Store a private P-256 key and any number of public keys; see `new` and `from_json`."""
        self._current = current_key
        self._kid = current_key.thumbprint()
        self._previous = {previous_key.key.thumbprint(): previous_key for previous_key in previous_keys}

    @classmethod
    def new(cls) -> "KeyRing":
        """Return a ring with one new key."""
        return cls(_fresh_key())

    @classmethod
    def from_json(cls, ring_json: bytes) -> "KeyRing":
        """Return the ring that `to_json` wrote.

        Raises:
            ValueError: the bytes are not a stored ring, or contain a key that is not a P-256 key.
        """
        try:
            ring = msgspec.json.decode(ring_json, type=_StoredRing)
            current_key = ECKey.import_key(msgspec.to_builtins(ring.current))
            previous_keys = tuple(_retired_key(retired_key) for retired_key in ring.previous)
        except (msgspec.DecodeError, JoseError, ValueError):
            # Drop the cause, which would write the private key to a log.
            raise ValueError("the stored key ring is damaged") from None
        if any(
            key.curve_name != "P-256" for key in (current_key, *(previous_key.key for previous_key in previous_keys))
        ):
            raise ValueError("the stored key ring contains a key that is not on P-256")
        return cls(current_key, previous_keys)

    def to_json(self) -> bytes:
        """Return the ring with its private key. Callers must store it encrypted."""
        current_jwk = msgspec.convert(self._current.as_dict(private=True), _PrivateJwk)
        previous_jwks = [_retired_jwk(retired_key) for retired_key in self._previous.values()]
        return msgspec.json.encode(_StoredRing(current_jwk, previous_jwks))

    @property
    def kid(self) -> str:
        """The key id of the signing key: its thumbprint (RFC 7638)."""
        return self._kid

    @property
    def previous(self) -> dict[str, RetiredKey]:
        """Map key ids to the retired keys whose tokens are accepted now, newest first."""
        return {kid: retired_key for kid, retired_key in self._previous.items() if retired_key.is_live}

    def rotated(self) -> "KeyRing":
        """Return a ring with a new signing key. Retired keys stay in it until the last token that they signed has
        expired."""
        ends_at = clock.later(clock.now(), seconds=RETIREMENT_S)
        retired_key = RetiredKey(_public_half(self._current), ends_at)
        kept_keys = (
            retired_key if retired_key.ends_at is not None else RetiredKey(retired_key.key, ends_at)
            for retired_key in self.previous.values()
        )
        return KeyRing(_fresh_key(), (retired_key, *kept_keys))

    def jwks(self) -> PublicKeys:
        """Return the public keys, current first, for the key-set endpoint."""
        public_keys: list[PublicKey] = []
        for kid, key in (
            (self._kid, self._current),
            *((kid, retired_key.key) for kid, retired_key in self.previous.items()),
        ):
            jwk = _public_jwk(key)
            public_keys.append(PublicKey(kid, jwk.x, jwk.y))
        return PublicKeys(tuple(public_keys))

    def sign(self, payload: bytes, token_type: str) -> str:
        """Return the payload as a compact JWS under the current key, with `typ` in its header (RFC 7515 §3.1)."""
        header = {"alg": ALGORITHM, "typ": token_type, "kid": self._kid}
        return jws.serialize_compact(header, payload, self._current, [ALGORITHM])

    def open(self, token: str, token_type: str) -> bytes:
        """Return the payload of a token that one of our keys signed for this `typ`; its claims are not checked.

        Raises:
            InvalidToken: the token is too long or not a compact JWS, has a wrong algorithm, type or signature, was
                signed by an unknown key, or has an unknown header member.
        """
        if len(token) > MAX_TOKEN_LENGTH:
            raise InvalidToken("too long")
        if _COMPACT.fullmatch(token) is None:
            raise InvalidToken("not a compact JWS with an ES256 signature")
        key = self._key_for(_header(token), token_type)
        signature = token[-86:]
        if _base64url(_from_base64url(signature)) != signature:
            raise InvalidToken("signature is not canonical")
        try:
            return jws.deserialize_compact(token, key, [ALGORITHM]).payload
        except (JoseError, ValueError):
            # Drop the cause, which may quote the token.
            raise InvalidToken("signature or encoding is wrong") from None

    def _key_for(self, header: _Header, token_type: str) -> ECKey:
        if header.alg != ALGORITHM:
            raise InvalidToken("algorithm is not allowed")
        if header.typ != token_type:
            raise InvalidToken("wrong token type")
        if header.kid == self._kid:
            return self._current
        retired_key = self._previous.get(header.kid)
        if retired_key is None or not retired_key.is_live:
            raise InvalidToken("key is not in the ring")
        return retired_key.key


class TokenCache:
    """An LRU cache that maps the SHA-256 of a verified token to its claims.

    For use by one thread. The cache does not check revocation, which callers must check at every request.
    """

    def __init__(self, size: int) -> None:
        """`size` is the maximum number of tokens; 0 disables the cache."""
        self._size = size
        self._claims: OrderedDict[bytes, AccessClaims] = OrderedDict()

    def __len__(self) -> int:
        """Return the number of tokens, including expired ones."""
        return len(self._claims)

    def get(self, token: str) -> AccessClaims | None:
        """Return the claims of a cached token that has not expired."""
        digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        claims = self._claims.get(digest)
        if claims is None:
            return None
        if clock.now() > (claims.exp + SKEW_S) * clock.SECOND:
            del self._claims[digest]
            return None
        self._claims.move_to_end(digest)
        return claims

    def put(self, token: str, claims: AccessClaims) -> None:
        """Cache the claims of a verified token."""
        self._claims[hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()] = claims
        while len(self._claims) > self._size:
            self._claims.popitem(last=False)

    def clear(self) -> None:
        """Clear the cache. Call this when the keys change."""
        self._claims.clear()


class AccessTokens:
    """Issues and verifies the access tokens of one issuer for one audience."""

    def __init__(
        self,
        ring: KeyRing,
        issuer: str,
        audience: str,
        *,
        cache_size: int = 10_000,
    ) -> None:
        self._ring = ring
        self._issuer = issuer
        self._audience = audience
        self._cache = TokenCache(cache_size)

    @property
    def ring(self) -> KeyRing:
        """The keys in use."""
        return self._ring

    def use(self, ring: KeyRing) -> None:
        """Replace the keys: tokens of removed keys are refused from now on, even if they are cached."""
        self._ring = ring
        self._cache.clear()

    def issue(self, claims: AccessClaims) -> str:
        """Return the claims as a signed token according to RFC 9068 §2 (`typ` is `at+jwt`)."""
        return self._ring.sign(msgspec.json.encode(claims), ACCESS_TYP)

    def verify(self, token: str) -> AccessClaims:
        """Return the claims of a valid token (RFC 9068 §4). The caller must check its revocation.

        Raises:
            InvalidToken: `KeyRing.open` refuses the token, a claim is missing or of a wrong type, the issuer or the
                audience is wrong, the token expired more than 60 s ago, its issue time is more than 60 s in the future,
                or its lifetime is not positive or too long.
        """
        cached_claims = self._cache.get(token)
        if cached_claims is not None:
            return cached_claims
        payload = self._ring.open(token, ACCESS_TYP)
        try:
            claims = msgspec.json.decode(payload, type=AccessClaims)
        except (msgspec.DecodeError, ValueError, RecursionError):
            raise InvalidToken("a claim is missing or of a wrong type") from None
        self._check(claims)
        self._cache.put(token, claims)
        return claims

    def _check(self, claims: AccessClaims) -> None:
        now_s = clock.now() // clock.SECOND
        if claims.iss != self._issuer:
            raise InvalidToken("wrong issuer", "the token is from another issuer")
        if claims.aud != self._audience:
            raise InvalidToken("wrong audience", "the token is for another audience")
        if not (claims.sub and claims.client_id and claims.jti):
            raise InvalidToken("a required claim is empty")
        if now_s > claims.exp + SKEW_S:
            raise InvalidToken("expired", "the token has expired")
        if claims.iat > now_s + SKEW_S:
            raise InvalidToken("issued in the future", "the token is not valid yet")
        if not 0 < claims.exp - claims.iat <= MAX_LIFE_S:
            raise InvalidToken("lifetime is not positive, or is too long")


def _fresh_key() -> ECKey:
    return ECKey.generate_key("P-256")


def _public_half(key: ECKey) -> ECKey:
    return ECKey.import_key(msgspec.to_builtins(_public_jwk(key)))


def _retired_key(jwk: _RetiredJwk) -> RetiredKey:
    key = ECKey.import_key({"kty": jwk.kty, "crv": jwk.crv, "x": jwk.x, "y": jwk.y})
    return RetiredKey(key, None if jwk.ends_at is None else Instant(jwk.ends_at))


def _retired_jwk(retired_key: RetiredKey) -> _RetiredJwk:
    jwk = _public_jwk(retired_key.key)
    return _RetiredJwk(crv=jwk.crv, x=jwk.x, y=jwk.y, kty=jwk.kty, ends_at=retired_key.ends_at)


def _public_jwk(key: ECKey) -> _PublicJwk:
    members = key.as_dict(private=False)
    return msgspec.convert({name: members[name] for name in ("crv", "x", "y", "kty")}, _PublicJwk)


def _header(token: str) -> _Header:
    encoded_header = token[: token.index(".")]
    try:
        return msgspec.json.decode(_from_base64url(encoded_header), type=_Header)
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise InvalidToken("header is not exactly alg, typ and kid") from None


def _from_base64url(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
