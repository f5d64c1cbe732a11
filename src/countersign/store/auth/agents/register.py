"""Registration of agents: with an assertion of an identity provider, with a person's e-mail address, or anonymously."""

from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from countersign.kernel import clock, telemetry
from countersign.kernel.database.port import Transaction
from countersign.kernel.errors import InvalidRequest, Refused
from countersign.store import scopes, webhook_events
from countersign.store.auth import id_jag, people, queries
from countersign.store.auth.agents import claim, registration_limits, registrations, schemas
from countersign.store.auth.agents.claim import NewAttempt
from countersign.store.auth.agents.registrations import Applicant, AssertionOrigin, Registration
from countersign.store.auth.agents.schemas import Ceremony, Identity, Registered, RegisterRequest, ScopesByClaim
from countersign.store.auth.id_jag import IdentityAssertion, InvalidClientId
from countersign.store.auth.people import EmailTaken
from countersign.store.auth.tokens import InvalidScope
from countersign.store.context import Store


class AnonymousNotEnabled(Refused):
    """The operator does not admit anonymous agents."""

    status = 403
    code = "anonymous_not_enabled"
    title = "Anonymous agents are not admitted"
    resolution = "Register with the e-mail of your person (service_auth), or with an assertion."


class ServiceAuthNotEnabled(Refused):
    """The operator does not admit registration by e-mail."""

    status = 403
    code = "service_auth_not_enabled"
    title = "Registration by e-mail is not offered"
    resolution = "Register with an assertion of your person's identity provider."


class InteractionRequired(Refused):
    """The provider's account is not yet bound to the person with this e-mail, who has to confirm it once."""

    status = 401
    code = "interaction_required"
    title = "The person has to confirm"
    resolution = "Show your person the link and the code of `claim`, then poll claim_url with claim_token."


@dataclass(frozen=True, slots=True)
class PendingClaim:
    """A registration that a person must confirm before it takes effect."""

    registration: Registration
    claim_token: str
    attempt: NewAttempt


Outcome: TypeAlias = Registration | PendingClaim


async def anonymous(store: Store, body: RegisterRequest, user_agent: str | None, address: str) -> Registered:
    """Register an agent without a person: it can read public data, and can be claimed.

    Raises:
        AnonymousNotEnabled, RateLimited, InvalidScope.
    """
    if not store.settings.agents_anonymous:
        raise AnonymousNotEnabled("anonymous agents are not admitted here")
    applicant = Applicant(schemas.agent_name(user_agent), address, schemas.requested_scopes(body.scope))
    await registration_limits.count_registration(store, "anonymous", address)
    async with store.database.transaction() as transaction:
        registration, token = await registrations.add(
            transaction,
            "anonymous",
            applicant,
            claim_ttl_s=store.settings.claim_ttl_s,
            interval_s=store.settings.poll_interval_s,
        )
    _log("registration created", registration)
    answer = _assertion_response(store, registration, None)
    unclaimed_scopes, claimed_scopes = (
        _scope_text(registration.scopes & queries.PRE_CLAIM),
        _scope_text(registration.scopes),
    )
    claim_ends = _claim_expiry(registration)
    claim_url = f"{store.base_url}/auth/me"
    return msgspec.structs.replace(
        answer,
        scopes=ScopesByClaim(post_claim=claimed_scopes, pre_claim=unclaimed_scopes),
        pre_claim_scopes=unclaimed_scopes,
        post_claim_scopes=claimed_scopes,
        claim_token=token,
        claim_token_expires=claim_ends,
        claim_url=claim_url,
        claim=Ceremony(token, claim_ends, claim_url),
    )


