"""The authorization endpoint: a person lets a client act for them, and is sent back (RFC 6749 §4.1, RFC 9207)."""

from countersign.distribution.context import Store
from countersign.distribution.identity import csrf, queries, redirect_uris, sessions, tokens, visitors
from countersign.distribution.identity.callers import StoreRequest
from countersign.distribution.identity.visitors import Visitor
from countersign.distribution.oauth import authorization_code, consents, dynamic_clients, pages
from countersign.distribution.oauth.authorization_request import (
    NO_CLIENT,
    Asked,
    NoWayBack,
    PermissionsMissing,
    SentBack,
    addressed,
    checked,
    target_of,
)
from countersign.distribution.oauth.consents import Consent
from countersign.distribution.oauth.pages import Offer
from countersign.distribution.oauth.schemas import AuthorizeForm, AuthorizeQuery
from countersign.kernel import clock
from countersign.kernel.database.port import Transaction
from countersign.kernel.http import html
from countersign.kernel.http.response import Response
from countersign.kernel.http.routing import Nothing


async def ask(call: StoreRequest[AuthorizeQuery, Nothing]) -> Response:
    """Ask the signed-in person to let a client act for them, unless they have before."""
    try:
        return await _asked(call.context, call, call.query, decided=None)
    except (NoWayBack, SentBack) as refused:
        return _refusal(refused)


async def decide(call: StoreRequest[Nothing, AuthorizeForm]) -> Response:
    """Take the person's decision, and send them back to the client with it."""
    sessions.require_same_origin(call.context, call.headers)
    try:
        return await _asked(call.context, call, call.body, decided=call.body)
    except (NoWayBack, SentBack) as refused:
        return _refusal(refused)


def _refusal(refused: NoWayBack | SentBack) -> Response:
    if isinstance(refused, NoWayBack):
        text = f"{refused} Tell the operator of the site that you came from."
        return html.message_page("This link does not work", text, 400)
    return refused.way.back(refused.members) if refused.is_automatic else pages.not_sent_back(refused)


async def _asked(
    store: Store,
    call: StoreRequest[AuthorizeQuery, Nothing] | StoreRequest[Nothing, AuthorizeForm],
    sent: AuthorizeQuery,
    *,
    decided: AuthorizeForm | None,
) -> Response:
    """The way of a request through the endpoint, with or without the person's decision. The person signs in before
    anything is told to the client (RFC 9700 §4.11.2)."""
    await store.versions()
    client, way = await addressed(store, sent)
    visitor = await visitors.signed_in(store, call.headers, target_of(sent))
    if isinstance(visitor, Response):
        return visitor
    asked = checked(store, sent, client, way)
    held = await tokens.held_by_person(store.database, visitor.person.id)
    granted = asked.scopes & held
    if not granted:
        raise PermissionsMissing(way)
    organisation = await queries.organisation(store.database, client.org_id or "")
    offer = Offer(asked, granted, asked.scopes - held, organisation.name if organisation else "")
    if decided is not None:
        csrf.require(store, visitor.session, decided.csrf)
        if decided.decision != "allow":
            raise SentBack(way, "access_denied", "the person did not allow it", is_automatic=True)
        if not csrf.is_for(store, visitor.session, decided.shown, *offer.shown):
            return pages.consent(store, offer, sent, visitor, has_changed=True)
    async with store.database.transaction() as transaction:
        consent = await _consent(transaction, asked, granted, visitor, is_given=decided is not None)
        if consent is not None:
            return await _sent_on(store, transaction, asked, granted, visitor, consent)
    return pages.consent(store, offer, sent, visitor)


async def _consent(
    transaction: Transaction, asked: Asked, granted: frozenset[str], visitor: Visitor, *, is_given: bool
) -> Consent | None:
    """The consent just given, or one of before that covers as much; not to a client that registered itself, which
    could be anybody by now.

    Raises:
        NoWayBack: the client has ended meanwhile.
    """
    if is_given:
        if not await dynamic_clients.record_use(transaction, asked.client):
            raise NoWayBack(NO_CLIENT)
        site = redirect_uris.lowered_site(asked.way.redirect_uri)
        return await consents.allow(transaction, visitor.person.id, asked.client.id, granted, site=site)
    if asked.client.is_dynamic:
        return None
    known = await consents.allowed(transaction, visitor.person.id, asked.client.id)
    return known if known is not None and granted <= known.scopes else None


async def _sent_on(
    store: Store, transaction: Transaction, asked: Asked, granted: frozenset[str], visitor: Visitor, consent: Consent
) -> Response:
    """Back to the client with a code, or with a token where it is registered for that."""
    if asked.challenge is not None:
        code = await authorization_code.give(
            transaction,
            asked.client,
            consent.id,
            granted,
            redirect_uri=asked.way.redirect_uri,
            challenge=asked.challenge,
            auth_time=visitor.since,
        )
        return asked.way.back({"code": code})
    grant = await queries.grant(transaction, consent.id)
    if grant is None:
        raise SentBack(asked.way, "unauthorized_client", "the client was removed")
    auth_time_s = visitor.since // clock.SECOND
    token, claims = tokens.issue_through(store, visitor.person.id, asked.client.id, granted, grant, auth_time_s)
    life_s = str(store.settings.token_ttl_s)
    members = {"access_token": token, "token_type": "Bearer", "expires_in": life_s, "scope": claims.scope}
    return asked.way.back(members)
