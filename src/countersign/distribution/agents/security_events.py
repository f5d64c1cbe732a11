"""POST ROOT/healthz: security events that identity providers push (RFC 8935, agent-auth 7.10)."""

import msgspec

from countersign.distribution.agents import registrations
from countersign.distribution.identity.callers import StoreRequest
from countersign.distribution.issuers import security_events
from countersign.distribution.issuers.signed import MalformedToken, NotBelieved
from countersign.kernel.http import response
from countersign.kernel.http.request import BodyTooLarge
from countersign.kernel.http.response import Response
from countersign.kernel.http.routing import Nothing, route

MEDIA_TYPE = "application/secevent+jwt"
BODY_LIMIT = 64 << 10
TOO_LARGE = 413


class EventError(msgspec.Struct):
    """Why an event was not accepted: `err` is a word of RFC 8935 §2.4, `description` for people."""

    err: str
    description: str


async def receive_event(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Take a security event; a revocation ends what its issuer asserted about the subject."""
    try:
        event = await security_events.verified(call.context, await _token(call))
    except NotBelieved as refused:
        return _refusal(refused.status, refused.err, refused.detail)
    except BodyTooLarge as refused:
        return _refusal(TOO_LARGE, "invalid_request", refused.detail)
    if event.is_revocation and event.subject is not None:
        async with call.context.database.transaction() as transaction:
            # A transmitter that heard no answer sends again: that changes nothing and is no error.
            if await security_events.use_once(transaction, event):
                await registrations.revoke_subject(transaction, event.issuer, event.subject)
    return Response(202)


async def _token(call: StoreRequest[Nothing, Nothing]) -> bytes:
    given = (call.headers.get("content-type") or "").split(";")[0].strip().lower()
    if given != MEDIA_TYPE:
        raise MalformedToken(f"the body's Content-Type must be {MEDIA_TYPE}")
    body = bytearray()
    async for piece in call.chunks():
        body += piece
        if len(body) > BODY_LIMIT:
            raise BodyTooLarge(f"the body may have {BODY_LIMIT} bytes at most")
    return bytes(body)


def _refusal(status: int, err: str, description: str) -> Response:
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
