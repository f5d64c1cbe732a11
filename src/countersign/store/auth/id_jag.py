"""ID-JAGs (draft-ietf-oauth-identity-assertion-authz-grant §4, agent-auth 2). An ID-JAG is an identity provider's
signed assertion about a person, for one service and one client."""

import re
from typing import NamedTuple

import msgspec

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Transaction
from countersign.kernel.errors import Refused
from countersign.kernel.json_reader import Members
from countersign.store.auth import trusted_issuers
from countersign.store.auth.sessions import normalize_email
from countersign.store.auth.trusted_issuers import (
    SKEW_S,
    Expired,
    Identifier,
    InvalidAudience,
    Issuer,
    MalformedToken,
    Seconds,
    TokenRejected,
    decode_claims,
    now_s,
    require_audience,
    require_issued,
    verify_token,
)
from countersign.store.context import Store

TYP = "oauth-id-jag+jwt"
MAX_LIFE_S = 600
MAX_AGE_S = 3_600
# The use of an assertion is stored for this time after the assertion expires. Otherwise a node whose clock is slow
# could accept the assertion a second time.
REMEMBERED_S = 3_600

# Assertions with these claims are rejected, because this service does not enforce the restrictions: proof of possession
# (cnf), rights beyond scopes, and subjects that are unique only within a tenant.
_UNSUPPORTED = ("cnf", "authorization_details", "tenant")
_EMAIL = re.compile(r"[!-?A-~]+@[a-z0-9.-]+")


class ReplayDetected(TokenRejected):
    """The assertion was used before."""

    code = "replay_detected"
    title = "Used before"


class InvalidClientId(TokenRejected):
    """The assertion is for another client."""

    code = "invalid_client_id"
    title = "Meant for another client"


class MissingVerifiedEmail(TokenRejected):
    """The assertion has no e-mail address that its issuer has verified and is allowed to assert."""

    code = "missing_verified_email"
    title = "No verified e-mail"
    resolution = "Have the identity provider verify the e-mail address, or register by e-mail instead."


class LoginRequired(Refused):
    """The person has not signed in at the identity provider within the last hour."""

    status = 401
    code = "login_required"
    title = "Sign-in too long ago"
    resolution = "Have the person sign in at the identity provider again, and ask it for a new assertion."

    def __init__(self, detail: str) -> None:
        challenge = f'AgentAuth error="{self.code}", max_age="{MAX_AGE_S}"'
        super().__init__(detail, headers={"WWW-Authenticate": challenge}, members={"max_age": MAX_AGE_S})


class IdentityAssertion(NamedTuple):
    """The assertion of a trusted issuer about a person. `subject` is unique within `issuer`. `email` is the normalized
    address, or None if the issuer has not verified it. `scope` contains the scopes that the assertion is limited to, or
    None for no limit. Each item of `resource` belongs to this service."""

    issuer: str
    issuer_name: str
    subject: str
    client_id: str
    jti: str
    expires_at: Instant
    email: str | None
    scope: frozenset[str] | None
    auth_time_s: int | None
    resource: tuple[str, ...] = ()


class _IdJagClaims(msgspec.Struct):
    sub: Identifier
    aud: str | list[str]
    client_id: Identifier
    jti: Identifier
    exp: Seconds
    iat: Seconds
    nbf: Seconds | None = None
    scope: str | None = None
    auth_time: Seconds | None = None
    email: str | None = None
    email_verified: object = None
    resource: str | list[str] | None = None


async def verify(store: Store, assertion: str) -> IdentityAssertion:
    """Verify an assertion, without marking it as used.

    An assertion without an e-mail address is accepted (call `verified_email` to require an address). An assertion with
    an address that is not verified is rejected.

    Raises:
        MalformedToken, InvalidIssuer, InvalidSignature, Expired, InvalidAudience, InvalidClientId,
        MissingVerifiedEmail: the assertion is not valid; only the first three errors can occur before its signature
        is verified.
        Unavailable: the issuer's keys cannot be fetched.
    """
    verified_token = await verify_token(store, assertion, TYP)
    claims = decode_claims(verified_token, _IdJagClaims)
    require_audience(store, claims.aud)
    _require_time(claims)
    _require_supported(verified_token.claims)
    if verified_token.issuer.client_ids and claims.client_id not in verified_token.issuer.client_ids:
        raise InvalidClientId("the issuer is not allowed for this client")
    return IdentityAssertion(
        issuer=verified_token.issuer.issuer,
        issuer_name=verified_token.issuer.name,
        subject=claims.sub,
        client_id=claims.client_id,
        jti=claims.jti,
        expires_at=Instant(claims.exp * clock.SECOND),
        email=_checked_email(verified_token.issuer, claims),
        scope=None if claims.scope is None else frozenset(claims.scope.split()),
        auth_time_s=claims.auth_time,
        resource=_own_resources(store, claims.resource),
    )


