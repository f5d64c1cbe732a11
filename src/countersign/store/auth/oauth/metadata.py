"""Discovery: metadata of the protected resource and the authorization server, the logo, and ROOT/auth.md."""

from typing import TypeAlias

from countersign.store import scopes
from countersign.store.auth.oauth import clients as dynamic_clients
from countersign.store.auth.oauth import token_endpoint
from countersign.store.context import PREFIX, Store

Document: TypeAlias = dict[str, object]

RESOURCE_PATH = "/.well-known/oauth-protected-resource"
RESOURCES = ("", PREFIX, "/mcp")
"""The paths of the protected resources: the service, its versioned API, its tools."""
SERVER_PATH = "/.well-known/oauth-authorization-server"
KEYS_PATH = "/.well-known/jwks.json"
SKILL_PATH = "/auth.md"
LOGO_PATH = "/logo.svg"
ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"
ID_JAG_PROFILE = "urn:ietf:params:oauth:grant-profile:id-jag"


def protected_resource(store: Store, resource: str) -> Document:
    """Return the metadata of the protected resource at this path. Each resource in `RESOURCES` has its own metadata,
    because strict clients derive the address of the metadata from the address of the resource (RFC 9728 §3.3)."""
    return {
        "resource": store.root_url + resource,
        "resource_name": store.settings.resource_name,
        "resource_logo_uri": store.root_url + LOGO_PATH,
        "authorization_servers": [store.root_url],
        "scopes_supported": list(scopes.ALL),
        "bearer_methods_supported": ["header"],
    }


def authorization_server(store: Store) -> Document:
    """Return the authorization server's metadata: the members that the API document defines, and more (agent-auth
    7.3)."""
    root, base = store.root_url, store.base_url
    registration = (
        {"registration_endpoint": root + dynamic_clients.REGISTRATION_PATH} if store.settings.dynamic_clients else {}
    )
    return {
        "issuer": root,
        "authorization_endpoint": f"{root}/auth/authorize",
        "token_endpoint": f"{base}/auth/login",
        "revocation_endpoint": f"{root}/auth/revoke",
        "jwks_uri": root + KEYS_PATH,
        "response_types_supported": ["code", "token"],
        "grant_types_supported": list(token_endpoint.grant_types(store)),
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
    """The supported kinds of registration."""
    offered_types = {
        "anonymous": store.settings.agents_anonymous,
        "identity_assertion": True,
        "service_auth": store.settings.agents_by_email,
    }
    return [name for name, is_offered in offered_types.items() if is_offered]


def resource_of(target: str) -> str:
    """The path of the resource whose metadata the request is for."""
    return target.partition("?")[0].partition(RESOURCE_PATH)[2]


SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64" role="img" aria-label="Countersign">'
    '<rect width="64" height="64" rx="14" fill="#1f3aa8"/>'
    '<path d="M18 12h20l10 10v30a2 2 0 0 1-2 2H18a2 2 0 0 1-2-2V14a2 2 0 0 1 2-2z" fill="#fff"/>'
    '<path d="M38 12v10h10z" fill="#b9c6f5"/>'
    '<path d="M23 36l7 7 13-15" fill="none" stroke="#1f3aa8" stroke-width="5" stroke-linecap="round" '
    'stroke-linejoin="round"/></svg>'
)
# These headers prevent the image from loading anything or running scripts, even if it is opened as a page.
HEADERS = (
    ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox"),
    ("Cross-Origin-Resource-Policy", "cross-origin"),
    ("Cache-Control", "public, max-age=86400"),
)


