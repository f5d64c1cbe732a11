"""JWTs that others signed, and the key sets that verify them.

A token is parsed strictly (RFC 7515, 7519, 8725) and verified with a key of its issuer's key set (RFC 7517), which is
cached in this process for as long as its server allows, within bounds.
"""

import asyncio
import base64
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import msgspec
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from countersign.kernel import clock, json_reader
from countersign.kernel.json_reader import Members

MAX_TOKEN_LENGTH = 16 << 10
MAX_KEYS = 20
MIN_RSA_BITS = 2_048
MAX_RSA_BITS = 8_192
MAX_KID_LENGTH = 256

# Maps each algorithm to the kty and crv of its keys (RFC 7518 §3.1, RFC 8037 §3.1, RFC 9864 §2). Other algorithms are
# not supported, so neither `none` nor a MAC can be allowed by mistake.
_KEY_TYPES: Mapping[str, tuple[str, str | None]] = {
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "RS256": ("RSA", None),
    "PS256": ("RSA", None),
    "EdDSA": ("OKP", "Ed25519"),
    "Ed25519": ("OKP", "Ed25519"),
}
ALGORITHMS = tuple(_KEY_TYPES)
_COMPACT = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
# Keys that the token contains or refers to are never used, and no critical extension is supported.
_REFUSED_MEMBERS = frozenset({"jwk", "jku", "x5u", "x5c", "crit", "b64", "zip"})


class BadToken(Exception):
    """The text is not a token of the expected type. The message quotes no part of the text."""


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


class IssuerKey:
    """One public key of an external key set, and its algorithms."""

    def __init__(self, kid: str | None, algorithms: frozenset[str], key: ECKey | RSAKey | OKPKey) -> None:
        """Created by `public_keys`."""
        self.kid = kid
        self.algorithms = algorithms
        self._key = key

    def is_valid_signature(self, message: bytes, signature: bytes, algorithm: str) -> bool:
        """Return whether the key made the signature of the message, with an algorithm of the key."""
        if algorithm not in self.algorithms:
            return False
        # EdDSA is the older of two names of one algorithm, and the library deprecates it (RFC 9864 §4).
        model = JWSRegistry.algorithms["Ed25519" if algorithm == "EdDSA" else algorithm]
        try:
            return model.verify(message, signature, self._key)
        except (JoseError, ValueError):
            return False


class ExternalToken:
    """A well-formed token; its claims are not trusted before `verify`."""

    def __init__(self, header: Members, claims: Members, message: bytes, signature: bytes) -> None:
        """Created by `read`."""
        self.algorithm = str(header["alg"])
        kid = header.get("kid")
        self.kid = kid if isinstance(kid, str) else None
        self.claims = claims
        self._message = message
        self._signature = signature

    def verify(self, key: IssuerKey) -> None:
        """Check that the key signed the token.

        Raises:
            BadSignature: the key did not sign the token, or does not support the token's algorithm.
        """
        if not key.is_valid_signature(self._message, self._signature, self.algorithm):
            raise BadSignature("the signature is wrong")


def read(token: str, typ: str) -> ExternalToken:
    """Parse a compact JWS whose header names the type, with or without `application/` (RFC 8725 §3.11).

    Raises:
        BadToken: the token is longer than 16 KiB, is not a canonical compact JWS, has a wrong type, or names no
            algorithm; its header or payload is not an unambiguous JSON object; its kid is not a text of 1 to 256
            characters; or the header has a member with a key, a reference to a key, or an extension (`crit`, `b64`,
            `zip`).
    """
    if len(token) > MAX_TOKEN_LENGTH:
        raise BadToken(f"the token has more than {MAX_TOKEN_LENGTH} characters")
    if _COMPACT.fullmatch(token) is None:
        raise BadToken("the token is not a compact JWS")
    signed_text, _, signature = token.rpartition(".")
    encoded_header, _, payload = signed_text.partition(".")
    header = _parse_object(encoded_header, "header")
    _check_header(header, typ)
    return ExternalToken(header, _parse_object(payload, "payload"), signed_text.encode(), _decode_base64url(signature))


