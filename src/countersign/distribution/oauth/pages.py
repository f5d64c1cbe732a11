"""The consent page and the page of connected agents; both work without scripts."""

from collections.abc import Iterable
from html import escape
from typing import NamedTuple
from urllib.parse import urlsplit

from countersign.distribution.agents.pages import in_words
from countersign.distribution.context import Store
from countersign.distribution.identity import redirect_uris
from countersign.distribution.identity.visitors import Visitor
from countersign.distribution.oauth.authorization_request import Asked
from countersign.distribution.oauth.schemas import AuthorizeQuery
from countersign.kernel.clock import Instant
from countersign.kernel.http import forms
from countersign.kernel.http.answer import Answer


class Listed(NamedTuple):
    """One line of the page of connected agents."""

    id: str
    name: str
    what: str
    scopes: frozenset[str]
    since: Instant
    used_at: Instant | None


def consent(
    store: Store,
    asked: Asked,
    sent: AuthorizeQuery,
    organisation: str,
    granted: frozenset[str],
    *,
    visitor: Visitor,
    csrf: str,
) -> Answer:
    """The page on which a person lets a client act for them, or does not."""
    client = asked.client
    site = redirect_uris.lowered_site(asked.way.redirect_uri)
    kept = {name: getattr(sent, name) for name in AuthorizeQuery.__struct_fields__}
    fields = "".join(forms.hidden(name, value) for name, value in {**kept, "csrf": csrf}.items() if value)
    who = f"<strong>{escape(client.name)}</strong>, a client of <strong>{escape(organisation)}</strong>,"
    title, warning = f"Allow {client.name}?", ""
    if client.is_dynamic:
        # The name is the client's own claim: the title has the host, which is what the person can check.
        title, who, warning = f"Allow {urlsplit(site).netloc}?", _unverified_name(client.name), _unverified(site)
    body = (
        f"<p>{who} wants to act for you at {escape(store.settings.resource_name)}. "
        f"You are signed in as {escape(visitor.person.email)}.</p>{warning}"
        f"<p>It will be able to:</p>{in_words(granted)}"
        f"<p>You will be sent on to <code>{escape(site)}</code>.</p>"
        f'<form method="post" action="/auth/authorize">{fields}'
        '<div class="choice"><button name="decision" value="allow">Allow</button>'
        '<button name="decision" value="deny">Deny</button></div></form>'
        '<p>What you allow you can take back at any time on <a href="/auth/agents">the page of your connected '
        "agents</a>.</p>"
    )
    sends_to = (redirect_uris.policy_source(asked.way.redirect_uri),)
    return forms.page(title, body, sends_to=sends_to)


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


def connected(store: Store, listed: Iterable[Listed], email: str, csrf: str) -> Answer:
    """The page of everything that may act for a person, each with a button that ends it."""
    lines = "".join(_line(each, csrf) for each in listed)
    place = f"for {escape(email)} at {escape(store.settings.resource_name)}"
    shown = f"<p>Nothing acts {place}.</p>"
    if lines:
        shown = f'<p class="intro">Agents and clients that may act {place}.</p><ul class="entries">{lines}</ul>'
    return forms.page("Connected agents", shown + forms.linked((("Start page", "/"),)))


def _line(each: Listed, csrf: str) -> str:
    used = f"last used {forms.moment(each.used_at)}" if each.used_at else "not used yet"
    name = escape(each.name)
    return (
        f'<li><h2>{name}</h2><p class="facts">{escape(each.what)}, since {forms.moment(each.since)}, {used}</p>'
        f"<p>It can:</p>{in_words(each.scopes)}"
        f'<form method="post">{forms.hidden("csrf", csrf)}{forms.hidden("id", each.id)}'
        f'<button class="other" aria-label="Disconnect {name}">Disconnect</button></form></li>'
    )
