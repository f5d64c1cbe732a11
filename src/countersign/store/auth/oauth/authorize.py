"""The authorization endpoint (RFC 6749 §4.1.1): the request, the consent page, and the redirect back to the client."""

import re
from collections.abc import Iterable, Mapping
from html import escape
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Transaction
from countersign.kernel.http import html
from countersign.kernel.http.response import Response
from countersign.kernel.http.routing import Nothing
from countersign.store import scopes
from countersign.store.auth import queries, sessions, sign_in_pages, tokens
from countersign.store.auth.agents.claim_page import scope_list
from countersign.store.auth.callers import StoreRequest
from countersign.store.auth.oauth import clients, consents, token_endpoint
from countersign.store.auth.oauth.consents import Consent
from countersign.store.auth.queries import Client
from countersign.store.auth.schemas import AuthorizeForm, AuthorizeQuery
from countersign.store.auth.sign_in_pages import SignedInPerson
from countersign.store.context import Store

PATH = "/auth/authorize"
MAX_STATE_LENGTH = 1_024
NO_CLIENT = "There is no client with this client_id."
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")


class UntrustedRedirect(Exception):
    """The client is unknown, or the redirect address is not registered for the client. The service shows the error and
    does not redirect."""


class RedirectTarget(NamedTuple):
    """The registered address of the client that the person is redirected to. The parameters are in the query or, for a
    token, in the fragment. `is_trusted` is true if an administrator registered the address."""

    issuer: str
    redirect_uri: str
    state: str
    in_fragment: bool
    is_trusted: bool

    def address(self, members: Mapping[str, str]) -> str:
        """Return the client's address with these parameters and the parameters `state` and `iss` (RFC 9207 §2)."""
        parameters = {**members, **({"state": self.state} if self.state else {}), "iss": self.issuer}
        mark = "#" if self.in_fragment else "&" if "?" in self.redirect_uri else "?"
        return f"{self.redirect_uri}{mark}{urlencode(parameters)}"

    def respond(self, members: Mapping[str, str]) -> Response:
        """Redirect to the client with these parameters, by GET."""
        headers = (
            ("Location", self.address(members)),
            ("Cache-Control", "no-store"),
            ("Pragma", "no-cache"),
            ("Referrer-Policy", "no-referrer"),
        )
        return Response(303, headers=headers)


class AuthorizationError(Exception):
    """An error that is sent to the client by a redirect (RFC 6749 §4.1.2.1).

    The redirect happens at once only if `is_automatic`. Otherwise the person sees the error first, and decides whether
    to continue: the service does not redirect to an unverified address (RFC 9700 §4.11.2), and does not disclose which
    scopes a person lacks before the person has decided.
    """

    def __init__(
        self, redirect: RedirectTarget, error: str, description: str, *, is_automatic: bool | None = None
    ) -> None:
        super().__init__(error)
        self.redirect = redirect
        self.error = error
        self.description = description
        self.is_automatic = redirect.is_trusted if is_automatic is None else is_automatic

    @property
    def members(self) -> dict[str, str]:
        """The parameters of the redirect."""
        return {"error": self.error, "error_description": self.description}


class PermissionsMissing(AuthorizationError):
    """The person's account has none of the requested scopes."""

    def __init__(self, redirect: RedirectTarget) -> None:
        super().__init__(redirect, "invalid_scope", "the person has none of these scopes", is_automatic=False)


class AuthorizationRequest(NamedTuple):
    """A valid authorization request. A request without a challenge is for a token (the implicit grant)."""

    client: Client
    redirect: RedirectTarget
    scopes: frozenset[str]
    challenge: str | None
    resource: str


def request_target(query: AuthorizeQuery) -> str:
    """The path and query of this request."""
    names = AuthorizeQuery.__struct_fields__
    return f"{PATH}?" + urlencode({name: value for name in names if (value := getattr(query, name))})


