"""The page of connected agents: who may act for a person, and taking that back."""

from urllib.parse import urlsplit

from countersign.distribution.agents import registrations
from countersign.distribution.agents.registrations import Registration
from countersign.distribution.context import Store
from countersign.distribution.identity import csrf, redirect_uris, sessions, visitors
from countersign.distribution.identity.callers import StoreRequest
from countersign.distribution.oauth import consents, pages
from countersign.distribution.oauth.consents import Connected
from countersign.distribution.oauth.pages import Listed
from countersign.distribution.oauth.schemas import DisconnectForm
from countersign.kernel.database.port import Transaction
from countersign.kernel.http.response import Response
from countersign.kernel.http.routing import Nothing

PATH = "/auth/agents"


async def show(call: StoreRequest[Nothing, Nothing]) -> Response:
    """List the agents and clients that may act for the signed-in person."""
    store = call.context
    visitor = await visitors.signed_in(store, call.headers, PATH)
    if isinstance(visitor, Response):
        return visitor
    listed = await _listed(store, visitor.person.id)
    return pages.connected(store, listed, visitor.person.email, csrf.token_of(store, visitor.session))


async def disconnect(call: StoreRequest[Nothing, DisconnectForm]) -> Response:
    """End what one of them may do; its tokens are dead at once."""
    store = call.context
    sessions.require_same_origin(store, call.headers)
    visitor = await visitors.signed_in(store, call.headers, PATH)
    if isinstance(visitor, Response):
        return visitor
    csrf.require(store, visitor.session, call.body.csrf)
    async with store.database.transaction() as transaction:
        await _end(transaction, call.body.id, visitor.person.id)
    return Response(303, headers=(("Location", PATH), ("Cache-Control", "no-store")))


async def _end(transaction: Transaction, ended: str, person_id: str) -> None:
    """End a registration or a consent of this person; of somebody else's nothing happens, nor is anything told."""
    if await consents.revoke(transaction, ended, person_id):
        return
    registration = await registrations.with_id(transaction, ended)
    if registration is not None and registration.person_id == person_id:
        await registrations.revoke(transaction, ended)


async def _listed(store: Store, person_id: str) -> list[Listed]:
    agents = await registrations.of_person(store, person_id)
    clients = await consents.of_person(store.database, person_id)
    lines = [
        each._replace(used_at=store.uses.last(each.id) or each.used_at)
        for each in (*map(_agent, agents), *map(_client, clients))
    ]
    return sorted(lines, key=lambda each: (-each.since, each.id))


def _agent(found: Registration) -> Listed:
    what = "An agent" if found.issuer is None else f"An agent, asserted by {found.issuer}"
    since = found.claimed_at or found.created_at
    return Listed(found.id, found.agent or "An agent", what, found.scopes, since, found.used_at)


def _client(found: Connected) -> Listed:
    what, name = f"A client of {found.organisation}", found.client
    if found.redirect_uris:
        # The name is the client's own claim: the line is titled with the site that the person was sent on to.
        sites = found.sites or tuple(sorted({redirect_uris.lowered_site(each) for each in found.redirect_uris}))
        name = (", " if found.sites else " or ").join(urlsplit(each).netloc for each in sites)
        claim = f"calls itself “{found.client}”" if found.client else "has no name"
        what = f"A client of {' '.join(sites)} that registered itself and {claim} (not verified)"
    return Listed(found.id, name, what, found.scopes, found.created_at, found.used_at)
