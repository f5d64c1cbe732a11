"""The addresses agents register at and are claimed at."""

from countersign.distribution.agents import claim_page, endpoint, polling, register, rules
from countersign.distribution.agents.claim import AttemptOver, WrongAccount
from countersign.distribution.agents.claim_page import ClaimLinkUnknown
from countersign.distribution.agents.endpoint import AlreadyClaimed, ClaimNotConfirmed, InvalidClaim, InvalidUserCode
from countersign.distribution.agents.schemas import (
    Claimed,
    ClaimForm,
    ClaimQuery,
    ClaimRequest,
    CompleteRequest,
    Initiated,
    Me,
    Pending,
    Registered,
    RegisterRequest,
)
from countersign.distribution.identity import sessions
from countersign.distribution.identity.gate import Unauthenticated
from countersign.distribution.identity.tokens import InvalidScope
from countersign.distribution.issuers import id_jag, signed
from countersign.kernel.http.routing import OneOf, route

LARGEST_BODY = 65_536
_HTML = ("text/html; charset=utf-8", "text/html")
_REFUSED_ASSERTIONS = (
    signed.MalformedToken,
    signed.InvalidIssuer,
    signed.InvalidSignature,
    signed.Expired,
    signed.InvalidAudience,
    id_jag.InvalidClientId,
    id_jag.MissingVerifiedEmail,
    id_jag.ReplayDetected,
    id_jag.LoginRequired,
    InvalidScope,
)
_REFUSED_POLLS = (
    polling.InvalidClaimToken,
    polling.ClaimExpired,
    polling.AccessDenied,
    polling.SlowDown,
    AttemptOver,
)

ROUTES = (
    route(
        "POST",
        "/auth/register",
        endpoint.register_agent,
        body=RegisterRequest,
        answers={200: Registered},
        refusals=(
            *_REFUSED_ASSERTIONS,
            rules.UnsupportedIdentityType,
            rules.InvalidLoginHint,
            register.AnonymousNotEnabled,
            register.ServiceAuthNotEnabled,
            register.InteractionRequired,
        ),
        secret=True,
        quota="token",
        own_credentials=True,
        body_limit=LARGEST_BODY,
        cross_origin=True,
        documented=True,
        example={"type": "service_auth", "login_hint": "player@example.com", "scope": "read:library"},
    ),
    route(
        "GET",
        "/auth/me",
        endpoint.show_me,
        answers={200: OneOf((Me, Claimed, Pending))},
        refusals=(Unauthenticated, InvalidScope, *_REFUSED_POLLS),
        secret=True,
        quota="person",
        own_credentials=True,
        documented=True,
    ),
    route(
        "POST",
        "/auth/me",
        endpoint.continue_claim,
        body=ClaimRequest,
        answers={200: OneOf((Claimed, Pending, Initiated))},
        refusals=(
            *_REFUSED_POLLS,
            *_REFUSED_ASSERTIONS,
            AlreadyClaimed,
            InvalidClaim,
            rules.InvalidLoginHint,
            rules.UnsupportedIdentityType,
        ),
        secret=True,
        quota="person",
        own_credentials=True,
        body_limit=LARGEST_BODY,
        example={"claim_token": "clm_7K3M9QX2WDF4TBN8HZRC"},
    ),
    route(
        "POST",
        "/auth/me/complete",
        endpoint.complete_claim,
        body=CompleteRequest,
        answers={200: Claimed},
        refusals=(InvalidScope, *_REFUSED_POLLS, AlreadyClaimed, InvalidClaim, ClaimNotConfirmed, InvalidUserCode),
        secret=True,
        quota="person",
        own_credentials=True,
        body_limit=LARGEST_BODY,
    ),
    route(
        "GET",
        "/auth/claim",
        claim_page.show_claim,
        query=ClaimQuery,
        answers={200: str},
        refusals=(ClaimLinkUnknown, AttemptOver, WrongAccount, sessions.InsecureSignIn),
        produces=_HTML,
        secret=True,
        at_root=True,
    ),
    route(
        "POST",
        "/auth/claim",
        claim_page.decide_claim,
        query=ClaimQuery,
        body=ClaimForm,
        answers={200: str},
        refusals=(ClaimLinkUnknown, AttemptOver, WrongAccount, sessions.InsecureSignIn, sessions.ForeignOrigin),
        form=True,
        quota="token",
        produces=_HTML,
        secret=True,
        at_root=True,
    ),
)
