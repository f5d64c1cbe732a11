"""What every token of a trusted issuer must hold before its claims mean anything: form, issuer, signature, audience.

Before the signature is known to be good, a refusal says no more than which of these three is wrong.
"""

from typing import Annotated, ClassVar, NamedTuple, TypeAlias, TypeVar

import msgspec

from countersign.kernel import clock
from countersign.kernel.errors import Refused
from countersign.kernel.json_reader import Members
from countersign.kernel.security import external_jwt
from countersign.kernel.security.external_jwt import BadSignature, BadToken
from countersign.store.auth.identity_providers import trusted_issuers
from countersign.store.auth.identity_providers.trusted_issuers import Issuer
from countersign.store.context import Store

SKEW_S = 60

Seconds: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=1 << 40)]
"""A NumericDate (RFC 7519 §2) in whole seconds."""

Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
"""Whom a claim names: an issuer, a subject, a client, a token."""

ClaimsT = TypeVar("ClaimsT", bound=msgspec.Struct)


class NotBelieved(Refused):
    """What another service signed is not accepted. `err` is the word of RFC 8935 §2.4 for the reason."""

    err: ClassVar[str] = "invalid_request"
    title = "Not accepted"
    resolution = "Ask the identity provider for a new one."


class MalformedToken(NotBelieved):
    """The token is of another kind, or a claim is missing, of a wrong type or not supported."""

    title = "Malformed token"


class InvalidIssuer(NotBelieved):
    """The token's issuer is not trusted here."""

    err = "invalid_issuer"
    code = "invalid_issuer"
    title = "Issuer not trusted"
    resolution = "Register by e-mail instead, or have the operator trust the identity provider."


class InvalidSignature(NotBelieved):
    """The token's signature is not one of its issuer's."""

    err = "authentication_failed"
    code = "invalid_signature"
    title = "Invalid signature"


class UnknownKey(InvalidSignature):
    """The issuer has no such key, or none for the algorithm, or the algorithm is not allowed to it."""

    err = "invalid_key"


class Expired(NotBelieved):
    """The token's time is over."""

    code = "expired"
    title = "Expired"


class InvalidAudience(NotBelieved):
    """The token is meant for another service."""

    err = "invalid_audience"
    code = "invalid_audience"
    title = "Meant for another service"
    resolution = "Ask the identity provider for one whose audience is exactly this service's issuer."


class Signed(NamedTuple):
    """The claims of a token whose signature is good, and who signed it; the claims themselves are not checked."""

    issuer: Issuer
    claims: Members


async def signed(store: Store, token: str, typ: str) -> Signed:
    """The token of this type, when a trusted issuer signed it.

    Raises:
        MalformedToken, InvalidIssuer, InvalidSignature: it is none.
        Unavailable: the issuer's keys cannot be had now.
    """
    try:
        read = external_jwt.read(token, typ)
    except BadToken as error:
        raise MalformedToken(str(error)) from None
    trusted = await _trusted(store, read.claims.get("iss"))
    key = await trusted_issuers.key_of(store, trusted, read)
    if key is None:
        raise UnknownKey("the issuer has no key for this token")
    try:
        read.verify(key)
    except BadSignature as error:
        raise InvalidSignature(str(error)) from None
    return Signed(trusted, read.claims)


async def _trusted(store: Store, claimed: object) -> Issuer:
    if not isinstance(claimed, str):
        raise MalformedToken("the token names no issuer")
    # The store's own tokens are verified elsewhere, by other rules, whatever the table says.
    found = None if claimed == store.root_url else await trusted_issuers.issuer(store.database, claimed)
    if found is None:
        raise InvalidIssuer("the token's issuer is not trusted here")
    return found


def claims_of(signed_token: Signed, shape: type[ClaimsT]) -> ClaimsT:
    """The claims in their types.

    Raises:
        MalformedToken: one is missing, of a wrong type or out of range; it is named.
    """
    try:
        return msgspec.convert(signed_token.claims, shape)
    except msgspec.ValidationError as error:
        raise MalformedToken(f"the claims are wrong: {error}") from None


def require_audience(store: Store, audience: str | list[str]) -> None:
    """Insist that the token is for this service alone: its issuer identifier, character by character, as a text or as
    the only entry of a list.

    Raises:
        InvalidAudience: it is not.
    """
    if audience not in (store.root_url, [store.root_url]):
        raise InvalidAudience(f"the audience must be {store.root_url} alone")


def now_s() -> int:
    """The present moment in whole seconds since 1970."""
    return clock.now() // clock.SECOND


def require_begun(issued_s: int, not_before_s: int | None = None) -> None:
    """Insist that the token was not issued in the future; a minute's difference of clocks is allowed.

    Raises:
        MalformedToken: it was, or is not valid yet.
    """
    if max(issued_s, not_before_s or 0) > now_s() + SKEW_S:
        raise MalformedToken("the token is not valid yet: it was issued in the future")
