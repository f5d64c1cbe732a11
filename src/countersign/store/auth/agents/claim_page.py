"""GET and POST /auth/claim: the page of a claim link (agent-auth 7.6). The page works without scripts."""

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
    '<input id="user_code" name="user_code" type="text" autocomplete="off" autocapitalize="characters" '
    'spellcheck="false" placeholder="XXXX-XXXX" maxlength="20">'
)
_CONNECTED = ("Your connected agents", "/auth/agents")


class FirstTimeWarnings(NamedTuple):
    """Reasons for a warning on the claim page."""

    is_first_agent: bool
    is_first_provider: bool


def decision_page(
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
    """The page on which a person claims or declines an agent. If the person lacks a requested scope, the page does not
    offer a claim. Instead it has a button that asks the agent to request fewer scopes."""
    t = html.translate
    error_html = f'<p class="error" role="alert">{escape(t(error))}</p>' if error else ""
    scopes_html = scope_list(registration.scopes)
    field, confirm_label = (
        f"<p>{t('After you allow it, this page shows six digits to give to your agent.')}</p>",
        "Allow",
    )
    if asks_for_code:
        field = f'<label for="user_code">{t("The code your agent shows you")}</label>{_CODE_FIELD}'
    if missing_scopes:
        field, confirm_label = _missing_scopes_html(missing_scopes), "Tell the agent to ask for less"
    warning = t(
        "An agent wants to act for you at {store}. <strong>Allow it only if you started this yourself, just now."
        "</strong> We never ask you to enter a code that you received by e-mail, chat or phone.",
        store=escape(store),
    )
    remedy = t('You can disconnect it at any time on the page <a href="/auth/agents">Connected agents</a>.')
    body = (
        f"<p>{warning}</p>"
        f"{_registration_details(registration, email, provider)}{_first_time_warnings(advice, provider)}"
        f"<p>{t('It asks to:')}</p>{scopes_html}"
        f'<form method="post">{html.hidden_field("csrf", csrf)}{error_html}{field}'
        f'<div class="choice"><button name="confirm" value="yes">{t(confirm_label)}</button>'
        f'<button name="decline" value="yes">{t("Decline")}</button></div></form><p>{remedy}</p>'
    )
    prefix = t("Error: ") if error else ""
    return _without_referrer(html.page("Allow this agent?", body, 400 if error else 200, prefix=prefix))


def scope_list(granted_scopes: frozenset[str]) -> str:
    """A list of what the scopes allow, in words."""
    meanings = (html.translate(scopes.MEANING[scope]) for scope in scopes.ALL if scope in granted_scopes)
    return "<ul>" + "".join(f"<li>{escape(meaning)}</li>" for meaning in meanings) + "</ul>"


def _missing_scopes_html(missing_scopes: frozenset[str]) -> str:
    reason = html.translate("<strong>You cannot allow it:</strong> your account does not have these permissions:")
    remedy = html.translate("An owner of your organisation can make you a publisher. Or the agent asks for less.")
    return f"<p>{reason}</p>{scope_list(missing_scopes)}<p>{remedy}</p>"


def _registration_details(registration: Registration, email: str, provider: str) -> str:
    rows = [
        ("Your account", escape(email)),
        ("Agent name (not verified)", escape(registration.agent)),
        ("Requested at", html.time_element(registration.created_at)),
        ("From the address", escape(registration.address or html.translate("a server"))),
        ("Identity provider", escape(provider)),
    ]
    rows_html = (f"<dt>{html.translate(name)}</dt><dd>{text}</dd>" for name, text in rows if text)
    return f"<dl>{''.join(rows_html)}</dl>"


def _first_time_warnings(advice: FirstTimeWarnings, provider: str) -> str:
    warnings: list[str] = []
    if advice.is_first_agent:
        warnings.append(html.translate("This is the first agent for this account."))
    if advice.is_first_provider:
        text = "This is the first request from {provider} for your account."
        warnings.append(html.translate(text, provider=escape(provider)))
    return "".join(f"<p><strong>{paragraph}</strong></p>" for paragraph in warnings)


def code_page(code: str) -> Response:
    """The page with the code that the person gives to the agent."""
    body = (
        f"<p>{html.translate('Give this code to your agent. It works once, for a few minutes.')}</p>"
        f'<p class="code"><output>{escape(code)}</output></p>'
        f"<p>{html.translate('Do not share it with anyone else.')}</p>"
    )
    return _without_referrer(html.page("Your code", body, 200))


def _without_referrer(answer: Response) -> Response:
    """Suppress the Referer header: the page's address contains the token of the attempt."""
    other_headers = tuple(pair for pair in answer.headers if pair[0] != "Referrer-Policy")
    answer.headers = (*other_headers, ("Referrer-Policy", "no-referrer"))
    return answer


def missing_scopes_page() -> Response:
    """The page for a person who cannot allow the agent. The agent gets the reason as the response to its next poll."""
    text = "Nothing was connected. Your account does not have the permissions that the agent asked for."
    return html.message_page("Not connected", text, 400, links=(_CONNECTED,))


def allowed_page() -> Response:
    """The page after the agent is connected."""
    return html.message_page(
        "Connected", "The agent can now act for you. You can close this page.", links=(_CONNECTED,)
    )


def declined_page() -> Response:
    """The page after the agent was declined."""
    return html.message_page("Declined", "The agent was declined. You can close this page.", links=(_CONNECTED,))


def wrong_account_page(wrong_account: WrongAccount, email: str, target: str) -> Response:
    """The page for a person whom the agent did not name, with a link to sign in as another person and return to
    `target`."""
    request_text = "You are signed in as {email}, but the agent asked for another account."
    text = f"{html.translate(request_text, email=email)}\nIf you did not start this, close this page."
    links = (("Sign in with another account", sign_in_pages.with_return_to("/auth/signin", target)),)
    return html.message_page(wrong_account.title, text, wrong_account.status, links=links)


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
        return wrong_account_page(refused, signed_in.person.email, call.target)
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
        return declined_page()
    if not form.confirm:
        return await _page(store, attempt, page, registration, signed_in, "Choose one of the two buttons.")
    roles = await queries.roles(store.database, signed_in.person.id)
    if schemas.missing_scopes(registration.scopes, roles.values()):
        # Record the confirmation, so that the response to the agent's next poll contains the reason.
        await _confirm(store, attempt, signed_in.person)
        return missing_scopes_page()
    if page == "shown":
        return code_page(await _confirm(store, attempt, signed_in.person))
    return await _type_code(call, attempt, registration, signed_in)


async def _confirm(store: Store, attempt: ClaimAttempt, person: Person) -> str:
    """Record the person's confirmation; return the digits for the agent."""
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
        error = "Enter the code that your agent shows you."
        return await _page(store, attempt, "typed", registration, signed_in, error)
    await claim.count_guess(store, signed_in.person.id, call.address)
    async with store.database.transaction() as transaction:
        await registrations.lock(transaction, registration.id)
        is_right = await claim.check_typed_code(store, transaction, attempt, text)
        if is_right:
            await claim.accept(transaction, attempt, registration, signed_in.person.id)
    if is_right is None:
        raise _attempt_over("the code was mistyped too often")
    if not is_right:
        error = "That is not the code your agent shows. After five wrong attempts the link stops working."
        return await _page(store, attempt, "typed", registration, signed_in, error)
    claim.notify_person(store, registration.id)
    return allowed_page()


async def _attempt_of_link(store: Store, token: str, person: Person) -> tuple[ClaimAttempt, Page, Registration]:
    """Return the attempt of a link, its page and its registration, if the person may see them.

    Raises:
        ClaimLinkUnknown, AttemptOver: the link is unknown, or its attempt is over.
        WrongAccount: the attempt names another account (attack T24); nothing else of the attempt is disclosed.
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
    """Return the error with a remedy for a person instead of the remedy for an agent."""
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
    return decision_page(
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