async def resolve_redirect(store: Store, query: AuthorizeQuery) -> tuple[Client, RedirectTarget]:
    """Return the client of a request, and the target of the redirect.

    Raises:
        UntrustedRedirect: the client is unknown, or the address is not registered for it.
    """
    client = await queries.client(store.database, query.client_id)
    if client is None or not clients.is_enabled(store, client):
        raise UntrustedRedirect(NO_CLIENT)
    # A dynamic client must use a registered address exactly: it cannot vary the port even of a loopback address.
    is_exact = query.redirect_uri in client.redirect_uris
    if not is_exact and (
        client.is_dynamic or not clients.is_registered_uri(query.redirect_uri, client.redirect_uris)
    ):
        raise UntrustedRedirect("The redirect_uri is not one that is registered for this client.")
    if len(query.state) > MAX_STATE_LENGTH:
        raise UntrustedRedirect(f"The state is longer than {MAX_STATE_LENGTH} characters.")
    in_fragment = query.response_type == "token"
    # The loopback addresses of a dynamic client are not trusted either. Any local program may listen at the address,
    # and any web page could use a redirect of this service to make the browser call the program with any path.
    return client, RedirectTarget(
        store.root_url,
        query.redirect_uri,
        query.state,
        in_fragment,
        is_trusted=not client.is_dynamic,
    )


def check_request(
    store: Store, query: AuthorizeQuery, client: Client, redirect: RedirectTarget
) -> AuthorizationRequest:
    """Validate the request.

    Raises:
        AuthorizationError: the request is not valid.
    """
    challenge = _checked_challenge(query, client, redirect)
    if query.resource and not token_endpoint.is_own_resource(store, query.resource):
        raise AuthorizationError(redirect, "invalid_target", "the token was requested for another service")
    return AuthorizationRequest(client, redirect, _checked_scopes(query, client, redirect), challenge, query.resource)


def _checked_challenge(query: AuthorizeQuery, client: Client, redirect: RedirectTarget) -> str | None:
    """Return the PKCE challenge of a request for a code. Only S256 is accepted, because `plain` does not protect a
    request that an attacker observes."""
    if query.response_type == "token":
        if not client.is_implicit:
            raise AuthorizationError(
                redirect, "unauthorized_client", "this client may not use response_type=token; use code"
            )
        return None
    if query.response_type != "code":
        error = "unsupported_response_type" if query.response_type else "invalid_request"
        raise AuthorizationError(redirect, error, "response_type must be code")
    if query.code_challenge_method != "S256" or _CHALLENGE.fullmatch(query.code_challenge) is None:
        raise AuthorizationError(
            redirect, "invalid_request", "PKCE is required: code_challenge with code_challenge_method=S256"
        )
    return query.code_challenge


def _checked_scopes(query: AuthorizeQuery, client: Client, redirect: RedirectTarget) -> frozenset[str]:
    """Return the requested scopes that the client may have. If the request names no scopes, return all scopes that the
    client may have."""
    available_scopes = client.scopes & scopes.DELEGABLE
    allowed_scopes = (frozenset(query.scope.split()) or available_scopes) & available_scopes
    if not allowed_scopes:
        raise AuthorizationError(
            redirect, "invalid_scope", f"this client may ask for: {scopes.words(available_scopes) or 'nothing'}"
        )
    return allowed_scopes


class ConnectedAgent(NamedTuple):
    """One line of the page of connected agents."""

    id: str
    name: str
    what: str
    scopes: frozenset[str]
    since: Instant
    used_at: Instant | None


class ConsentOffer(NamedTuple):
    """What a person is asked to allow: the request, the scopes that the account can grant, the scopes that it cannot
    grant, and the name of the client's organisation."""

    request: AuthorizationRequest
    granted: frozenset[str]
    lacking: frozenset[str]
    organisation: str

    @property
    def shown(self) -> tuple[str, ...]:
        """The texts that the page shows. A decision is valid only for these texts: the form of a page that showed other
        texts is rejected."""
        client, redirect = self.request.client, self.request.redirect
        scope_text = scopes.words(self.granted)
        challenge = self.request.challenge or ""
        client_values = (client.id, client.name, client.org_id or "", self.organisation)
        return (*client_values, redirect.redirect_uri, redirect.state, challenge, self.request.resource, scope_text)


