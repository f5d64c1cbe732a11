"""Security event tokens of trusted issuers (RFC 8417), pushed to ROOT/healthz (RFC 8935; agent-auth 7.10)."""

from typing import Annotated, NamedTuple

import msgspec

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Transaction
from countersign.kernel.http import response
from countersign.kernel.http.request import BodyTooLarge
from countersign.kernel.http.response import Response
from countersign.kernel.http.routing import Nothing, route
from countersign.kernel.json_reader import Members
from countersign.store.auth import trusted_issuers
from countersign.store.auth.agents import registrations
from countersign.store.auth.callers import StoreRequest
from countersign.store.auth.trusted_issuers import (
    SKEW_S,
    Expired,
    Identifier,
    MalformedToken,
    Seconds,
    TokenRejected,
    VerifiedToken,
    decode_claims,
    now_s,
    require_audience,
    require_issued,
    verify_token,
)
from countersign.store.context import Store

TYP = "secevent+jwt"
MAX_AGE_S = 7 * 86_400
REMEMBERED_S = 3_600


class ForeignSubject(TokenRejected):
    """The event is about a subject of another issuer (RFC 8935 §2.4)."""

    err = "access_denied"
    title = "Subject of another issuer"


class SecurityEvent(NamedTuple):
    """A verified event of a trusted issuer. `is_revocation` is true if the issuer revokes its assertions about the
    subject; other events have no effect. The id of the event is stored until `expires_at`, to detect replays."""

    issuer: str
    subject: str | None
    jti: str
    is_revocation: bool
    expires_at: Instant


class _SubjectId(msgspec.Struct):
    format: str
    iss: str | None = None
    sub: Identifier | None = None


class _EventClaims(msgspec.Struct):
    aud: str | list[str]
    jti: Identifier
    iat: Seconds
    events: Annotated[dict[str, Members], msgspec.Meta(min_length=1)]
    sub: Identifier | None = None
    sub_id: _SubjectId | None = None
    exp: Seconds | None = None


async def verify(store: Store, body: bytes) -> SecurityEvent:
    """Verify a security event token, without recording its use.

    Raises:
        TokenRejected: the token is not valid; `err` is the error code of RFC 8935.
        Unavailable: the issuer's keys cannot be fetched.
    """
    try:
        token = body.strip().decode("ascii")
    except UnicodeDecodeError:
        raise MalformedToken("the body must be a security event token") from None
    verified_token = await verify_token(store, token, TYP)
    claims = decode_claims(verified_token, _EventClaims)
    require_audience(store, claims.aud)
    _require_time(claims)
    subject = _subject(verified_token, claims)
    is_revocation = store.settings.revoked_event in claims.events
    if is_revocation and subject is None:
        raise MalformedToken("the event names no subject, as sub or as sub_id of the format iss_sub")
    expires_at = Instant((claims.iat + MAX_AGE_S + REMEMBERED_S) * clock.SECOND)
    return SecurityEvent(verified_token.issuer.issuer, subject, claims.jti, is_revocation, expires_at)


async def use_once(transaction: Transaction, event: SecurityEvent) -> bool:
    """Record the event. Return False if the event was received before."""
    return await trusted_issuers.record_token_use(transaction, "event", event.issuer, event.jti, event.expires_at)


def _require_time(claims: _EventClaims) -> None:
    require_issued(claims.iat)
    if now_s() > claims.iat + MAX_AGE_S + SKEW_S:
        raise MalformedToken("the event was issued more than 7 days ago")
    if claims.exp is not None and now_s() > claims.exp + SKEW_S:
        raise Expired("the event's token has expired")


def _subject(token: VerifiedToken, claims: _EventClaims) -> str | None:
    """The subject of the event, as this issuer names it (RFC 9493 §3.2.3)."""
    subject_id = claims.sub_id
    if subject_id is None or subject_id.format != "iss_sub":
        return claims.sub
    if subject_id.iss != token.issuer.issuer:
        raise ForeignSubject("the event is about a subject of another issuer")
    if subject_id.sub is None or claims.sub not in (None, subject_id.sub):
        raise MalformedToken("the event's sub and sub_id must name the same subject")
    return subject_id.sub


MEDIA_TYPE = "application/secevent+jwt"
BODY_LIMIT = 64 << 10
TOO_LARGE = 413


class EventError(msgspec.Struct):
    """Why an event was not accepted: `err` is an error code of RFC 8935 §2.4, `description` is for people."""

    err: str
    description: str


async def receive_event(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Receive a security event. A revocation revokes the registrations of the subject that its issuer asserted."""
    try:
        event = await verify(call.context, await _read_body(call))
    except TokenRejected as refused:
        return _error_response(refused.status, refused.err, refused.detail)
    except BodyTooLarge as refused:
        return _error_response(TOO_LARGE, "invalid_request", refused.detail)
    if event.is_revocation and event.subject is not None:
        async with call.context.database.transaction() as transaction:
            # A transmitter that got no response sends the event again. Accept the repeated event, and do nothing.
            if await use_once(transaction, event):
                await registrations.revoke_subject(transaction, event.issuer, event.subject)
    return Response(202)


async def _read_body(call: StoreRequest[Nothing, Nothing]) -> bytes:
    content_type = (call.headers.get("content-type") or "").split(";")[0].strip().lower()
    if content_type != MEDIA_TYPE:
        raise MalformedToken(f"the body's Content-Type must be {MEDIA_TYPE}")
    body = bytearray()
    async for piece in call.chunks():
        body += piece
        if len(body) > BODY_LIMIT:
            raise BodyTooLarge(f"the body must have {BODY_LIMIT} bytes at most")
    return bytes(body)


def _error_response(status: int, err: str, description: str) -> Response:
    return response.json(EventError(err, description), status, (("Content-Language", "en"),))


ROUTES = (
    route(
        "POST",
        "/healthz",
        receive_event,
        answers={202: None, 400: EventError, 413: EventError},
        streams=True,
        takes=MEDIA_TYPE,
        own_credentials=True,
        documented=True,
        at_root=True,
    ),
)
