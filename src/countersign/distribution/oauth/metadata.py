"""What tells clients where everything is: protected-resource and authorization-server metadata (RFC 9728, RFC 8414).

Everything is made from the configured address, never from what a request calls the service by (attack T48).
"""

from typing import TypeAlias

from countersign.distribution.context import PREFIX, Store
from countersign.distribution.identity import scopes
from countersign.distribution.oauth import dynamic_clients, token

Document: TypeAlias = dict[str, object]

RESOURCE_PATH = "/.well-known/oauth-protected-resource"
RESOURCES = ("", PREFIX, "/mcp")
"""The paths of what takes tokens: the service, its versioned API, its tools."""
SERVER_PATH = "/.well-known/oauth-authorization-server"
KEYS_PATH = "/.well-known/jwks.json"
SKILL_PATH = "/auth.md"
LOGO_PATH = "/logo.svg"
ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"
ID_JAG_PROFILE = "urn:ietf:params:oauth:grant-profile:id-jag"


def protected_resource(store: Store, resource: str) -> Document:
    """The metadata of the protected resource at this path. Strict clients build the address of the metadata from the
    resource's own, so each of `RESOURCES` has metadata that name it (RFC 9728 §3.3)."""
    return {
        "resource": store.root_url + resource,
        "resource_name": store.settings.resource_name,
        "resource_logo_uri": store.root_url + LOGO_PATH,
        "authorization_servers": [store.root_url],
        "scopes_supported": list(scopes.ALL),
        "bearer_methods_supported": ["header"],
    }


def authorization_server(store: Store) -> Document:
    """The authorization server's metadata: the API document's members, and further ones (agent-auth 7.3)."""
    root, base = store.root_url, store.base_url
    registration = {"registration_endpoint": root + dynamic_clients.PATH} if store.settings.dynamic_clients else {}
    return {
        "issuer": root,
        "authorization_endpoint": f"{root}/auth/authorize",
        "token_endpoint": f"{base}/auth/login",
        "revocation_endpoint": f"{root}/auth/revoke",
        "jwks_uri": root + KEYS_PATH,
        "response_types_supported": ["code", "token"],
        "grant_types_supported": list(token.grant_types(store)),
        "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
        "scopes_supported": list(scopes.ALL),
        "agent_auth": {
            "skill": root + SKILL_PATH,
            "identity_endpoint": f"{base}/auth/register",
            "claim_endpoint": f"{base}/auth/me",
            "events_endpoint": f"{root}/healthz",
            "identity_types_supported": identity_types(store),
            "identity_assertion": {"assertion_types_supported": [ID_JAG]},
            "events_supported": [store.settings.revoked_event],
        },
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "revocation_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post", "none"],
        "authorization_grant_profiles_supported": [ID_JAG_PROFILE],
        "service_documentation": root + SKILL_PATH,
        **registration,
    }


def identity_types(store: Store) -> list[str]:
    """How agents may register here."""
    offered = {
        "anonymous": store.settings.agents_anonymous,
        "identity_assertion": True,
        "service_auth": store.settings.agents_by_email,
    }
    return [name for name, is_offered in offered.items() if is_offered]


def resource_of(target: str) -> str:
    """The path of the resource whose metadata the request is for."""
    return target.partition("?")[0].partition(RESOURCE_PATH)[2]
