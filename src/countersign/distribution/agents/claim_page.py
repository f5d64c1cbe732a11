"""GET and POST /auth/claim: the page a claim link leads to (agent-auth 7.6)."""

from countersign.distribution.agents import attempts, claim, notices, pages, registrations, rules
from countersign.distribution.agents.attempts import Attempt, Page
from countersign.distribution.agents.claim import AttemptOver, WrongAccount
from countersign.distribution.agents.registrations import Registration
from countersign.distribution.agents.schemas import ClaimForm, ClaimQuery
from countersign.distribution.context import Store
from countersign.distribution.identity import csrf, queries, sessions, visitors
from countersign.distribution.identity.callers import StoreRequest
from countersign.distribution.identity.queries import Person
from countersign.distribution.identity.visitors import Visitor
from countersign.distribution.issuers import queries as issuers
from countersign.kernel.errors import NotFound
from countersign.kernel.http.response import Response
from countersign.kernel.http.routing import Nothing


class ClaimLinkUnknown(NotFound):
    """No attempt has this link."""

    resolution = "Ask your agent for a new link."


async def show_claim(call: StoreRequest[ClaimQuery, Nothing]) -> Response:
    """Show a person which agent asks for what; looking changes nothing."""
    store = call.context
    visitor = await visitors.signed_in(store, call.headers, call.target)
    if isinstance(visitor, Response):
        return visitor
    try:
        attempt, page, registration = await _found(store, call.query.claim_attempt_token, visitor.person)
    except WrongAccount as refused:
        return pages.another_account(refused, visitor.person.email, call.target)
    return await _page(store, attempt, page, registration, visitor)


async def decide_claim(call: StoreRequest[ClaimQuery, ClaimForm]) -> Response:
    """Take the agent as one's own, or turn it away."""
    store, form = call.context, call.body
    sessions.require_same_origin(store, call.headers)
    visitor = await visitors.signed_in(store, call.headers, call.target)
    if isinstance(visitor, Response):
        return visitor
    csrf.require(store, visitor.session, form.csrf)
    attempt, page, registration = await _found(store, call.query.claim_attempt_token, visitor.person)
    if form.decline:
        async with store.database.transaction() as transaction:
            await claim.decline(transaction, attempt, registration)
        return pages.declined()
    if not form.confirm:
        return await _page(store, attempt, page, registration, visitor, "Choose one of the two buttons.")
    roles = await queries.roles(store.database, visitor.person.id)
    if rules.not_held(registration.scopes, roles.values()):
        # The agent learns it by its next poll.
        await _confirm(store, attempt, visitor.person)
        return pages.asks_for_too_much()
    if page == "shown":
        return pages.digits(await _confirm(store, attempt, visitor.person))
    return await _type_code(call, attempt, registration, visitor)


async def _confirm(store: Store, attempt: Attempt, person: Person) -> str:
    """Note the person's confirmation; the digits for the agent."""
    async with store.database.transaction() as transaction:
        code = await attempts.confirm(store, transaction, attempt, person.id)
    if code is None:
        raise _over("the attempt was decided, replaced or has expired")
    return code


async def _type_code(
    call: StoreRequest[ClaimQuery, ClaimForm], attempt: Attempt, registration: Registration, visitor: Visitor
) -> Response:
    store, text = call.context, call.body.user_code
    if not text.strip():
        return await _page(store, attempt, "typed", registration, visitor, "Type the code that your agent shows you.")
    await claim.count_guess(store, visitor.person.id, call.address)
    async with store.database.transaction() as transaction:
        await registrations.hold(transaction, registration.id)
        is_right = await attempts.is_typed_right(store, transaction, attempt, text)
        if is_right:
            await claim.accept(transaction, attempt, registration, visitor.person.id)
    if is_right is None:
        raise _over("the code was mistyped too often")
    if not is_right:
        error = "That is not the code your agent shows. After five wrong tries the link is dead."
        return await _page(store, attempt, "typed", registration, visitor, error)
    notices.connected(store, registration.id)
    return pages.allowed()


async def _found(store: Store, token: str, person: Person) -> tuple[Attempt, Page, Registration]:
    """The attempt of a link, for the person it is meant for.

    Raises:
        ClaimLinkUnknown, AttemptOver: nothing is to be decided.
        WrongAccount: another account is (attack T24); nothing else of the attempt is told then.
    """
    found = await attempts.of_link(store.database, token)
    registration = await registrations.with_id(store.database, found[0].registration_id) if found else None
    if found is None or registration is None:
        raise ClaimLinkUnknown("there is no such link")
    claim.require_own(registration, person.email)
    attempt, page = found
    if attempt.is_over or attempt.status in ("claimed", "declined") or registration.status != "unclaimed":
        raise _over("this was decided already, replaced by a newer link, or has expired")
    return attempt, page, registration


def _over(detail: str) -> AttemptOver:
    """The refusal as a person needs it, who cannot do what agents are told to."""
    return AttemptOver(detail, resolution=ClaimLinkUnknown.resolution)


async def _page(
    store: Store,
    attempt: Attempt,
    page: Page,
    registration: Registration,
    visitor: Visitor,
    error: str = "",
) -> Response:
    reader, person_id = store.database, visitor.person.id
    issuer = await issuers.issuer(reader, registration.issuer) if registration.issuer else None
    roles = await queries.roles(reader, person_id)
    advice = pages.Advice(
        is_first_agent=await registrations.is_first_of_person(reader, person_id),
        is_first_provider=issuer is not None
        and await registrations.is_first_of_issuer(reader, issuer.issuer, person_id),
    )
    return pages.decision(
        registration,
        visitor.person.email,
        csrf.token_of(store, visitor.session),
        asks_for_code=page == "typed",
        provider=issuer.name if issuer else "",
        advice=advice,
        not_held=rules.not_held(registration.scopes, roles.values()),
        store=store.settings.resource_name,
        error=error,
    )
