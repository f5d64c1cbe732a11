"""The consent page and the page of connected agents; both work without scripts."""

from collections.abc import Iterable
from html import escape
from typing import NamedTuple
from urllib.parse import urlsplit

from countersign.distribution.agents.pages import in_words
from countersign.distribution.context import Store
from countersign.distribution.identity import csrf, redirect_uris, scopes
from countersign.distribution.identity.visitors import Visitor
from countersign.distribution.oauth.authorization_request import Asked, PermissionsMissing, SentBack
from countersign.distribution.oauth.schemas import AuthorizeQuery
from countersign.kernel.clock import Instant
from countersign.kernel.http import html
from countersign.kernel.http.response import Response


class Listed(NamedTuple):
    """One line of the page of connected agents."""

    id: str
    name: str
    what: str
    scopes: frozenset[str]
    since: Instant
    used_at: Instant | None


class Offer(NamedTuple):
    """What a person is asked to allow: the request, what of it their account can give and what not, and the name of the
    client's organisation."""

    asked: Asked
    granted: frozenset[str]
    lacking: frozenset[str]
    organisation: str

    @property
    def shown(self) -> tuple[str, ...]:
        """What the page shows. A decision counts for exactly this: a form that was shown something else is refused."""
        client, way = self.asked.client, self.asked.way
        granted = scopes.words(self.granted)
        challenge = self.asked.challenge or ""
        named = (client.id, client.name, client.org_id or "", self.organisation)
        return (*named, way.redirect_uri, way.state, challenge, self.asked.resource, granted)


def consent(
    store: Store, offer: Offer, sent: AuthorizeQuery, visitor: Visitor, *, has_changed: bool = False
) -> Response:
    """The page on which a person lets a client act for them, or does not; `has_changed`: since they saw it last."""
    client, way = offer.asked.client, offer.asked.way
    site = redirect_uris.lowered_site(way.redirect_uri)
    kept = {name: getattr(sent, name) for name in AuthorizeQuery.__struct_fields__}
    kept["csrf"] = csrf.token_of(store, visitor.session)
    kept["shown"] = csrf.token_of(store, visitor.session, *offer.shown)
    fields = "".join(html.hidden_field(name, value) for name, value in kept.items() if value)
    who = f"<strong>{escape(client.name)}</strong>, a client of <strong>{escape(offer.organisation)}</strong>,"
    title, warning = f"Allow {client.name}?", ""
    if client.is_dynamic:
        # The name is the client's own claim: the title has the host, which is what the person can check.
        title, who, warning = f"Allow {urlsplit(site).netloc}?", _unverified_name(client.name), _unverified(site)
    changed = '<p class="error" role="alert">This has changed since you saw it. Look again, then decide.</p>'
    body = (
        f"{changed if has_changed else ''}<p>{who} wants to act for you at {escape(store.settings.resource_name)}. "
        f"You are signed in as {escape(visitor.person.email)}.</p>{warning}"
        f"<p>It will be able to:</p>{in_words(offer.granted)}{_lacking(offer.lacking)}"
        f"<p>You will be sent on to <code>{escape(site)}</code>.</p>"
        f'<form method="post" action="/auth/authorize">{fields}'
        '<div class="choice"><button name="decision" value="allow">Allow</button>'
        '<button name="decision" value="deny">Deny</button></div></form>'
        '<p>What you allow you can take back at any time on <a href="/auth/agents">the page of your connected '
        "agents</a>.</p>"
    )
    sends_to = (redirect_uris.policy_source(way.redirect_uri),)
    prefix = "Error: " if has_changed else ""
    return html.page(title, body, 400 if has_changed else 200, sends_to=sends_to, prefix=prefix)


def _lacking(lacking: frozenset[str]) -> str:
    if not lacking:
        return ""
    return f"<p>It asked for more. Your account cannot do this, so it will not be able to:</p>{in_words(lacking)}"


def not_sent_back(refused: SentBack) -> Response:
    """The page for a request that is refused before the person can allow it, with a link back to the client."""
    site = redirect_uris.lowered_site(refused.way.redirect_uri)
    host = escape(urlsplit(site).netloc)
    title, unverified = "This link does not work", ""
    reason = (
        f"<p>The request of <strong>{host}</strong> cannot be carried out, and nothing was allowed.</p>"
        f"<p>{escape(refused.error)}: {escape(refused.description)}.</p>"
    )
    if isinstance(refused, PermissionsMissing):
        title = "Nothing was allowed"
        reason = f"<p>Your account has none of the permissions that <strong>{host}</strong> asked for.</p>"
    if not refused.way.is_trusted:
        unverified = (
            "<p>The client registered itself (<strong>not verified</strong>). Return only if you came from "
            f"<strong>{escape(site)}</strong>.</p>"
        )
    link = f'<p><a rel="noreferrer" href="{escape(refused.way.address(refused.members))}">Return to {host}</a></p>'
    return html.page(title, reason + unverified + link, 400)


def _unverified_name(name: str) -> str:
    if not name:
        return "A client without a name (<strong>not verified</strong>)"
    return f"A client that calls itself “{escape(name)}” (<strong>not verified</strong>)"


def _unverified(site: str) -> str:
    """What a person has to know of a client that registered itself."""
    access = f"Your data goes to <strong>{escape(site)}</strong>."
    if redirect_uris.is_loopback(site):
        access = f"Your data goes to a program on your own computer (<strong>{escape(site)}</strong>)."
    return (
        f"<p>This client registered itself, and its name is its own claim. {access} Allow it only if you started this "
        "there, just now. You are asked each time.</p>"
    )


def connected(store: Store, listed: Iterable[Listed], email: str, form_token: str) -> Response:
    """The page of everything that may act for a person, each with a button that ends it."""
    lines = "".join(_line(each, form_token) for each in listed)
    place = f"for {escape(email)} at {escape(store.settings.resource_name)}"
    shown = f"<p>Nothing acts {place}.</p>"
    if lines:
        shown = f'<p class="intro">Agents and clients that may act {place}.</p><ul class="entries">{lines}</ul>'
    return html.page("Connected agents", shown + html.link_list((("Start page", "/"),)))


def _line(each: Listed, form_token: str) -> str:
    used = f"last used {html.time_element(each.used_at)}" if each.used_at else "not used yet"
    name = escape(each.name)
    return (
        f'<li><h2>{name}</h2><p class="facts">{escape(each.what)}, since {html.time_element(each.since)}, {used}</p>'
        f"<p>It can:</p>{in_words(each.scopes)}"
        f'<form method="post">{html.hidden_field("csrf", form_token)}{html.hidden_field("id", each.id)}'
        f'<button class="other" aria-label="Disconnect {name}">Disconnect</button></form></li>'
    )
