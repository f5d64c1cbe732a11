"""The OAuth addresses: tokens, authorization, revocation, metadata, and the page of connected agents."""

from countersign.distribution.agents.assertions import InvalidGrant
from countersign.distribution.agents.claim_grant import AuthorizationPending, ClaimDenied, ExpiredToken, PollTooFast
from countersign.distribution.context import PREFIX
from countersign.distribution.identity import csrf, sessions
from countersign.distribution.identity.callers import StoreRequest
from countersign.distribution.identity.schemas import TokenResponse
from countersign.distribution.identity.tokens import InvalidScope
from countersign.distribution.oauth import (
    authorization_request,
    authorize,
    connected,
    dynamic_clients,
    logo,
    metadata,
    revocation,
    skill,
    token,
)
from countersign.distribution.oauth.client_authentication import InvalidClient, UnauthorizedClient
from countersign.distribution.oauth.schemas import (
    AuthorizeForm,
    AuthorizeQuery,
    ClientMetadata,
    ClientRegistered,
    DisconnectForm,
    RevokeRequest,
    TokenRequest,
)
from countersign.distribution.oauth.targets import InvalidTarget
from countersign.distribution.oauth.token import UnsupportedGrantType
from countersign.kernel.http import response
from countersign.kernel.http.rate_limit import DOCUMENTS
from countersign.kernel.http.response import Response
from countersign.kernel.http.routing import Nothing, route

LARGEST_BODY = 65_536
_SHARED = (("Cache-Control", "public, max-age=300"),)
_MARKDOWN = "text/markdown; charset=utf-8"
_SVG = "image/svg+xml"
_HTML = ("text/html; charset=utf-8", "text/html")


async def issue_token(call: StoreRequest[Nothing, TokenRequest]) -> Response:
    """Exchange what a grant presents for an access token."""
    await call.context.versions()
    return response.json(await token.exchange(call.context, call.body, call.headers))


async def revoke_token(call: StoreRequest[Nothing, RevokeRequest]) -> Response:
    """End an access token, or an agent's registration by its assertion; the body is an empty object."""
    await call.context.versions()
    await revocation.revoke(call.context, call.body, call.headers)
    return response.json({})


async def register_client(call: StoreRequest[Nothing, ClientMetadata]) -> Response:
    """Register an OAuth client by what it says of itself (RFC 7591)."""
    return response.json(await dynamic_clients.register(call.context, call.body, call.address), 201)


async def show_protected_resource(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Describe this service as a protected resource (RFC 9728)."""
    document = metadata.protected_resource(call.context, metadata.resource_of(call.target))
    return response.json(document, headers=_SHARED)


async def show_authorization_server(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Describe this service as an authorization server (RFC 8414)."""
    return response.json(metadata.authorization_server(call.context), headers=_SHARED)


async def show_keys(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Give the public keys that tokens are signed with (RFC 7517)."""
    await call.context.versions()
    return response.json(call.context.tokens.ring.jwks(), headers=_SHARED)


async def show_skill(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Tell an agent how it gets in."""
    return Response(200, skill.text(call.context).encode(), _MARKDOWN, _SHARED)


async def show_logo(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Show the resource's logo."""
    return Response(200, logo.SVG.encode(), _SVG, logo.HEADERS)


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
            body_limit=LARGEST_BODY,
            cross_origin=True,
            documented=True,
            example={"grant_type": "client_credentials", "client_id": "demo-publisher", "client_secret": "a-secret"},
        )
        for path in ("/auth/token", "/auth/login")
    ),
    route(
        "GET",
        authorization_request.PATH,
        authorize.ask,
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
        authorization_request.PATH,
        authorize.decide,
        body=AuthorizeForm,
        answers={303: None, 400: str},
        refusals=(sessions.InsecureSignIn, sessions.ForeignOrigin, csrf.FormExpired),
        form=True,
        produces=_HTML,
        quota="token",
        own_credentials=True,
        body_limit=LARGEST_BODY,
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
        body_limit=LARGEST_BODY,
        at_root=True,
        cross_origin=True,
        documented=True,
        example={"token": "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln", "token_type_hint": "access_token"},
    ),
    route(
        "POST",
        dynamic_clients.PATH,
        register_client,
        body=ClientMetadata,
        answers={201: ClientRegistered},
        refusals=(
            dynamic_clients.DynamicClientsNotEnabled,
            dynamic_clients.InvalidRedirectUri,
            dynamic_clients.InvalidClientMetadata,
        ),
        oauth=True,
        secret=True,
        quota="token",
        own_credentials=True,
        body_limit=LARGEST_BODY,
        at_root=True,
        cross_origin=True,
        example={"redirect_uris": ["http://127.0.0.1:3030/callback"], "client_name": "Example"},
    ),
    route(
        "GET",
        connected.PATH,
        connected.show,
        answers={200: str, 303: None},
        refusals=(sessions.InsecureSignIn,),
        produces=_HTML,
        own_credentials=True,
        at_root=True,
        sends={303: ("Location",)},
    ),
    route(
        "POST",
        connected.PATH,
        connected.disconnect,
        body=DisconnectForm,
        answers={303: None},
        refusals=(sessions.InsecureSignIn, sessions.ForeignOrigin, csrf.FormExpired),
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
        show_skill,
        answers={200: str},
        produces=(_MARKDOWN, "text/markdown", "text/plain"),
        at_root=True,
        cross_origin=True,
        quota=DOCUMENTS,
        documented=True,
    ),
    route("GET", metadata.LOGO_PATH, show_logo, answers={200: bytes}, produces=(_SVG,), at_root=True),
)