_REGISTERING = {
    "identity_assertion": """
### identity_assertion: your person's identity provider vouches for them

Ask the provider for an ID-JAG with the audience `{root}` (RFC 8693, requested_token_type `{id_jag}`). Then:

```http
POST {base}/auth/register
Content-Type: application/json

{{"type": "identity_assertion", "assertion_type": "{id_jag}", "assertion": "<ID-JAG>", "scope": "{scope}"}}
```

The same request with the members of the API document: `"grant_type": "{jwt_bearer}"` in place of `type`.
200 has `identity_assertion` and `assertion_expires`: go on with step 5. 401 `interaction_required` has a `claim`: your
person confirms once, go on with step 4. 401 `login_required`: have your person sign in at the provider again.
An ID-JAG is accepted once; ask for a fresh one each time.
""",
    "service_auth": """
### service_auth: you know your person's e-mail

```http
POST {base}/auth/register
Content-Type: application/json

{{"type": "service_auth", "login_hint": "person@example.com", "scope": "{scope}"}}
```

The same request with the members of the API document:
`{{"method": "service_auth", "email": "person@example.com", "scope": "{scope}"}}`.
200 has a `claim_token` and a `claim` with `user_code` and `verification_uri`: go on with step 4.
""",
    "anonymous": """
### anonymous: without a person

Public addresses need no credentials at all: `{base}/catalog`, `{root}/openapi.json`. For a quota of your own, or to be
claimed later:

```http
POST {base}/auth/register
Content-Type: application/json

{{"type": "anonymous"}}
```

The same request with the members of the API document: `{{"method": "anonymous"}}`.
200 has an `identity_assertion` for public reads (step 5) and a `claim_token` with which a person can claim you.
""",
}