async def use_once(transaction: Transaction, identity_assertion: IdentityAssertion) -> None:
    """Record the use of an assertion. Each assertion is accepted only once.

    Raises:
        ReplayDetected: the assertion was used before, or by a concurrent transaction that commits.
    """
    remembered_until = clock.later(identity_assertion.expires_at, seconds=REMEMBERED_S)
    if not await trusted_issuers.record_token_use(
        transaction, "id-jag", identity_assertion.issuer, identity_assertion.jti, remembered_until
    ):
        raise ReplayDetected("the assertion was used before")


def require_fresh(identity_assertion: IdentityAssertion) -> None:
    """Require that the person signed in at the issuer within the last hour (agent-auth 1.4).

    Raises:
        LoginRequired: the sign-in was more than an hour ago or is in the future, or `auth_time` is missing.
    """
    if identity_assertion.auth_time_s is None:
        raise LoginRequired("the assertion has no auth_time")
    age_s = now_s() - identity_assertion.auth_time_s
    if not -SKEW_S <= age_s <= MAX_AGE_S + SKEW_S:
        raise LoginRequired("the person's sign-in at the identity provider is too long ago")


def require_client(identity_assertion: IdentityAssertion, client_id: str) -> None:
    """Require that the assertion is for the client that presents it.

    Raises:
        InvalidClientId: the assertion is for another client.
    """
    if identity_assertion.client_id != client_id:
        raise InvalidClientId("the assertion is for another client")


def verified_email(identity_assertion: IdentityAssertion) -> str:
    """The person's verified e-mail address.

    Raises:
        MissingVerifiedEmail: the assertion has none.
    """
    if identity_assertion.email is None:
        raise MissingVerifiedEmail("the assertion has no e-mail address")
    return identity_assertion.email


def _require_time(claims: _IdJagClaims) -> None:
    if now_s() > claims.exp + SKEW_S:
        raise Expired("the assertion has expired")
    require_issued(claims.iat, claims.nbf)
    if not 0 < claims.exp - claims.iat <= MAX_LIFE_S:
        raise MalformedToken(f"the assertion must expire within {MAX_LIFE_S} s")


def _require_supported(claims: Members) -> None:
    unsupported_claims = [name for name in _UNSUPPORTED if name in claims]
    if unsupported_claims:
        raise MalformedToken(f"the claim {unsupported_claims[0]} is not supported")


def _checked_email(issuer: Issuer, claims: _IdJagClaims) -> str | None:
    if claims.email is None:
        return None
    if claims.email_verified is not True:
        raise MissingVerifiedEmail("the issuer has not verified the e-mail address")
    address = normalize_email(claims.email)
    # Accept only ASCII, because converting to lower case makes different letters of some alphabets equal.
    if not claims.email.isascii() or _EMAIL.fullmatch(address) is None or len(address) > 254:
        raise MissingVerifiedEmail("the e-mail address is not valid")
    if issuer.domains and address.rpartition("@")[2] not in issuer.domains:
        raise MissingVerifiedEmail("the issuer is not allowed for e-mail addresses of this domain")
    return address


def _own_resources(store: Store, resource: str | list[str] | None) -> tuple[str, ...]:
    """Return the resources that the assertion is limited to (RFC 8707). The assertion is invalid if it names a resource
    of another service."""
    resources = [resource] if isinstance(resource, str) else resource or []
    for resource_name in resources:
        if resource_name != store.root_url and not resource_name.startswith(f"{store.root_url}/"):
            raise InvalidAudience(f"the resource must lie within {store.root_url}")
    return tuple(resources)
