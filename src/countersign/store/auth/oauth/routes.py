"""The OAuth endpoints: tokens, authorization, revocation, metadata, and the page of connected agents."""

from urllib.parse import urlsplit

from countersign.kernel.database.port import Transaction
from countersign.kernel.http import response
from countersign.kernel.http.rate_limit import DOCUMENTS
from countersign.kernel.http.response import Response
from countersign.kernel.http.routing import Nothing, route
from countersign.store.auth import sessions, sign_in_pages
from countersign.store.auth.agents import registrations
from countersign.store.auth.agents.registrations import InvalidGrant, Registration
from countersign.store.auth.callers import StoreRequest
from countersign.store.auth.oauth import authorize, clients, consents, metadata, token_endpoint
from countersign.store.auth.oauth.authorize import ConnectedAgent
from countersign.store.auth.oauth.consents import ConnectedClient
from countersign.store.auth.oauth.token_endpoint import (
    AuthorizationPending,
    ClaimDenied,
    ExpiredToken,
    InvalidClient,
    InvalidTarget,
    PollTooFast,
    UnauthorizedClient,
    UnsupportedGrantType,
)
from countersign.store.auth.schemas import (
    AuthorizeForm,
    AuthorizeQuery,
    ClientMetadata,
    ClientRegistered,
    DisconnectForm,
    RevokeRequest,
    TokenRequest,
    TokenResponse,
)
from countersign.store.auth.tokens import InvalidScope
from countersign.store.context import PREFIX, Store

PATH = "/auth/agents"


async def show_connected_agents(call: StoreRequest[Nothing, Nothing]) -> Response:
    """List the agents and clients that can act for the signed-in person."""
    store = call.context
    signed_in = await sign_in_pages.signed_in_or_redirect(store, call.headers, PATH)
    if isinstance(signed_in, Response):
        return signed_in
    connected_agents = await _connected_agents(store, signed_in.person.id)
    return authorize.connected_agents_page(
        store, connected_agents, signed_in.person.email, sessions.form_token(store, signed_in.session)
    )


async def disconnect_agent(call: StoreRequest[Nothing, DisconnectForm]) -> Response:
    """Disconnect an agent or client; its tokens become invalid at once."""
    store = call.context
    sessions.require_same_origin(store, call.headers)
    signed_in = await sign_in_pages.signed_in_or_redirect(store, call.headers, PATH)
    if isinstance(signed_in, Response):
        return signed_in
    sessions.require_form_token(store, signed_in.session, call.body.csrf)
    async with store.database.transaction() as transaction:
        await _revoke_grant(transaction, call.body.id, signed_in.person.id)
    return Response(303, headers=(("Location", PATH), ("Cache-Control", "no-store")))


async def _revoke_grant(transaction: Transaction, ended_id: str, person_id: str) -> None:
    """Revoke a registration or consent of this person. If it belongs to another person, do nothing."""
    if await consents.revoke(transaction, ended_id, person_id):
        return
    registration = await registrations.with_id(transaction, ended_id)
    if registration is not None and registration.person_id == person_id:
        await registrations.revoke(transaction, ended_id)


async def _connected_agents(store: Store, person_id: str) -> list[ConnectedAgent]:
    agents = await registrations.of_person(store, person_id)
    clients = await consents.connected_clients(store.database, person_id)
    lines = [
        agent._replace(used_at=store.uses.last(agent.id) or agent.used_at)
        for agent in (*map(_agent_line, agents), *map(_client_line, clients))
    ]
    return sorted(lines, key=lambda agent: (-agent.since, agent.id))


def _agent_line(entry: Registration) -> ConnectedAgent:
    agent_text = "An agent" if entry.issuer is None else f"An agent, asserted by {entry.issuer}"
    connected_at = entry.claimed_at or entry.created_at
    return ConnectedAgent(entry.id, entry.agent or "An agent", agent_text, entry.scopes, connected_at, entry.used_at)


def _client_line(entry: ConnectedClient) -> ConnectedAgent:
    client_text, name = f"A client of {entry.organisation}", entry.client
    if entry.redirect_uris:
        # The client's name is not verified, so the title is the site that the person was redirected to.
        sites = entry.sites or tuple(sorted({clients.lowercase_origin(uri) for uri in entry.redirect_uris}))
        name = (", " if entry.sites else " or ").join(urlsplit(site).netloc for site in sites)
        claim = f"calls itself “{entry.client}”" if entry.client else "has no name"
        client_text = f"A client of {' '.join(sites)} that registered itself and {claim} (not verified)"
    return ConnectedAgent(entry.id, name, client_text, entry.scopes, entry.created_at, entry.used_at)


MAX_BODY_BYTES = 65_536
_CACHEABLE = (("Cache-Control", "public, max-age=300"),)
_MARKDOWN = "text/markdown; charset=utf-8"
_SVG = "image/svg+xml"
_HTML = ("text/html; charset=utf-8", "text/html")


async def issue_token(call: StoreRequest[Nothing, TokenRequest]) -> Response:
    """Exchange a grant for an access token."""
    await call.context.versions()
    return response.json(await token_endpoint.exchange(call.context, call.body, call.headers))


async def revoke_token(call: StoreRequest[Nothing, RevokeRequest]) -> Response:
    """Revoke an access token, or an agent's registration by its assertion; the body is an empty object."""
    await call.context.versions()
    await token_endpoint.revoke(call.context, call.body, call.headers)
    return response.json({})