_CLIENTS = """
A client that opens a browser for its person, such as an MCP client, needs none of these. It registers itself by POST
{root}/auth/clients `{{"client_name": "…", "redirect_uris": ["http://127.0.0.1:3030/callback"]}}` (RFC 7591), and uses
an authorization code with PKCE. There is no refresh token, and the person is asked each time. The page offers the
scopes that the client registered for and that the person has; `scope` in the token response names the granted scopes.
After {client_days} days without use the registration ends (401 `invalid_client`): register again.
"""
_TEXT = """# auth.md

How an agent signs in to {name}.

You are an agent and want to call {base} for a person. This page shows the configuration of this server.

**Before you register, show your person the name of this resource ("{name}", {root}) and the scopes you are going to ask
for, and get a yes.** Do not register without it. Ask for the fewest scopes that do the work:

{scope_list}

## 1. Discover

1a. Any call that needs a token answers 401 with `WWW-Authenticate: Bearer resource_metadata="{resource_url}"`,
and with the scope that is enough for that call (`scope`). GET the address: `resource`, `resource_name`,
`resource_logo_uri`, `authorization_servers`, `scopes_supported`.

1b. GET {server_url}: `token_endpoint`, `revocation_endpoint`, and under `agent_auth` the addresses used below.

## 2. Pick a method

This server takes: {types}. With a session of your person at an identity provider it trusts, use
identity_assertion. With their e-mail, use service_auth: they confirm. With neither, anonymous: public reads only.
{clients}
## 3. Register
{registering}
## 4. Claim ceremony

4a. Give your person the `verification_uri` and the `user_code`. They open the page, sign in, see what you ask for, and
type the code. Say plainly who you are and what you want; never ask them to hurry.

4b. Meanwhile poll with the claim token, no faster than `interval` seconds:

```http
POST {base}/auth/login
Content-Type: application/x-www-form-urlencoded

grant_type={claim_grant}&claim_token=<CLAIM_TOKEN>
```

400 `authorization_pending`: go on. 400 `slow_down`: wait longer between polls from now on. 400 `access_denied`: your
person declined; stop, and do not ask again unless they want it. 400 `invalid_scope`: your person
confirmed, but lacks the scope that the error names; register again without it. 400 `expired_token`: begin another
attempt (4c). 200 is a token response with `identity_assertion` and `assertion_expires` beside it.

GET {base}/auth/me with `Authorization: Bearer <CLAIM_TOKEN>` returns the same as a status: `pending`, `claimed`.

4c. Another attempt: POST {base}/auth/me `{{"type": "service_auth", "claim_token": "<CLAIM_TOKEN>", "login_hint":
"person@example.com"}}`. The page of `attempt.verification_uri` shows your person six digits instead; with them POST
{base}/auth/me/complete `{{"claim_token": "<CLAIM_TOKEN>", "user_code": "<DIGITS>"}}`.

Keep the claim token in memory only and forget it once you were claimed: do not write it to disk or into a log.

## 5. Exchange

```http
POST {base}/auth/login
Content-Type: application/json

{{"grant_type": "{jwt_bearer}", "assertion": "<IDENTITY_ASSERTION>", "scope": "{scope}"}}
```

200: `access_token`, `token_type` Bearer, `expires_in` {token_ttl_s}, `scope`. There is no refresh token: exchange the
identity assertion again while it lasts ({assertion_ttl_s} seconds). {base}/auth/token is the same address.

## 6. Use

Send `Authorization: Bearer <ACCESS_TOKEN>`, in the header only. GET {base}/auth/me returns whose token it is.
GET {base}/library needs read:library. {root}/openapi.json describes everything else.

## Errors

| Status | error | What to do |
|---|---|---|
| 400 | `invalid_request` | Correct what `error_description` names. |
| 400 | `unsupported_identity_type` | Register as one of {types}. |
| 400 | `invalid_login_hint` | Send the e-mail address of your person; a registration names one alone. |
| 400 | `invalid_scope` | Ask for scopes from the list above that your person has. |
| 400 | `invalid_grant` | Exchange again; if that fails too, register again. |
| 400 | `invalid_target` | Leave `resource` out, or send {root}. |
| 400 | `unsupported_grant_type` | Use one of `grant_types_supported`. |
| 400 | `invalid_issuer`, `invalid_signature`, `expired` | Get another ID-JAG, from a provider trusted here. |
| 400 | `invalid_audience`, `invalid_client_id` | Get an ID-JAG for {root} and for your own client. |
| 400 | `replay_detected` | This ID-JAG was used; get another. |
| 400 | `missing_verified_email` | The provider must assert an e-mail that it has verified. |
| 401 | `invalid_token` | The access token ended: exchange again, or register again. |
| 401 | `invalid_client` | Check client id and secret. |
| 401 | `interaction_required` | Go on with the claim ceremony. |
| 401 | `login_required` | Your person signs in at the provider again. |
| 400 | `invalid_claim` | Your person declined, or ended it: stop. |
| 401 | `invalid_claim_token` | Register again. |
| 401 | `invalid_user_code` | Ask your person for the six digits of the page. `attempts_remaining`: the tries left. |
| 403 | `insufficient_scope` | `WWW-Authenticate` names the scope that is missing. |
| 403 | `anonymous_not_enabled`, `service_auth_not_enabled` | Pick another method. |
| 403 | `access_denied` | Your person declined. |
| 409 | `already_claimed`, `claim_not_confirmed` | Keep polling. |
| 410 | `user_code_expired` | Begin another attempt (4c). |
| 410 | `claim_expired` | Register again. |
| 429 | `rate_limited` | Wait for the seconds in `Retry-After`. |

Every error also has `code` and `message`, and often `resolution`, which is the next step.

## Retry policy

On 429 and 503 wait for `Retry-After`. On other 5xx and on a broken connection try again after 1, 2, 4, … seconds, five
times at most. Never repeat a 4xx unchanged. Registrations are limited per hour.

## Revocation

When you are done, revoke your token; the request needs no other credential:

```http
POST {root}/auth/revoke
Content-Type: application/x-www-form-urlencoded

token=<ACCESS_TOKEN>&token_type_hint=access_token
```

Send the identity assertion instead to end the whole registration. Your person can disconnect you at any time at
{root}/auth/agents, and their identity provider by a security event to {root}/healthz ({revoked_event}).
Afterwards every call answers 401 `invalid_token`: stop, and ask your person before you register again.
"""


def auth_md(store: Store) -> str:
    """The page /auth.md, with the addresses, scopes, methods and times of the configuration."""
    settings = store.settings
    values = {
        "root": store.root_url,
        "base": store.base_url,
        "name": settings.resource_name,
        "scope": "read:library",
        "id_jag": ID_JAG,
        "jwt_bearer": token_endpoint.JWT_BEARER,
        "claim_grant": settings.claim_grant,
        "revoked_event": settings.revoked_event,
        "token_ttl_s": settings.token_ttl_s,
        "client_days": settings.dynamic_client_days,
        "assertion_ttl_s": settings.assertion_ttl_s,
        "resource_url": store.root_url + RESOURCE_PATH,
        "server_url": store.root_url + SERVER_PATH,
    }
    clients = _CLIENTS.format(**values) if settings.dynamic_clients else ""
    types = identity_types(store)
    registration_text = "".join(_REGISTERING[name].format(**values) for name in _REGISTERING if name in types)
    scope_list = "\n".join(f"- `{scope}`: {scopes.MEANING[scope]}" for scope in scopes.ALL if scope != "admin:org")
    return _TEXT.format(
        **values, types=", ".join(types), registering=registration_text, clients=clients, scope_list=scope_list
    )
