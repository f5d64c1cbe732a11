"""GET and POST /auth/claim: the page that a claim link opens (agent-auth 7.6); it works without scripts."""

from html import escape
from typing import NamedTuple

from countersign.kernel.errors import NotFound
from countersign.kernel.http import html
from countersign.kernel.http.response import Response
from countersign.kernel.http.routing import Nothing
from countersign.store import scopes
from countersign.store.auth import queries, sessions, sign_in_pages
from countersign.store.auth import trusted_issuers as issuers
from countersign.store.auth.agents import claim, registrations, schemas
from countersign.store.auth.agents.claim import AttemptOver, ClaimAttempt, Page, WrongAccount
from countersign.store.auth.agents.registrations import Registration
from countersign.store.auth.agents.schemas import ClaimForm, ClaimQuery
from countersign.store.auth.callers import StoreRequest
from countersign.store.auth.queries import Person
from countersign.store.auth.sign_in_pages import SignedInPerson
from countersign.store.context import Store

_CODE_FIELD = (
    '<label for="user_code">The code your agent shows you</label>'
    '<input id="user_code" name="user_code" type="text" autocomplete="off" autocapitalize="characters" '
    'spellcheck="false" placeholder="XXXX-XXXX" maxlength="20">'
)
_DIGITS_FOLLOW = "<p>After you allow it, this page shows six digits to give to your agent.</p>"
_CONNECTED = ("Your connected agents", "/auth/agents")


class FirstTimeWarnings(NamedTuple):
    """What should make a person look twice."""

    is_first_agent: bool
    is_first_provider: bool


def decision(
    registration: Registration,
    email: str,
    csrf: str,
    *,
    asks_for_code: bool,
    provider: str,
    advice: FirstTimeWarnings,
    missing_scopes: frozenset[str],
    store: str,
    error: str = "",
) -> Response:
    """The page on which a person takes an agent as theirs, or declines. Of an agent that asks for scopes that the
    person does not hold, it only offers to tell the agent so."""
    shown = f'<p class="error" role="alert">{escape(error)}</p>' if error else ""
    asked = in_words(registration.scopes)
    field, confirm = _CODE_FIELD if asks_for_code else _DIGITS_FOLLOW, "Allow"
    if missing_scopes:
        field, confirm = _cannot_allow(missing_scopes), "Tell the agent to ask for less"
    body = (
        f"<p>An agent wants to act for you at {escape(store)}. "
        "<strong>Allow it only if you started this yourself, just now.</strong> Nobody from here will ever ask you "
        "to type a code that reached you by mail, chat or telephone.</p>"
        f"{_who(registration, email, provider)}{_warnings(advice, provider)}<p>It asks to:</p>{asked}"
        f'<form method="post">{html.hidden_field("csrf", csrf)}{shown}{field}'
        '<div class="choice"><button name="confirm" value="yes">' + confirm + "</button>"
        '<button name="decline" value="yes">Decline</button></div></form>'
        '<p>You can disconnect it at any time on <a href="/auth/agents">the page of your connected agents</a>.</p>'
    )
    return _without_referrer(
        html.page("Allow this agent?", body, 400 if error else 200, prefix="Error: " if error else "")
    )


def in_words(held: frozenset[str]) -> str:
    """A list of what the scopes allow, in words."""
    return "<ul>" + "".join(f"<li>{escape(scopes.MEANING[each])}</li>" for each in scopes.ALL if each in held) + "</ul>"


def _cannot_allow(missing_scopes: frozenset[str]) -> str:
    return (
        f"<p><strong>You cannot allow it:</strong> your account may not do this itself:</p>{in_words(missing_scopes)}"
        "<p>An owner of your organisation can make you a publisher. Or the agent asks for less.</p>"
    )


def _who(registration: Registration, email: str, provider: str) -> str:
    rows = [
        ("Your account", escape(email)),
        ("The agent calls itself", escape(registration.agent)),
        ("It asked at", html.time_element(registration.created_at)),
        ("From the address", escape(registration.address or "a server")),
        ("Asserted by", escape(provider)),
    ]
    return f"<dl>{''.join(f'<dt>{name}</dt><dd>{text}</dd>' for name, text in rows if text)}</dl>"


def _warnings(advice: FirstTimeWarnings, provider: str) -> str:
    told = ""
    if advice.is_first_agent:
        told += "<p><strong>You have let no agent in with this account so far.</strong></p>"
    if advice.is_first_provider:
        told += f"<p><strong>{escape(provider)} speaks for you here for the first time.</strong></p>"
    return told


def digits(code: str) -> Response:
    """The code the person reads to the agent."""
    body = (
        "<p>Give this code to your agent. It works once, for a few minutes.</p>"
        f'<p class="code"><output>{escape(code)}</output></p>'
        "<p>Nobody else needs it: do not tell it to anyone who asks for it.</p>"
    )
    return _without_referrer(html.page("Your code", body, 200))


def _without_referrer(answer: Response) -> Response:
    """The page's own address, which holds the attempt's token, is told to nobody, ourselves included."""
    others = tuple(pair for pair in answer.headers if pair[0] != "Referrer-Policy")
    answer.headers = (*others, ("Referrer-Policy", "no-referrer"))
    return answer


def asks_for_too_much() -> Response:
    """The answer to a person who cannot allow the agent: the next poll tells the agent why."""
    text = "Nothing was connected. The agent learns that your account may not do what it asks for."
    return html.message_page("Not connected", text, 400, links=(_CONNECTED,))


def allowed() -> Response:
    """The agent is connected."""
    return html.message_page(
        "Connected", "The agent can act for you now. You may close this page.", links=(_CONNECTED,)
    )


