"""The endpoints of agents: /auth/register, /auth/me and /auth/claim."""

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.errors import InvalidRequest, Refused
from countersign.kernel.http import response
from countersign.kernel.http.request import Headers
from countersign.kernel.http.response import Response
from countersign.kernel.http.routing import Nothing, OneOf, route
from countersign.store import scopes
from countersign.store.auth import id_jag, queries, sessions, tokens, trusted_issuers
from countersign.store.auth.agents import claim, claim_page, register, registration_limits, registrations, schemas
from countersign.store.auth.agents.claim import AttemptOver, ClaimAttempt, InvalidClaimToken, WrongAccount
from countersign.store.auth.agents.claim_page import ClaimLinkUnknown
from countersign.store.auth.agents.register import PendingClaim
from countersign.store.auth.agents.registrations import Registration
from countersign.store.auth.agents.schemas import (
    Claimed,
    ClaimForm,
    ClaimQuery,
    ClaimRequest,
    CompleteRequest,
    Identity,
    Initiated,
    Me,
    Pending,
    Registered,
    RegisterRequest,
)
from countersign.store.auth.authentication import Authenticator, Unauthenticated, credential_of
from countersign.store.auth.callers import StoreRequest
from countersign.store.auth.tokens import InvalidScope
from countersign.store.context import Store

CLAIM_PREFIX = "clm_"


class AlreadyClaimed(Refused):
    """A person has claimed the agent, or another claim of it is in progress."""

    status = 409
    code = "already_claimed"
    title = "Already claimed"
    resolution = "Poll with the claim token for the assertion; it is available for ten minutes."


class InvalidClaim(Refused):
    """The person declined, or the registration has ended; it cannot be claimed."""

    code = "invalid_claim"
    title = "Nothing to claim"
    resolution = "Do not ask again unless your person wants it; then register anew."


class ClaimNotConfirmed(Refused):
    """The person has not confirmed on the page yet."""

    status = 409
    code = "claim_not_confirmed"
    title = "Not confirmed yet"
    resolution = "Ask your person to confirm on the page, then send the code it shows."


class InvalidUserCode(Refused):
    """The code is not the one the page showed."""

    status = 401
    code = "invalid_user_code"
    title = "Wrong code"
    resolution = "Send the six digits that the page shows your person."


async def register_agent(call: StoreRequest[Nothing, RegisterRequest]) -> Response:
    """Register an agent: asserted by a provider, by its person's e-mail, or anonymous."""
    kind = schemas.registration_kind(call.body)
    agent = call.headers.get("user-agent")
    if kind == "anonymous":
        registration = await register.anonymous(call.context, call.body, agent, call.address)
    elif kind == "service_auth":
        registration = await register.by_email(call.context, call.body, agent, call.address)
    else:
        registration = await register.by_assertion(call.context, call.body, agent, call.address)
    return response.json(registration)


