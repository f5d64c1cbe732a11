"""GET and POST /auth/claim: the page of a claim link (agent-auth 7.6); it works without scripts."""

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
    """Reasons for a warning on the claim page."""

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
    """The page on which a person claims an agent, or declines. If the person lacks a requested scope, the page only
    offers to report that to the agent."""
    shown = f'<p class="error" role="alert">{escape(error)}</p>' if error else ""
    scope_list = in_words(registration.scopes)
    field, confirm = _CODE_FIELD if asks_for_code else _DIGITS_FOLLOW, "Allow"
    if missing_scopes:
        field, confirm = _cannot_allow(missing_scopes), "Tell the agent to ask for less"
    body = (
        f"<p>An agent wants to act for you at {escape(store)}. "
        "<strong>Allow it only if you started this yourself, just now.</strong> Nobody from here will ever ask you "
        "to type a code that reached you by mail, chat or telephone.</p>"
        f"{_who(registration, email, provider)}{_warnings(advice, provider)}<p>It asks to:</p>{scope_list}"
        f'<form method="post">{html.hidden_field("csrf", csrf)}{shown}{field}'
        '<div class="choice"><button name="confirm" value="yes">' + confirm + "</button>"
        '<button name="decline" value="yes">Decline</button></div></form>'
        '<p>You can disconnect it at any time on <a href="/auth/agents">the page of your connected agents</a>.</p>'
    )
    return _without_referrer(
        html.page("Allow this agent?", body, 400 if error else 200, prefix="Error: " if error else "")
    )


def in_words(granted: frozenset[str]) -> str:
    """A list of what the scopes allow, in words."""
    return (
        "<ul>" + "".join(f"<li>{escape(scopes.MEANING[each])}</li>" for each in scopes.ALL if each in granted) + "</ul>"
    )


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
    warnings = ""
    if advice.is_first_agent:
        warnings += "<p><strong>You have let no agent in with this account so far.</strong></p>"
    if advice.is_first_provider:
        warnings += f"<p><strong>{escape(provider)} speaks for you here for the first time.</strong></p>"
    return warnings


def digits(code: str) -> Response:
    """The page with the code that the person gives to the agent."""
    body = (
        "<p>Give this code to your agent. It works once, for a few minutes.</p>"
        f'<p class="code"><output>{escape(code)}</output></p>'
        "<p>Nobody else needs it: do not tell it to anyone who asks for it.</p>"
    )
    return _without_referrer(html.page("Your code", body, 200))


def _without_referrer(answer: Response) -> Response:
    """Suppress the Referer header: the page's address contains the token of the attempt."""
    others = tuple(pair for pair in answer.headers if pair[0] != "Referrer-Policy")
    answer.headers = (*others, ("Referrer-Policy", "no-referrer"))
    return answer


def asks_for_too_much() -> Response:
    """The page for a person who cannot allow the agent; the agent gets the reason with its next poll."""
    text = "Nothing was connected. The agent learns that your account may not do what it asks for."
    return html.message_page("Not connected", text, 400, links=(_CONNECTED,))


def allowed() -> Response:
    """The page after the agent is connected."""
    return html.message_page(
        "Connected", "The agent can act for you now. You may close this page.", links=(_CONNECTED,)
    )


def declined() -> Response:
    """The page after the agent was declined."""
    return html.message_page("Declined", "The agent was turned away. You may close this page.", links=(_CONNECTED,))


def another_account(refused: WrongAccount, email: str, target: str) -> Response:
    """The page for a person whom the agent did not name, with a link to sign in as another and return to `target`."""
    text = (
        f"The agent asked somebody else than {email}, as whom you are signed in.\nIf you did not start it, let it be."
    )
    links = (("Sign in with another account", sign_in_pages.with_return_to("/auth/signin", target)),)
    return html.message_page(refused.title, text, refused.status, links=links)


class ClaimLinkUnknown(NotFound):
    """No attempt with this link exists."""

    resolution = "Ask your agent for a new link."


async def show_claim(call: StoreRequest[ClaimQuery, Nothing]) -> Response:
    """Show a person which agent requests which scopes; this has no effect."""
    store = call.context
    signed_in = await sign_in_pages.signed_in_or_redirect(store, call.headers, call.target)
    if isinstance(signed_in, Response):
        return signed_in
    try:
        attempt, page, registration = await _attempt_of_link(store, call.query.claim_attempt_token, signed_in.person)
    except WrongAccount as refused:
        return another_account(refused, signed_in.person.email, call.target)
    return await _page(store, attempt, page, registration, signed_in)


