"""The discovery documents: they are exact, depend only on the configuration, and pages of any site may read them."""

import re

import httpx
import pytest

from countersign.settings import Settings
from countersign.store import app as distribution
from tests.store.conftest import ROOT_URL, with_settings
from tests.store.world import World

BASE = f"{ROOT_URL}/api/v1"
RESOURCE = "/.well-known/oauth-protected-resource"
SERVER = "/.well-known/oauth-authorization-server"
SCOPES = ["read:products", "write:products", "read:releases", "write:releases", "read:library", "admin:org"]
DOCUMENTED = {
    "issuer": ROOT_URL,
    "authorization_endpoint": f"{ROOT_URL}/auth/authorize",
    "token_endpoint": f"{BASE}/auth/login",
    "revocation_endpoint": f"{ROOT_URL}/auth/revoke",
    "jwks_uri": f"{ROOT_URL}/.well-known/jwks.json",
    "response_types_supported": ["code", "token"],
    "grant_types_supported": [
        "authorization_code",
        "client_credentials",
        "urn:ietf:params:oauth:grant-type:jwt-bearer",
        "urn:workos:agent-auth:grant-type:claim",
    ],
    "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
    "scopes_supported": SCOPES,
    "agent_auth": {
        "skill": f"{ROOT_URL}/auth.md",
        "identity_endpoint": f"{BASE}/auth/register",
        "claim_endpoint": f"{BASE}/auth/me",
        "events_endpoint": f"{ROOT_URL}/healthz",
        "identity_types_supported": ["anonymous", "identity_assertion", "service_auth"],
        "identity_assertion": {"assertion_types_supported": ["urn:ietf:params:oauth:token-type:id-jag"]},
        "events_supported": ["https://schemas.workos.com/events/agent/auth/identity/assertion/revoked"],
    },
}
ADDED = {
    "code_challenge_methods_supported": ["S256"],
    "authorization_response_iss_parameter_supported": True,
    "revocation_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post", "none"],
    "authorization_grant_profiles_supported": ["urn:ietf:params:oauth:grant-profile:id-jag"],
    "service_documentation": f"{ROOT_URL}/auth.md",
    "registration_endpoint": f"{ROOT_URL}/auth/clients",
}
DOCUMENTS = (
    RESOURCE,
    f"{RESOURCE}/api/v1",
    f"{RESOURCE}/mcp",
    SERVER,
    f"{SERVER}/api/v1",
    "/.well-known/jwks.json",
    "/auth.md",
    "/logo.svg",
)


async def test_the_server_metadata_contains_the_documented_members_and_more(world: World) -> None:
    for suffix in ("", "/api/v1"):
        answer = await world.http.get(SERVER + suffix)

        assert answer.json() == DOCUMENTED | ADDED
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["cache-control"] == "public, max-age=300"


async def test_each_resource_names_itself(world: World) -> None:
    common = {
        "resource_name": "Countersign",
        "resource_logo_uri": f"{ROOT_URL}/logo.svg",
        "authorization_servers": [ROOT_URL],
        "scopes_supported": SCOPES,
        "bearer_methods_supported": ["header"],
    }

    assert (await world.http.get(RESOURCE)).json() == {"resource": ROOT_URL, **common}
    assert (await world.http.get(f"{RESOURCE}/api/v1")).json() == {"resource": BASE, **common}


async def test_a_challenge_leads_to_everything_the_metadata_names(world: World) -> None:
    challenge = (await world.call("GET", "/library")).headers["www-authenticate"]
    match = re.search(r'resource_metadata="([^"]+)"', challenge)
    assert match is not None

    resource = (await world.http.get(match[1])).json()
    server = (await world.http.get(resource["authorization_servers"][0] + SERVER)).json()

    assert server["issuer"] == resource["authorization_servers"][0]
    for address in (resource["resource_logo_uri"], server["jwks_uri"], server["agent_auth"]["skill"]):
        assert (await world.http.get(address)).status_code == 200
    for address in (server["token_endpoint"], server["revocation_endpoint"]):
        assert (await world.http.get(address)).status_code == 405
    assert (await world.http.get(server["authorization_endpoint"])).status_code == 400


async def test_a_refusal_names_the_scope_that_would_have_been_enough(world: World) -> None:
    metadata_link = f'resource_metadata="{ROOT_URL}{RESOURCE}"'

    for path, needed in (("/library", ', scope="read:library"'), ("/auth/me", "")):
        anonymous_answer, with_one = await world.call("GET", path), await world.call("GET", path, "no token of ours")
        assert anonymous_answer.headers["www-authenticate"] == f"Bearer {metadata_link}{needed}"
        assert with_one.headers["www-authenticate"].endswith(f", {metadata_link}{needed}")
        assert with_one.headers["www-authenticate"].startswith('Bearer error="invalid_token", error_description=')


async def test_t48_no_request_changes_an_address(world: World) -> None:
    headers = {
        "Host": "evil.example",
        "X-Forwarded-Host": "evil.example",
        "X-Forwarded-Proto": "https",
        "Forwarded": "host=evil.example;proto=https",
        "Origin": "https://evil.example",
    }

    for path in DOCUMENTS:
        plain_response, spoofed_response = await world.http.get(path), await world.http.get(path, headers=headers)
        assert spoofed_response.content == plain_response.content, path
        assert b"evil.example" not in spoofed_response.content
    refused_response = await world.http.get("/api/v1/library", headers=headers)
    assert f'resource_metadata="{ROOT_URL}{RESOURCE}"' in refused_response.headers["www-authenticate"]
    assert "evil" not in str(refused_response.headers)