async def register_client(call: StoreRequest[Nothing, ClientMetadata]) -> Response:
    """Register an OAuth client by its metadata (RFC 7591)."""
    return response.json(await clients.register_client(call.context, call.body, call.address), 201)


async def show_protected_resource(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Describe this service as a protected resource (RFC 9728)."""
    document = metadata.protected_resource(call.context, metadata.resource_of(call.target))
    return response.json(document, headers=_CACHEABLE)


async def show_authorization_server(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Describe this service as an authorization server (RFC 8414)."""
    return response.json(metadata.authorization_server(call.context), headers=_CACHEABLE)


async def show_keys(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Get the public keys that tokens are signed with (RFC 7517)."""
    await call.context.versions()
    return response.json(call.context.tokens.ring.jwks(), headers=_CACHEABLE)


async def show_auth_md(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Describe how an agent registers and authenticates."""
    return Response(200, metadata.auth_md(call.context).encode(), _MARKDOWN, _CACHEABLE)


async def show_logo(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Show the resource's logo."""
    return Response(200, metadata.SVG.encode(), _SVG, metadata.HEADERS)


ROUTES = (
    *(
        route(
            "POST",
            path,
            issue_token,
            body=TokenRequest,
            answers={200: TokenResponse},
            refusals=(
                InvalidClient,
                UnauthorizedClient,
                UnsupportedGrantType,
                InvalidGrant,
                InvalidScope,
                InvalidTarget,
                AuthorizationPending,
                ClaimDenied,
                ExpiredToken,
                PollTooFast,
            ),
            form=True,
            oauth=True,
            secret=True,
            quota="token",
            own_credentials=True,
            body_limit=MAX_BODY_BYTES,
            cross_origin=True,
            documented=True,
            example={"grant_type": "client_credentials", "client_id": "demo-publisher", "client_secret": "a-secret"},
        )
        for path in ("/auth/token", "/auth/login")
    ),
    route(
        "GET",
        authorize.PATH,
        authorize.show_authorization,
        query=AuthorizeQuery,
        answers={200: str, 303: None, 400: str},
        refusals=(sessions.InsecureSignIn,),
        produces=_HTML,
        quota="token",
        own_credentials=True,
        at_root=True,
        documented=True,
        sends={303: ("Location",)},
    ),
    route(
        "POST",
        authorize.PATH,
        authorize.decide_authorization,
        body=AuthorizeForm,
        answers={303: None, 400: str},
        refusals=(sessions.InsecureSignIn, sessions.ForeignOrigin, sessions.FormExpired),
        form=True,
        produces=_HTML,
        quota="token",
        own_credentials=True,
        body_limit=MAX_BODY_BYTES,
        at_root=True,
        sends={303: ("Location",)},
    ),
    route(
        "POST",
        "/auth/revoke",
        revoke_token,
        body=RevokeRequest,
        answers={200: dict},
        refusals=(InvalidClient,),
        form=True,
        oauth=True,
        secret=True,
        quota="token",
        own_credentials=True,
        body_limit=MAX_BODY_BYTES,
        at_root=True,
        cross_origin=True,
        documented=True,
        example={"token": "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln", "token_type_hint": "access_token"},
    ),
    route(
        "POST",
        clients.REGISTRATION_PATH,
        register_client,
        body=ClientMetadata,
        answers={201: ClientRegistered},
        refusals=(
            clients.DynamicClientsNotEnabled,
            clients.InvalidRedirectUri,
            clients.InvalidClientMetadata,
        ),
        oauth=True,
        secret=True,
        quota="token",
        own_credentials=True,
        body_limit=MAX_BODY_BYTES,
        at_root=True,
        cross_origin=True,
        example={"redirect_uris": ["http://127.0.0.1:3030/callback"], "client_name": "Example"},
    ),
    route(
        "GET",
        PATH,
        show_connected_agents,
        answers={200: str, 303: None},
        refusals=(sessions.InsecureSignIn,),
        produces=_HTML,
        own_credentials=True,
        at_root=True,
        sends={303: ("Location",)},
    ),
    route(
        "POST",
        PATH,
        disconnect_agent,
        body=DisconnectForm,
        answers={303: None},
        refusals=(sessions.InsecureSignIn, sessions.ForeignOrigin, sessions.FormExpired),
        form=True,
        produces=_HTML,
        own_credentials=True,
        at_root=True,
        sends={303: ("Location",)},
    ),
    *(
        route(
            "GET",
            f"{path}{suffix}",
            handler,
            answers={200: dict},
            at_root=True,
            cross_origin=True,
            quota=DOCUMENTS,
            documented=not suffix,
        )
        for path, handler, suffixes in (
            (metadata.RESOURCE_PATH, show_protected_resource, metadata.RESOURCES),
            (metadata.SERVER_PATH, show_authorization_server, ("", PREFIX)),
        )
        for suffix in suffixes
    ),
    route(
        "GET",
        metadata.KEYS_PATH,
        show_keys,
        answers={200: dict},
        at_root=True,
        cross_origin=True,
        quota=DOCUMENTS,
        documented=True,
    ),
    route(
        "GET",
        metadata.SKILL_PATH,
        show_auth_md,
        answers={200: str},
        produces=(_MARKDOWN, "text/markdown", "text/plain"),
        at_root=True,
        cross_origin=True,
        quota=DOCUMENTS,
        documented=True,
    ),
    route("GET", metadata.LOGO_PATH, show_logo, answers={200: bytes}, produces=(_SVG,), at_root=True),
)
