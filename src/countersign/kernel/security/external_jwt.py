"""JWTs that others signed: read strictly (RFC 7515, 7519, 8725), verified with the keys of their key set (RFC 7517)."""

import base64
import re
from collections.abc import Collection, Mapping

import msgspec
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from countersign.kernel.security import strict_json
from countersign.kernel.security.strict_json import Members

LARGEST_TOKEN = 16 << 10
MAX_KEYS = 20
MIN_RSA_BITS = 2_048
MAX_RSA_BITS = 8_192
MAX_KID_LENGTH = 256

# Which key each algorithm needs: kty and crv (RFC 7518 §3.1, RFC 8037 §3.1, RFC 9864 §2). Nothing else is known here:
# neither `none` nor a MAC can be allowed by mistake.
_NEEDS: Mapping[str, tuple[str, str | None]] = {
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "RS256": ("RSA", None),
    "PS256": ("RSA", None),
    "EdDSA": ("OKP", "Ed25519"),
    "Ed25519": ("OKP", "Ed25519"),
}
ALGORITHMS = tuple(_NEEDS)
_COMPACT = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
# A key that the token brings or names is never looked at; and there is no extension that must be understood.
_REFUSED_MEMBERS = frozenset({"jwk", "jku", "x5u", "x5c", "crit", "b64", "zip"})


class BadToken(Exception):
    """What was sent is no token of the expected kind. The text is ours and quotes nothing of it."""


class BadSignature(Exception):
    """The key did not sign this token."""


class _Jwk(msgspec.Struct):
    kty: str
    kid: str | None = None
    alg: str | None = None
    use: str | None = None
    key_ops: list[str] | None = None
    crv: str | None = None
    x: str | None = None
    y: str | None = None
    n: str | None = None
    e: str | None = None
    d: str | None = None


class PublicKey:
    """One public key of somebody else's set, and the algorithms it may be used with."""

    def __init__(self, kid: str | None, algorithms: frozenset[str], key: ECKey | RSAKey | OKPKey) -> None:
        """Made by `public_keys`."""
        self.kid = kid
        self.algorithms = algorithms
        self._key = key

    def has_signed(self, message: bytes, signature: bytes, algorithm: str) -> bool:
        """Whether the signature over the message is this key's, under an algorithm that fits the key."""
        if algorithm not in self.algorithms:
            return False
        # One algorithm has two names; the library knows the older one under protest (RFC 9864 §4).
        model = JWSRegistry.algorithms["Ed25519" if algorithm == "EdDSA" else algorithm]
        try:
            return model.verify(message, signature, self._key)
        except (JoseError, ValueError):
            return False


class ForeignToken:
    """A token whose form is right; nothing in it may be believed before `verify`."""

    def __init__(self, header: Members, claims: Members, message: bytes, signature: bytes) -> None:
        """Made by `read`."""
        self.algorithm = str(header["alg"])
        kid = header.get("kid")
        self.kid = kid if isinstance(kid, str) else None
        self.claims = claims
        self._message = message
        self._signature = signature

    def verify(self, key: PublicKey) -> None:
        """Let the token pass when the key signed it.

        Raises:
            BadSignature: it did not, or the key is for another algorithm.
        """
        if not key.has_signed(self._message, self._signature, self.algorithm):
            raise BadSignature("the signature is wrong")


def read(token: str, typ: str) -> ForeignToken:
    """The token as a compact JWS whose header names the type, with or without `application/` (RFC 8725 §3.11).

    Raises:
        BadToken: over 16 KiB, no compact JWS in its one spelling, header or payload no JSON object that means one
            thing only, another type, no algorithm, or a header member that brings or names a key or must be
            understood.
    """
    if len(token) > LARGEST_TOKEN:
        raise BadToken(f"the token has more than {LARGEST_TOKEN} characters")
    if _COMPACT.fullmatch(token) is None:
        raise BadToken("the token is no compact JWS")
    signed, _, signature = token.rpartition(".")
    encoded_header, _, payload = signed.partition(".")
    header = _object(encoded_header, "header")
    _check_header(header, typ)
    return ForeignToken(header, _object(payload, "payload"), signed.encode(), _decoded(signature))