async def by_email(store: Store, body: RegisterRequest, user_agent: str | None, address: str) -> Registered:
    """Register an agent with its person's e-mail address. The response does not disclose whether the address has an
    account (attack T43).

    Raises:
        ServiceAuthNotEnabled, InvalidLoginHint, RateLimited, InvalidScope.
    """
    if not store.settings.agents_by_email:
        raise ServiceAuthNotEnabled("agents do not register by e-mail here")
    email = schemas.person_email(body.email, body.login_hint)
    applicant = Applicant(schemas.agent_name(user_agent), address, schemas.requested_scopes(body.scope))
    await registration_limits.count_registration(store, "service_auth", address)
    await registration_limits.count_claim_of_person(store, email)
    async with store.database.transaction() as transaction:
        registration, token = await registrations.add(
            transaction,
            "service_auth",
            applicant,
            email=email,
            claim_ttl_s=store.settings.claim_ttl_s,
            interval_s=store.settings.poll_interval_s,
        )
        attempt = await claim.begin_attempt(store, transaction, registration)
    _log("registration created", registration)
    return _claim_response(store, PendingClaim(registration, token, attempt))


async def by_assertion(store: Store, body: RegisterRequest, user_agent: str | None, address: str) -> Registered:
    """Register an agent with an assertion of a trusted provider about the agent's person.

    Raises:
        InteractionRequired: an account with this e-mail exists and is not bound to the provider (attack T20).
        LoginRequired: the person signed in at the provider too long ago.
        RateLimited, InvalidScope, and the errors of `id_jag.verify` and `id_jag.use_once`.
    """
    if body.assertion_type != schemas.ID_JAG:
        raise InvalidRequest(f"assertion_type must be {schemas.ID_JAG}")
    if not body.assertion:
        raise InvalidRequest("assertion is required")
    assertion_claims = await verify_assertion(store, body.assertion)
    await registration_limits.count_registration(store, "identity_assertion", address)
    applicant = Applicant(schemas.agent_name(user_agent), address, asserted_scopes(assertion_claims, body.scope))
    outcome = await register_or_await(store, assertion_claims, applicant)
    if isinstance(outcome, PendingClaim):
        answer = _claim_response(store, outcome)
        description = "an account with this e-mail exists; its person has to confirm the agent once"
        raise InteractionRequired(
            description,
            headers={"WWW-Authenticate": f'AgentAuth error="interaction_required", error_description="{description}"'},
            # Omit `type`, because the problem has a member of this name.
            members={name: value for name, value in msgspec.to_builtins(answer).items() if name != "type"},
        )
    person = await queries.person(store.database, outcome.person_id or "")
    return _assertion_response(store, outcome, person.email if person else None)


async def verify_assertion(store: Store, assertion: str) -> IdentityAssertion:
    """Verify an assertion for an agent that is not an OAuth client of this service.

    Raises:
        LoginRequired, InvalidClientId, and the errors of `id_jag.verify`.
    """
    assertion_claims = await id_jag.verify(store, assertion)
    id_jag.require_fresh(assertion_claims)
    if await queries.client(store.database, assertion_claims.client_id) is not None:
        # Only the client may present this assertion. Registration does not check the client's secret, so reject it.
        raise InvalidClientId("the assertion is for an OAuth client; present it at the token endpoint")
    return assertion_claims


def asserted_scopes(assertion_claims: IdentityAssertion, scope: str | None) -> frozenset[str]:
    """The requested scopes, limited to those that the provider allowed (attack T23).

    Raises:
        InvalidScope: a requested scope is not allowed.
    """
    if assertion_claims.scope is None:
        return schemas.requested_scopes(scope)
    allowed_scopes = assertion_claims.scope & schemas.requested_scopes(" ".join(scopes.ALL))
    if not allowed_scopes:
        raise InvalidScope("the assertion has no scope that agents can get")
    if scope is None or not scope.strip():
        return allowed_scopes
    scopes_granted = schemas.requested_scopes(scope)
    if not scopes_granted <= allowed_scopes:
        raise InvalidScope(f"the assertion does not have the scope {sorted(scopes_granted - allowed_scopes)[0]}")
    return scopes_granted