def consent_page(
    store: Store, offer: ConsentOffer, query: AuthorizeQuery, signed_in: SignedInPerson, *, has_changed: bool = False
) -> Response:
    """The page on which a person allows or denies a client. `has_changed` is true if the page has changed since the
    person saw it."""
    client, redirect = offer.request.client, offer.request.redirect
    site = clients.lowercase_origin(redirect.redirect_uri)
    query_values = {name: getattr(query, name) for name in AuthorizeQuery.__struct_fields__}
    query_values["csrf"] = sessions.form_token(store, signed_in.session)
    query_values["shown"] = sessions.form_token(store, signed_in.session, *offer.shown)
    fields = "".join(html.hidden_field(name, value) for name, value in query_values.items() if value)
    t, name = html.translate, escape(client.name)
    client_text = "<strong>{name}</strong>, a client of <strong>{organisation}</strong>,"
    client_text, warning = t(client_text, name=name, organisation=escape(offer.organisation)), ""
    title = t("Allow {name}?", name=client.name)
    if client.is_dynamic:
        # The client chose its name itself, so the title shows the host instead: the person can check the host.
        title = t("Allow {name}?", name=urlsplit(site).netloc)
        client_text, warning = _unverified_name(client.name), _unverified_warning(site)
    change_text = t("This has changed since you saw it. Check it again, then decide.")
    request = t(
        "{who} wants to act for you at {store}. You are signed in as {email}.",
        who=client_text,
        store=escape(store.settings.resource_name),
        email=escape(signed_in.person.email),
    )
    onward = t("You will be redirected to {site}.", site=f"<code>{escape(site)}</code>")
    remedy = t('You can take this back at any time on the page <a href="/auth/agents">Connected agents</a>.')
    error = f'<p class="error" role="alert">{change_text}</p>' if has_changed else ""
    body = (
        f"{error}<p>{request}</p>{warning}<p>{t('It will be able to:')}</p>{scope_list(offer.granted)}"
        f"{_missing_scopes_html(offer.lacking)}<p>{onward}</p>"
        f'<form method="post" action="/auth/authorize">{fields}'
        f'<div class="choice"><button name="decision" value="allow">{t("Allow")}</button>'
        f'<button name="decision" value="deny">{t("Deny")}</button></div></form><p>{remedy}</p>'
    )
    sends_to = (clients.policy_source(redirect.redirect_uri),)
    prefix = t("Error: ") if has_changed else ""
    return html.page(title, body, 400 if has_changed else 200, sends_to=sends_to, prefix=prefix)


def _missing_scopes_html(lacking: frozenset[str]) -> str:
    if not lacking:
        return ""
    text = "It asked for more. Your account does not have these permissions, so it will not be able to:"
    return f"<p>{html.translate(text)}</p>{scope_list(lacking)}"


def error_page(error: AuthorizationError) -> Response:
    """The page for a request that fails before the person can allow it, with a link to the client."""
    site = clients.lowercase_origin(error.redirect.redirect_uri)
    host = escape(urlsplit(site).netloc)
    t, title, unverified_note = html.translate, "This link does not work", ""
    refusal = t("The request of <strong>{host}</strong> cannot be carried out, and nothing was allowed.", host=host)
    reason = f"<p>{refusal}</p><p>{escape(error.error)}: {escape(error.description)}.</p>"
    if isinstance(error, PermissionsMissing):
        title = "Nothing was allowed"
        reason_text = t("Your account has none of the permissions that <strong>{host}</strong> asked for.", host=host)
        reason = f"<p>{reason_text}</p>"
    if not error.redirect.is_trusted:
        warning = t(
            "The client registered itself (<strong>not verified</strong>). Return only if you came from "
            "<strong>{site}</strong>.",
            site=escape(site),
        )
        unverified_note = f"<p>{warning}</p>"
    link_text = t("Return to {host}", host=host)
    link = f'<p><a rel="noreferrer" href="{escape(error.redirect.address(error.members))}">{link_text}</a></p>'
    return html.page(title, reason + unverified_note + link, 400)


