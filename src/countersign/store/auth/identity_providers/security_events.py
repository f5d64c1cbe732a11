"""Security event tokens of trusted issuers (RFC 8417, pushed as RFC 8935 has it; agent-auth 7.10)."""

from typing import Annotated, NamedTuple

import msgspec

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Transaction
from countersign.kernel.json_reader import Members
from countersign.store.auth.identity_providers import trusted_issuers
from countersign.store.auth.identity_providers.signed_tokens import (
    SKEW_S,
    Expired,
    MalformedToken,
    Name,
    NotBelieved,
    Seconds,
    Signed,
    claims_of,
    now_s,
    require_audience,
    require_begun,
    signed,
)
from countersign.store.context import Store

TYP = "secevent+jwt"
OLDEST_S = 7 * 86_400
REMEMBERED_S = 3_600


class ForeignSubject(NotBelieved):
    """The event is about somebody whom another issuer speaks for (RFC 8935 §2.4)."""

    err = "access_denied"
    title = "Subject of another issuer"


class SecurityEvent(NamedTuple):
    """What a trusted issuer tells. `is_revocation`: it takes back what it asserted about the subject, who is named
    then; other events mean nothing here. It is remembered until `expires_at`."""

    issuer: str
    subject: str | None
    jti: str
    is_revocation: bool
    expires_at: Instant


class _SubjectId(msgspec.Struct):
    format: str
    iss: str | None = None
    sub: Name | None = None


class _Claims(msgspec.Struct):
    aud: str | list[str]
    jti: Name
    iat: Seconds
    events: Annotated[dict[str, Members], msgspec.Meta(min_length=1)]
    sub: Name | None = None
    sub_id: _SubjectId | None = None
    exp: Seconds | None = None


async def verified(store: Store, body: bytes) -> SecurityEvent:
    """The event that the token tells of, when it may be believed now; nothing is written.

    Raises:
        NotBelieved: it may not; the refusal's `err` says why in RFC 8935's words.
        Unavailable: the issuer's keys cannot be had now.
    """
    try:
        token = body.strip().decode("ascii")
    except UnicodeDecodeError:
        raise MalformedToken("the body is no security event token") from None
    found = await signed(store, token, TYP)
    claims = claims_of(found, _Claims)
    require_audience(store, claims.aud)
    _require_time(claims)
    subject = _subject(found, claims)
    is_revocation = store.settings.revoked_event in claims.events
    if is_revocation and subject is None:
        raise MalformedToken("the event names no subject, as sub or as sub_id of the format iss_sub")
    until = Instant((claims.iat + OLDEST_S + REMEMBERED_S) * clock.SECOND)
    return SecurityEvent(found.issuer.issuer, subject, claims.jti, is_revocation, until)


async def use_once(transaction: Transaction, event: SecurityEvent) -> bool:
    """Take note of the event; False when it was told before."""
    return await trusted_issuers.note(transaction, "event", event.issuer, event.jti, event.expires_at)


def _require_time(claims: _Claims) -> None:
    require_begun(claims.iat)
    if now_s() > claims.iat + OLDEST_S + SKEW_S:
        raise MalformedToken("the event was issued more than 7 days ago")
    if claims.exp is not None and now_s() > claims.exp + SKEW_S:
        raise Expired("the event's token has expired")


def _subject(found: Signed, claims: _Claims) -> str | None:
    """Whom the event is about, as this issuer calls them (RFC 9493 §3.2.3)."""
    named = claims.sub_id
    if named is None or named.format != "iss_sub":
        return claims.sub
    if named.iss != found.issuer.issuer:
        raise ForeignSubject("the event is about a subject of another issuer")
    if named.sub is None or claims.sub not in (None, named.sub):
        raise MalformedToken("the event's sub and sub_id name different subjects, or none")
    return named.sub