async def test_a_disabled_feature_is_not_offered(settings: Settings) -> None:
    changed_settings = with_settings(
        settings,
        agents_anonymous=False,
        resource_name="Paper <Lantern>",
        claim_grant="urn:acme:agent-auth:grant-type:claim",
    )
    async with distribution.open_store(changed_settings, ROOT_URL, is_loopback=True) as store:
        transport = httpx.ASGITransport(distribution.create(store), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=ROOT_URL) as http:
            resource, server = (await http.get(RESOURCE)).json(), (await http.get(SERVER)).json()
            skill = (await http.get("/auth.md")).text

    assert resource["resource_name"] == "Paper <Lantern>"
    assert server["agent_auth"]["identity_types_supported"] == ["identity_assertion", "service_auth"]
    assert server["grant_types_supported"][-1] == "urn:acme:agent-auth:grant-type:claim"
    assert "Paper <Lantern>" in skill
    assert "urn:acme:agent-auth:grant-type:claim" in skill
    assert "workos" not in skill.replace(changed_settings.revoked_event, "")
    assert "### anonymous" not in skill


async def test_the_skill_explains_everything_and_says_to_ask_the_person_first(world: World) -> None:
    answer = await world.http.get("/auth.md")
    text = answer.text
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)

    assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
    assert [heading for heading in headings if "auth.md" in heading] == headings[:1]
    assert text.startswith("# auth.md")
    parts = [
        heading for heading in headings if not heading.startswith(("identity_assertion", "service_auth", "anonymous"))
    ]
    assert [heading.lower() for heading in parts[1:]] == [
        "1. discover",
        "2. pick a method",
        "3. register",
        "4. claim ceremony",
        "5. exchange",
        "6. use",
        "errors",
        "retry policy",
        "revocation",
    ]
    before_registering = " ".join(text[: text.index("## 1.")].split())
    assert "show your person the name of this resource" in before_registering
    assert "get a yes" in before_registering
    for scope in SCOPES[:-1]:
        assert f"`{scope}`" in before_registering
    assert "{" not in re.sub(r"\{\"[^`]*?\}", "", text), "nothing is left unfilled"


async def test_every_address_in_the_skill_is_listed_in_the_metadata(world: World) -> None:
    text = (await world.http.get("/auth.md")).text

    for address in set(re.findall(rf"{re.escape(ROOT_URL)}[\w./-]*[\w]", text)):
        path = address.removeprefix(ROOT_URL)
        later_paths = ("/wiki.json", "/api/v1/auth/register", "/api/v1/auth/me/complete")
        if path and path != "/api/v1" and path not in later_paths:
            answer = await world.http.get(path)
            assert answer.status_code != 404, path


async def test_the_logo_is_served_only_as_a_picture(world: World) -> None:
    answer = await world.http.get("/logo.svg")

    assert answer.headers["content-type"] == "image/svg+xml"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert set(re.findall(r"<(\w+)", answer.text)) == {"svg", "rect", "path"}
    assert "href" not in answer.text


@pytest.mark.parametrize("path", [RESOURCE, f"{SERVER}/api/v1", "/.well-known/jwks.json", "/auth.md"])
async def test_pages_of_any_site_may_read_the_metadata(world: World, path: str) -> None:
    origin = {"Origin": "https://app.example"}
    ask = {**origin, "Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "mcp-protocol-version"}

    preflight = await world.http.options(path, headers=ask)
    answer = await world.http.get(path, headers=origin)

    assert preflight.status_code == 204
    assert preflight.headers["access-control-allow-methods"] == "GET"
    assert "MCP-Protocol-Version" in preflight.headers["access-control-allow-headers"]
    for response in (preflight, answer):
        assert response.headers.get_list("access-control-allow-origin") == ["*"]
        assert "access-control-allow-credentials" not in response.headers


@pytest.mark.parametrize("path", ["/api/v1/auth/token", "/api/v1/auth/login", "/auth/revoke"])
async def test_pages_of_any_origin_may_send_tokens_and_read_refusals(world: World, path: str) -> None:
    preflight = await world.http.options(path, headers={"Access-Control-Request-Method": "POST"})
    refused_response = await world.http.post(path, data={"x": "y"})
    unreadable = await world.http.post(path, content=b"{", headers={"Content-Type": "application/json"})

    assert (preflight.status_code, preflight.headers["access-control-allow-methods"]) == (204, "POST")
    assert "Authorization" in preflight.headers["access-control-allow-headers"]
    for response in (preflight, refused_response, unreadable):
        assert response.headers["access-control-allow-origin"] == "*"
        assert "WWW-Authenticate" in response.headers["access-control-expose-headers"]
    assert refused_response.status_code == unreadable.status_code == 400


@pytest.mark.parametrize("path", ["/auth/authorize", "/auth/agents", "/auth/signin", "/api/v1/library"])
async def test_pages_of_other_sites_can_use_no_other_endpoint(world: World, path: str) -> None:
    preflight = await world.http.options(path)
    answer = await world.http.get(path, headers={"Origin": "https://evil.example"})

    assert preflight.status_code == 405
    assert "access-control-allow-origin" not in answer.headers