def _unverified_name(name: str) -> str:
    if not name:
        return html.translate("A client without a name (<strong>not verified</strong>)")
    return html.translate("A client that calls itself “{name}” (<strong>not verified</strong>)", name=escape(name))


def _unverified_warning(site: str) -> str:
    """The warning about a client that registered itself."""
    access = "Your data goes to <strong>{site}</strong>."
    if clients.is_loopback(site):
        access = "Your data goes to a program on your own computer (<strong>{site}</strong>)."
    warning = html.translate(
        "This client registered itself, and its name is not verified. {access} Allow it only if you started this "
        "there, just now. You are asked each time.",
        access=html.translate(access, site=escape(site)),
    )
    return f"<p>{warning}</p>"


def connected_agents_page(store: Store, agents: Iterable[ConnectedAgent], email: str, form_token: str) -> Response:
    """The page of the agents and clients that can act for a person, with a button to disconnect each."""
    lines = "".join(_connected_agent_html(agent, form_token) for agent in agents)
    texts = {"email": escape(email), "store": escape(store.settings.resource_name)}
    content = f"<p>{html.translate('No agents are connected to {email} at {store}.', **texts)}</p>"
    if lines:
        intro = html.translate("Agents and clients with access to {email} at {store}.", **texts)
        content = f'<p class="intro">{intro}</p><ul class="entries">{lines}</ul>'
    return html.page("Connected agents", content + html.link_list((("Start page", "/"),)))


def _connected_agent_html(connected_agent: ConnectedAgent, form_token: str) -> str:
    values = {"what": escape(connected_agent.what), "since": html.time_element(connected_agent.since)}
    facts = html.translate("{what}, since {since}, not used yet", **values)
    if connected_agent.used_at:
        values["used"] = html.time_element(connected_agent.used_at)
        facts = html.translate("{what}, since {since}, last used {used}", **values)
    name = escape(connected_agent.name)
    label, button = html.translate("Disconnect {name}", name=name), html.translate("Disconnect")
    return (
        f'<li><h2>{name}</h2><p class="facts">{facts}</p>'
        f"<p>{html.translate('It can:')}</p>{scope_list(connected_agent.scopes)}"
        f'<form method="post">{html.hidden_field("csrf", form_token)}{html.hidden_field("id", connected_agent.id)}'
        f'<button class="other" aria-label="{label}">{button}</button></form></li>'
    )


async def show_authorization(call: StoreRequest[AuthorizeQuery, Nothing]) -> Response:
    """Ask the signed-in person to allow a client, unless they allowed it before."""
    try:
        return await _authorize(call.context, call, call.query, decision=None)
    except (UntrustedRedirect, AuthorizationError) as refused:
        return _refusal_page(refused)


async def decide_authorization(call: StoreRequest[Nothing, AuthorizeForm]) -> Response:
    """Take the person's decision, and redirect to the client with it."""
    sessions.require_same_origin(call.context, call.headers)
    try:
        return await _authorize(call.context, call, call.body, decision=call.body)
    except (UntrustedRedirect, AuthorizationError) as refused:
        return _refusal_page(refused)


def _refusal_page(refused: UntrustedRedirect | AuthorizationError) -> Response:
    if isinstance(refused, UntrustedRedirect):
        text = f"{refused} Tell the operator of the site that you came from."
        return html.message_page("This link does not work", text, 400)
    return refused.redirect.respond(refused.members) if refused.is_automatic else error_page(refused)