async def decide_claim(call: StoreRequest[ClaimQuery, ClaimForm]) -> Response:
    """Claim the agent, or decline it."""
    store, form = call.context, call.body
    sessions.require_same_origin(store, call.headers)
    signed_in = await sign_in_pages.signed_in_or_redirect(store, call.headers, call.target)
    if isinstance(signed_in, Response):
        return signed_in
    sessions.require_form_token(store, signed_in.session, form.csrf)
    attempt, page, registration = await _attempt_of_link(store, call.query.claim_attempt_token, signed_in.person)
    if form.decline:
        async with store.database.transaction() as transaction:
            await claim.decline(transaction, attempt, registration)
        return declined()
    if not form.confirm:
        return await _page(store, attempt, page, registration, signed_in, "Choose one of the two buttons.")
    roles = await queries.roles(store.database, signed_in.person.id)
    if schemas.missing_scopes(registration.scopes, roles.values()):
        # The next poll of the agent gets the reason.
        await _confirm(store, attempt, signed_in.person)
        return asks_for_too_much()
    if page == "shown":
        return digits(await _confirm(store, attempt, signed_in.person))
    return await _type_code(call, attempt, registration, signed_in)


async def _confirm(store: Store, attempt: ClaimAttempt, person: Person) -> str:
    """Record the person's confirmation; returns the digits for the agent."""
    async with store.database.transaction() as transaction:
        code = await claim.confirm(store, transaction, attempt, person.id)
    if code is None:
        raise _attempt_over("the attempt was decided, replaced or has expired")
    return code


async def _type_code(
    call: StoreRequest[ClaimQuery, ClaimForm],
    attempt: ClaimAttempt,
    registration: Registration,
    signed_in: SignedInPerson,
) -> Response:
    store, text = call.context, call.body.user_code
    if not text.strip():
        return await _page(store, attempt, "typed", registration, signed_in, "Type the code that your agent shows you.")
    await claim.count_guess(store, signed_in.person.id, call.address)
    async with store.database.transaction() as transaction:
        await registrations.lock(transaction, registration.id)
        is_right = await claim.check_typed_code(store, transaction, attempt, text)
        if is_right:
            await claim.accept(transaction, attempt, registration, signed_in.person.id)
    if is_right is None:
        raise _attempt_over("the code was mistyped too often")
    if not is_right:
        error = "That is not the code your agent shows. After five wrong tries the link is dead."
        return await _page(store, attempt, "typed", registration, signed_in, error)
    claim.notify_person(store, registration.id)
    return allowed()


async def _attempt_of_link(store: Store, token: str, person: Person) -> tuple[ClaimAttempt, Page, Registration]:
    """The attempt of a link, for the person that it names.

    Raises:
        ClaimLinkUnknown, AttemptOver: there is nothing to decide.
        WrongAccount: it names another account (attack T24); nothing else of the attempt is disclosed.
    """
    link_attempt = await claim.attempt_of_link(store.database, token)
    registration = (
        await registrations.with_id(store.database, link_attempt[0].registration_id) if link_attempt else None
    )
    if link_attempt is None or registration is None:
        raise ClaimLinkUnknown("there is no such link")
    claim.require_named_person(registration, person.email)
    attempt, page = link_attempt
    if attempt.is_over or attempt.status in ("claimed", "declined") or registration.status != "unclaimed":
        raise _attempt_over("this was decided already, replaced by a newer link, or has expired")
    return attempt, page, registration


def _attempt_over(detail: str) -> AttemptOver:
    """The error with a remedy for a person, instead of that for an agent."""
    return AttemptOver(detail, resolution=ClaimLinkUnknown.resolution)


async def _page(
    store: Store,
    attempt: ClaimAttempt,
    page: Page,
    registration: Registration,
    signed_in: SignedInPerson,
    error: str = "",
) -> Response:
    reader, person_id = store.database, signed_in.person.id
    issuer = await issuers.issuer(reader, registration.issuer) if registration.issuer else None
    roles = await queries.roles(reader, person_id)
    advice = FirstTimeWarnings(
        is_first_agent=await registrations.is_first_of_person(reader, person_id),
        is_first_provider=issuer is not None
        and await registrations.is_first_of_issuer(reader, issuer.issuer, person_id),
    )
    return decision(
        registration,
        signed_in.person.email,
        sessions.form_token(store, signed_in.session),
        asks_for_code=page == "typed",
        provider=issuer.name if issuer else "",
        advice=advice,
        missing_scopes=schemas.missing_scopes(registration.scopes, roles.values()),
        store=store.settings.resource_name,
        error=error,
    )