def _check_header(header: Members, typ: str) -> None:
    given = header.get("typ")
    if not isinstance(given, str) or given.lower().removeprefix("application/") != typ:
        raise BadToken(f"the token's type is not {typ}")
    if not isinstance(header.get("alg"), str):
        raise BadToken("the header names no algorithm")
    kid = header.get("kid")
    if kid is not None and (not isinstance(kid, str) or not 0 < len(kid) <= MAX_KID_LENGTH):
        raise BadToken("the header's kid is no text of a usual length")
    found = sorted(_REFUSED_MEMBERS & header.keys())
    if found:
        raise BadToken(f"the header holds {found[0]}, which is not accepted")


def _object(encoded: str, part: str) -> Members:
    try:
        return strict_json.members(_decoded(encoded))
    except ValueError as error:
        raise BadToken(f"the {part} is wrong: {error}") from None


def _decoded(text: str) -> bytes:
    """The bytes of unpadded base64url, which has one spelling only (RFC 7515 §2)."""
    if len(text) % 4 == 1:
        raise BadToken("a part is no base64url")
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if base64.urlsafe_b64encode(data).rstrip(b"=").decode() != text:
        raise BadToken("a part is base64url in a second spelling")
    return data


def public_keys(document: bytes) -> tuple[PublicKey, ...]:
    """The keys of a JWK Set that can verify signatures here; those of other kinds or uses are left out (RFC 7517 §5).

    An RSA key under 2,048 bits and one that shows its private half are left out, too.

    Raises:
        ValueError: it is no JWK Set, or one of more than 20 keys.
    """
    found = strict_json.members(document).get("keys")
    try:
        listed = msgspec.convert(found, list[Members])
    except msgspec.ValidationError:
        raise ValueError("not a JWK Set: its member `keys` must be a list of objects") from None
    if len(listed) > MAX_KEYS:
        raise ValueError(f"the key set holds more than {MAX_KEYS} keys")
    made = (_public_key(each) for each in listed)
    return tuple(key for key in made if key is not None)


def _public_key(stated: Members) -> PublicKey | None:
    try:
        jwk = msgspec.convert(stated, _Jwk)
    except msgspec.ValidationError:
        return None
    fitting = frozenset(name for name in _NEEDS if _is_for(jwk, name))
    key = _imported(jwk) if fitting and jwk.d is None and _is_for_signatures(jwk) else None
    return None if key is None else PublicKey(jwk.kid, fitting, key)


def _is_for(jwk: _Jwk, algorithm: str) -> bool:
    kty, crv = _NEEDS[algorithm]
    return jwk.kty == kty and crv in (None, jwk.crv) and jwk.alg in (None, algorithm)


def _is_for_signatures(jwk: _Jwk) -> bool:
    return jwk.use in (None, "sig") and (jwk.key_ops is None or "verify" in jwk.key_ops)


def _imported(jwk: _Jwk) -> ECKey | RSAKey | OKPKey | None:
    """The key, unless its numbers are no key or too weak (RFC 7518 §3.3) or too costly a one."""
    given = {"kty": jwk.kty, "crv": jwk.crv, "x": jwk.x, "y": jwk.y, "n": jwk.n, "e": jwk.e}
    numbers: dict[str, str | list[str]] = {name: value for name, value in given.items() if value is not None}
    try:
        if jwk.kty == "EC":
            key = ECKey.import_key(numbers)
        elif jwk.kty == "OKP":
            key = OKPKey.import_key(numbers)
        else:
            bits = int.from_bytes(base64.urlsafe_b64decode((jwk.n or "") + "==")).bit_length()
            key = RSAKey.import_key(numbers) if MIN_RSA_BITS <= bits <= MAX_RSA_BITS else None
        if key is not None:
            # The numbers are only looked at when the key is first used.
            key.get_op_key("verify")
        return key
    except (JoseError, ValueError, KeyError):
        return None


def meant(keys: Collection[PublicKey], algorithm: str, kid: str | None) -> PublicKey | None:
    """The one key of the set that a header means: by its kid, or without one the only key for the algorithm."""
    able = [key for key in keys if algorithm in key.algorithms and (kid is None or key.kid == kid)]
    return able[0] if len(able) == 1 else None
