"""Registration of an agent in its three kinds: asserted by a provider, by its person's e-mail, by nobody."""

from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from countersign.kernel import clock, telemetry
from countersign.kernel.database.port import Transaction
from countersign.kernel.errors import InvalidRequest, Refused
from countersign.store import events, scopes
from countersign.store.auth import id_jag, people, queries
from countersign.store.auth.agents import claim, registrations, schemas
from countersign.store.auth.agents.claim import NewAttempt
from countersign.store.auth.agents.registrations import Applicant, AssertionOrigin, Registration
from countersign.store.auth.agents.schemas import Ceremony, Identity, Registered, RegisterRequest, ScopesByClaim
from countersign.store.auth.id_jag import IdentityAssertion, InvalidClientId
from countersign.store.auth.people import EmailTaken
from countersign.store.auth.tokens import InvalidScope
from countersign.store.context import Store


class AnonymousNotEnabled(Refused):
    """The operator lets no anonymous agents in."""

    status = 403
    code = "anonymous_not_enabled"
    title = "Anonymous agents are not admitted"
    resolution = "Register with the e-mail of your person (service_auth), or with an assertion."


class ServiceAuthNotEnabled(Refused):
    """The operator lets no agents register by e-mail."""

    status = 403
    code = "service_auth_not_enabled"
    title = "Registration by e-mail is not offered"
    resolution = "Register with an assertion of your person's identity provider."


class InteractionRequired(Refused):
    """The provider's account is not yet tied to the person with this e-mail, who has to confirm it once."""

    status = 401
    code = "interaction_required"
    title = "The person has to confirm"
    resolution = "Show your person the link and the code of `claim`, then poll claim_url with claim_token."


@dataclass(frozen=True, slots=True)
class PendingClaim:
    """A registration whose person has to confirm it first."""

    registration: Registration
    claim_token: str
    begun: NewAttempt


Outcome: TypeAlias = Registration | PendingClaim


async def anonymous(store: Store, body: RegisterRequest, user_agent: str | None, address: str) -> Registered:
    """Register an agent of nobody: it may read what anybody may, and can be claimed.

    Raises:
        AnonymousNotEnabled, RateLimited, InvalidScope.
    """
    if not store.settings.agents_anonymous:
        raise AnonymousNotEnabled("anonymous agents are not admitted here")
    applicant = Applicant(schemas.name_of(user_agent), address, schemas.requested_scopes(body.scope))
    await registrations.count_registration(store, "anonymous", address)
    async with store.database.transaction() as transaction:
        made, token = await registrations.add(
            transaction,
            "anonymous",
            applicant,
            claim_ttl_s=store.settings.claim_ttl_s,
            interval_s=store.settings.poll_interval_s,
        )
    _log("registration created", made)
    answer = _assertion_answer(store, made, None)
    pre, post = _words(made.scopes & queries.PRE_CLAIM), _words(made.scopes)
    ends = _claim_ends(made)
    claim_url = f"{store.base_url}/auth/me"
    return msgspec.structs.replace(
        answer,
        scopes=ScopesByClaim(post_claim=post, pre_claim=pre),
        pre_claim_scopes=pre,
        post_claim_scopes=post,
        claim_token=token,
        claim_token_expires=ends,
        claim_url=claim_url,
        claim=Ceremony(token, ends, claim_url),
    )


async def by_email(store: Store, body: RegisterRequest, user_agent: str | None, address: str) -> Registered:
    """Register an agent by its person's e-mail; the same answer whether or not there is an account (attack T43).

    Raises:
        ServiceAuthNotEnabled, InvalidLoginHint, RateLimited, InvalidScope.
    """
    if not store.settings.agents_by_email:
        raise ServiceAuthNotEnabled("agents do not register by e-mail here")
    email = schemas.email_of(body.email, body.login_hint)
    applicant = Applicant(schemas.name_of(user_agent), address, schemas.requested_scopes(body.scope))
    await registrations.count_registration(store, "service_auth", address)
    await registrations.count_naming(store, email)
    async with store.database.transaction() as transaction:
        made, token = await registrations.add(
            transaction,
            "service_auth",
            applicant,
            email=email,
            claim_ttl_s=store.settings.claim_ttl_s,
            interval_s=store.settings.poll_interval_s,
        )
        begun = await claim.begin_attempt(store, transaction, made)
    _log("registration created", made)
    return _claim_answer(store, PendingClaim(made, token, begun))