def declined() -> Response:
    """The agent was turned away."""
    return html.message_page("Declined", "The agent was turned away. You may close this page.", links=(_CONNECTED,))


def another_account(refused: WrongAccount, email: str, target: str) -> Response:
    """Who came is not whom the agent named; signing in as somebody else leads back to `target`."""
    text = (
        f"The agent asked somebody else than {email}, as whom you are signed in.\nIf you did not start it, let it be."
    )
    links = (("Sign in with another account", sign_in_pages.with_return_to("/auth/signin", target)),)
    return html.message_page(refused.title, text, refused.status, links=links)


class ClaimLinkUnknown(NotFound):
    """No attempt has this link."""

    resolution = "Ask your agent for a new link."


async def show_claim(call: StoreRequest[ClaimQuery, Nothing]) -> Response:
    """Show a person which agent asks for what; looking changes nothing."""
    store = call.context
    visitor = await sign_in_pages.signed_in_or_redirect(store, call.headers, call.target)
    if isinstance(visitor, Response):
        return visitor
    try:
        attempt, page, registration = await _attempt_of_link(store, call.query.claim_attempt_token, visitor.person)
    except WrongAccount as refused:
        return another_account(refused, visitor.person.email, call.target)
    return await _page(store, attempt, page, registration, visitor)


async def decide_claim(call: StoreRequest[ClaimQuery, ClaimForm]) -> Response:
    """Take the agent as one's own, or turn it away."""
    store, form = call.context, call.body
    sessions.require_same_origin(store, call.headers)
    visitor = await sign_in_pages.signed_in_or_redirect(store, call.headers, call.target)
    if isinstance(visitor, Response):
        return visitor
    sessions.require_form_token(store, visitor.session, form.csrf)
    attempt, page, registration = await _attempt_of_link(store, call.query.claim_attempt_token, visitor.person)
    if form.decline:
        async with store.database.transaction() as transaction:
            await claim.decline(transaction, attempt, registration)
        return declined()
    if not form.confirm:
        return await _page(store, attempt, page, registration, visitor, "Choose one of the two buttons.")
    roles = await queries.roles(store.database, visitor.person.id)
    if schemas.missing_scopes(registration.scopes, roles.values()):
        # The agent learns it by its next poll.
        await _confirm(store, attempt, visitor.person)
        return asks_for_too_much()
    if page == "shown":
        return digits(await _confirm(store, attempt, visitor.person))
    return await _type_code(call, attempt, registration, visitor)


async def _confirm(store: Store, attempt: ClaimAttempt, person: Person) -> str:
    """Note the person's confirmation; the digits for the agent."""
    async with store.database.transaction() as transaction:
        code = await claim.confirm(store, transaction, attempt, person.id)
    if code is None:
        raise _attempt_over("the attempt was decided, replaced or has expired")
    return code


async def _type_code(
    call: StoreRequest[ClaimQuery, ClaimForm],
    attempt: ClaimAttempt,
    registration: Registration,
    visitor: SignedInPerson,
) -> Response:
    store, text = call.context, call.body.user_code
    if not text.strip():
        return await _page(store, attempt, "typed", registration, visitor, "Type the code that your agent shows you.")
    await claim.count_guess(store, visitor.person.id, call.address)
    async with store.database.transaction() as transaction:
        await registrations.lock(transaction, registration.id)
        is_right = await claim.check_typed_code(store, transaction, attempt, text)
        if is_right:
            await claim.accept(transaction, attempt, registration, visitor.person.id)
    if is_right is None:
        raise _attempt_over("the code was mistyped too often")
    if not is_right:
        error = "That is not the code your agent shows. After five wrong tries the link is dead."
        return await _page(store, attempt, "typed", registration, visitor, error)
    claim.notify_person(store, registration.id)
    return allowed()


async def _attempt_of_link(store: Store, token: str, person: Person) -> tuple[ClaimAttempt, Page, Registration]:
    """The attempt of a link, for the person it is meant for.

    Raises:
        ClaimLinkUnknown, AttemptOver: nothing is to be decided.
        WrongAccount: another account is (attack T24); nothing else of the attempt is told then.
    """
    found = await claim.attempt_of_link(store.database, token)
    registration = await registrations.with_id(store.database, found[0].registration_id) if found else None
    if found is None or registration is None:
        raise ClaimLinkUnknown("there is no such link")
    claim.require_named_person(registration, person.email)
    attempt, page = found
    if attempt.is_over or attempt.status in ("claimed", "declined") or registration.status != "unclaimed":
        raise _attempt_over("this was decided already, replaced by a newer link, or has expired")
    return attempt, page, registration


def _attempt_over(detail: str) -> AttemptOver:
    """The refusal as a person needs it, who cannot do what agents are told to."""
    return AttemptOver(detail, resolution=ClaimLinkUnknown.resolution)


async def _page(
    store: Store,
    attempt: ClaimAttempt,
    page: Page,
    registration: Registration,
    visitor: SignedInPerson,
    error: str = "",
) -> Response:
    reader, person_id = store.database, visitor.person.id
    issuer = await issuers.issuer(reader, registration.issuer) if registration.issuer else None
    roles = await queries.roles(reader, person_id)
    advice = FirstTimeWarnings(
        is_first_agent=await registrations.is_first_of_person(reader, person_id),
        is_first_provider=issuer is not None
        and await registrations.is_first_of_issuer(reader, issuer.issuer, person_id),
    )
    return decision(
        registration,
        visitor.person.email,
        sessions.form_token(store, visitor.session),
        asks_for_code=page == "typed",
        provider=issuer.name if issuer else "",
        advice=advice,
        missing_scopes=schemas.missing_scopes(registration.scopes, roles.values()),
        store=store.settings.resource_name,
        error=error,
    )