def _check_header(header: Members, typ: str) -> None:
    type_name = header.get("typ")
    if not isinstance(type_name, str) or type_name.lower().removeprefix("application/") != typ:
        raise BadToken(f"the token's type is not {typ}")
    if not isinstance(header.get("alg"), str):
        raise BadToken("the header names no algorithm")
    kid = header.get("kid")
    if kid is not None and (not isinstance(kid, str) or not 0 < len(kid) <= MAX_KID_LENGTH):
        raise BadToken(f"the header's kid must be a text of 1 to {MAX_KID_LENGTH} characters")
    refused_members = sorted(_REFUSED_MEMBERS & header.keys())
    if refused_members:
        raise BadToken(f"the header contains {refused_members[0]}, which is not accepted")


def _parse_object(encoded_part: str, part_name: str) -> Members:
    try:
        return json_reader.read_object(_decode_base64url(encoded_part))
    except ValueError as error:
        raise BadToken(f"the {part_name} is invalid: {error}") from None


def _decode_base64url(text: str) -> bytes:
    """Decode canonical, unpadded base64url (RFC 7515 §2)."""
    if len(text) % 4 == 1:
        raise BadToken("a part is not base64url")
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if base64.urlsafe_b64encode(data).rstrip(b"=").decode() != text:
        raise BadToken("a part is not canonical base64url")
    return data


def public_keys(document: bytes) -> tuple[IssuerKey, ...]:
    """Return the keys of a JWK Set that this module can verify signatures with. Keys of other types and uses are
    skipped (RFC 7517 §5).

    RSA keys under 2,048 bits and private keys are skipped, too.

    Raises:
        ValueError: the document is not a JWK Set, or has more than 20 keys.
    """
    key_list = json_reader.read_object(document).get("keys")
    try:
        key_objects = msgspec.convert(key_list, list[Members])
    except msgspec.ValidationError:
        raise ValueError("not a JWK Set: its member `keys` must be a list of objects") from None
    if len(key_objects) > MAX_KEYS:
        raise ValueError(f"the key set has more than {MAX_KEYS} keys")
    imported_keys = (_public_key(key_object) for key_object in key_objects)
    return tuple(key for key in imported_keys if key is not None)


def _public_key(key_object: Members) -> IssuerKey | None:
    try:
        jwk = msgspec.convert(key_object, _Jwk)
    except msgspec.ValidationError:
        return None
    fitting_types = frozenset(name for name in _KEY_TYPES if _is_for(jwk, name))
    key = _import_key(jwk) if fitting_types and jwk.d is None and _is_for_signatures(jwk) else None
    return None if key is None else IssuerKey(jwk.kid, fitting_types, key)


def _is_for(jwk: _Jwk, algorithm: str) -> bool:
    kty, crv = _KEY_TYPES[algorithm]
    return jwk.kty == kty and crv in (None, jwk.crv) and jwk.alg in (None, algorithm)


def _is_for_signatures(jwk: _Jwk) -> bool:
    return jwk.use in (None, "sig") and (jwk.key_ops is None or "verify" in jwk.key_ops)


def _import_key(jwk: _Jwk) -> ECKey | RSAKey | OKPKey | None:
    """Import the key; returns None if the key is invalid, too weak (RFC 7518 §3.3), or too costly."""
    members = {"kty": jwk.kty, "crv": jwk.crv, "x": jwk.x, "y": jwk.y, "n": jwk.n, "e": jwk.e}
    present_members: dict[str, str | list[str]] = {name: value for name, value in members.items() if value is not None}
    try:
        if jwk.kty == "EC":
            key = ECKey.import_key(present_members)
        elif jwk.kty == "OKP":
            key = OKPKey.import_key(present_members)
        else:
            bits = int.from_bytes(base64.urlsafe_b64decode((jwk.n or "") + "==")).bit_length()
            key = RSAKey.import_key(present_members) if MIN_RSA_BITS <= bits <= MAX_RSA_BITS else None
        if key is not None:
            # The library validates the numbers of a key on first use, so use the key now.
            key.get_op_key("verify")
        return key
    except (JoseError, ValueError, KeyError):
        return None


def select_key(keys: Collection[IssuerKey], algorithm: str, kid: str | None) -> IssuerKey | None:
    """Return the key with the header's kid, or, if the header has no kid, the only key for the algorithm."""
    able = [key for key in keys if algorithm in key.algorithms and (kid is None or key.kid == kid)]
    return able[0] if len(able) == 1 else None