async def by_assertion(store: Store, body: RegisterRequest, user_agent: str | None, address: str) -> Registered:
    """Register an agent whose person a trusted provider asserts.

    Raises:
        InteractionRequired: an account with this e-mail exists and the provider was never tied to it (attack T20).
        LoginRequired: the person signed in at the provider too long ago.
        RateLimited, InvalidScope, and whatever `id_jag.verified` and `id_jag.use_once` refuse.
    """
    if body.assertion_type != schemas.ID_JAG:
        raise InvalidRequest(f"assertion_type must be {schemas.ID_JAG}")
    if not body.assertion:
        raise InvalidRequest("assertion is required")
    believed = await verify_assertion(store, body.assertion)
    await registrations.count_registration(store, "identity_assertion", address)
    applicant = Applicant(schemas.name_of(user_agent), address, asserted_scopes(believed, body.scope))
    outcome = await register_or_await(store, believed, applicant)
    if isinstance(outcome, PendingClaim):
        answer = _claim_answer(store, outcome)
        description = "an account with this e-mail exists; its person has to confirm the agent once"
        raise InteractionRequired(
            description,
            headers={"WWW-Authenticate": f'AgentAuth error="interaction_required", error_description="{description}"'},
            # `type` and `status` are the problem's own members.
            members={name: value for name, value in msgspec.to_builtins(answer).items() if name != "type"},
        )
    person = await queries.person(store.database, outcome.person_id or "")
    return _assertion_answer(store, outcome, person.email if person else None)


async def verify_assertion(store: Store, assertion: str) -> IdentityAssertion:
    """What an assertion says of an agent that has no client of its own here.

    Raises:
        LoginRequired, InvalidClientId: see there; and whatever `id_jag.verified` refuses.
    """
    believed = await id_jag.verify(store, assertion)
    id_jag.require_fresh(believed)
    if await queries.client(store.database, believed.client_id) is not None:
        # It is for whoever knows the client's secret, and registration asks for none.
        raise InvalidClientId("the assertion is for an OAuth client, which presents it at the token endpoint")
    return believed


def asserted_scopes(believed: IdentityAssertion, scope: str | None) -> frozenset[str]:
    """The scopes asked for, within those the provider allowed (attack T23).

    Raises:
        InvalidScope: one is not among them.
    """
    if believed.scope is None:
        return schemas.requested_scopes(scope)
    allowed = believed.scope & schemas.requested_scopes(" ".join(scopes.ALL))
    if not allowed:
        raise InvalidScope("the assertion carries no scope that agents may have")
    if scope is None or not scope.strip():
        return allowed
    wanted = schemas.requested_scopes(scope)
    if not wanted <= allowed:
        raise InvalidScope(f"the assertion does not carry the scope {sorted(wanted - allowed)[0]}")
    return wanted


async def register_or_await(store: Store, believed: IdentityAssertion, applicant: Applicant) -> Outcome:
    """The registration of a provider's subject, and the end of its assertion, in one transaction: an account that was
    tied to it before, a new account, or one whose person has to confirm first.

    Raises:
        ReplayDetected: the assertion was used before.
    """
    async with store.database.transaction() as transaction:
        await id_jag.use_once(transaction, believed)
        person_id = await _person(transaction, believed)
        origin = AssertionOrigin(believed.issuer, believed.subject, believed.client_id)
        if person_id is None:
            return await _await_person(store, transaction, origin, applicant, believed.email)
        return await _register_known(store, transaction, origin, applicant, person_id)


def _limited_scopes(believed: IdentityAssertion, registration: Registration) -> frozenset[str]:
    """What an agent asked for, as far as the provider allowed it.

    Raises:
        InvalidScope: nothing of it.
    """
    wanted = registration.scopes if believed.scope is None else registration.scopes & believed.scope
    if not wanted:
        raise InvalidScope("the assertion carries no scope that the registration asked for")
    return wanted


async def claim_by_assertion(store: Store, believed: IdentityAssertion, registration: Registration) -> Outcome:
    """Claim an anonymous registration by a provider's assertion, which limits its scopes from now on: at once for an
    account that is tied to it or new, by an attempt where its person has to confirm.

    Raises:
        InvalidScope: the assertion carries none of the scopes that the agent asked for.
        ReplayDetected: the assertion was used before.
        AttemptOver: the registration was claimed or has ended meanwhile.
    """
    origin = AssertionOrigin(believed.issuer, believed.subject, believed.client_id)
    async with store.database.transaction() as transaction:
        await id_jag.use_once(transaction, believed)
        person_id = await _person(transaction, believed)
        current = await _lock_unclaimed(transaction, registration.id)
        wanted = _limited_scopes(believed, current)
        email = believed.email
        needs_person = person_id is None
        if person_id is not None:
            # Whatever the person's roles: the answer does not tell an agent who may publish.
            needs_person = bool(wanted & schemas.WRITING)
            person = await queries.person(transaction, person_id)
            email = person.email if person else None
        if not await registrations.name_person(transaction, registration.id, email, origin):
            raise claim.AttemptOver("the registration was claimed or has ended")
        await registrations.narrow(transaction, registration.id, wanted)
        named = current._replace(email=email, issuer=believed.issuer, subject=believed.subject, scopes=wanted)
        if person_id is None or needs_person:
            return PendingClaim(named, "", await claim.begin_attempt(store, transaction, named))
        await claim.bind(transaction, named, person_id)
        bound = await registrations.with_id(transaction, registration.id)
        if bound is None:
            raise claim.AttemptOver("the registration has ended")
        return bound


