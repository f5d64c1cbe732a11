"""Trusted identity providers: the operator's list, the keys of the providers, and verification of their tokens.

Until the signature of a token is verified, errors only disclose whether its form, issuer or signature is invalid.
"""

import hashlib
from collections.abc import Iterable
from typing import Annotated, ClassVar, Literal, NamedTuple, TypeAlias, TypeVar

import msgspec

from countersign.kernel import clock, safe_http_client, telemetry
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Reader, Row, Transaction
from countersign.kernel.errors import InvalidRequest, NotFound, Refused, Unavailable
from countersign.kernel.json_reader import Members
from countersign.kernel.safe_http_client import Document
from countersign.kernel.security import external_jwt
from countersign.kernel.security.external_jwt import (
    BadSignature,
    BadToken,
    ExternalToken,
    IssuerKey,
    JwksCache,
    KeySetUnavailable,
)
from countersign.settings import Settings
from countersign.store.context import Store


class Issuer(NamedTuple):
    """A trusted identity provider. If `client_ids` is empty, its assertions may be for every client. If `domains` is
    empty, it may assert e-mail addresses of every domain."""

    issuer: str
    name: str
    jwks_uri: str
    algorithms: frozenset[str]
    client_ids: frozenset[str]
    domains: frozenset[str]
    created_at: Instant


ISSUER = """
    SELECT issuer, name, jwks_uri, algorithms, client_ids, domains, created_at
    FROM trusted_issuer
    WHERE issuer = $1
"""
ISSUERS = """
    SELECT issuer, name, jwks_uri, algorithms, client_ids, domains, created_at
    FROM trusted_issuer
    ORDER BY issuer
    LIMIT 1000
"""
INSERT_ISSUER = """
    INSERT INTO trusted_issuer (issuer, name, jwks_uri, algorithms, client_ids, domains, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT DO NOTHING
"""
DELETE_ISSUER = "DELETE FROM trusted_issuer WHERE issuer = $1"
INSERT_SEEN_TOKEN = """
    INSERT INTO seen_token (kind, issuer, jti_hash, expires_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING
"""
DELETE_OLD_SEEN_TOKENS = "DELETE FROM seen_token WHERE expires_at <= $1"


async def issuer(reader: Reader, name: str) -> Issuer | None:
    """The trusted issuer with exactly this identifier."""
    row = await reader.fetch_one(ISSUER, name)
    return None if row is None else _issuer(row)


async def issuers(reader: Reader) -> list[Issuer]:
    """The trusted issuers, ordered by identifier; 1,000 at most."""
    return [_issuer(row) for row in await reader.fetch(ISSUERS)]


async def insert_issuer(transaction: Transaction, issuer_row: Issuer) -> bool:
    """Add an issuer. If an issuer with this identifier exists, do nothing and return False."""
    lists = [_json_list(texts) for texts in (issuer_row.algorithms, issuer_row.client_ids, issuer_row.domains)]
    return bool(
        await transaction.run(
            INSERT_ISSUER, issuer_row.issuer, issuer_row.name, issuer_row.jwks_uri, *lists, int(issuer_row.created_at)
        )
    )


def _json_list(texts: frozenset[str]) -> str:
    return msgspec.json.encode(sorted(texts)).decode()


def _issuer(row: Row) -> Issuer:
    identifier, name, jwks_uri, *lists, created_at = row
    algorithms, client_ids, domains = (frozenset(msgspec.json.decode(text, type=list[str])) for text in lists)
    return Issuer(identifier, name, jwks_uri, algorithms, client_ids, domains, Instant(created_at))


async def forget_old_tokens(transaction: Transaction) -> int:
    """Remove records of used tokens that have expired; return their number."""
    return await transaction.run(DELETE_OLD_SEEN_TOKENS, clock.now())


DEFAULT_ALGORITHMS = ("ES256", "RS256")
MAX_ISSUER_LENGTH = 255
MAX_NAME_LENGTH = 80


class IssuerExists(Refused):
    """An issuer with this identifier is trusted already; it was not changed."""

    status = 409
    code = "issuer_exists"
    title = "Issuer exists"
    resolution = "To change it, remove it first: countersign issuers remove ISSUER"


class IssuerNotFound(NotFound):
    """No issuer with this identifier is trusted."""

    resolution = "List the trusted issuers: countersign issuers list"