async def show_me(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Show the caller of an access token, or the state of the claim of a claim token."""
    token = _bearer_token(call.headers)
    if token is not None and token.startswith(CLAIM_PREFIX):
        return await _poll_response(call.context, token)
    return response.json(await _me_response(call))


async def continue_claim(call: StoreRequest[Nothing, ClaimRequest]) -> Response:
    """Poll a claim, or begin another attempt."""
    store, body = call.context, call.body
    token = _claim_token(call.headers, body.claim_token)
    if body.type is None and body.assertion is None and body.email is None and body.login_hint is None:
        return await _poll_response(store, token)
    registration = await _unclaimed_registration(store, token)
    if body.type in ("login_hint", "service_auth", None):
        email = schemas.person_email(body.email, body.login_hint)
        return response.json(await _begin_attempt(store, registration, email, "service_auth"))
    if body.type == "identity_assertion":
        return await _claim_by_assertion(store, registration, body.assertion)
    raise schemas.UnsupportedIdentityType("a claim is continued by login_hint, service_auth or identity_assertion")


async def complete_claim(call: StoreRequest[Nothing, CompleteRequest]) -> Response:
    """Finish a claim with the code that the page showed the person."""
    store, code = call.context, (call.body.user_code or "").strip()
    registration = await _unclaimed_registration(store, _claim_token(call.headers, call.body.claim_token))
    if not code:
        raise InvalidRequest("user_code is required")
    attempt, person_id = await _confirmed_attempt(store, registration)
    async with store.database.transaction() as transaction:
        await registrations.lock(transaction, registration.id)
        is_right = await claim.check_shown_code(store, transaction, attempt, code)
        if is_right:
            await claim.accept(transaction, attempt, registration, person_id)
    if is_right is None:
        raise claim.AttemptOver("the code is used up; begin another attempt")
    if not is_right:
        tries_left = claim.MAX_TRIES - attempt.tries - 1
        challenge = {"WWW-Authenticate": 'AgentAuth error="invalid_user_code"'}
        members = {"attempts_remaining": max(0, tries_left)}
        raise InvalidUserCode("the code is wrong", headers=challenge, members=members)
    claim.notify_person(store, registration.id)
    return await _claimed_response(store, await _reload(store, registration))


async def _unclaimed_registration(store: Store, token: str) -> Registration:
    """Return the registration of a claim token, if it can still be claimed.

    Raises:
        AlreadyClaimed, InvalidClaim, and the errors of `claim.registration_of_token`.
    """
    registration = await claim.registration_of_token(store, token)
    if registration.status == "claimed":
        raise AlreadyClaimed("a person has claimed the agent")
    if registration.status != "unclaimed":
        raise InvalidClaim("the person declined, or the registration has ended")
    return registration


async def _confirmed_attempt(store: Store, registration: Registration) -> tuple[ClaimAttempt, str]:
    """Return the confirmed attempt, and the id of the person who confirmed it.

    Raises:
        AttemptOver: the attempt is over.
        ClaimNotConfirmed: the person has not confirmed yet.
    """
    attempt = await claim.latest_attempt(store.database, registration.id)
    if attempt is None or attempt.is_over:
        raise claim.AttemptOver("the code is used up; begin another attempt")
    if attempt.status != "confirmed" or attempt.confirmed_by is None:
        raise ClaimNotConfirmed("the person has not confirmed on the page yet")
    return attempt, attempt.confirmed_by


async def _poll_response(store: Store, token: str) -> Response:
    progress = await claim.poll(store, token)
    if progress.state == "claimed":
        return await _claimed_response(store, progress.registration)
    registration = progress.registration
    return response.json(Pending("pending", registration.id, registration.interval_s, progress.expires_in_s))


async def _claimed_response(store: Store, registration: Registration) -> Response:
    grant = await registrations.grant_of(store.database, registration)
    person = await queries.person(store.database, grant.person_id or "")
    assertion, expires_at = registrations.issue_assertion(store, registration, person.email if person else None)
    expires = clock.rfc3339(expires_at)
    scope_names = [scope for scope in scopes.ALL if scope in grant.scopes]
    identity = Identity(assertion, expires)
    return response.json(
        Claimed("claimed", registration.id, registration.id, assertion, expires, identity, scope_names)
    )


async def _begin_attempt(store: Store, registration: Registration, email: str, kind: str) -> Initiated:
    """Begin another attempt. If the registration already names a person, the attempt must name the same person
    (agent-auth 7.5)."""
    if registration.kind != "anonymous" and registration.email != email:
        raise schemas.InvalidLoginHint("the registration names another person; register again for this one")
    await registration_limits.count_attempt(store, registration.id)
    if registration.email != email:
        await registration_limits.count_claim_of_person(store, email)
    async with store.database.transaction() as transaction:
        if not await registrations.lock_unclaimed(transaction, registration.id):
            raise AlreadyClaimed("the registration was claimed, declined or ended")
        if registration.kind == "anonymous":
            await registrations.set_person(transaction, registration.id, email, None)
        attempt = await claim.begin_attempt(store, transaction, registration)
    return Initiated(
        registration.id,
        registration.id,
        kind,
        attempt.id,
        "initiated",
        clock.rfc3339(attempt.expires_at),
        attempt.code(registration.interval_s),
        attempt.link(),
    )


async def _claim_by_assertion(store: Store, registration: Registration, assertion: str | None) -> Response:
    """Claim an anonymous agent with a provider's assertion. The claim takes effect at once if the account is new or
    bound to the provider's subject; otherwise an attempt begins, which the account's person must confirm."""
    if registration.kind != "anonymous":
        remedy = "Have the person confirm: poll, or begin another attempt with type service_auth."
        raise AlreadyClaimed("only an anonymous registration can be claimed by an assertion", resolution=remedy)
    if not assertion:
        raise InvalidRequest("assertion is required")
    outcome = await register.claim_by_assertion(store, await register.verify_assertion(store, assertion), registration)
    if isinstance(outcome, PendingClaim):
        attempt = outcome.attempt
        ends_at = clock.rfc3339(attempt.expires_at)
        code, link = attempt.code(registration.interval_s), attempt.link()
        initiated_claim = Initiated(
            registration.id, registration.id, "identity_assertion", attempt.id, "initiated", ends_at, code, link
        )
        return response.json(initiated_claim)
    return await _claimed_response(store, outcome)


async def _reload(store: Store, registration: Registration) -> Registration:
    """The registration, read again."""
    current_registration = await registrations.with_id(store.database, registration.id)
    if current_registration is None:
        raise InvalidClaimToken("the registration was removed")
    return current_registration


async def _me_response(call: StoreRequest[Nothing, Nothing]) -> Me:
    store = call.context
    authenticator = Authenticator(store)
    caller = await authenticator.caller_of(call.headers, call.address)
    authenticator.admit(caller, None)
    claims = store.tokens.verify(credential_of(call.headers) or "")
    granted_scopes = (
        caller.scopes if caller.scopes is not None else await tokens.scopes_of_person(store.database, caller.id)
    )
    orgs = {org: await queries.organisation(store.database, org) for org in caller.orgs}
    slugs = {org: org_found.slug for org, org_found in orgs.items() if org_found is not None}
    # A client has no roles. An agent has the roles of the person that it acts for.
    roles = await queries.roles(store.database, caller.id)
    me = Me(
        sub=caller.id,
        client_id=claims.client_id,
        claimed=caller.kind != "agent",
        scope=scopes.words(granted_scopes),
        expires_at=clock.rfc3339(Instant(claims.exp * clock.SECOND)),
        orgs=sorted(slugs.values()),
        roles={slugs[org]: role for org, role in roles.items() if org in slugs},
        email=caller.email,
    )
    registration = await registrations.with_id(store.database, caller.grant_id or "")
    if registration is not None:
        me.registration_id, me.registration_type = registration.id, registration.kind
    return me


def _bearer_token(headers: Headers) -> str | None:
    kind, _, token = (headers.get("authorization") or "").partition(" ")
    return token.strip() if kind.lower() == "bearer" and token.strip() else None


def _claim_token(headers: Headers, body_token: str | None) -> str:
    """The claim token from the body or from Authorization.

    Raises:
        InvalidRequest: two different claim tokens were sent, or no claim token.
    """
    bearer = _bearer_token(headers)
    if body_token is not None and bearer is not None and body_token != bearer:
        raise InvalidRequest("claim_token and Authorization must be the same token")
    token = body_token or bearer
    if not token:
        raise InvalidRequest("claim_token is required")
    return token


MAX_BODY_BYTES = 65_536
_HTML = ("text/html; charset=utf-8", "text/html")
_REFUSED_ASSERTIONS = (
    trusted_issuers.MalformedToken,
    trusted_issuers.InvalidIssuer,
    trusted_issuers.InvalidSignature,
    trusted_issuers.Expired,
    trusted_issuers.InvalidAudience,
    id_jag.InvalidClientId,
    id_jag.MissingVerifiedEmail,
    id_jag.ReplayDetected,
    id_jag.LoginRequired,
    InvalidScope,
)
_REFUSED_POLLS = (
    claim.InvalidClaimToken,
    claim.ClaimExpired,
    claim.AccessDenied,
    claim.SlowDown,
    AttemptOver,
)

ROUTES = (
    route(
        "POST",
        "/auth/register",
        register_agent,
        body=RegisterRequest,
        answers={200: Registered},
        refusals=(
            *_REFUSED_ASSERTIONS,
            schemas.UnsupportedIdentityType,
            schemas.InvalidLoginHint,
            register.AnonymousNotEnabled,
            register.ServiceAuthNotEnabled,
            register.InteractionRequired,
        ),
        secret=True,
        quota="token",
        own_credentials=True,
        body_limit=MAX_BODY_BYTES,
        cross_origin=True,
        documented=True,
        example={"type": "service_auth", "login_hint": "player@example.com", "scope": "read:library"},
    ),
    route(
        "GET",
        "/auth/me",
        show_me,
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
        continue_claim,
        body=ClaimRequest,
        answers={200: OneOf((Claimed, Pending, Initiated))},
        refusals=(
            *_REFUSED_POLLS,
            *_REFUSED_ASSERTIONS,
            AlreadyClaimed,
            InvalidClaim,
            schemas.InvalidLoginHint,
            schemas.UnsupportedIdentityType,
        ),
        secret=True,
        quota="person",
        own_credentials=True,
        body_limit=MAX_BODY_BYTES,
        example={"claim_token": "clm_7K3M9QX2WDF4TBN8HZRC"},
    ),
    route(
        "POST",
        "/auth/me/complete",
        complete_claim,
        body=CompleteRequest,
        answers={200: Claimed},
        refusals=(InvalidScope, *_REFUSED_POLLS, AlreadyClaimed, InvalidClaim, ClaimNotConfirmed, InvalidUserCode),
        secret=True,
        quota="person",
        own_credentials=True,
        body_limit=MAX_BODY_BYTES,
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