async def _lock_unclaimed(transaction: Transaction, registration_id: str) -> Registration:
    """The registration as it is now, held until the transaction ends: another assertion may have narrowed it.

    Raises:
        AttemptOver: it was claimed or has ended.
    """
    if not await registrations.lock_unclaimed(transaction, registration_id):
        raise claim.AttemptOver("the registration was claimed or has ended")
    current = await registrations.with_id(transaction, registration_id)
    if current is None:
        raise claim.AttemptOver("the registration has ended")
    return current


async def _await_person(
    store: Store, transaction: Transaction, origin: AssertionOrigin, applicant: Applicant, email: str | None
) -> PendingClaim:
    """A registration that waits until the person with this address has confirmed it."""
    made, token = await registrations.add(
        transaction,
        "identity_assertion",
        applicant,
        email=email,
        origin=origin,
        claim_ttl_s=store.settings.claim_ttl_s,
        interval_s=store.settings.poll_interval_s,
    )
    begun = await claim.begin_attempt(store, transaction, made)
    _log("registration created", made)
    return PendingClaim(made, token, begun)


async def _register_known(
    store: Store, transaction: Transaction, origin: AssertionOrigin, applicant: Applicant, person_id: str
) -> Outcome:
    """The agent's registration for a known person: the one it has, or a new one. What it may write, the person has to
    have confirmed for this very agent."""
    known = await registrations.of_client(transaction, origin, person_id)
    confirmed = frozenset[str]().union(*(each.scopes for each in known))
    if applicant.scopes & schemas.WRITING - confirmed:
        person = await queries.person(transaction, person_id)
        email = person.email if person else None
        return await _await_person(store, transaction, origin, applicant, email)
    for each in known:
        if each.scopes == applicant.scopes:
            return each
    made, _ = await registrations.add(
        transaction,
        "identity_assertion",
        applicant,
        person_id=person_id,
        origin=origin,
        claim_ttl_s=store.settings.claim_ttl_s,
        interval_s=store.settings.poll_interval_s,
    )
    roles = await queries.roles(transaction, person_id)
    await events.agent_added(transaction, made.id, made.scopes, roles)
    _log("registration created", made)
    return made


async def _person(transaction: Transaction, believed: IdentityAssertion) -> str | None:
    """The person a provider's subject is tied to; a new one when nobody has the address. None: somebody has it, and
    has to confirm. An address is never bound silently (attacks T20, T21)."""
    person_id = await registrations.delegated(transaction, believed.issuer, believed.subject)
    if person_id is not None:
        return person_id
    email = id_jag.verified_email(believed)
    try:
        # The provider's word is no proof of ours: the address counts as proven once its owner has answered a mail.
        person = await people.add_person(transaction, email, None)
    except EmailTaken:
        # It may have been made for this very subject a moment ago.
        return await registrations.delegated(transaction, believed.issuer, believed.subject)
    await transaction.run(registrations.DELEGATE, believed.issuer, believed.subject, person.id, clock.now())
    return person.id


def _assertion_answer(store: Store, registration: Registration, email: str | None) -> Registered:
    """The answer to an agent that may go on at once."""
    assertion, expires_at = registrations.issue_assertion(store, registration, email)
    expires = clock.rfc3339(expires_at)
    return Registered(
        registration.id,
        registration.id,
        registration.kind,
        registration.kind,
        scopes=_words(registration.scopes),
        identity_assertion=assertion,
        assertion_expires=expires,
        identity=Identity(assertion, expires),
    )


def _claim_answer(store: Store, waiting: PendingClaim) -> Registered:
    """The answer to an agent whose person has to confirm."""
    registration = waiting.registration
    ends, post = _claim_ends(registration), _words(registration.scopes)
    return Registered(
        registration.id,
        registration.id,
        registration.kind,
        registration.kind,
        scopes=ScopesByClaim(post_claim=post),
        post_claim_scopes=post,
        claim_token=waiting.claim_token,
        claim_token_expires=ends,
        claim_url=f"{store.base_url}/auth/me",
        claim=waiting.begun.ceremony(store, waiting.claim_token, ends, registration.interval_s),
    )


def _claim_ends(registration: Registration) -> str:
    if registration.claim_expires_at is None:
        raise LookupError("a registration that waits for its claim has an end")
    return clock.rfc3339(registration.claim_expires_at)


def _words(held: frozenset[str]) -> list[str]:
    return [scope for scope in scopes.ALL if scope in held]


def _log(event: str, registration: Registration) -> None:
    telemetry.logger("agents").info(event, registration=registration.id, kind=registration.kind)