MIN_KEPT_S = 600
MAX_KEPT_S = 86_400
UNKNOWN_KEY_REFETCH_S = 60
RETRY_AFTER_FAILURE_S = 5


class KeySetDocument(Protocol):
    """The fetched document, and how long its server allows caching (None: not stated)."""

    @property
    def body(self) -> bytes:
        """The document."""
        ...

    @property
    def max_age_s(self) -> int | None:
        """The number of seconds for which the document may be cached."""
        ...


class KeySetUnavailable(Exception):
    """Fetching the key set failed; the text says why, for our own log."""


FetchKeySet: TypeAlias = Callable[[str], Awaitable[KeySetDocument]]
"""Fetches the document at a URL. Raises KeySetUnavailable."""


@dataclass(slots=True)
class _Entry:
    """A cached key set. `failure` is the reason why the last attempt, at `tried_at`, failed. Instants are in µs."""

    keys: tuple[IssuerKey, ...] = ()
    fetched_at: int = 0
    keep_s: int = 0
    tried_at: int = 0
    looked_again_at: int = 0
    failure: str = ""
    running: "asyncio.Task[None] | None" = field(default=None)


class JwksCache:
    """A cache of key sets, keyed by their URL, which callers must have validated. For use by one event loop.

    A set is cached for its max-age, at least 10 minutes and at most 24 hours. An unknown key id triggers a refetch, at
    most once in 60 s. Concurrent callers share a fetch; after a failure, calls fail without a fetch for 5 s.
    """

    def __init__(self, fetch: FetchKeySet) -> None:
        """`fetch` must limit the time of a fetch and the size of the document."""
        self._fetch = fetch
        self._entries: dict[str, _Entry] = {}

    async def key(self, address: str, algorithm: str, kid: str | None) -> IssuerKey | None:
        """Return the key for a header with this algorithm and kid from the set at the URL, or None.

        Raises:
            KeySetUnavailable: the set cannot be fetched now.
        """
        entry = self._entries.setdefault(address, _Entry())
        is_kept = _is_recent(entry.fetched_at, entry.keep_s)
        if not is_kept:
            await self._refresh(address, entry)
        selected_key = select_key(entry.keys, algorithm, kid)
        if selected_key is None and is_kept:
            await self._refetch_if_due(address, entry)
            selected_key = select_key(entry.keys, algorithm, kid)
        return selected_key

    async def _refetch_if_due(self, address: str, entry: _Entry) -> None:
        """Refetch a cached set that lacks a key, unless that was done recently."""
        if not _is_recent(entry.looked_again_at, UNKNOWN_KEY_REFETCH_S):
            entry.looked_again_at = clock.now()
            await self._refresh(address, entry)
        elif entry.running is not None:
            await asyncio.shield(entry.running)
        if entry.failure:
            raise KeySetUnavailable(entry.failure)

    async def _refresh(self, address: str, entry: _Entry) -> None:
        if entry.running is None:
            if entry.failure and _is_recent(entry.tried_at, RETRY_AFTER_FAILURE_S):
                raise KeySetUnavailable(entry.failure)
            entry.running = asyncio.create_task(self._fetch_into(address, entry))
        # Shield the fetch: the caller that started it may be cancelled while other callers still wait for it.
        await asyncio.shield(entry.running)
        if entry.failure:
            raise KeySetUnavailable(entry.failure)

    async def _fetch_into(self, address: str, entry: _Entry) -> None:
        """Fetch the set into its entry. If that fails, cached keys stay until they expire."""
        try:
            document = await self._fetch(address)
            entry.keys = public_keys(document.body)
        except KeySetUnavailable as error:
            entry.failure = str(error)
        except ValueError as error:
            entry.failure = f"the document cannot be used: {error}"
        else:
            entry.failure = ""
            entry.fetched_at = clock.now()
            entry.keep_s = min(max(document.max_age_s or 0, MIN_KEPT_S), MAX_KEPT_S)
        finally:
            entry.tried_at = clock.now()
            entry.running = None


def _is_recent(moment: int, seconds: int) -> bool:
    """Return whether the moment is less than this long ago, and not in the future."""
    return 0 <= clock.now() - moment < seconds * clock.SECOND