async def add(
    transaction: Transaction,
    store: Store,
    issuer: str,
    *,
    name: str,
    jwks_uri: str,
    algorithms: Iterable[str] = (),
    client_ids: Iterable[str] = (),
    domains: Iterable[str] = (),
) -> Issuer:
    """Trust an issuer from now on, on every worker. The default algorithms are ES256 and RS256.

    `name` is displayed on the claim page. The `iss` of tokens must equal `issuer` exactly.

    Raises:
        InvalidRequest: the issuer or the address of its keys is not an https address (http where
            COUNTERSIGN_PRIVATE_ISSUERS allows it), the issuer is this store itself, the name is blank or too long, an
            algorithm is not supported, or a domain is invalid.
        IssuerExists: the issuer is trusted already.
    """
    new_issuer = Issuer(
        _checked_identifier(store, issuer),
        _checked_name(name),
        _checked_url("the address of the keys", jwks_uri, store),
        _checked_algorithms(algorithms),
        frozenset(client_ids),
        frozenset(map(_checked_domain, domains)),
        clock.now(),
    )
    if not await insert_issuer(transaction, new_issuer):
        raise IssuerExists(f"{issuer} is trusted already")
    return new_issuer


async def remove(transaction: Transaction, issuer: str) -> None:
    """Stop trusting an issuer, on every worker. The caller must also revoke the registrations that the issuer asserted.

    Raises:
        IssuerNotFound: the issuer is not trusted.
    """
    if not await transaction.run(DELETE_ISSUER, issuer):
        raise IssuerNotFound(f"{issuer[:MAX_ISSUER_LENGTH]} is not trusted")


def _checked_url(url_name: str, url: str, store: Store) -> str:
    try:
        safe_http_client.address(url, allows_private=store.settings.private_issuers)
    except ValueError as error:
        raise InvalidRequest(f"{url_name}: {error}", resolution="") from error
    return url


def _checked_identifier(store: Store, issuer: str) -> str:
    """Check that an issuer identifier is an address without a query (RFC 8414 §2)."""
    _checked_url("the issuer", issuer, store)
    if "?" in issuer or len(issuer) > MAX_ISSUER_LENGTH:
        raise InvalidRequest(
            f"the issuer must have no query, and {MAX_ISSUER_LENGTH} characters at most", resolution=""
        )
    if issuer.rstrip("/") == store.root_url:
        raise InvalidRequest("the issuer must not be this store itself", resolution="")
    return issuer


def _checked_name(name: str) -> str:
    if not name.strip() or len(name) > MAX_NAME_LENGTH or not name.isprintable():
        raise InvalidRequest(f"the name must have 1 to {MAX_NAME_LENGTH} printable characters", resolution="")
    return name.strip()


def _checked_algorithms(algorithm_names: Iterable[str]) -> frozenset[str]:
    algorithms = frozenset(algorithm_names) or frozenset(DEFAULT_ALGORITHMS)
    unknown_algorithms = sorted(algorithms - frozenset(external_jwt.ALGORITHMS))
    if unknown_algorithms:
        raise InvalidRequest(
            f"{unknown_algorithms[0]} must be one of {', '.join(external_jwt.ALGORITHMS)}", resolution=""
        )
    return algorithms


def _checked_domain(domain: str) -> str:
    checked_domain = domain.strip().lower()
    if (
        not checked_domain
        or not checked_domain.isascii()
        or "@" in checked_domain
        or "." not in checked_domain.strip(".")
        or checked_domain.split() != [checked_domain]
    ):
        raise InvalidRequest(f"{domain} must be an e-mail domain, like example.com", resolution="")
    return checked_domain


def new_jwks_cache(settings: Settings) -> JwksCache:
    """An empty cache of key sets; COUNTERSIGN_PRIVATE_ISSUERS permits issuers in a private network."""

    async def fetch(address: str) -> Document:
        try:
            return await safe_http_client.get_json(address, allows_private=settings.private_issuers)
        except safe_http_client.Unreachable as error:
            raise KeySetUnavailable(str(error)) from error

    return JwksCache(fetch)


async def signing_key(store: Store, trusted: Issuer, token: ExternalToken) -> IssuerKey | None:
    """The issuer's key that the token's header names, if its algorithm is allowed for the issuer.

    Raises:
        Unavailable: the issuer's keys cannot be fetched. The reason is only logged, because it could disclose details
            of the internal network.
    """
    if token.algorithm not in trusted.algorithms:
        return None
    try:
        return await store.key_sets.key(trusted.jwks_uri, token.algorithm, token.kid)
    except KeySetUnavailable as error:
        telemetry.logger("issuers").warning("keys cannot be fetched", issuer=trusted.issuer, reason=str(error))
        raise Unavailable("the keys of the token's issuer cannot be fetched; try again later") from error


