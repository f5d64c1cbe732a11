"""The service's own assertion of an agent's identity, which it exchanges for access tokens (RFC 7523 §3)."""

import msgspec

from countersign.distribution.agents.registrations import Registration
from countersign.distribution.context import Store
from countersign.kernel import clock, ids
from countersign.kernel.clock import Instant
from countersign.kernel.errors import Refused
from countersign.kernel.security.jose import SKEW_S, InvalidToken

TYP = "oauth-id-jag+jwt"


class InvalidGrant(Refused):
    """The assertion or code does not hold (RFC 6749 §5.2, RFC 7521 §4.1.1)."""

    code = "invalid_grant"
    title = "Invalid grant"
    resolution = "Register again, or start the authorization anew."


class AssertionClaims(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the assertion says (agent-auth 7.7): `sub` is the registration, `gen` its generation."""

    iss: str
    aud: str
    sub: str
    client_id: str
    iat: int
    exp: int
    jti: str
    gen: int
    email: str | None = None
    email_verified: bool | None = None


def issue(store: Store, registration: Registration, email: str | None) -> tuple[str, Instant]:
    """An assertion of the registration as it is now, and when it expires; `email` is the proven one of its person."""
    now_s = clock.now() // clock.SECOND
    ends_s = now_s + store.settings.assertion_ttl_s
    claims = AssertionClaims(
        iss=store.root_url,
        aud=store.root_url,
        sub=registration.id,
        client_id=registration.id,
        iat=now_s,
        exp=ends_s,
        jti=ids.new_uuid(),
        gen=registration.generation,
        email=email,
        email_verified=None if email is None else True,
    )
    return store.tokens.ring.sign(msgspec.json.encode(claims), TYP), Instant(ends_s * clock.SECOND)


def read(store: Store, token: str) -> AssertionClaims:
    """The claims of an assertion that this service signed and that has not expired; whether its registration still
    lives, the caller asks.

    Raises:
        InvalidGrant: malformed, of another type or issuer, or expired.
    """
    try:
        claims = msgspec.json.decode(store.tokens.ring.open(token, TYP), type=AssertionClaims)
    except (InvalidToken, msgspec.DecodeError) as error:
        raise InvalidGrant("the assertion is malformed or was not issued here") from error
    if claims.iss != store.root_url or claims.aud != store.root_url:
        raise InvalidGrant("the assertion was issued for another service")
    if clock.now() // clock.SECOND > claims.exp + SKEW_S:
        raise InvalidGrant("the assertion has expired")
    return claims