async def _authorize(
    store: Store,
    call: StoreRequest[AuthorizeQuery, Nothing] | StoreRequest[Nothing, AuthorizeForm],
    query: AuthorizeQuery,
    *,
    decision: AuthorizeForm | None,
) -> Response:
    """Handle a request, with or without the person's decision. The person signs in before any response is sent to the
    client (RFC 9700 §4.11.2)."""
    await store.versions()
    client, redirect = await resolve_redirect(store, query)
    signed_in = await sign_in_pages.signed_in_or_redirect(store, call.headers, request_target(query))
    if isinstance(signed_in, Response):
        return signed_in
    request = check_request(store, query, client, redirect)
    available_scopes = await tokens.scopes_of_person(store.database, signed_in.person.id)
    granted_scopes = request.scopes & available_scopes
    if not granted_scopes:
        raise PermissionsMissing(redirect)
    organisation = await queries.organisation(store.database, client.org_id or "")
    offer = ConsentOffer(
        request, granted_scopes, request.scopes - available_scopes, organisation.name if organisation else ""
    )
    if decision is not None:
        sessions.require_form_token(store, signed_in.session, decision.csrf)
        if decision.decision != "allow":
            raise AuthorizationError(redirect, "access_denied", "the person did not allow it", is_automatic=True)
        if not sessions.is_form_token_valid(store, signed_in.session, decision.shown, *offer.shown):
            return consent_page(store, offer, query, signed_in, has_changed=True)
    async with store.database.transaction() as transaction:
        consent = await _find_or_add_consent(
            transaction, request, granted_scopes, signed_in, is_given=decision is not None
        )
        if consent is not None:
            return await _redirect_with_grant(store, transaction, request, granted_scopes, signed_in, consent)
    return consent_page(store, offer, query, signed_in)


async def _find_or_add_consent(
    transaction: Transaction,
    request: AuthorizationRequest,
    granted_scopes: frozenset[str],
    signed_in: SignedInPerson,
    *,
    is_given: bool,
) -> Consent | None:
    """Return the consent that the person has just given, or an earlier consent that covers the scopes. An earlier
    consent to a dynamic client is ignored, because the client is not verified.

    Raises:
        UntrustedRedirect: the client was removed by a concurrent request.
    """
    if is_given:
        if not await clients.record_use(transaction, request.client):
            raise UntrustedRedirect(NO_CLIENT)
        site = clients.lowercase_origin(request.redirect.redirect_uri)
        return await consents.allow(transaction, signed_in.person.id, request.client.id, granted_scopes, site=site)
    if request.client.is_dynamic:
        return None
    known_consent = await consents.find_consent(transaction, signed_in.person.id, request.client.id)
    return known_consent if known_consent is not None and granted_scopes <= known_consent.scopes else None


async def _redirect_with_grant(
    store: Store,
    transaction: Transaction,
    request: AuthorizationRequest,
    granted_scopes: frozenset[str],
    signed_in: SignedInPerson,
    consent: Consent,
) -> Response:
    """Redirect to the client with a code, or with a token if the client is registered for the implicit grant."""
    if request.challenge is not None:
        code = await consents.issue_code(
            transaction,
            request.client,
            consent.id,
            granted_scopes,
            redirect_uri=request.redirect.redirect_uri,
            challenge=request.challenge,
            auth_time=signed_in.since,
        )
        return request.redirect.respond({"code": code})
    grant = await queries.grant(transaction, consent.id)
    if grant is None:
        raise AuthorizationError(request.redirect, "unauthorized_client", "the client was removed")
    auth_time_s = signed_in.since // clock.SECOND
    token, claims = tokens.issue_for_grant(
        store, signed_in.person.id, request.client.id, granted_scopes, grant, auth_time_s
    )
    life_s = str(store.settings.token_ttl_s)
    members = {"access_token": token, "token_type": "Bearer", "expires_in": life_s, "scope": claims.scope}
    return request.redirect.respond(members)