async def record_token_use(
    transaction: Transaction, kind: Literal["id-jag", "event"], issuer: str, jti: str, expires_at: Instant
) -> bool:
    """Record the use of a token. Return False if the token was used before. If two uses are concurrent, the second
    waits until the transaction of the first ends."""
    digest = hashlib.sha256(jti.encode()).digest()
    return bool(await transaction.run(INSERT_SEEN_TOKEN, kind, issuer, digest, expires_at))


SKEW_S = 60

Seconds: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=1 << 40)]
"""A NumericDate (RFC 7519 §2) in whole seconds."""

Identifier: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
"""The value of a claim that names an issuer, a subject, a client or a token."""

ClaimsT = TypeVar("ClaimsT", bound=msgspec.Struct)


class TokenRejected(Refused):
    """A token of another service is not accepted. `err` is the error code of RFC 8935 §2.4."""

    err: ClassVar[str] = "invalid_request"
    title = "Not accepted"
    resolution = "Ask the identity provider for a new one."


class MalformedToken(TokenRejected):
    """The token has another type, or a claim is missing, of the wrong type or not supported."""

    title = "Malformed token"


class InvalidIssuer(TokenRejected):
    """The token's issuer is not trusted here."""

    err = "invalid_issuer"
    code = "invalid_issuer"
    title = "Issuer not trusted"
    resolution = "Register by e-mail instead, or have the operator trust the identity provider."


class InvalidSignature(TokenRejected):
    """The token's signature is not valid for its issuer."""

    err = "authentication_failed"
    code = "invalid_signature"
    title = "Invalid signature"


class UnknownKey(InvalidSignature):
    """The issuer has no such key, no key for the algorithm, or may not use the algorithm."""

    err = "invalid_key"


class Expired(TokenRejected):
    """The token has expired."""

    code = "expired"
    title = "Expired"


class InvalidAudience(TokenRejected):
    """The token is for another service."""

    err = "invalid_audience"
    code = "invalid_audience"
    title = "Meant for another service"
    resolution = "Ask the identity provider for one whose audience is exactly this service's issuer."


class VerifiedToken(NamedTuple):
    """The issuer and the claims of a token with a valid signature. The claims are not checked yet."""

    issuer: Issuer
    claims: Members


async def verify_token(store: Store, token: str, typ: str) -> VerifiedToken:
    """Verify the type and the signature of a token of a trusted issuer.

    Raises:
        MalformedToken, InvalidIssuer, InvalidSignature: the token is not valid.
        Unavailable: the issuer's keys cannot be fetched.
    """
    try:
        unverified_token = external_jwt.read(token, typ)
    except BadToken as error:
        raise MalformedToken(str(error)) from None
    trusted_issuer = await _issuer_of_token(store, unverified_token.claims.get("iss"))
    key = await signing_key(store, trusted_issuer, unverified_token)
    if key is None:
        raise UnknownKey("the issuer has no key for this token")
    try:
        unverified_token.verify(key)
    except BadSignature as error:
        raise InvalidSignature(str(error)) from None
    return VerifiedToken(trusted_issuer, unverified_token.claims)


async def _issuer_of_token(store: Store, identifier_claim: object) -> Issuer:
    if not isinstance(identifier_claim, str):
        raise MalformedToken("the token names no issuer")
    # Never trust the store itself as an issuer, even if the table lists it: its own tokens are verified by other code.
    trusted_issuer = None if identifier_claim == store.root_url else await issuer(store.database, identifier_claim)
    if trusted_issuer is None:
        raise InvalidIssuer("the token's issuer is not trusted here")
    return trusted_issuer


def decode_claims(signed_token: VerifiedToken, shape: type[ClaimsT]) -> ClaimsT:
    """Decode the claims into a struct.

    Raises:
        MalformedToken: a claim is missing, of the wrong type or out of range; the error names it.
    """
    try:
        return msgspec.convert(signed_token.claims, shape)
    except msgspec.ValidationError as error:
        raise MalformedToken(f"invalid claims: {error}") from None


def require_audience(store: Store, audience: str | list[str]) -> None:
    """Require that this service's issuer identifier is the only audience, as a string or as the only item of a list.

    Raises:
        InvalidAudience: the audience is not this service.
    """
    if audience not in (store.root_url, [store.root_url]):
        raise InvalidAudience(f"the audience must be {store.root_url} only")


def now_s() -> int:
    """The current time in whole seconds since 1970."""
    return clock.now() // clock.SECOND


def require_issued(issued_s: int, not_before_s: int | None = None) -> None:
    """Require that a token was not issued in the future. A minute of clock skew is allowed.

    Raises:
        MalformedToken: the token was issued in the future, or is not valid yet.
    """
    if max(issued_s, not_before_s or 0) > now_s() + SKEW_S:
        raise MalformedToken("the token is not valid yet: it was issued in the future")