async def register_or_await(store: Store, assertion_claims: IdentityAssertion, applicant: Applicant) -> Outcome:
    """Register an agent for a provider's subject, and mark the assertion as used, in one transaction.

    If the subject is bound to an account, or its address has no account yet, the agent is registered for that account
    or a new one. Otherwise the registration is pending until the person confirms it.

    Raises:
        ReplayDetected: the assertion was used before.
    """
    async with store.database.transaction() as transaction:
        await id_jag.use_once(transaction, assertion_claims)
        person_id = await _find_or_create_person(transaction, assertion_claims)
        origin = AssertionOrigin(assertion_claims.issuer, assertion_claims.subject, assertion_claims.client_id)
        if person_id is None:
            return await _await_person(store, transaction, origin, applicant, assertion_claims.email)
        return await _register_for_person(store, transaction, origin, applicant, person_id)


def _limited_scopes(assertion_claims: IdentityAssertion, registration: Registration) -> frozenset[str]:
    """The requested scopes that the provider allowed.

    Raises:
        InvalidScope: the provider allowed none of the requested scopes.
    """
    scopes_granted = (
        registration.scopes if assertion_claims.scope is None else registration.scopes & assertion_claims.scope
    )
    if not scopes_granted:
        raise InvalidScope("the assertion has none of the scopes that the registration requested")
    return scopes_granted


async def claim_by_assertion(store: Store, assertion_claims: IdentityAssertion, registration: Registration) -> Outcome:
    """Claim an anonymous registration with a provider's assertion. From now on, the assertion limits the scopes of the
    registration. The claim takes effect at once if the account is new or bound to the provider's subject; otherwise an
    attempt begins, which the person must confirm.

    Raises:
        InvalidScope: the assertion has none of the requested scopes.
        ReplayDetected: the assertion was used before.
        AttemptOver: the registration was claimed or has ended.
    """
    origin = AssertionOrigin(assertion_claims.issuer, assertion_claims.subject, assertion_claims.client_id)
    async with store.database.transaction() as transaction:
        await id_jag.use_once(transaction, assertion_claims)
        person_id = await _find_or_create_person(transaction, assertion_claims)
        current_registration = await _lock_unclaimed(transaction, registration.id)
        scopes_granted = _limited_scopes(assertion_claims, current_registration)
        email = assertion_claims.email
        needs_person = person_id is None
        if person_id is not None:
            # Do not check the person's roles, because the response must not disclose who may publish.
            needs_person = bool(scopes_granted & schemas.WRITING)
            person = await queries.person(transaction, person_id)
            email = person.email if person else None
        if not await registrations.set_person(transaction, registration.id, email, origin):
            raise claim.AttemptOver("the registration was claimed or has ended")
        await registrations.limit_scopes(transaction, registration.id, scopes_granted)
        named_registration = current_registration._replace(
            email=email, issuer=assertion_claims.issuer, subject=assertion_claims.subject, scopes=scopes_granted
        )
        if person_id is None or needs_person:
            return PendingClaim(
                named_registration, "", await claim.begin_attempt(store, transaction, named_registration)
            )
        await claim.bind(transaction, named_registration, person_id)
        bound_registration = await registrations.with_id(transaction, registration.id)
        if bound_registration is None:
            raise claim.AttemptOver("the registration has ended")
        return bound_registration


async def _lock_unclaimed(transaction: Transaction, registration_id: str) -> Registration:
    """Lock the registration until the transaction ends, and return its current state, because another assertion may
    have limited its scopes.

    Raises:
        AttemptOver: the registration was claimed or has ended.
    """
    if not await registrations.lock_unclaimed(transaction, registration_id):
        raise claim.AttemptOver("the registration was claimed or has ended")
    current_registration = await registrations.with_id(transaction, registration_id)
    if current_registration is None:
        raise claim.AttemptOver("the registration has ended")
    return current_registration


async def _await_person(
    store: Store, transaction: Transaction, origin: AssertionOrigin, applicant: Applicant, email: str | None
) -> PendingClaim:
    """Add a registration that the person with this address must confirm."""
    registration, token = await registrations.add(
        transaction,
        "identity_assertion",
        applicant,
        email=email,
        origin=origin,
        claim_ttl_s=store.settings.claim_ttl_s,
        interval_s=store.settings.poll_interval_s,
    )
    attempt = await claim.begin_attempt(store, transaction, registration)
    _log("registration created", registration)
    return PendingClaim(registration, token, attempt)


async def _register_for_person(
    store: Store, transaction: Transaction, origin: AssertionOrigin, applicant: Applicant, person_id: str
) -> Outcome:
    """Return the agent's existing registration for a known person, or add one. If the agent requests writing scopes
    that the person has not confirmed for this agent, the person must confirm the registration."""
    existing_registrations = await registrations.of_client(transaction, origin, person_id)
    confirmed_scopes = frozenset[str]().union(
        *(existing_registration.scopes for existing_registration in existing_registrations)
    )
    if applicant.scopes & schemas.WRITING - confirmed_scopes:
        person = await queries.person(transaction, person_id)
        email = person.email if person else None
        return await _await_person(store, transaction, origin, applicant, email)
    for existing_registration in existing_registrations:
        if existing_registration.scopes == applicant.scopes:
            return existing_registration
    registration, _ = await registrations.add(
        transaction,
        "identity_assertion",
        applicant,
        person_id=person_id,
        origin=origin,
        claim_ttl_s=store.settings.claim_ttl_s,
        interval_s=store.settings.poll_interval_s,
    )
    roles = await queries.roles(transaction, person_id)
    await webhook_events.agent_added(transaction, registration.id, registration.scopes, roles)
    _log("registration created", registration)
    return registration


async def _find_or_create_person(transaction: Transaction, assertion_claims: IdentityAssertion) -> str | None:
    """Return the person that a provider's subject is bound to. If the address is unknown, create a person. Return None
    if the person with the address must confirm: an existing person is never bound without confirmation (attacks T20,
    T21)."""
    person_id = await registrations.person_of_subject(transaction, assertion_claims.issuer, assertion_claims.subject)
    if person_id is not None:
        return person_id
    email = id_jag.verified_email(assertion_claims)
    try:
        # The provider's assertion does not prove the address. The owner proves the address by opening a mailed link.
        person = await people.add_person(transaction, email, None)
    except EmailTaken:
        # A concurrent request may have created the person for the same subject: look the subject up again.
        return await registrations.person_of_subject(transaction, assertion_claims.issuer, assertion_claims.subject)
    await transaction.run(
        registrations.DELEGATE, assertion_claims.issuer, assertion_claims.subject, person.id, clock.now()
    )
    return person.id


def _assertion_response(store: Store, registration: Registration, email: str | None) -> Registered:
    """Return the response with an assertion that the agent can use at once."""
    assertion, expires_at = registrations.issue_assertion(store, registration, email)
    expires = clock.rfc3339(expires_at)
    return Registered(
        registration.id,
        registration.id,
        registration.kind,
        registration.kind,
        scopes=_scope_text(registration.scopes),
        identity_assertion=assertion,
        assertion_expires=expires,
        identity=Identity(assertion, expires),
    )


def _claim_response(store: Store, pending_claim: PendingClaim) -> Registered:
    """Return the response for an agent that a person must confirm."""
    registration = pending_claim.registration
    claim_ends, post = _claim_expiry(registration), _scope_text(registration.scopes)
    return Registered(
        registration.id,
        registration.id,
        registration.kind,
        registration.kind,
        scopes=ScopesByClaim(post_claim=post),
        post_claim_scopes=post,
        claim_token=pending_claim.claim_token,
        claim_token_expires=claim_ends,
        claim_url=f"{store.base_url}/auth/me",
        claim=pending_claim.attempt.ceremony(store, pending_claim.claim_token, claim_ends, registration.interval_s),
    )


def _claim_expiry(registration: Registration) -> str:
    if registration.claim_expires_at is None:
        raise LookupError("a registration that waits for its claim has an end")
    return clock.rfc3339(registration.claim_expires_at)


def _scope_text(granted_scopes: frozenset[str]) -> list[str]:
    return [scope for scope in scopes.ALL if scope in granted_scopes]


def _log(event: str, registration: Registration) -> None:
    telemetry.logger("agents").info(event, registration=registration.id, kind=registration.kind)
